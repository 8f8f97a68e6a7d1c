"""A trained model: priors of change and link rates from what is known of a page at first sight.

For each kind of event the model has two priors: one for pages that were only discovered, which reads their URLs, and
one for pages observed once, which also reads their content. Events are changes (λ) and new links (ν), internal and
external ones separately as in paper 004.

A model is stored as numpy arrays without pickles (``allow_pickle=False``), so a model from somebody else cannot run
code. Loading checks the types of all arrays and that all trees end. The model card says when, from what and how it was
trained, and how well it predicted: JSON for programs, Markdown for people.

:func:`contributions` explains a prediction: the factor of a feature is the predicted rate, divided by the geometric
mean of the rates predicted if the page had that feature from other pages. Correlated features share their effect, so
factors need not multiply to the whole.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError, counted
from recrawl.estimate.posterior.gamma_posterior import sum_of
from recrawl.model import AnyArray, BoolArray, FloatArray, GammaBelief, IntArray
from recrawl.predict.count_prior import BoostedTrees, CountPrior, PriorHead, TreePrior, chosen, train
from recrawl.predict.feature_extraction import ObservationCounts, when_found
from recrawl.predict.static_features import FeatureTable
from recrawl.time import format_duration, to_iso

CHANGES = "changes"
NEW_LINKS = "new-links"
"""Internal and external ones together: the sum of what is believed of each."""
LINK_EVENTS = {"internal": "new-internal-links", "external": "new-external-links"}
"""The events of links by kind: those that lead to pages of the same host, and those that lead elsewhere."""


@dataclass(frozen=True, slots=True)
class EventPrior:
    """Of one kind of event."""

    found: CountPrior
    """For pages of which only the URL is known."""
    seen: CountPrior
    """For pages that were observed."""

    def prior(self, table: FeatureTable, site: IntArray) -> GammaBelief:
        """What to believe of the rates of these pages, per second. O(pages · trees)."""
        known = is_seen(table)
        return chosen(
            known,
            lambda: self.seen.prior(table.take(known), site[known]),
            lambda: self.found.prior(when_found(table.take(~known)), site[~known]),
        )

    def level(self, table: FeatureTable, site: IntArray) -> FloatArray:
        """By what to multiply each answer to compare it with others.

        Who knows less of a page says what is nearer to the mean of all, and that of rates lies far above most of them.
        So a prediction is compared with the usual predictions of the same model, at the level of pages on known sites.
        """
        usual = np.where(is_seen(table), self.seen.usual(site), self.found.usual(site))
        return np.exp(self.seen.known_site.usual - usual)


@dataclass(frozen=True, slots=True)
class PriorModel:
    """Priors by kind of event; immutable."""

    events: Mapping[str, EventPrior]

    @property
    def schema(self) -> str:
        """Of the tables it reads."""
        return next(iter(self.events.values())).seen.schema

    @property
    def sites(self) -> IntArray:
        """Sites it was trained on."""
        return next(iter(self.events.values())).seen.sites

    @property
    def predicted(self) -> tuple[str, ...]:
        """What can be asked for."""
        links = set(LINK_EVENTS.values()) <= set(self.events)
        return (*self.events, *([NEW_LINKS] if links else []))

    def prior(self, event: str, table: FeatureTable, site: IntArray) -> GammaBelief:
        """What to believe of the rates of these pages, per second.

        Raises:
            InputError: the table has other features than the model was trained on.
        """
        asked = table.fitting(self.schema)
        return sum_of([one.prior(asked, site) for one in self.parts(event)])

    def level(self, event: str, table: FeatureTable, site: IntArray) -> FloatArray:
        """By what to multiply the mean of each prior where only ratios between pages count.

        Of one kind of event: a sum of two kinds has no answerer of its own.
        """
        return self.events[event].level(table, site)

    def parts(self, event: str) -> list[EventPrior]:
        """Whose beliefs add up to that about an event."""
        return [self.events[one] for one in (LINK_EVENTS.values() if event == NEW_LINKS else [event])]


def is_seen(table: FeatureTable) -> BoolArray:
    """Which pages were observed: their size is known then."""
    return ~np.isnan(table.column("content_size"))


def train_model(  # noqa: PLR0913 - what to learn from, and how
    table: FeatureTable,
    counts: Mapping[str, ObservationCounts],
    site: IntArray,
    *,
    seed: int = 0,
    everyone: GammaBelief | None = None,
    progress: Callable[[], None] = lambda: None,
) -> PriorModel:
    """Learn from pages with features at first sight and what was counted on each since, by kind of event.

    ``everyone`` is the prior of changes that all pages share, one row, from the observations themselves.

    ``progress`` is called :data:`STEPS` times for each. What pages were like when they were first observed is only
    learned from those that were.
    """
    seen = is_seen(table)
    picked = seen if bool(seen.any()) else np.ones(len(table), np.bool_)
    events = {}
    for event, count in counts.items():
        # What is usual with either is taken over the pages that both know: else they could not be compared.
        all_alike = everyone if event == CHANGES else None
        found = train(
            when_found(table), count.count, count.exposure, site, seed=seed, usual_of=picked, everyone=all_alike
        )
        progress()
        watched, exposure = count.count[picked], count.exposure[picked]
        seen_prior = train(table.take(picked), watched, exposure, site[picked], seed=seed, everyone=all_alike)
        events[event] = EventPrior(found, seen_prior)
        progress()
    return PriorModel(events)


STEPS = 2
"""Of training, for each kind of event."""


def event_counts(row: IntArray, amount: npt.ArrayLike, exposure: FloatArray) -> ObservationCounts:
    """Events that were counted: ``amount[k]`` more on page ``row[k]``. Those without exposure teach nothing.

    >>> event_counts(np.array([0, 0, 1]), [2, 1, 5], np.array([9.0, 0.0])).count.tolist()
    [3.0, 0.0]
    """
    count = np.bincount(row, np.asarray(amount, np.float64), len(exposure)).astype(np.float64)
    return ObservationCounts(np.where(exposure > 0, count, 0.0), exposure)


_ANSWERERS = ("known_site", "other_site")
_STAGES = ("found", "seen")
UNREADABLE = (
    KeyError,
    ValueError,
    TypeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    BadZipFile,
    zlib.error,
)
"""What reading an archive of arrays may raise where its bytes are damaged, or say that they are locked or packed."""
_DAMAGED = ("This is no model of recrawl, or it is damaged.", "Train it again.")


def model_bytes(model: PriorModel) -> bytes:
    """The model as the content of a file: the same bytes for the same model."""
    arrays: dict[str, AnyArray] = {}
    for event, prior in model.events.items():
        for stage in _STAGES:
            _put_count_prior(arrays, f"{event}/{stage}", getattr(prior, stage))
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def read_model(content: bytes) -> PriorModel:
    """The model that :func:`model_bytes` made these bytes of.

    Raises:
        InputError: they are something else.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        names = dict.fromkeys(name.split("/")[0] for name in arrays)
        events = {
            event: EventPrior(*(_count_prior(arrays, f"{event}/{stage}") for stage in _STAGES)) for event in names
        }
    except (*UNREADABLE, OSError) as error:
        raise InputError(*_DAMAGED) from error
    if not events:
        raise InputError(*_DAMAGED)
    return PriorModel(events)


