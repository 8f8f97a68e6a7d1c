"""An archive in Python, loaded from files or a workspace: its rates, plans, comparisons, quality and predictions."""

from __future__ import annotations

import enum
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from recrawl.api.tables import Table, new_plot, table_of
from recrawl.app.provenance import Provenance, changed_settings
from recrawl.errors import ConfigError, InputError, counted, four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from recrawl.app.rates.rates_table import RatesQuestion
    from recrawl.app.workspace.configuration import Configuration
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import Histories
    from recrawl.store.base import Store

Moment: TypeAlias = str | float | datetime
"""A time: text such as ``2026-11-15`` or ``2026-11-15T09:30:00Z``, seconds since the epoch, or a ``datetime``.

Text and a ``datetime`` without a zone are in UTC.
"""


@dataclass(frozen=True, slots=True, repr=False)
class Rates(Table):
    """How often pages change, the most often changing first: the columns of ``recrawl rates``. Rates are per day."""

    by: str = "page"
    """What a row is: ``page``, ``section``, ``host`` or ``site``."""

    def _row_name(self) -> str:
        return self.by

    def plot(self) -> list[Axes]:
        """Draw how rates differ, and how sure they are; two axes."""
        from recrawl.app.rates.rates_table import RatesGrouping, plot

        columns = {name: list(values) for name, values in self.columns.items()}
        return plot(new_plot(), columns, RatesGrouping(self.by))


