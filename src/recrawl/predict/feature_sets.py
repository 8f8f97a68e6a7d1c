"""Which features a learner is given: the sets that paper 004 compares (§6 and §7)."""

from __future__ import annotations

import enum
from typing import Final

from recrawl.predict.feature_table import FeatureTable, Group

SEMANTIC: Final = "semantic_"
"""How the names of semantic features begin."""
BASELINES: Final = {"NNL-Av": "new_{kind}_mean", "NNL-Pr": "new_{kind}_1", "CCR": "content_change_rate"}
"""Rankings by one feature (paper 004, Table 4): the mean of past periods, the last one, the content's change rate."""


class Target(enum.StrEnum):
    """What is foretold of a page (paper 004, §5.1)."""

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
    FeatureSet.SP: {Group.SP},
    FeatureSet.SP_SEM: {Group.SP},
    FeatureSet.SP_SN: {Group.SP, Group.SN},
    FeatureSet.STATIC: {Group.SP, Group.SN},
    FeatureSet.PAGE: {Group.SP, Group.SN, Group.DP},
    FeatureSet.ALL: set(Group),
}
_WITHOUT_SEMANTICS: Final = {FeatureSet.SP, FeatureSet.SP_SN}


def choose(table: FeatureTable, features: FeatureSet, target: Target, *, internal: bool) -> FeatureTable:
    """The columns of a set, for one target and kind of links.

    The link change rate is foretold without the page's own past, which all but tells it (reading 004.2): its LBLA set
    only looks around.
    """
    if features is FeatureSet.LBLA:
        names = set(lbla_names(table, internal=internal, back=target is not Target.LCR))
    else:
        groups = _GROUPS[features] - ({Group.DP} if target is Target.LCR else set())
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
