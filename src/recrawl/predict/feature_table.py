"""Features of pages as one table, with the schema that a learner was trained on.

Paper 004 groups features by two questions: are they computed from the page alone or from others (page or network), and
from one time or from a history (static or dynamic)? A table stores the group of each column, so that learners can be
given any of the four groups, or the feature sets that paper 004 compares (§6 and §7).
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError
from recrawl.model import AnyArray, IntArray

FeatureArray: TypeAlias = npt.NDArray[np.float32]


class FeatureGroup(enum.StrEnum):
    """The four kinds of features (paper 004, §5.2)."""

    SP = "SP"
    """Static, of the page."""
    SN = "SN"
    """Static, of the network and of related pages."""
    DP = "DP"
    """Dynamic, of the page."""
    DN = "DN"
    """Dynamic, of the network and of related pages."""


@dataclass(frozen=True, slots=True)
class Feature:
    """What one column holds."""

    name: str
    group: FeatureGroup
    categorical: bool = False
    """Its numbers are names: neither order nor distance means anything."""


Column: TypeAlias = tuple[Feature, npt.ArrayLike]
"""A feature with its values, one a page."""


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Features of n pages as they were known just before ``as_of``. NaN where unknown."""

    page: IntArray
    """Page ids, ascending, unique (but see :func:`stacked`). Shape (n,)."""
    columns: tuple[Feature, ...]
    values: FeatureArray
    """Shape (n, columns). Single precision: a million pages with a hundred features take 400 MB."""
    as_of: float
    """Nothing at or after this time was observed; seconds since the epoch."""

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.page), len(self.columns)):
            msg = (
                f"{len(self.page)} pages and {len(self.columns)} columns do not fit values of shape {self.values.shape}"
            )
            raise ValueError(msg)
        if len({column.name for column in self.columns}) < len(self.columns):
            msg = "two columns have the same name"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.page)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> str:
        """A short digest of names, groups and kinds of the columns, in order: equal schemas can share a model."""
        return schema_of(self.columns)

    def column(self, name: str) -> FeatureArray:
        """One feature of all pages."""
        return self.values[:, self.names.index(name)]

    def take(self, rows: AnyArray | slice) -> FeatureTable:
        """The pages at these ascending positions, or where this mask is true."""
        return FeatureTable(self.page[rows], self.columns, self.values[rows], self.as_of)

    def of_groups(self, groups: Collection[FeatureGroup]) -> FeatureTable:
        """Only the columns of these groups."""
        return self._keep([column.group in groups for column in self.columns])

    def only(self, names: Collection[str]) -> FeatureTable:
        """Only the columns of these names, in the order of the table."""
        missing = sorted(set(names) - set(self.names))
        if missing:
            msg = f"there is no feature {missing[0]!r}"
            raise KeyError(msg)
        return self._keep([column.name in names for column in self.columns])

    def fitting(self, schema: str) -> FeatureTable:
        """This table, if a model with that schema can read it.

        Raises:
            InputError: the model was trained on other features.
        """
        if schema != self.schema:
            raise InputError(
                f"The model was trained on other features (schema {schema}) than these pages have ({self.schema}).",
                "Train it again, or score with the options it was trained with.",
            )
        return self

    def _keep(self, chosen: list[bool]) -> FeatureTable:
        kept = np.flatnonzero(chosen)
        return FeatureTable(self.page, tuple(self.columns[place] for place in kept), self.values[:, kept], self.as_of)


def schema_of(columns: Sequence[Feature]) -> str:
    """The digest of these columns: twelve hexadecimal digits, the same in every run and on every machine.

    >>> schema_of([Feature("text_size", FeatureGroup.SP)]) == schema_of([Feature("text_size", FeatureGroup.DP)])
    False
    """
    written = "\n".join(f"{one.name}\t{one.group}\t{int(one.categorical)}" for one in columns)
    return hashlib.blake2b(written.encode(), digest_size=6).hexdigest()


def beside(tables: Sequence[FeatureTable]) -> FeatureTable:
    """Tables of the same pages at the same time as one, their columns side by side."""
    first = tables[0]
    for other in tables[1:]:
        if other.as_of != first.as_of or not np.array_equal(other.page, first.page):
            msg = "the tables are of other pages or of another time"
            raise ValueError(msg)
    columns = tuple(column for table in tables for column in table.columns)
    return FeatureTable(first.page, columns, np.concatenate([table.values for table in tables], axis=1), first.as_of)