@dataclass(frozen=True, slots=True, repr=False)
class PoissonDiagnosis:
    """Whether changes come by chance at a steady rate, as ``recrawl rates diagnose`` tests it."""

    verdict: Sequence[str]
    """The finding in sentences."""
    facts: Mapping[str, Any]
    """Everything that ``recrawl rates diagnose --json`` prints."""
    pages: Table
    """One row a page that was tested. Durations are in seconds."""
    provenance: Provenance
    _plot: Callable[[Figure], list[Axes]]

    def __repr__(self) -> str:
        return f"<PoissonDiagnosis of {counted(len(self.pages), 'page')}: {self.provenance.sentence()}>\n{self}"

    def __str__(self) -> str:
        return "\n".join(self.verdict)

    def plot(self) -> list[Axes]:
        """Draw rates, intervals, their quantiles, and medians (HACS, figures 4 to 6); four axes."""
        return self._plot(new_plot())


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """Upcoming visits and their reasons, what the budget buys, and what it cannot."""

    next: Table
    """Pages by due time, as ``recrawl plan`` lists them. Times are seconds since the epoch."""
    budgets: Table
    """A tenth less than the budget, the budget, a tenth more: rates are per second."""
    facts: Mapping[str, Any]
    """Everything that ``recrawl plan --json`` prints."""
    provenance: Provenance

    def __repr__(self) -> str:
        pages = counted(len(self.next), "page")
        budget = four_digits(self.facts["budget_per_day"])
        return f"<Plan for {pages} at {budget} visits a day: {self.provenance.sentence()}>"


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The changes that each policy would have found with the same number of visits, as in ``recrawl compare``."""

    policies: Table
    """One row a policy and budget."""
    headline: str
    """The finding in a sentence."""
    note: str
    """What the numbers rest on."""
    facts: Mapping[str, Any]
    """Everything that ``recrawl compare --json`` prints."""
    provenance: Provenance
    _plot: Callable[[Figure], list[Axes]]

    def __repr__(self) -> str:
        return f"<Comparison of {counted(len(self.policies), 'run')}: {self.provenance.sentence()}>\n{self.headline}"

    def __str__(self) -> str:
        return f"{self.headline}\n{self.note}"

    def plot(self) -> list[Axes]:
        """Draw changes found and current copies by budget; two axes."""
        return self._plot(new_plot())


@dataclass(frozen=True, slots=True, repr=False)
class Quality:
    """How sharp and how coherent an archive is."""

    words: Sequence[str]
    """The statement, line by line, as ``recrawl assess`` prints it."""
    facts: Mapping[str, Any]
    """Everything that ``recrawl assess --json`` prints."""
    crawls: Table
    sections: Table
    pages: Table
    """Worst first, as are crawls and sections."""
    subsites: Table
    """Parts of sites that are worth a capture of their own."""
    provenance: Provenance
    _plot: Callable[[Figure], list[Axes]]

    def __repr__(self) -> str:
        pages, crawls = counted(len(self.pages), "page"), counted(len(self.crawls), "crawl")
        return f"<Quality of {pages} in {crawls}: {self.provenance.sentence()}>"

    def __str__(self) -> str:
        return "\n".join(self.words)

    def plot(self) -> list[Axes]:
        """Draw the outcome of each crawl, and the sections that blur the archive most; two axes."""
        return self._plot(new_plot())


_Choice = TypeVar("_Choice", bound=enum.StrEnum)


class Archive:
    """An archive that was loaded from files or a workspace.

    It holds its store open until :meth:`close`, the end of a ``with`` block, or the end of its own life.
    """

    def __init__(
        self, store: Store, place: Workspace | Configuration, sources: Sequence[str], problems: Sequence[str],
        parts: ExitStack,
    ) -> None:  # fmt: skip
        from recrawl.app.workspace.configuration import Configuration

        self.sources = tuple(sources)
        """The workspace or the files, as they were named."""
        self.problems = tuple(problems)
        """What could not be read of files, a sentence each: the first twenty."""
        self._store = store
        self._place = None if isinstance(place, Configuration) else place
        self._configuration = place if isinstance(place, Configuration) else place.configuration
        self._end = weakref.finalize(self, parts.close)

    def __repr__(self) -> str:
        return f"<Archive of {', '.join(self.sources)}{'' if self._end.alive else ', closed'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store. The temporary store of files is deleted."""
        self._end()

    def histories(self) -> Histories:
        """The observations of every page and whether it had changed, as columns: what estimators learn from."""
        from recrawl.app.rates.belief_table import VisitSpan, training_of

        return training_of(self._store, VisitSpan()).histories

    def urls(self, pages: Sequence[int]) -> list[str]:
        """URLs of pages that tables and histories name by id."""
        import numpy as np

        return self._store.urls(np.asarray(pages, np.int64))

    def rates(  # noqa: PLR0913 - one argument an option of the command
        self,
        *,
        by: str = "page",
        estimator: str | None = None,
        kind: str = "any",
        window: str | None = None,
        host: str | None = None,
        match: str | None = None,
        min_observations: int = 1,
        at: Moment | None = None,
    ) -> Rates:
        """Estimate how often each page changes, and how sure that is.

        The arguments mean the same as the options of ``recrawl rates``. Visits after ``at`` do not count.

        Raises:
            ConfigError: an argument has no meaning.
        """
        from dataclasses import replace

        from recrawl.app.predict.model_use import expected_changes
        from recrawl.app.rates.rates_table import answer
        from recrawl.estimate.estimators import DEFAULT

        asked: dict[str, Any] = {
            "by": by,
            "estimator": estimator or DEFAULT,
            "kind": kind,
            "window": window,
            "host": host,
        }
        asked |= {"match": match, "min_observations": min_observations}
        question = self._question(asked, at)
        if self._place is not None:
            question = replace(question, expected=expected_changes(self._place, self._store, question.now))
        columns, _ = answer(self._store, question)
        return Rates(columns, self._provenance("rates", asked, as_of=question.now), by)

    def diagnose(  # noqa: PLR0913 - one argument an option of the command
        self,
        *,
        kind: str = "any",
        window: str | None = None,
        host: str | None = None,
        match: str | None = None,
        min_observations: int = 1,
        at: Moment | None = None,
    ) -> PoissonDiagnosis:
        """Test whether changes come by chance at a steady rate, which all estimates rest on.

        The arguments mean the same as the options of ``recrawl rates diagnose``.

        Raises:
            ConfigError: an argument has no meaning.
        """
        from recrawl.app.rates.rates_diagnosis import SEED, columns, facts, investigate, plot
        from recrawl.assess.poisson_test import sentences

        asked = {"kind": kind, "window": window, "host": host, "match": match, "min_observations": min_observations}
        question = self._question(asked, at)
        found = investigate(self._store, question)
        about = self._provenance("diagnose", asked, as_of=question.now, seed=SEED)
        pages = Table(columns(self._store, found), about)
        return PoissonDiagnosis(
            sentences(found.diagnosis), facts(found), pages, about, lambda figure: plot(figure, found)
        )

    def plan(self, budget: float | str | None = None, *, host: str | None = None, at: Moment | None = None) -> Plan:
        """List the upcoming visits for ``budget`` visits a day, or like ``500/h``; the default is the workspace's.

        Raises:
            ConfigError: the budget is no number of visits.
            InputError: there is no page to plan for.
        """
        from recrawl.app.plan import coming, facts, look_ahead
        from recrawl.app.predict.model_use import expected_changes, expected_links, first_classes

        now, place, store = moment_of(at), self._place, self._store
        expected = None if place is None else expected_changes(place, store, now)
        links = None if place is None else expected_links(place, store, now)
        classes = None if place is None else first_classes(place, store, now)
        configuration = self._configured(budget)
        outlook = look_ahead(store, configuration.settings, now, expected, links, classes)
        found = coming(store, outlook, host, None)
        said = facts(found)
        about = self._provenance("plan", {"budget": budget, "host": host}, as_of=now, configuration=configuration)
        budgets = [{"budget": name, **kept} for name, kept in said["budgets"].items()]
        return Plan(Table(found.columns, about), table_of(budgets, about), said, about)

    def compare(  # noqa: PLR0913 - one argument an option of the command
        self,
        policies: Sequence[str] | None = None,
        budget: float | str | None = None,
        *,
        tick: str | None = None,
        repeats: int = 5,
        seed: int = 1,
        max_pages: int = 20_000,
        several_budgets: bool = False,
        jobs: int = 1,
    ) -> Comparison:
        """Run the past again with each policy, with as many visits as were made or ``budget`` visits a day.

        With ``several_budgets`` five budgets are tried, from a quarter to four times of it. ``jobs`` is the number of
        processes; the result does not depend on it.

        Raises:
            ConfigError: a policy is not known, or the budget is 0.
            InputError: no page was seen twice.
        """
        from recrawl.app.compare.benchmark_runs import tick_of
        from recrawl.app.compare.compare_runs import ComparisonQuestion, compare_policies
        from recrawl.app.display import visits_of

        question = ComparisonQuestion(
            policies=policies,
            budget=None if budget is None else visits_of("budget", str(budget)),
            tick=None if tick is None else tick_of(tick),
            repeats=repeats,
            seed=seed,
            most_pages=max_pages,
            jobs=jobs,
            several_budgets=several_budgets,
        )
        found = compare_policies(self._store, self._configuration.settings, question)
        asked = {"policies": policies, "budget": budget, "tick": tick, "repeats": repeats, "max_pages": max_pages}
        about = self._provenance("compare", {**asked, "several_budgets": several_budgets}, seed=seed)
        return Comparison(
            Table(found.columns(), about),
            found.headline(),
            found.note(),
            found.facts(),
            about,
            found.plot,
        )

    def assess(self, at: Moment | None = None, *, match: str | None = None) -> Quality:
        """State how sharp and coherent the archive is, for a replay at ``at``, or at its last capture.

        ``match`` chooses pages by a text in their URLs, or a pattern with ``*`` and ``?``.
        """
        from recrawl.app.assess.assess_facts import crawls, facts, pages, sections, subsites, words
        from recrawl.app.assess.assessment import AssessmentQuestion, answer
        from recrawl.app.plots import plot_quality

        moment = None if at is None else moment_of(at)
        found = answer(self._store, AssessmentQuestion(moment, match=match))
        about = self._provenance("assess", {"match": match}, as_of=moment)
        tables = [Table(part(found), about) for part in (crawls, sections, pages, subsites)]
        worst = tables[1].columns
        return Quality(
            words(found, None),
            facts(found, None, max(len(table) for table in tables)),
            tables[0],
            tables[1],
            tables[2],
            tables[3],
            about,
            lambda figure: plot_quality(figure, found.quality, worst),
        )

    def predict(self, event: str = "changes", *, model: str | None = None, host: str | None = None) -> Table:
        """Predict how often each page changes from its features, without its visits: as ``recrawl predict score``.

        ``event`` is what is counted, such as ``changes`` or ``new-links``; ``model`` the name of a model that
        ``recrawl predict train`` made in the workspace.

        Raises:
            InputError: there is no such model, or it does not predict this event; or files were loaded.
        """
        from recrawl.app.predict.model_use import model_name
        from recrawl.app.predict.stored_models import expected

        if self._place is None:
            raise InputError(
                "Files have no model to predict with.",
                "Import them into a workspace, train one with recrawl predict train, and load the workspace.",
            )
        name, event = model_name(self._place, model), event.replace("_", "-")
        columns, _ = expected(self._place, self._store, name, event, host, None)
        return Table(columns, self._provenance("predict", {"event": event, "model": name, "host": host}))

    def _question(self, asked: Mapping[str, Any], at: Moment | None) -> RatesQuestion:
        """The arguments of :meth:`rates` or :meth:`diagnose` as a question."""
        from recrawl.app.display import seconds_of
        from recrawl.app.rates.rates_table import ChangeAspect, RatesGrouping, RatesQuestion, estimator_named
        from recrawl.estimate.estimators import DEFAULT

        return RatesQuestion(
            estimator_named(asked.get("estimator") or DEFAULT),
            moment_of(at),
            one_of(ChangeAspect, asked["kind"], "kind"),
            one_of(RatesGrouping, asked.get("by", "page"), "by"),
            None if asked["window"] is None else seconds_of("window", asked["window"]),
            host=asked["host"],
            match=asked["match"],
            min_observations=asked["min_observations"],
        )

    def _configured(self, budget: float | str | None) -> Configuration:
        """The configuration, with the limits of running crawls; a budget that is given comes before these."""
        from recrawl.app.display import visits_of
        from recrawl.app.workspace.configuration import configure
        from recrawl.crawl.control.runtime_limits import limits

        given = {} if budget is None else {"schedule.budget": visits_of("budget", str(budget))}
        if self._place is None:
            return configure(None, {}, given) if given else self._configuration
        return self._place.limited({**limits(self._store.controls()), **given}).configuration

    def _provenance(
        self,
        question: str,
        arguments: Mapping[str, Any],
        *,
        as_of: float | None = None,
        seed: int | None = None,
        configuration: Configuration | None = None,
    ) -> Provenance:
        """Where a result comes from; arguments that are ``None`` are left out."""
        from recrawl import __version__

        given = {name: value for name, value in arguments.items() if value is not None}
        settings = changed_settings(configuration or self._configuration)
        return Provenance(question, __version__, self.sources, as_of, seed, given, settings)


