"""Bring what archives already hold into the store: captures first, then the visits that follow from them.

Taking captures and judging them are two steps, because the order in which sources are read is not the order of
time: a capture imported today may lie between two that were imported last year, and changes what the later one says.
So captures are only noted, and in the end every page that got new ones is judged anew, in the order of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import numpy as np

from recrawl.crawl.importing_chunks import chunks_of
from recrawl.crawl.importing_digests import digest_column
from recrawl.crawl.importing_listed import ListedCaptures, differences, gone_after, listed_captures, with_costs
from recrawl.detect.resources import is_resource
from recrawl.formats.captures import NO_STATUS, RecordKind, Report
from recrawl.formats.disk import is_file_name
from recrawl.model import BoolArray, IntArray
from recrawl.predict.url_features import url_depths
from recrawl.store import values
from recrawl.store.base import Store
from recrawl.store.values import Captures, ImportMark
from recrawl.time import Clock

REVISIT = values.REVISIT
_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 100_000, 20_000
"""Judged together: bounds the memory, some hundred bytes a capture."""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What to leave out of an archive before it is judged (SHARC 7.2)."""

    merge_within: float = 60.0
    """Seconds within which several downloads of a page are one; the best answer stands, and of those the last."""
    depth: int | None = None
    """Only pages with at most so many directories in their path; ``None`` for all."""
    resources: bool = False
    """Whether style sheets, pictures, robots.txt and the like are pages to come back to, as all others."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one source."""

    mark: ImportMark
    accepted: int = 0
    """Captures taken now; those of an earlier import do not count."""
    new: int = 0
    """Of these, captures nobody had told of before."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What judging did to the visits."""

    new: int = 0
    anew: int = 0
    """Visits that were there and say something else now."""
    withdrawn: int = 0
    """Visits that turned out to be part of another one."""


