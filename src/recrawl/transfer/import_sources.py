"""Imports a path: detects its format, reads it, and passes the captures to the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from recrawl.errors import InputError, RecrawlError, our_fault, require
from recrawl.formats.cdx.cdx_lines import read_cdx
from recrawl.formats.cdx.cdx_responses import read_answer
from recrawl.formats.cdx.cdxj import read_cdxj, read_zipnum
from recrawl.formats.columnar.arrow_tables import PageUrls, located_visits
from recrawl.formats.columnar.capture_batches import ReadReport, and_rest
from recrawl.formats.columnar.common_crawl import read_common_crawl
from recrawl.formats.columnar.dataset import OBSERVATIONS, ChangeLog, read_dataset
from recrawl.formats.crawl_log import read_crawl_log
from recrawl.formats.git_history import PathRule, read_git
from recrawl.formats.sitemap_feed import read_claims
from recrawl.formats.sniff import SourceFormat, sniff
from recrawl.formats.timemap import read_timemap_file
from recrawl.formats.wacz import WaczReader
from recrawl.formats.warc.arc import index_arc
from recrawl.formats.warc.warc_fields import CaptureRows
from recrawl.formats.warc.warc_reader import index_warc
from recrawl.model import BoolArray, ChangeKind, Verdict, Visits
from recrawl.model.arrays import times_known
from recrawl.store.base import Store
from recrawl.store.store_values import SAME_TIME, ClaimColumns, ImportMark
from recrawl.time import Clock
from recrawl.transfer.archive_import import Importer
from recrawl.transfer.listed_captures import gone_after, rows_met

_ENDS = 65_536
"""Bytes at either end of a file that identify it."""
_THREADS = 8
"""Files of a package that are unpacked at the same time."""
_FILES_AT_ONCE, _BYTES_AT_ONCE = 1_000, 64 << 20
"""Files of a package that may be unpacked before the first of them is read, and their bytes."""
_SHOWN = 500
"""Letters of the name of a record in an error."""


@dataclass(frozen=True, slots=True)
class SourceResult:
    """The result of one source."""

    source: str
    """Path or URL."""
    format: SourceFormat
    accepted: int = 0
    """Records imported now; those of an earlier import do not count."""
    new: int = 0
    """New captures, claims, or visits where the source has visits."""
    visits: int = 0
    """New visits in the source itself. Captures become visits later, together."""
    endings: int = 0
    """Of these visits, those without a record: a page is still unchanged, or still gone, when a change log ends."""
    broken: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Records that are no captures, by reason."""