def load(
    *sources: str | Path,
    merge_within: str = "60s",
    digests_only: bool = False,
    settings: Mapping[str, object] | None = None,
) -> Archive:
    r"""Load a workspace, or archive files and folders of every format that ``recrawl import`` reads.

    Files are read as ``recrawl import`` reads them into a new workspace, but into a temporary store that lasts as long
    as the archive is open. Downloads of a page within ``merge_within`` count as one. Changes are classified by content
    where the bytes are there, unless ``digests_only``. Damaged parts of files are skipped, with a warning, and listed
    in ``problems``. ``settings`` replace those of the workspace, by key, such as ``{"schedule.budget": 500}``.

    >>> import recrawl
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> lines = [
    ...     f"org,site)/{page} 2026010{day}000000 http://site.org/{page} text/html 200 {version * 32} - - 9 0 a.warc.gz"
    ...     for page, versions in {"": "AAAA", "news": "ABCD"}.items()
    ...     for day, version in enumerate(versions, 1)
    ... ]
    >>> with TemporaryDirectory() as folder:
    ...     index = Path(folder, "site.cdx")
    ...     _ = index.write_text("\n".join([" CDX N b a m s k r M S V g", *lines, ""]))
    ...     with load(index) as archive:
    ...         rates = archive.rates(at="2026-01-05")
    ...         plan = archive.plan(budget=2, at="2026-01-05")
    ...         quality = archive.assess()
    >>> rates["url"], rates["changes"], rates.provenance.version == recrawl.__version__
    (['http://site.org/news', 'http://site.org/'], [3, 0], True)
    >>> plan.next["url"][0], quality.facts["crawlsCount"], quality.pages["url"][0]
    ('http://site.org/news', 4, 'http://site.org/news')

    Raises:
        InputError: there is nothing to load, no such file, or nothing that recrawl reads.
        ConfigError: a setting is not known, or its value is wrong.
    """
    if not sources:
        raise InputError("There is nothing to load.", "Give a workspace or archive files.")
    paths = [str(source) for source in sources]
    if len(paths) == 1 and (Path(paths[0]) / "recrawl.yaml").is_file():
        return _workspace(paths[0], settings or {})
    return _files(paths, merge_within, settings or {}, digests_only=digests_only)