class Importer:
    """One import: sources are taken one after the other, then all pages they touched are judged."""

    def __init__(  # noqa: PLR0913 - where to, how, and who is told
        self,
        store: Store,
        clock: Clock,
        cleaning: Cleaning | None = None,
        progress: Callable[[int], None] = lambda _captures: None,
        *,
        again: bool = False,
        importance: float = 1.0,
    ) -> None:
        """With ``again``, what was imported before is read and judged once more.

        ``importance`` is that of pages nobody knew; with 0 they are only known, and never visited.
        """
        self._store = store
        self._clock = clock
        self._cleaning = cleaning or Cleaning()
        self._progress = progress
        self._again = again
        self._importance = importance
        self._began = clock.now()

    def begin(self, source: str, fingerprint: str) -> ImportMark:
        """Where to begin with a source: where it was left, if the same was asked of the same source before.

        What is asked is part of the fingerprint: another depth takes other captures, and another time within which
        downloads are one makes other visits.
        """
        asked = f"{fingerprint} depth={self._cleaning.depth} within={self._cleaning.merge_within:g}"
        asked += " resources" if self._cleaning.resources else ""
        mark = self._store.import_mark(source)
        if mark is None or mark.fingerprint != asked or self._again:
            return ImportMark(source, asked)
        return mark

    def take(self, source: str, fingerprint: str, batches: Iterable[Any], report: Report, *, file: str = "") -> Taken:
        """Note the captures of one source; a source that was taken before adds nothing, one cut short goes on.

        ``batches`` are record batches of :func:`recrawl.formats.captures.schema`. Each is one transaction, together
        with how far the source was read. ``file`` says where the bytes can be found again, if the source has them.
        """
        mark = self.begin(source, fingerprint)
        if mark.finished:
            report.skip("imported before", mark.accepted)
            return Taken(mark)
        before = self._store.import_mark(source)
        asked_before = before.fingerprint if before is not None else ""
        anew = self._again or (asked_before.startswith(f"{fingerprint} ") and asked_before != mark.fingerprint)
        accepted = new = 0
        for batch in _from(batches, mark.position):
            captures = self._captures(batch, report, file)
            accepted += len(captures)
            mark = replace(
                mark,
                position=mark.position + batch.num_rows,
                accepted=mark.accepted + len(captures),
                skipped=sum(report.skipped.values()),
                broken=report.bad,
            )
            new += self._store.add_captures(captures, mark, located=bool(file), anew=anew)[0]
            self._progress(len(captures))
        mark = replace(mark, skipped=sum(report.skipped.values()), broken=report.bad, finished=True)
        self._store.set_import_mark(mark)
        return Taken(mark, accepted, new)

    def judge(self, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Judged:
        """Turn the captures of every page that waits for it into visits, by what their digests say.

        Pages wait in the store, also those of an import that was cut short. Each leaves when its visits are recorded.
        """
        pages = self._store.unjudged()
        done, judged = 0, Judged()
        for some in chunks_of(self._store, pages, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
            listed = listed_captures(self._store, some, _CAPTURES_AT_ONCE)
            self._tell_resources(some, listed)
            known = self._store.looks(some)
            found = differences(listed, known, self._cleaning.merge_within)
            if len(found.visits):
                self._store.record(with_costs(self._store, found.visits, found.ours))
            self._store.withdraw(*found.withdrawn)
            self._store.set_gone(*gone_after(known, found.visits))
            self._store.set_judged(some)
            judged = Judged(
                judged.new + found.new,
                judged.anew + len(found.visits) - found.new,
                judged.withdrawn + len(found.withdrawn[0]),
            )
            done += len(some)
            progress(done, len(pages))
        return judged

    def _tell_resources(self, pages: IntArray, listed: ListedCaptures) -> None:
        """Note which of these pages are resources, by all their captures. ``pages`` ascend, and so do the captures.

        Only what this import added changes its importance: what somebody wants stays wanted. Nor is a page a resource
        that was visited by ourselves.
        """
        offsets = np.append(np.searchsorted(listed.page, pages), len(listed))
        told = (listed.status // 100 == HTTPStatus.OK // 100) & ~listed.repeats
        mimes = np.array(listed.mime, dtype=object)
        found = np.zeros(len(pages), np.bool_)
        for row, url in enumerate(self._store.urls(pages) if not self._cleaning.resources else ()):
            captures = slice(offsets[row], offsets[row + 1])
            if not listed.ours[captures].any():
                found[row] = is_resource(url, mimes[captures][told[captures]].tolist())
        known = self._store.pages(pages)
        noted = np.isin(pages, self._store.resources(pages))
        ours = (known.discovered >= self._began) & (self._importance > 0)
        demoted = found & ours & (known.importance > 0)
        raised = ~found & (noted | ours) & (known.importance == 0) & (self._importance > 0)
        changed = demoted | raised
        if changed.any():
            self._store.set_importance(pages[changed], np.where(raised[changed], self._importance, 0.0))
        moved = (found & (demoted | (known.importance == 0)) & ~noted) | (~found & noted)
        if moved.any():
            self._store.set_resources(pages[moved], found[moved])

    def pages(
        self,
        urls: Sequence[str],
        report: Report,
        records: IntArray | None = None,
        *,
        resources: BoolArray | None = None,
    ) -> IntArray:
        """The pages of these URLs, new ones included; -1 where one is not wanted: too deep, or no page of the web.

        ``records[i]`` records have URL i, one each if not given; those left out are reported as skipped. New pages that
        seem to be ``resources`` are only known, until all their captures tell.
        """
        count = np.ones(len(urls), np.int64) if records is None else records
        shallow = self._shallow(urls)
        page = np.full(len(urls), -1)
        unwanted = np.zeros(len(urls), np.bool_) if resources is None else resources
        for some, importance in ((shallow & ~unwanted, self._importance), (shallow & unwanted, 0.0)):
            rows = np.flatnonzero(some)
            if len(rows):
                names = [urls[row] for row in rows.tolist()]
                page[rows] = self._store.discover(names, self._clock.now(), importance=importance)
        for reason, left_out in (
            (f"deeper than {self._cleaning.depth}", ~shallow),
            ("not an http(s) URL", shallow & (page < 0)),
        ):
            if skipped := int(count[left_out].sum()):
                report.skip(reason, skipped)
        return page

    def _captures(self, batch: Any, report: Report, place: str) -> Captures:  # noqa: ANN401 - pyarrow ships no types
        # Indexes are sorted by URL: most lines have the URL of the line before.
        encoded = batch.column("url").dictionary_encode()
        urls: list[str] = encoded.dictionary.to_pylist()
        which = encoded.indices.to_numpy()
        unwanted = None if self._cleaning.resources else _resources(urls, which, batch)
        page = self.pages(urls, report, np.bincount(which, minlength=len(urls)), resources=unwanted)[which]
        rows = np.flatnonzero(page >= 0)
        some = batch if len(rows) == len(page) else batch.take(rows)
        kind = some.column("kind").to_numpy()
        repeats = np.isin(kind, (RecordKind.REVISIT_IDENTICAL, RecordKind.REVISIT_NOT_MODIFIED))
        status = some.column("status").to_numpy().astype(np.int64)
        status[(kind == RecordKind.REVISIT_NOT_MODIFIED) & (status == NO_STATUS)] = HTTPStatus.NOT_MODIFIED
        mime, digest = (some.column(name).to_pylist() for name in ("mime", "digest"))
        for row in np.flatnonzero(repeats).tolist():
            mime[row] = REVISIT
        return Captures(
            page[rows],
            some.column("time").to_numpy(),
            status,
            mime,
            digest_column(digest),
            some.column("size").to_numpy(),
            [place] * len(rows) if place else _files(some.column("file")),
            some.column("offset").to_numpy(),
            some.column("length").to_numpy(),
        )

    def _shallow(self, urls: Sequence[str]) -> BoolArray:
        if self._cleaning.depth is None:
            return np.ones(len(urls), np.bool_)
        return np.array([url_depths(url).path <= self._cleaning.depth for url in urls], np.bool_)


def _files(column: Any) -> list[str]:  # noqa: ANN401 - pyarrow ships no types
    """Where captures lie; nowhere if an index names what no file can be called."""
    encoded = column.dictionary_encode()
    names = [name if is_file_name(name) else "" for name in encoded.dictionary.to_pylist()]
    return [names[code] for code in encoded.indices.to_pylist()]


def _resources(urls: list[str], which: IntArray, batch: Any) -> BoolArray:  # noqa: ANN401 - pyarrow ships no types
    """Which URLs are those of resources, by the captures of one batch; row i of it is of URL ``which[i]``."""
    told = (batch.column("status").to_numpy() // 100 == HTTPStatus.OK // 100) & np.isin(
        batch.column("kind").to_numpy(), (RecordKind.RESPONSE, RecordKind.RESOURCE)
    )
    encoded = batch.column("mime").dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    types: dict[int, set[str]] = {}
    for url, mime in set(zip(which[told].tolist(), encoded.indices.to_numpy()[told].tolist(), strict=True)):
        types.setdefault(url, set()).add(names[mime])
    return np.array([is_resource(url, types.get(row, ())) for row, url in enumerate(urls)], np.bool_)


def _from(batches: Iterable[Any], position: int) -> Iterator[Any]:
    """The batches without their first ``position`` rows: those were taken by an import that was cut short."""
    for batch in batches:
        if position >= batch.num_rows:
            position -= batch.num_rows
            continue
        yield batch.slice(position) if position else batch
        position = 0
