"""Features as a table with a schema, and the static features of pages.

The table has the schema that a learner was trained on. Paper 004 groups features by two questions: are they computed
from the page alone or from others (page or network), and from one time or from a history (static or dynamic)? A table
stores the group of each column, so that learners can be given any of the four groups, or the feature sets that paper
004 compares (§6 and §7).

Static features are of the URL, of one observed version, and of the link graph at one time (papers 002, 003 and 004).

- URL: directory level (paper 002, §3.2), depths and internal links (paper 004, §4.2), with readings 002.6, 004.3 and
  004.6, and the features of SHARC 6.3. A URL without a scheme is read as ``http``.
- Names (media types, top-level domains, parts of paths) as numbers: each is hashed into one of 254 buckets, the same in
  every run. No dictionary is needed, and a model reads old and new names alike. Frequent names rarely share a bucket.
- Text quality: paper 004 (§5.2) names "a non-linear function applied on a ratio of the vocabulary size to the document
  size" without the formula. We use Herdan's C: with V distinct words among N,

      C = ln V / ln N = 1 + ln(V/N) / ln N.

  V/N falls with the length of every natural text; C hardly does (0.8 to 0.95 in natural texts), but is lower for
  repeated phrases and keyword stuffing.
- Links (SN): inlinks, PageRank (Brin and Page 1998) and TrustRank (Gyöngyi, Garcia-Molina and Pedersen 2004). A random
  surfer follows a link with probability d (``damping``), else restarts: anywhere (PageRank) or on a trusted page
  (TrustRank); also on pages without links. The ranks r solve

      r = d (Pᵀ r + u · Σ_{dangling} r) + (1 − d) u

  with restart distribution u. Power iteration reduces the error by the factor d per round.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Final, NamedTuple, TypeAlias

import ada_url
import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.predict.page_versions import STATE, PageGraph, PageVersions, picked
from recrawl.predict.related_pages import SingleArray

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


BUCKETS = 254
"""As many as histogram-based trees take as categories, the unknown one aside."""


def bucket(name: str) -> int:
    """The bucket of a name, case ignored; −1 for the empty one.

    >>> bucket("text/html") == bucket("TEXT/HTML"), bucket("")
    (True, -1)
    """
    if not name:
        return -1
    return int.from_bytes(hashlib.blake2b(name.casefold().encode(), digest_size=8).digest()) % BUCKETS


def buckets(names: Sequence[str]) -> IntArray:
    """The bucket of each name. O(names), and one hash a distinct one."""
    known = {name: bucket(name) for name in set(names)}
    return np.fromiter((known[name] for name in names), np.int64, len(names))


_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_WWW = "www."


class UrlDepths(NamedTuple):
    """How deep a URL lies."""

    path: int
    """Segments of its path."""
    domain: int
    """Labels of its host name, ``www`` and the top level included."""


@dataclass(frozen=True, slots=True)
class UrlFeatures:
    """Static features of n URLs, as columns."""

    directory_level: IntArray
    path_depth: IntArray
    domain_depth: IntArray
    characters: IntArray
    """Length of the URL."""
    digits: IntArray
    """Digits in it: dates and numbers mark items, their absence marks lists."""
    arguments: IntArray
    """Arguments of its query."""
    is_directory: BoolArray
    """Whether its path ends in a slash."""

    def __len__(self) -> int:
        return len(self.characters)


def url_features(urls: Sequence[str]) -> UrlFeatures:
    """The features of each URL. O(characters), one URL at a time in Python.

    >>> found = url_features(["http://example.com/news/2026/08/", "example.com/a?x=1&y=2"])
    >>> found.directory_level.tolist(), found.digits.tolist(), found.arguments.tolist()
    ([4, 1], [6, 2], [0, 2])
    """
    parsed = [_parse(url) for url in urls]
    depths = [_depths(one) for one in parsed]
    return UrlFeatures(
        directory_level=_whole(_level(one) for one in parsed),
        path_depth=_whole(depth.path for depth in depths),
        domain_depth=_whole(depth.domain for depth in depths),
        characters=_whole(len(one.href) for one in parsed),
        digits=_whole(sum(map(str.isdigit, one.href)) for one in parsed),
        arguments=_whole(sum(map(bool, one.search[1:].split("&"))) for one in parsed),
        is_directory=_whole(one.pathname.endswith("/") for one in parsed) != 0,
    )


def directory_level(url: str) -> int:
    """Directories above and including the page's own, the root being 1; the file name does not count.

    >>> directory_level("www.yahoo.com"), directory_level("www.yahoo.com/mail/"), directory_level("http://a.b/c/d.html")
    (1, 2, 2)
    """
    return _level(_parse(url))


def url_depths(url: str) -> UrlDepths:
    """Depth in the path, every segment counted, and in the domain, every label counted.

    >>> url_depths("http://domain.com/en/news/article123456/"), url_depths("http://sub.domain.com/").domain
    (UrlDepths(path=3, domain=2), 3)
    """
    return _depths(_parse(url))


def is_internal(source: str, target: str) -> bool:
    """Whether a link stays on its site: the same scheme, and the same host but for a leading ``www.``.

    >>> is_internal("https://www.example.org/a", "https://example.org/b")
    True
    >>> is_internal("https://www.example.org/a", "http://www.example.org/b")
    False
    """
    one, other = _parse(source), _parse(target)
    return bool(one.protocol == other.protocol and one.host.removeprefix(_WWW) == other.host.removeprefix(_WWW))


def _whole(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _parse(url: str) -> ada_url.URL:
    try:
        return ada_url.URL(url if _SCHEME.match(url) else f"http://{url}")
    except ValueError:
        raise InputError(f"{url!r} is not a URL.", "Give it as http://host/path or host/path.") from None


def _level(parsed: ada_url.URL) -> int:
    return 1 + sum(map(bool, parsed.pathname.split("/")[:-1]))


def _depths(parsed: ada_url.URL) -> UrlDepths:
    return UrlDepths(sum(map(bool, parsed.pathname.split("/"))), sum(map(bool, parsed.hostname.split("."))))


class OnlineFeatures(NamedTuple):
    """The URL, taken apart; and the media type, which the head of an answer tells."""

    domain: str
    mime: str
    depth: int
    """Slashes in the path."""
    length: int
    """Characters of the URL."""
    segment1: str
    """The first three parts of the path; empty where there are fewer."""
    segment2: str
    segment3: str
    has_tilde: bool
    has_underline: bool
    has_question: bool
    has_semicolon: bool
    has_colon: bool
    has_comma: bool
    has_percent: bool


def online_features(url: str, mime: str) -> OnlineFeatures:
    """The features of a URL as it is written. Signs are searched behind ``scheme://`` (reading 003.39).

    >>> found = online_features("http://example.org/~me/a_b.php?y=1", "text/html")
    >>> found.depth, found.segment1, found.segment3, found.has_tilde, found.has_colon
    (2, '~me', '', True, False)
    """
    parts = ada_url.URL(url)
    path = str(parts.pathname)
    rest = url.partition("://")[2]
    first, second, third, *_ = [*(part for part in path.split("/") if part), "", "", ""]
    signs = (sign in rest for sign in "~_?;:,%")
    return OnlineFeatures(str(parts.hostname), mime, path.count("/"), len(url), first, second, third, *signs)


SIGNS = ("tilde", "underline", "question", "semicolon", "colon", "comma", "percent")
"""Special symbols that a URL may have (SHARC 6.3)."""


def url_columns(urls: Sequence[str]) -> list[Column]:
    """What the URLs say: depths, length, symbols, and their parts as names. O(characters), one at a time in Python."""
    found = url_features(urls)
    # The media type is a matter of the answer, not of the URL.
    parts = [online_features(url if "://" in url else f"http://{url}", "") for url in urls]
    numbers = {
        "path_depth": found.path_depth,
        "domain_depth": found.domain_depth,
        "directory_level": found.directory_level,
        "url_characters": found.characters,
        "url_digits": found.digits,
        "url_arguments": found.arguments,
        "url_is_directory": found.is_directory,
    }
    columns: list[Column] = [(Feature(name, FeatureGroup.SP), column) for name, column in numbers.items()]
    for sign in SIGNS:
        has = np.fromiter((getattr(part, f"has_{sign}") for part in parts), np.float64, len(parts))
        columns.append((Feature(f"url_has_{sign}", FeatureGroup.SP), has))
    names = {
        "segment1": [part.segment1 for part in parts],
        "segment2": [part.segment2 for part in parts],
        "segment3": [part.segment3 for part in parts],
        "top_level_domain": [part.domain.rpartition(".")[2] for part in parts],
    }
    columns += [(Feature(name, FeatureGroup.SP, categorical=True), _named(values)) for name, values in names.items()]
    return columns


def version_columns(versions: PageVersions, row: IntArray) -> list[Column]:
    """What the last observation of each page found; ``row`` is its row, −1 where there was none."""
    columns: list[Column] = [(Feature(name, FeatureGroup.SP), picked(getattr(versions, name), row)) for name in STATE]
    mime = picked(versions.mime, row)
    columns.append((Feature("mime", FeatureGroup.SP, categorical=True), np.where(mime >= 0, mime, np.nan)))
    return columns


def semantic_columns(reduced: SingleArray) -> list[Column]:
    """The reduced semantic vector, a column an axis; unknown where a page has no text."""
    silent = ~reduced.any(axis=1)
    return [
        (Feature(f"semantic_{axis:02}", FeatureGroup.SP), np.where(silent, np.nan, reduced[:, axis]))
        for axis in range(reduced.shape[1])
    ]


def _named(values: Sequence[str]) -> FloatArray:
    code = buckets(values)
    return np.where(code >= 0, code, np.nan)


DAMPING = 0.85
TOLERANCE = 1e-8
"""Sum of the absolute errors of all ranks, which themselves sum up to 1."""
ROUNDS = 500
"""Enough for any damping up to 0.95; what is not exact by then is a bug."""


@dataclass(frozen=True, slots=True)
class LinkRanks:
    """Ranks of all pages, summing up to 1."""

    rank: FloatArray
    rounds: int
    """Rounds of the iteration: few where it started from ranks of a graph that hardly differs."""


def link_ranks(
    graph: PageGraph, *, restart: FloatArray | None = None, start: FloatArray | None = None, damping: float = DAMPING
) -> LinkRanks:
    """The ranks of a graph. O(links) a round.

    Args:
        graph: links; of several between the same pages each counts.
        restart: how likely each page is at a restart, up to a factor; equally likely if not given, and if all are 0.
        start: ranks to start with, such as those of the week before; the result is the same, found sooner.
        damping: probability d of following a link.
    """
    from scipy import sparse

    n = graph.pages
    if not n:
        return LinkRanks(np.empty(0), 0)
    u = _distribution(restart, n)
    links = np.bincount(graph.source, minlength=n).astype(np.float64)
    dangling = links == 0
    share = damping / np.where(dangling, 1.0, links)
    step = sparse.csr_array((share[graph.source], (graph.target, graph.source)), shape=(n, n))
    rank = _distribution(start, n)
    # The error after a round is at most d/(1 − d) times what the round moved.
    enough = TOLERANCE * (1.0 - damping) / damping if damping > 0 else np.inf
    for rounds in range(1, ROUNDS + 1):
        moved = step @ rank
        moved += (damping * float(rank[dangling].sum()) + 1.0 - damping) * u
        moved /= moved.sum()
        difference = float(np.abs(moved - rank).sum())
        rank = moved
        if difference <= enough:
            return LinkRanks(rank, rounds)
    msg = f"ranks still move by {difference:.2g} after {ROUNDS} rounds"
    raise ArithmeticError(msg)


def _distribution(weight: FloatArray | None, n: int) -> FloatArray:
    if weight is None or not weight.sum() > 0:
        return np.full(n, 1.0 / n)
    return np.asarray(weight / weight.sum(), dtype=np.float64)


NETWORK: Final = ("internal_inlinks", "external_inlinks", "pagerank", "trustrank")


@dataclass(frozen=True, slots=True)
class NetworkState:
    """Where n pages stand in the graph at one moment."""

    internal_inlinks: IntArray
    external_inlinks: IntArray
    pagerank: FloatArray
    """Times the number of pages, so that 1 is the average in a small web and in a large one."""
    trustrank: FloatArray
    """The same with restarts on trusted pages only."""


def network_state(graph: PageGraph, trusted: BoolArray, before: NetworkState | None = None) -> NetworkState:
    """The state of a graph, found sooner from the state of an earlier one of the same pages. O(links) a round.

    Without any trusted page all are trusted alike.
    """
    page = link_ranks(graph, start=None if before is None else before.pagerank)
    trust = link_ranks(graph, restart=trusted.astype(float), start=None if before is None else before.trustrank)
    return NetworkState(
        graph.inlinks(internal=True),
        graph.inlinks(internal=False),
        page.rank * graph.pages,
        trust.rank * graph.pages,
    )


_WORD = re.compile(r"\w+")


def text_quality(text: str) -> float:
    """Herdan's C of a text, in [0, 1]: 0 without words or with one word repeated, 1 if no word comes twice.

    >>> text_quality("to be or not to be") < text_quality("whether it is nobler in the mind")
    True
    >>> text_quality(""), text_quality("buy buy buy"), text_quality("home")
    (0.0, 0.0, 1.0)
    """
    words = _WORD.findall(text.casefold())
    if len(words) <= 1:
        return float(len(words))
    return log(len(set(words))) / log(len(words))


def text_qualities(texts: Sequence[str]) -> FloatArray:
    """The quality of each text. O(characters), one text at a time in Python."""
    return np.fromiter(map(text_quality, texts), np.float64, len(texts))