def _put_count_prior(arrays: dict[str, AnyArray], place: str, prior: CountPrior) -> None:
    arrays[f"{place}/schema"] = np.array(prior.schema)
    arrays[f"{place}/sites"] = prior.sites
    for name in _ANSWERERS:
        answerer: TreePrior = getattr(prior, name)
        arrays[f"{place}/{name}/head"] = np.array([answerer.everywhere, answerer.usual, *astuple(answerer.head)])
        if answerer.trees is not None:
            arrays |= {f"{place}/{name}/{key}": column for key, column in answerer.trees.arrays().items()}


def _count_prior(arrays: Mapping[str, AnyArray], place: str) -> CountPrior:
    known, other = (_answerer(arrays, f"{place}/{name}/") for name in _ANSWERERS)
    return CountPrior(str(arrays[f"{place}/schema"]), known, other, arrays[f"{place}/sites"].astype(np.int64))


def _answerer(arrays: Mapping[str, AnyArray], place: str) -> TreePrior:
    numbers = arrays[f"{place}head"].astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(_DAMAGED[0])
    everywhere, usual, *head = numbers.tolist()
    own = {name.removeprefix(place): column for name, column in arrays.items() if name.startswith(place)}
    trees = BoostedTrees.from_arrays(own) if "root" in own else None
    return TreePrior(trees, everywhere, usual, PriorHead(*head))