def stacked(tables: Sequence[FeatureTable]) -> FeatureTable:
    """Tables of several times as one, to learn from: page ids repeat, and ``as_of`` is the latest.

    Raises:
        InputError: they have different features.
    """
    first = tables[0]
    values = np.concatenate([table.fitting(first.schema).values for table in tables])
    page = np.concatenate([table.page for table in tables])
    return FeatureTable(page, first.columns, values, max(table.as_of for table in tables))


def table_of(page: IntArray, as_of: float, columns: Sequence[Column]) -> FeatureTable:
    """A table from columns, each given with what it holds.

    >>> found = table_of(np.array([4, 9]), 0.0, [(Feature("images", FeatureGroup.SP), [3, 1])])
    >>> found.names, found.column("images").tolist()
    (('images',), [3.0, 1.0])
    """
    values = np.empty((len(page), len(columns)), dtype=np.float32)
    for place, (_, column) in enumerate(columns):
        values[:, place] = column
    return FeatureTable(page, tuple(feature for feature, _ in columns), values, as_of)


SEMANTIC: Final = "semantic_"
"""How the names of semantic features start."""
BASELINES: Final = {"NNL-Av": "new_{kind}_mean", "NNL-Pr": "new_{kind}_1", "CCR": "content_change_rate"}
"""Rankings by one feature (paper 004, Table 4): the mean of past periods, the last one, the content's change rate."""


class PredictionTarget(enum.StrEnum):
    """What is predicted of a page (paper 004, §5.1)."""

    LCR = "LCR"
    """The link change rate."""
    NL = "NL"
    """Whether there will be new links."""
    NNL = "NNL"
    """How many."""


class FeatureSet(enum.StrEnum):
    """Sets of features, each larger than the one before; and the small one."""

    SP = "SP"
    SP_SEM = "SP+sem"
    SP_SN = "SP+SN"
    STATIC = "SP+sem+SN"
    PAGE = "SP+sem+SN+DP"
    ALL = "all"
    LBLA = "LBLA"


_GROUPS: Final = {
    FeatureSet.SP: {FeatureGroup.SP},
    FeatureSet.SP_SEM: {FeatureGroup.SP},
    FeatureSet.SP_SN: {FeatureGroup.SP, FeatureGroup.SN},
    FeatureSet.STATIC: {FeatureGroup.SP, FeatureGroup.SN},
    FeatureSet.PAGE: {FeatureGroup.SP, FeatureGroup.SN, FeatureGroup.DP},
    FeatureSet.ALL: set(FeatureGroup),
}
_WITHOUT_SEMANTICS: Final = {FeatureSet.SP, FeatureSet.SP_SN}


def choose(table: FeatureTable, features: FeatureSet, target: PredictionTarget, *, internal: bool) -> FeatureTable:
    """The columns of a set, for one target and kind of links.

    The link change rate is predicted without the page's own past, which all but tells it (reading 004.2): its LBLA set
    only looks around.
    """
    if features is FeatureSet.LBLA:
        names = set(lbla_names(table, internal=internal, back=target is not PredictionTarget.LCR))
    else:
        groups = _GROUPS[features] - ({FeatureGroup.DP} if target is PredictionTarget.LCR else set())
        names = {
            column.name
            for column in table.columns
            if column.group in groups and not (features in _WITHOUT_SEMANTICS and column.name.startswith(SEMANTIC))
        }
    return table.only(names)


def lbla_names(table: FeatureTable, *, internal: bool, back: bool = True) -> list[str]:
    """The features of look back, look around that a table has, for one kind of links; ``back`` or only around."""
    kind = "internal" if internal else "external"
    around = [f"near_new_{kind}_", f"near_{kind}_link_change_rate"]
    starts = tuple([f"new_{kind}_", *around] if back else around)
    # new_internal_per_day is over the whole life of the page and no feature of the paper's.
    return [name for name in table.names if name.startswith(starts) and not name.endswith("_per_day")]