class ImportSources:
    """Imports files and folders of every format that recrawl reads."""

    def __init__(  # noqa: PLR0913 - what takes part, and how
        self,
        store: Store,
        importer: Importer,
        clock: Clock,
        warc_folder: Path,
        *,
        base_url: str = "",
        on_bad: Callable[[InputError], None] = lambda _error: None,
        strict: bool = False,
    ) -> None:
        """``warc_folder`` receives the files of packages; ``base_url`` is where a git repository is published."""
        self._store = store
        self._importer = importer
        self._clock = clock
        self._warc_folder = warc_folder
        self._base_url = base_url
        self._on_bad = on_bad
        self._strict = strict

    def bring(self, path: Path) -> Iterator[SourceResult]:
        """Import a file, or a folder with everything in it; of a workspace its archive files, which have all it saw.

        Raises:
            InputError: the path cannot be read at all, or ``strict`` and something in it is broken.
        """
        report = ReadReport(strict=self._strict, on_bad=self._on_bad)
        what = SourceFormat.UNKNOWN
        try:
            if path.is_dir() or path.is_file():
                what = sniff(path)
            if what is SourceFormat.WORKSPACE:
                yield SourceResult(str(path), what, skipped={"a workspace; only its warc/ is read": 1})
                yield from self.bring(path / "warc")
                return
            if what is SourceFormat.UNKNOWN and path.is_dir():
                for entry in sorted(path.iterdir()):
                    if reason := _left_out(entry):
                        yield SourceResult(str(entry), SourceFormat.UNKNOWN, skipped={reason: 1})
                    else:
                        yield from self.bring(entry)
                return
            brought = self._take(path, what, report)
        except OSError as error:
            unreadable = InputError(f"it cannot be read ({error})", "Check the file.", source=str(path))
            brought = self._unreadable(unreadable, report)
        except InputError as unreadable:
            brought = self._unreadable(unreadable, report)
        except RecrawlError:
            raise
        except Exception as error:  # noqa: BLE001 - one file must not end an import of many
            brought = self._unreadable(our_fault(error, str(path)), report)
        yield replace(brought, source=str(path), format=what, broken=report.bad, skipped=report.skipped)

    def _unreadable(self, error: InputError, report: ReadReport) -> SourceResult:
        if self._strict:
            raise error
        report.bad += 1
        self._on_bad(error)
        return _NOTHING

    # -- by what comes out ----------------------------------------------------------------------

    def _take(self, path: Path, what: SourceFormat, report: ReadReport) -> SourceResult:
        if what in _CAPTURES:
            place = self._place(path) if what in (SourceFormat.WARC, SourceFormat.ARC) else ""
            return self._captures(path, _CAPTURES[what](path, report), report, place)
        other: dict[SourceFormat, Callable[[Path, ReadReport], SourceResult]] = {
            SourceFormat.SITEMAP: self._claims,
            SourceFormat.FEED: self._claims,
            SourceFormat.GIT: self._git,
            SourceFormat.SITES: self._dataset,
            SourceFormat.SOURCES: self._dataset,
            SourceFormat.PARQUET: self._parquet,
            SourceFormat.WACZ: self._wacz,
            SourceFormat.SEEDS: self._claims,
        }
        if what in other:
            return other[what](path, report)
        report.skip("a log of events, not of captures" if what is SourceFormat.EVENT_LOG else _UNREADABLE)
        return _NOTHING

    def _place(self, path: Path) -> str:
        """How the store names an archive file: one in our own folder by its name, so that the workspace can move."""
        full = path.resolve()
        return full.name if full.parent == self._warc_folder.resolve() else str(full)

    def _captures(self, path: Path, batches: Iterable[Any], report: ReadReport, place: str) -> SourceResult:
        taken = self._importer.take(str(path.resolve()), fingerprint(path), batches, report, file=place)
        return replace(_NOTHING, accepted=taken.accepted, new=taken.new)

    def _claims(self, path: Path, report: ReadReport) -> SourceResult:
        """Import the claims of a sitemap or feed, dated when the file was written; a plain list of URLs has none."""
        source, said_at = str(path.resolve()), path.stat().st_mtime
        mark = self._importer.begin(source, fingerprint(path))
        if mark.finished:
            return self._before(mark, report)
        mark, new = replace(mark, position=0, accepted=0), 0

        def add(batch: Any) -> int:  # noqa: ANN401 - pyarrow ships no types
            nonlocal mark
            claims, taken = self._claims_of(batch, source, said_at, report)
            after = replace(mark, position=mark.position + batch.num_rows, accepted=mark.accepted + taken)
            unknown = self._store.add_claims(claims, after)
            mark = after
            return unknown

        with path.open("rb") as file:
            for batch in read_claims(file, source, said_at, report):
                new += sum(report.by_halves(batch, add, lambda some: _record_name(source, some.column("url")[0])))
        self._finish(mark, report)
        return replace(_NOTHING, accepted=mark.accepted, new=new)

    def _claims_of(self, batch: Any, source: str, said_at: float, report: ReadReport) -> tuple[ClaimColumns, int]:  # noqa: ANN401
        """The claims of some entries of a sitemap or feed, and how many of them name pages."""
        page = self._importer.pages(batch.column("url").to_pylist(), report)
        rows = np.flatnonzero(page >= 0)
        lastmod, priority = (batch.column(name).to_numpy()[rows] for name in ("lastmod", "priority"))
        changefreq = batch.column("changefreq").to_numpy()[rows].astype(np.int64)
        said = ~np.isnan(lastmod) | ~np.isnan(priority) | (changefreq != 0)
        claims = ClaimColumns(
            page[rows][said],
            np.full(int(said.sum()), said_at),
            [source] * int(said.sum()),
            np.where(np.isnan(lastmod), -np.inf, lastmod)[said],
            changefreq[said],
            np.where(np.isnan(priority), -1.0, priority)[said],
        )
        return claims, len(rows)

    def _git(self, path: Path, report: ReadReport) -> SourceResult:
        if not self._base_url:
            raise InputError(
                "this is a git repository, and nobody said where its pages are published",
                "Say it with --base-url https://example.org/.",
                source=str(path),
            )
        log = read_git(path, PathRule(self._base_url), report=report).changes()
        digest = hashlib.blake2b("\n".join(log.urls).encode(), digest_size=16)
        for column in (log.page, log.time, log.kind):
            digest.update(np.ascontiguousarray(column).tobytes())
        return self._changes(path, digest.hexdigest(), [log], report)

    def _dataset(self, path: Path, report: ReadReport) -> SourceResult:
        if (path / f"{OBSERVATIONS}.parquet").is_file():
            raise InputError(
                "this data set was exported from observations, so its change times are not exact",
                "Export --what visits instead, and import that.",
                source=str(path),
            )
        tables = ",".join(fingerprint(file) for file in sorted(path.glob("*.parquet")))
        version = hashlib.blake2b(tables.encode(), digest_size=16).hexdigest()
        return self._changes(path, version, read_dataset(path, report=report), report)

    def _changes(self, path: Path, version: str, logs: Iterable[ChangeLog], report: ReadReport) -> SourceResult:
        """Exact change times become visits at the moment of each change, and one more at the end of the log."""
        mark = self._importer.begin(str(path.resolve()), version)
        if mark.finished:
            return self._before(mark, report)
        mark, new, endings = replace(mark, position=0, accepted=0), 0, 0
        for log in logs:
            until = float(log.time.max()) if len(log) else None
            record = partial(self._record_log, log, until, report)
            name = partial(_page_name, str(path), log.urls)
            accepted = 0
            for unknown, ended, taken in report.by_halves(range(len(log.urls)), record, name):
                new, endings, accepted = new + unknown, endings + ended, accepted + taken
            mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + accepted)
        self._finish(mark, report)
        return replace(_NOTHING, accepted=mark.accepted, new=new, visits=new + endings, endings=endings)

    def _record_log(
        self, whole: ChangeLog, until: float | None, report: ReadReport, pages: range
    ) -> tuple[int, int, int]:
        """Record the events of some pages of a log.

        Returns how many events are new, how many visits at the end of the log are, and how many events were imported.
        """
        log = whole.of_range(pages.start, pages.stop)
        events = np.bincount(log.page, minlength=len(log.urls))
        page = self._importer.pages(log.urls, report, events)
        wanted = log.of_pages(page >= 0)
        visits = wanted.visits(until=until)
        exact = np.where(visits.kinds != 0, visits.kinds | np.uint16(ChangeKind.EXACT), visits.kinds)
        new = self._recorded(replace(visits, page=page[visits.page], kinds=exact))
        if wanted.repeated:
            report.skip("same page and time", wanted.repeated)
        ends = visits.verdict == Verdict.UNCHANGED  # an event is a change, or opens a history
        return int((new & ~ends).sum()), int((new & ends).sum()), len(wanted) - wanted.repeated

    def _parquet(self, path: Path, report: ReadReport) -> SourceResult:
        """Our own export, or the columnar index of Common Crawl."""
        try:
            schema = require("pyarrow.parquet", "columns").read_schema(path)
        except require("pyarrow", "columns").ArrowException as error:
            raise InputError(f"it is no Parquet file ({error})", "Get it again.", source=str(path)) from error
        if b"recrawl.table" not in (schema.metadata or {}):
            return self._captures(path, read_common_crawl(path, report), report, "")
        mark = self._importer.begin(str(path.resolve()), fingerprint(path))
        if mark.finished:
            return self._before(mark, report)
        if len(self._store.unjudged()):  # visits of captures imported before must be there to be recognised
            self._importer.judge(on_bad=None if self._strict else self._on_bad)
        mark, new = replace(mark, position=0, accepted=0), 0
        for visits, urls in located_visits(path, report):
            record = partial(self._record_located, visits, urls, report)
            name = partial(_page_name, str(path), urls.url)
            for unknown, taken in report.by_halves(range(len(urls.url)), record, name):
                new, mark = new + unknown, replace(mark, accepted=mark.accepted + taken)
            mark = replace(mark, position=mark.position + 1)
        self._finish(mark, report)
        return replace(_NOTHING, accepted=mark.accepted, new=new, visits=new)

    def _record_located(self, whole: Visits, urls: PageUrls, report: ReadReport, pages: range) -> tuple[int, int]:
        """Record the visits to some of these pages; return how many are new, and how many were imported."""
        ids, names = urls.page[pages.start : pages.stop], list(urls.url[pages.start : pages.stop])
        visits = whole if len(ids) == len(urls.page) else whole.take(np.isin(whole.page, ids))
        place = np.searchsorted(ids, visits.page)
        page = self._importer.pages(names, report, np.bincount(place, minlength=len(names)))
        ours = replace(visits, page=page[place])
        known = ours.take(ours.page >= 0)
        return self._record(known), len(known)

    def _wacz(self, path: Path, report: ReadReport) -> SourceResult:
        """Import the WARC files of a package. They are unpacked into our folder, where their bytes are read from."""
        batches = self._unpacked(path, report)
        taken = self._importer.take(str(path.resolve()), fingerprint(path), batches, report, unpacked=True)
        return replace(_NOTHING, accepted=taken.accepted, new=taken.new)

    def _unpacked(self, path: Path, report: ReadReport) -> Iterator[Any]:
        """Batches of the captures of all WARC files of a package; one that cannot be unpacked affects no other.

        Some packages have very many small files. Threads unpack these, because each waits until its file is on the
        disk, and captures of many files form one batch, because each batch is one transaction.
        """
        rows = CaptureRows()
        with WaczReader(path, report) as package:
            self._warc_folder.mkdir(parents=True, exist_ok=True)
            yield from and_rest(self._members(package, rows, report), rows.rest)

    def _members(self, package: WaczReader, rows: CaptureRows, report: ReadReport) -> Iterator[Any]:
        pool = ThreadPoolExecutor(_THREADS, "recrawl-unpack")
        try:
            for names in _groups(package):
                files = [(name, pool.submit(package.extract, name, self._warc_folder)) for name in names]
                for name, unpacking in files:
                    yield from self._member(f"{package.source}, {name}", unpacking, rows, report)
        finally:
            pool.shutdown(cancel_futures=True)

    def _member(self, name: str, unpacking: Future[Path], rows: CaptureRows, report: ReadReport) -> Iterator[Any]:
        """The captures of one WARC file of a package; what is wrong with it is reported."""
        with report.isolated(name, None):
            try:
                yield from index_warc(unpacking.result(), report, rows=rows)
            except InputError as damaged:
                if self._strict:
                    raise
                report.bad += 1
                self._on_bad(damaged)

    def _record(self, visits: Visits) -> int:
        """Record visits of a source; return how many are new."""
        return int(self._recorded(visits).sum())

    def _recorded(self, visits: Visits) -> BoolArray:
        """Record visits of a source; return which are new."""
        if not len(visits):
            return np.zeros(0, np.bool_)
        known = self._store.observations(np.unique(visits.page))
        time, _ = times_known(visits.page, visits.time, known.page, known.time, SAME_TIME)
        visits = replace(visits, time=time)
        self._store.record(visits)
        self._store.set_gone(*gone_after(known, visits))
        return np.asarray(rows_met(visits.page, visits.time, known) < 0)

    def _before(self, mark: ImportMark, report: ReadReport) -> SourceResult:
        report.skip("imported before", mark.accepted)
        return _NOTHING

    def _finish(self, mark: ImportMark, report: ReadReport) -> None:
        skipped = sum(report.skipped.values())
        self._store.set_import_mark(replace(mark, skipped=skipped, broken=report.bad, finished=True))