def _workspace(folder: str, settings: Mapping[str, object]) -> Archive:
    from recrawl.app.workspace.workspace import open_workspace

    place = open_workspace(Path(folder), settings)
    parts = ExitStack()
    return Archive(parts.enter_context(place.open_store()), place, (folder,), (), parts)


def _files(files: list[str], merge_within: str, settings: Mapping[str, object], *, digests_only: bool) -> Archive:
    from recrawl.app.assess.archive_reading import ReadOptions, check_files, read_archive
    from recrawl.app.progress import SilentBars
    from recrawl.app.workspace.configuration import configure

    parts = ExitStack()
    paths = check_files(files)
    reading = ReadOptions.of(merge_within, settings, digests_only=digests_only)
    read = parts.enter_context(read_archive(paths, reading, SilentBars()))
    if read.errors.count:
        text = f"{read.errors.count:,} records could not be read, the first: {read.errors.first[0]}"
        warnings.warn(text, stacklevel=3)
    problems = [str(error) for error in read.errors.first]
    return Archive(read.store, configure(None, {}, settings), files, problems, parts)


def moment_of(at: Moment | None) -> float:
    """Seconds since the epoch; now if no time is given."""
    from recrawl.app.rates.rates_table import moment
    from recrawl.crawl.clock import RealClock

    if isinstance(at, datetime):
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    return float(at) if isinstance(at, (int, float)) else moment(at, RealClock().now())


def one_of(choices: type[_Choice], name: str, argument: str) -> _Choice:
    """The choice of this name.

    Raises:
        ConfigError: there is none.
    """
    try:
        return choices(name)
    except ValueError:
        raise ConfigError(f"There is no {argument}={name!r}.", f"There are: {', '.join(choices)}.") from None