FORMAT = 2
"""Of the files of a model; one of another number is not read."""


@dataclass(frozen=True, slots=True)
class ModelScore:
    """How well priors predicted pages that were kept from training."""

    split: str
    """``pages``, ``later pages`` or ``sites``: what was kept from training."""
    pages: int
    first: Mapping[str, float]
    """Mean log loss of the first observations, nats, by prior: ``model``, ``all pages``, ``host``."""
    ten: Mapping[str, float]
    """The same of the first ten observations, each prior with the observations before."""
    alone: float
    """The same of the model alone, whatever the observations before found."""
    calibration: float
    """Changes the model expected at first observations, for each that was found."""
    coverage: float
    """Share of pages within the model's 90 % interval."""

    @property
    def gain(self) -> float:
        """Nats a first observation by which the model predicts better than one prior for all pages."""
        return self.first["all pages"] - self.first["model"]


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Classes of change, and how well trees predict the class of a page at first sight."""

    intervals: tuple[float, ...]
    """Of the classes, seconds, ascending."""
    pages: tuple[int, ...]
    """Training pages in each class."""
    wrong: float
    """Share of pages put into a wrong class by trees that were trained without them."""
    commonest: float
    """The same if every page is put into the most common class."""
    chance: float
    """The same if the class is drawn by chance."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Everything about a model but the model."""

    name: str
    schema: str
    features: tuple[str, ...]
    events: tuple[str, ...]
    since: float
    """The first observation that was learned from, seconds since the epoch."""
    until: float
    """The last one."""
    pages: int
    out_of: int
    """Pages that could have been learned from."""
    looked_into: int
    """Pages whose first copy could be read."""
    observations: int
    sites: int
    source: str
    """``workspace``, or the name of the data set."""
    seed: int
    versions: Mapping[str, str]
    """Of recrawl and the libraries it was trained with."""
    scores: tuple[ModelScore, ...] = ()
    format: int = FORMAT
    classes: ClassScore | None = None
    """Of the static classifier; ``None`` if all pages have the same rate, or an older version trained the model."""

    @property
    def pages_in_words(self) -> str:
        """How many pages were learned from, and of how many they were chosen."""
        if self.pages == self.out_of:
            return counted(self.pages, "page")
        return f"{counted(self.pages, 'page')}, chosen at random among {self.out_of:,},"

    def to_json(self) -> str:
        """The content of ``model.json``."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ModelCard:
        """The note of a model.

        Raises:
            InputError: it is none, or of another format.
        """
        try:
            said = json.loads(text)
            if said["format"] != FORMAT:
                raise InputError(
                    f"The model has format {said['format']}, this version reads {FORMAT}.",
                    "Train it again with: recrawl predict train",
                )
            scores = tuple(
                ModelScore(**{part.name: one[part.name] for part in fields(ModelScore)}) for one in said["scores"]
            )
            given = {part.name: said[part.name] for part in fields(cls) if part.name not in {"scores", "classes"}}
            if told := said.get("classes"):
                every, pages = tuple(map(float, told["intervals"])), tuple(map(int, told["pages"]))
                shares = (float(told[name]) for name in ("wrong", "commonest", "chance"))
                given["classes"] = ClassScore(every, pages, *shares)
            given |= {name: tuple(given[name]) for name in ("features", "events")}
            return cls(**given, scores=scores)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError("model.json does not describe a model.", "Train it again.") from error


def model_card(note: ModelCard) -> str:
    """A page of Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in note.versions.items())
    material = f"{note.pages_in_words} of {counted(note.sites, 'site')}, {counted(note.observations, 'observation')}"
    lines = [
        f"# Model {note.name}",
        "",
        "Gamma priors of how often a page changes and gets new links, for pages with little history. Pages that were",
        "only discovered are predicted from their URLs, pages that were visited also from their content.",
        "",
        "| | |",
        "|---|---|",
        f"| trained from | {note.source}: {material} |",
        f"| first copies read | {note.looked_into:,} |",
        f"| observations from | {to_iso(note.since)} |",
        f"| observations to | {to_iso(note.until)} ({format_duration(note.until - note.since)}) |",
        f"| predicts | {', '.join(note.events)} |",
        f"| features | {len(note.features)}, schema `{note.schema}` |",
        f"| seed | {note.seed} |",
        f"| made with | {versions} |",
        "",
        "## How well it predicts",
        "",
        *score_table(note.scores),
        "",
        "Log loss in nats, lower is better: for the first observation of each page held out from training; for its",
        "first ten, each using the ones before; and for the model alone, without history.",
        "Calibration: expected changes per observed change; 1 is right.",
        "",
        *class_lines(note.classes),
        "## What it is not for",
        "",
        "The model applies to pages like those it was trained on. On other kinds of sites its intervals are wide. It",
        "predicts how often pages change, not when. Its features are:",
        "",
        ", ".join(f"`{name}`" for name in note.features) + ".",
        "",
    ]
    return "\n".join(lines)


