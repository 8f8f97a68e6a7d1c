"""From a path to what it holds: each format is given to its reader, and what comes out to the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from recrawl.crawl.importing import Importer
from recrawl.crawl.importing_listed import gone_after, rows_met
from recrawl.errors import InputError, RecrawlError, our_fault, require
from recrawl.formats.arc import index_arc
from recrawl.formats.arrow import located_visits
from recrawl.formats.captures import Report
from recrawl.formats.cdx import read_cdx
from recrawl.formats.cdx_answers import read_answer
from recrawl.formats.cdxj import read_cdxj
from recrawl.formats.changes import ChangeLog
from recrawl.formats.common_crawl import read_common_crawl
from recrawl.formats.crawl_log import read_crawl_log
from recrawl.formats.dataset import OBSERVATIONS, read_dataset
from recrawl.formats.git import read_git
from recrawl.formats.git_pages import PathRule
from recrawl.formats.sitemap import read_claims
from recrawl.formats.sniff import Format, sniff
from recrawl.formats.timemap_stream import read_timemap_file
from recrawl.formats.wacz import WaczReader
from recrawl.formats.warc_reader import index_warc
from recrawl.formats.zipnum import read_zipnum
from recrawl.model import ChangeKind, Visits
from recrawl.store.base import Store
from recrawl.store.values import Claims, ImportMark
from recrawl.time import Clock

_ENDS = 65_536
"""Bytes at either end of a file that tell whether it is the one we know."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What became of one source."""

    source: str
    """Path or URL."""
    format: Format
    accepted: int = 0
    """Records taken now; those of an earlier import do not count."""
    new: int = 0
    """What was not known before: captures, claims, or visits where the source tells visits."""
    visits: int = 0
    """Visits that the source itself told, and that were not known before. Captures become visits later, together."""
    broken: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Records that are no captures, by reason."""


class Sources:
    """Takes files and folders of every format recrawl reads."""

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
        """``warc_folder`` takes the files out of packages; ``base_url`` is where a git repository is published."""
        self._store = store
        self._importer = importer
        self._clock = clock
        self._warc_folder = warc_folder
        self._base_url = base_url
        self._on_bad = on_bad
        self._strict = strict

    def bring(self, path: Path) -> Iterator[Brought]:
        """Import a file, or a folder with all that is in it; of a workspace its archive files, which have all it saw.

        Raises:
            InputError: the path cannot be read at all, or ``strict`` and something in it is broken.
        """
        report = Report(strict=self._strict, on_bad=self._on_bad)
        what = Format.UNKNOWN
        try:
            if path.is_dir() or path.is_file():
                what = sniff(path)
            if what is Format.WORKSPACE:
                yield Brought(str(path), what, skipped={"a workspace; only its warc/ is read": 1})
                yield from self.bring(path / "warc")
                return
            if what is Format.UNKNOWN and path.is_dir():
                for entry in sorted(path.iterdir()):
                    if reason := _left_out(entry):
                        yield Brought(str(entry), Format.UNKNOWN, skipped={reason: 1})
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

    def _unreadable(self, error: InputError, report: Report) -> Brought:
        if self._strict:
            raise error
        report.bad += 1
        self._on_bad(error)
        return _NOTHING

    # -- by what comes out ----------------------------------------------------------------------

    def _take(self, path: Path, what: Format, report: Report) -> Brought:
        if what in _CAPTURES:
            place = self._place(path) if what in (Format.WARC, Format.ARC) else ""
            return self._captures(path, _CAPTURES[what](path, report), report, place)
        other: dict[Format, Callable[[Path, Report], Brought]] = {
            Format.SITEMAP: self._claims,
            Format.FEED: self._claims,
            Format.GIT: self._git,
            Format.SITES: self._dataset,
            Format.SOURCES: self._dataset,
            Format.PARQUET: self._parquet,
            Format.WACZ: self._wacz,
            Format.SEEDS: self._claims,
        }
        if what in other:
            return other[what](path, report)
        report.skip("a log of events, not of captures" if what is Format.EVENT_LOG else _UNREADABLE)
        return _NOTHING

    def _place(self, path: Path) -> str:
        """How the store names an archive file: one in our own folder by its name, so that the workspace can move."""
        full = path.resolve()
        return full.name if full.parent == self._warc_folder.resolve() else str(full)

    def _captures(self, path: Path, batches: Iterable[Any], report: Report, place: str) -> Brought:
        taken = self._importer.take(str(path.resolve()), fingerprint(path), batches, report, file=place)
        return replace(_NOTHING, accepted=taken.accepted, new=taken.new)

    def _claims(self, path: Path, report: Report) -> Brought:
        """What a sitemap or feed says was said when the file was written; a plain list of URLs says nothing."""
        source, said_at = str(path.resolve()), path.stat().st_mtime
        mark = self._importer.begin(source, fingerprint(path))
        if mark.finished:
            return self._before(mark, report)
        mark, new = replace(mark, position=0, accepted=0), 0
        with path.open("rb") as file:
            for batch in read_claims(file, source, said_at, report):
                page = self._importer.pages(batch.column("url").to_pylist(), report)
                rows = np.flatnonzero(page >= 0)
                lastmod, priority = (batch.column(name).to_numpy()[rows] for name in ("lastmod", "priority"))
                changefreq = batch.column("changefreq").to_numpy()[rows].astype(np.int64)
                said = ~np.isnan(lastmod) | ~np.isnan(priority) | (changefreq != 0)
                claims = Claims(
                    page[rows][said],
                    np.full(int(said.sum()), said_at),
                    [source] * int(said.sum()),
                    np.where(np.isnan(lastmod), -np.inf, lastmod)[said],
                    changefreq[said],
                    np.where(np.isnan(priority), -1.0, priority)[said],
                )
                mark = replace(mark, position=mark.position + batch.num_rows, accepted=mark.accepted + len(rows))
                new += self._store.add_claims(claims, mark)
        self._finish(mark, report)
        return replace(_NOTHING, accepted=mark.accepted, new=new)

    def _git(self, path: Path, report: Report) -> Brought:
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

    def _dataset(self, path: Path, report: Report) -> Brought:
        if (path / f"{OBSERVATIONS}.parquet").is_file():
            raise InputError(
                "this data set was exported from observations, so its change times are not exact",
                "Export --what visits instead, and import that.",
                source=str(path),
            )
        tables = ",".join(fingerprint(file) for file in sorted(path.glob("*.parquet")))
        return self._changes(
            path, hashlib.blake2b(tables.encode(), digest_size=16).hexdigest(), read_dataset(path), report
        )

    def _changes(self, path: Path, version: str, logs: Iterable[ChangeLog], report: Report) -> Brought:
        """Exact change times become visits at the moment of each change, and one more at the end of the log."""
        mark = self._importer.begin(str(path.resolve()), version)
        if mark.finished:
            return self._before(mark, report)
        mark, new = replace(mark, position=0, accepted=0), 0
        for log in logs:
            events = np.bincount(log.page, minlength=len(log.urls))
            page = self._importer.pages(log.urls, report, events)
            wanted, end = log.of_pages(page >= 0), float(log.time.max()) if len(log) else None
            visits = wanted.visits(until=end)
            exact = np.where(visits.kinds != 0, visits.kinds | np.uint16(ChangeKind.EXACT), visits.kinds)
            new += self._record(replace(visits, page=page[visits.page], kinds=exact))
            accepted = len(wanted) - wanted.repeated
            mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + accepted)
            if wanted.repeated:
                report.skip("same page and time", wanted.repeated)
        self._finish(mark, report)
        return replace(_NOTHING, accepted=mark.accepted, new=new, visits=new)

    def _parquet(self, path: Path, report: Report) -> Brought:
        """Our own export, or the columnar index of Common Crawl."""
        try:
            schema = require("pyarrow.parquet", "columns").read_schema(path)
        except require("pyarrow", "columns").ArrowException as error:
            raise InputError(f"it is no Parquet file ({error})", "Get it anew.", source=str(path)) from error
        if b"recrawl.table" not in (schema.metadata or {}):
            return self._captures(path, read_common_crawl(path, report), report, "")
        mark = self._importer.begin(str(path.resolve()), fingerprint(path))
        if mark.finished:
            return self._before(mark, report)
        mark, new = replace(mark, position=0, accepted=0), 0
        for visits, urls in located_visits(path):
            place = np.searchsorted(urls.page, visits.page)
            page = self._importer.pages(list(urls.url), report, np.bincount(place, minlength=len(urls.url)))
            ours = replace(visits, page=page[place])
            pages = ours.take(ours.page >= 0)
            new += self._record(pages)
            mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + len(pages))
        self._finish(mark, report)
        return replace(_NOTHING, accepted=mark.accepted, new=new, visits=new)

    def _wacz(self, path: Path, report: Report) -> Brought:
        """The WARC files of a package are unpacked beside ours: that is where their bytes are read from."""
        mark = self._importer.begin(str(path.resolve()), fingerprint(path))
        if mark.finished:
            return self._before(mark, report)
        mark, brought = replace(mark, position=0, accepted=0), _NOTHING
        with WaczReader(path, report) as package:
            self._warc_folder.mkdir(parents=True, exist_ok=True)
            for name in package.warcs:
                try:
                    file = package.extract(name, self._warc_folder)
                except InputError as damaged:
                    report.broken(damaged.what, source=str(path), position=0, remedy=damaged.remedy)
                    continue
                part = self._captures(file, index_warc(file, report), report, self._place(file))
                mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + part.accepted)
                brought = replace(brought, accepted=brought.accepted + part.accepted, new=brought.new + part.new)
        self._finish(mark, report)
        return brought

    def _record(self, visits: Visits) -> int:
        """Record visits that a source told; return how many are new."""
        if not len(visits):
            return 0
        known = self._store.looks(np.unique(visits.page))
        self._store.record(visits)
        self._store.set_gone(*gone_after(known, visits))
        return int((rows_met(visits.page, visits.time, known) < 0).sum())

    def _before(self, mark: ImportMark, report: Report) -> Brought:
        report.skip("imported before", mark.accepted)
        return _NOTHING

    def _finish(self, mark: ImportMark, report: Report) -> None:
        skipped = sum(report.skipped.values())
        self._store.set_import_mark(replace(mark, skipped=skipped, broken=report.bad, finished=True))


def check_known(brought: Iterable[Brought], named: Sequence[str | Path]) -> None:
    """See to it that something was brought: at least one source must be of a format that recrawl reads.

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
_NOT_READ = frozenset({Format.UNKNOWN, Format.ZIP, Format.EVENT_LOG, Format.WORKSPACE})
_NOTHING = Brought("", Format.UNKNOWN)


def fingerprint(path: Path) -> str:
    """Changes when a file does: its size and a digest of both ends. Two reads, however large it is."""
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.blake2b(file.read(_ENDS), digest_size=16)
        file.seek(max(0, size - _ENDS))
        digest.update(file.read(_ENDS))
    return f"{size}:{digest.hexdigest()}"


def _streamed(read: Callable[[BinaryIO, str, Report], Iterator[Any]]) -> Callable[[Path, Report], Iterator[Any]]:
    """A reader of streams as a reader of files."""

    def reader(path: Path, report: Report) -> Iterator[Any]:
        with path.open("rb") as stream:
            yield from read(stream, str(path), report)

    return reader


_CAPTURES: dict[Format, Callable[[Path, Report], Iterator[Any]]] = {
    Format.WARC: index_warc,
    Format.ARC: index_arc,
    Format.CDX: _streamed(read_cdx),
    Format.CDXJ: _streamed(read_cdxj),
    Format.ZIPNUM: read_zipnum,
    Format.CDX_ANSWER: _streamed(read_answer),
    Format.CRAWL_LOG: _streamed(read_crawl_log),
    Format.TIMEMAP: _streamed(read_timemap_file),
}
