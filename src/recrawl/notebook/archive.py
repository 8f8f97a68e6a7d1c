"""An archive in Python: loaded from files or a workspace, and asked what the verbs ask."""

from __future__ import annotations

import enum
import warnings
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from recrawl.errors import ConfigError, InputError
from recrawl.notebook.answers import Plan, Quality, Rates, Table

if TYPE_CHECKING:
    from recrawl.cli.settings import Settings
    from recrawl.cli.workspace import Workspace
    from recrawl.model import Histories
    from recrawl.store.base import Store

_Choice = TypeVar("_Choice", bound=enum.StrEnum)


class Archive:
    """An archive that was loaded: files, or a workspace.

    Its store is let go of with the archive, or earlier by :meth:`close` or at the end of a ``with`` block.
    """

    def __init__(self, store: Store, place: Workspace | None, problems: Sequence[str], parts: ExitStack) -> None:
        self.problems = problems
        """What could not be read of files, a sentence each: the first twenty."""
        self._store, self._place = store, place
        self._end = weakref.finalize(self, parts.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store; what was read from files into a store of their own is gone."""
        self._end()

    def histories(self) -> Histories:
        """When each page was looked at and whether it had changed, as columns: what estimators learn from."""
        from recrawl.cli.knowledge import Span, lesson_of

        return lesson_of(self._store, Span()).histories

    def urls(self, pages: Sequence[int]) -> list[str]:
        """Addresses of pages that tables and histories name by id."""
        import numpy as np

        return self._store.urls(np.asarray(pages, np.int64))

    def estimate(
        self, *, by: str = "page", estimator: str | None = None, kind: str = "any", at: str | None = None
    ) -> Rates:
        """How often each page changes and how sure that is. ``at`` is a date: later visits do not count.

        Arguments are named and mean the same as the options of ``recrawl rates``.
        """
        from recrawl.cli.predict_use import expected_changes
        from recrawl.cli.rates_question import By, Kind, Question, estimator_named
        from recrawl.cli.rates_table import answer
        from recrawl.estimate.estimators import DEFAULT

        now = _moment(at)
        expected = None if self._place is None else expected_changes(self._place, self._store, now)
        row, respect = _one_of(By, by, "by"), _one_of(Kind, kind, "kind")
        question = Question(estimator_named(estimator or DEFAULT), now, respect, row, expected=expected)
        columns, _ = answer(self._store, question)
        return Rates(columns, by)

    def plan(self, budget: float | str | None = None, *, host: str | None = None, at: str | None = None) -> Plan:
        """What would be fetched next with ``budget`` visits a day, or like ``500/h``; else as the workspace is set."""
        from recrawl.cli.plan_answer import coming, facts
        from recrawl.cli.plan_outlook import look_ahead
        from recrawl.cli.predict_use import expected_changes, expected_links

        now, place, store = _moment(at), self._place, self._store
        expected = None if place is None else expected_changes(place, store, now)
        links = None if place is None else expected_links(place, store, now)
        outlook = look_ahead(store, self._settings(budget), now, expected, links)
        found = coming(store, outlook, host, None)
        said = facts(found)
        budgets = [{"budget": name, **kept} for name, kept in said["budgets"].items()]
        return Plan(Table(found.columns), Table({name: [one[name] for one in budgets] for name in budgets[0]}), said)

    def assess(self, at: str | None = None, *, match: str | None = None) -> Quality:
        """How sharp and coherent the archive is, and what it shows for the moment ``at``, or for its last capture.

        ``match`` chooses pages by a text in their URLs, or a pattern with ``*`` and ``?``.
        """
        from recrawl.cli.assess_answer import Asked, answer
        from recrawl.cli.assess_facts import facts, words
        from recrawl.cli.assess_tables import crawls, pages, sections, subsites
        from recrawl.show.quality_picture import draw_quality

        moment = None if at is None else _moment(at)
        found = answer(self._store, Asked(moment, match=match, unhurried=self._place is None))
        parts = [Table(part(found)) for part in (crawls, sections, pages, subsites)]
        worst = parts[1].columns
        return Quality(
            words(found, None),
            facts(found, None, max(len(table) for table in parts)),
            parts[0],
            parts[1],
            parts[2],
            parts[3],
            lambda file: draw_quality(found.quality, worst, file),
        )

    def _settings(self, budget: float | str | None) -> Settings:
        """Those of the workspace as crawls that run have them, or the defaults; a budget that is given stands."""
        from recrawl.cli.configuration import configure
        from recrawl.cli.options import visits_of
        from recrawl.crawl.controls import limits

        given = {} if budget is None else {"schedule.budget": visits_of("budget", str(budget))}
        if self._place is None:
            return configure(None, {}, given).settings
        return self._place.limited({**limits(self._store.controls()), **given}).configuration.settings


def load(*sources: str | Path, merge_within: str = "60s", digests_only: bool = False) -> Archive:
    r"""Load a workspace, or archive files and folders of every format that ``recrawl import`` reads.

    Files are read as ``recrawl import`` would read them into a new workspace, but into a store that lasts as long as
    the archive is open. Downloads of a page within ``merge_within`` are one. Changes are judged by content where the
    bytes are there, unless ``digests_only``. What is broken in a file is warned of and listed in ``problems``, and the
    rest goes on.

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
    ...         rates = archive.estimate(at="2026-01-05")
    ...         plan = archive.plan(budget=2, at="2026-01-05")
    ...         quality = archive.assess()
    >>> plan, quality
    (<Plan for 2 pages at 2 visits a day>, <Quality of 2 pages in 4 crawls>)
    >>> rates["url"], rates["changes"]
    (['http://site.org/news', 'http://site.org/'], [3, 0])
    >>> plan.next["url"][0], quality.facts["crawlsCount"], quality.pages["url"][0]
    ('http://site.org/news', 4, 'http://site.org/news')

    Raises:
        InputError: there is nothing to load, no such file, or nothing that recrawl reads.
        ConfigError: the settings of the workspace are wrong.
    """
    if not sources:
        raise InputError("There is nothing to load.", "Name a workspace, or archive files.")
    paths = [str(source) for source in sources]
    if len(paths) == 1 and (Path(paths[0]) / "recrawl.yaml").is_file():
        return _workspace(Path(paths[0]))
    return _files(paths, merge_within, digests_only=digests_only)


def _workspace(folder: Path) -> Archive:
    from recrawl.cli.workspace import open_workspace

    place = open_workspace(folder, {})
    parts = ExitStack()
    return Archive(parts.enter_context(place.open_store()), place, (), parts)


def _files(files: list[str], merge_within: str, *, digests_only: bool) -> Archive:
    from rich.progress import Progress

    from recrawl.cli.assess_sources import Reading, check_files, read_archive

    parts = ExitStack()
    paths = check_files(files)
    reading = Reading.of(merge_within, {}, digests_only=digests_only)
    read = parts.enter_context(read_archive(paths, reading, Progress(disable=True)))
    if read.errors.count:
        text = f"{read.errors.count:,} things could not be read, the first: {read.errors.first[0]}"
        warnings.warn(text, stacklevel=3)
    return Archive(read.store, None, [str(error) for error in read.errors.first], parts)


def _moment(at: str | None) -> float:
    from recrawl.cli.rates_question import moment
    from recrawl.crawl.clock import RealClock

    return moment(at, RealClock().now())


def _one_of(choices: type[_Choice], name: str, argument: str) -> _Choice:
    try:
        return choices(name)
    except ValueError:
        raise ConfigError(f"There is no {argument}={name!r}.", f"There are: {', '.join(choices)}.") from None