def class_lines(score: ClassScore | None) -> list[str]:
    """The classes of a model as lines of Markdown."""
    if score is None:
        return []
    every = ", ".join(f"{format_duration(one)} ({pages:,} pages)" for one, pages in zip(score.intervals, score.pages,
                      strict=True))  # fmt: skip
    return [
        "## Classes of change",
        "",
        f"Intervals: {every}. The trees put {score.wrong:.1%} of the pages into a wrong class; the most",
        f"common class for all is wrong for {score.commonest:.1%}, one drawn by chance for {score.chance:.1%}.",
        "",
    ]


def score_table(scores: tuple[ModelScore, ...]) -> list[str]:
    """The scores as lines of a Markdown table."""
    if not scores:
        return ["Too few pages to keep some from training."]
    headings = ["kept", "pages", "first: model", "all pages", "host", "ten: model", "all pages", "host", "model alone"]
    headings += ["calibration", "in 90%"]
    lines = [f"| {' | '.join(headings)} |", "|---|" + "--:|" * (len(headings) - 1)]
    for one in scores:
        numbers = [f"{part[name]:.3f}" for part in (one.first, one.ten) for name in ("model", "all pages", "host")]
        numbers += [f"{one.alone:.3f}", f"{one.calibration:.2f}"]
        cells = [one.split, f"{one.pages:,}", *numbers, f"{one.coverage:.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


OTHERS = 100
"""Pages that lend their features, evenly spread."""


def contributions(ask: Callable[[FeatureTable], GammaBelief], page: FeatureTable, others: FeatureTable) -> FloatArray:
    """The factor of each feature of one page (a table of one row). O(columns · others · trees)."""
    step = max(len(others) // OTHERS, 1)
    lent = others.values[::step][:OTHERS]
    own = float(np.log(ask(page).mean()[0]))
    columns, lenders = len(page.columns), len(lent)
    asked = np.repeat(page.values, columns * lenders, axis=0).reshape(columns, lenders, columns)
    for place in range(columns):
        asked[place, :, place] = lent[:, place]
    rows = asked.reshape(-1, columns)
    said = np.log(ask(FeatureTable(np.arange(len(rows)), page.columns, rows, page.as_of)).mean())
    return np.asarray(np.exp(own - said.reshape(columns, lenders).mean(axis=1)))
