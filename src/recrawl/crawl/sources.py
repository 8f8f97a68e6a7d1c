"""From a path to what it holds: each format is given to its reader, and what comes out to the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from recrawl.crawl.importing import Importer
from recrawl.errors import InputError, require
from recrawl.formats.arc import index_arc, read_arc_capture
from recrawl.formats.arrow import read_located_visits
from recrawl.formats.captures import Report
from recrawl.formats.cdx import read_cdx
from recrawl.formats.cdx_answers import read_answer
from recrawl.formats.cdxj import read_cdxj
from recrawl.formats.changes import ChangeLog
from recrawl.formats.common_crawl import read_common_crawl
from recrawl.formats.crawl_log import read_crawl_log
from recrawl.formats.dataset import read_dataset
from recrawl.formats.git import read_git
from recrawl.formats.git_pages import PathRule
from recrawl.formats.sitemap import read_claims
from recrawl.formats.sniff import Format, sniff
from recrawl.formats.timemap import read_timemap, to_batches
from recrawl.formats.wacz import WaczReader
from recrawl.formats.warc_reader import index_warc, read_capture
from recrawl.formats.zipnum import read_zipnum
from recrawl.model import Capture, ChangeKind
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
    mark: ImportMark
    skipped: dict[str, int]
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
        """Import a file, or a folder with all that is in it.

        Raises:
            InputError: the path cannot be read at all, or ``strict`` and something in it is broken.
        """
        report = Report(strict=self._strict, on_bad=self._on_bad)
        what = Format.UNKNOWN
        try:
            if path.is_dir() or path.is_file():
                what = sniff(path)
            if what is Format.UNKNOWN and path.is_dir():
                for entry in sorted(path.iterdir()):
                    if not entry.name.startswith(".") and not (entry.is_symlink() and entry.is_dir()):
                        yield from self.bring(entry)
                return
            mark = self._take(path, what, report)
        except OSError as error:
            unreadable = InputError(f"it cannot be read ({error})", "Check the file.", source=str(path))
            mark = self._unreadable(path, unreadable, report)
        except InputError as unreadable:
            mark = self._unreadable(path, unreadable, report)
        yield Brought(str(path), what, mark, report.skipped)

    def _unreadable(self, path: Path, error: InputError, report: Report) -> ImportMark:
        if self._strict:
            raise error
        report.bad += 1
        self._on_bad(error)
        return ImportMark(str(path), "", broken=report.bad)

    # -- by what comes out ----------------------------------------------------------------------

    def _take(self, path: Path, what: Format, report: Report) -> ImportMark:
        if what in _CAPTURES:
            place = str(path.resolve()) if what in (Format.WARC, Format.ARC) else ""
            return self._captures(path, _CAPTURES[what](path, report), report, place)
        other: dict[Format, Callable[[Path, Report], ImportMark]] = {
            Format.SITEMAP: self._claims,
            Format.FEED: self._claims,
            Format.GIT: self._git,
            Format.SITES: lambda path, _: self._changes(path, read_dataset(path)),
            Format.SOURCES: lambda path, _: self._changes(path, read_dataset(path)),
            Format.PARQUET: self._parquet,
            Format.WACZ: self._wacz,
            Format.SEEDS: self._claims,
        }
        if what in other:
            return other[what](path, report)
        report.skip("not in a format that recrawl reads")
        return ImportMark(str(path), "")

    def _captures(self, path: Path, batches: Iterable[Any], report: Report, place: str) -> ImportMark:
        return self._importer.take(str(path.resolve()), fingerprint(path), batches, report, file=place)

    def _claims(self, path: Path, report: Report) -> ImportMark:
        """What a sitemap or feed says was said when the file was written; a plain list of URLs says nothing."""
        source, said_at = str(path.resolve()), path.stat().st_mtime
        mark = ImportMark(source, fingerprint(path))
        for batch in read_claims(path.read_bytes(), source, said_at, report):
            page = self._store.discover(batch.column("url").to_pylist(), self._clock.now())
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
            self._store.add_claims(claims, mark)
        return self._finished(mark, report)

    def _git(self, path: Path, report: Report) -> ImportMark:
        if not self._base_url:
            raise InputError(
                "this is a git repository, and nobody said where its pages are published",
                "Say it with --base-url https://example.org/.",
                source=str(path),
            )
        return self._changes(path, [read_git(path, PathRule(self._base_url), report=report).changes()])

    def _changes(self, path: Path, logs: Iterable[ChangeLog]) -> ImportMark:
        """Exact change times become visits at the moment of each change, and one more at the end of the log."""
        mark = ImportMark(str(path.resolve()), "")
        for log in logs:
            page = self._store.discover(log.urls, self._clock.now())
            visits = log.visits(until=float(log.time.max()) if len(log) else None)
            exact = np.where(visits.kinds != 0, visits.kinds | np.uint16(ChangeKind.EXACT), visits.kinds)
            self._store.record(replace(visits, page=page[visits.page], kinds=exact))
            mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + len(log))
        return mark

    def _parquet(self, path: Path, report: Report) -> ImportMark:
        """Our own export, or the columnar index of Common Crawl."""
        try:
            schema = require("pyarrow.parquet", "columns").read_schema(path)
        except require("pyarrow", "columns").ArrowException as error:
            raise InputError(f"it is no Parquet file ({error})", "Get it anew.", source=str(path)) from error
        if b"recrawl.table" not in (schema.metadata or {}):
            return self._captures(path, read_common_crawl(path, report), report, "")
        visits, urls = read_located_visits(path)
        page = self._store.discover(list(urls.url), self._clock.now())
        ours = replace(visits, page=page[np.searchsorted(urls.page, visits.page)])
        pages = ours.take(ours.page >= 0)
        if len(pages) < len(ours):
            report.skip("not an http(s) URL", len(ours) - len(pages))
        self._store.record(pages)
        return self._finished(ImportMark(str(path.resolve()), fingerprint(path), accepted=len(pages)), report)

    def _wacz(self, path: Path, report: Report) -> ImportMark:
        """The WARC files of a package are unpacked beside ours: that is where their bytes are read from."""
        mark = ImportMark(str(path.resolve()), fingerprint(path))
        with WaczReader(path, report) as package:
            self._warc_folder.mkdir(parents=True, exist_ok=True)
            for name in package.warcs:
                try:
                    file = package.extract(name, self._warc_folder)
                except InputError as damaged:
                    report.broken(damaged.what, source=str(path), position=0, remedy=damaged.remedy)
                    continue
                part = self._captures(file, index_warc(file, report), report, str(file.resolve()))
                mark = replace(mark, position=mark.position + 1, accepted=mark.accepted + part.accepted)
        return self._finished(mark, report)

    def _finished(self, mark: ImportMark, report: Report) -> ImportMark:
        done = replace(mark, skipped=sum(report.skipped.values()), broken=report.bad, finished=True)
        self._store.set_import_mark(done)
        return done


def read_archived(file: str, offset: int, warc_folder: Path) -> Capture | None:
    """The bytes of an archived capture; ``None`` if its file is not there or not what it was."""
    path = Path(file) if Path(file).is_absolute() else warc_folder / file
    try:
        return (read_arc_capture if sniff(path) is Format.ARC else read_capture)(path, offset)
    except InputError:
        return None


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


def _timemap(path: Path, report: Report) -> Iterator[Any]:
    yield from to_batches(read_timemap(path.read_bytes(), str(path), report).mementos)


_CAPTURES: dict[Format, Callable[[Path, Report], Iterator[Any]]] = {
    Format.WARC: index_warc,
    Format.ARC: index_arc,
    Format.CDX: _streamed(read_cdx),
    Format.CDXJ: _streamed(read_cdxj),
    Format.ZIPNUM: read_zipnum,
    Format.CDX_ANSWER: _streamed(read_answer),
    Format.CRAWL_LOG: _streamed(read_crawl_log),
    Format.TIMEMAP: _timemap,
}