def _groups(package: WaczReader) -> Iterator[list[str]]:
    """The names of the WARC files of a package, in groups with a maximum of files and bytes; a large file is alone."""
    group: list[str] = []
    size = 0
    for name in package.warcs:
        size += package.size(name)
        if group and (size > _BYTES_AT_ONCE or len(group) >= _FILES_AT_ONCE):
            yield group
            group, size = [], package.size(name)
        group.append(name)
    if group:
        yield group


def _record_name(source: str, url: object) -> str:
    """Which record of a source is meant, in an error."""
    return f"{source}, {url}"[:_SHOWN]


def _page_name(source: str, urls: Sequence[str], pages: range) -> str:
    return _record_name(source, urls[pages.start])


def check_known(brought: Iterable[SourceResult], named: Sequence[str | Path]) -> None:
    """Check that something was imported: at least one source must be of a format that recrawl reads.

    Raises:
        InputError: there was nothing that it reads in all that the user ``named``.
    """
    if all(one.format in _NOT_READ for one in brought):
        others = " and the others" if len(named) > 1 else ""
        raise InputError(
            f"There is nothing in {named[0]}{others} that recrawl reads.", "recrawl import --help says what it reads."
        )


def _left_out(entry: Path) -> str:
    """Why an entry of a folder is not read; empty if it is."""
    if entry.name.startswith("."):
        return "hidden; name it to import it"
    if entry.is_symlink() and entry.is_dir():
        return "a link to a folder; name the folder to import it"
    return ""


_UNREADABLE = "not in a format that recrawl reads"
_NOT_READ = frozenset({SourceFormat.UNKNOWN, SourceFormat.ZIP, SourceFormat.EVENT_LOG, SourceFormat.WORKSPACE})
_NOTHING = SourceResult("", SourceFormat.UNKNOWN)


def fingerprint(path: Path) -> str:
    """Changes when a file does: its size and a digest of both ends. Two reads, however large it is."""
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.blake2b(file.read(_ENDS), digest_size=16)
        file.seek(max(0, size - _ENDS))
        digest.update(file.read(_ENDS))
    return f"{size}:{digest.hexdigest()}"


def _streamed(
    read: Callable[[BinaryIO, str, ReadReport], Iterator[Any]],
) -> Callable[[Path, ReadReport], Iterator[Any]]:
    """A reader of streams as a reader of files."""

    def reader(path: Path, report: ReadReport) -> Iterator[Any]:
        with path.open("rb") as stream:
            yield from read(stream, str(path), report)

    return reader


_CAPTURES: dict[SourceFormat, Callable[[Path, ReadReport], Iterator[Any]]] = {
    SourceFormat.WARC: index_warc,
    SourceFormat.ARC: index_arc,
    SourceFormat.CDX: _streamed(read_cdx),
    SourceFormat.CDXJ: _streamed(read_cdxj),
    SourceFormat.ZIPNUM: read_zipnum,
    SourceFormat.CDX_ANSWER: _streamed(read_answer),
    SourceFormat.CRAWL_LOG: _streamed(read_crawl_log),
    SourceFormat.TIMEMAP: _streamed(read_timemap_file),
}
