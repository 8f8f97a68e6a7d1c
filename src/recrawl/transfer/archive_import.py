"""Imports the captures of archives into the store: captures first, then the visits derived from them.

Importing and classifying are two steps, because sources are not read in the order of time: a capture imported today may
lie between two that were imported last year, and changes the verdict of the later one. So captures are only recorded,
and at the end every page with new ones is classified again, in the order of time.

Digests are normalised to the form of the store. Archives write SHA-1 in base32 or hexadecimal, newer ones SHA-256 or
MD5, with or without a name before it. Two digests are comparable only if they are of one algorithm, whatever their
notation.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any

import numpy as np

from recrawl.detect.digest_verdicts import is_resource
from recrawl.errors import InputError, RecrawlError, require
from recrawl.formats.atomic_files import is_file_name
from recrawl.formats.columnar.capture_batches import NO_STATUS, ROLE, CaptureRole, ReadReport, RecordKind
from recrawl.model import AnyArray, BoolArray, IntArray
from recrawl.predict.static_features import url_depths
from recrawl.store import store_values
from recrawl.store.base import Store
from recrawl.store.store_values import FITTED, CaptureColumns, CaptureOrigin, ImportMark
from recrawl.time import Clock
from recrawl.transfer.fresh_captures import CaptureTexts, FreshCaptures, page_portions
from recrawl.transfer.listed_captures import (
    MERGE_WITHIN,
    ListedCaptures,
    MergedCaptures,
    chunks_of,
    differences,
    gone_after,
    listed_captures,
    merged_captures,
    with_costs,
)

_BYTES = {"md5": 16, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}
_BY_BYTES = {size: name for name, size in _BYTES.items()}
_HEX = re.compile(r"[0-9a-fA-F]+")
_BASE32 = re.compile(r"[A-Za-z2-7]+=*")
_CAPITALS = re.compile(r"[A-Z2-7]+")
_SHA1_BASE32 = 32
_BAD = 255
_VALUES = np.full(256, _BAD, np.uint8)  # of each letter of base32
_VALUES[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)] = np.arange(32)


def digest_bytes(text: str) -> bytes:
    """A digest as the store holds it: SHA-1 as its 20 bytes, another as its name and hexadecimal, empty for none.

    An unknown form stays as it is.

    >>> digest_bytes("sha1:" + "A" * 32) == digest_bytes("0" * 40) == bytes(20)
    True
    >>> digest_bytes("SHA-256:" + "AB" * 32)[:11], digest_bytes("-"), digest_bytes("v7")
    (b'sha256:abab', b'', b'v7')
    """
    name, colon, value = text.rpartition(":")
    if value in ("", "-"):
        return b""
    name = name.lower().replace("-", "").replace("_", "")
    raw = _decoded(value, _BYTES.get(name)) if name in _BYTES or not colon else None
    if raw is None:
        return text.encode()
    algorithm = _BY_BYTES[len(raw)]
    return raw if algorithm == "sha1" else f"{algorithm}:{raw.hex()}".encode()


def _decoded(value: str, size: int | None) -> bytes | None:
    """The bytes of a digest that has this size; of any known size if ``None``."""
    sizes = (size,) if size else tuple(_BY_BYTES)
    bare = value.rstrip("=")
    in_base32 = _BASE32.fullmatch(value) and any(len(bare) == -(-8 * one // 5) for one in sizes)
    # 32 letters are a SHA-1 in base32 or an MD5 in hexadecimal: base32 is written in capitals.
    if _HEX.fullmatch(value) and len(value) // 2 in sizes and not (in_base32 and _CAPITALS.fullmatch(value)):
        return bytes.fromhex(value) if len(value) % 2 == 0 else None
    return base64.b32decode(bare.upper() + "=" * (-len(bare) % 8)) if in_base32 else None


def digest_column(column: Sequence[str]) -> list[bytes]:
    """The same for a column."""
    found: list[bytes] = digest_array(require("pyarrow", "columns").array(list(column), "string")).to_pylist()
    return found


def digest_array(column: Any) -> Any:  # noqa: ANN401 - a pyarrow.StringArray, and a BinaryArray
    """The same for a column of Arrow. SHA-1 in base32, the common case in indexes, is decoded all at once. O(n)."""
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    usual = pc.binary_length(column).to_numpy(zero_copy_only=False) == _SHA1_BASE32
    rows = np.flatnonzero(usual)
    some = column if len(rows) == len(column) else column.take(pa.array(rows))
    values = _VALUES[_letters(some)]
    good = (values != _BAD).all(axis=1)
    if not bool(good.all()):
        rows, values = rows[good], values[good]
    edges = np.arange(len(rows) + 1, dtype=np.int32) * 20
    decoded = pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(edges), pa.py_buffer(_joined(values))])
    if len(rows) == len(column):
        return decoded
    usual = np.zeros(len(column), np.bool_)
    usual[rows] = True
    others = pa.array([digest_bytes(text) for text in column.filter(pa.array(~usual)).to_pylist()], pa.binary())
    place = np.empty(len(column), np.int64)
    place[rows], place[~usual] = np.arange(len(rows)), len(rows) + np.arange(len(others))
    return pa.concat_arrays([decoded, others]).take(pa.array(place))


def _letters(column: Any) -> AnyArray:  # noqa: ANN401 - a pyarrow.StringArray of texts of 32 bytes
    _, edges, data = column.buffers()
    if not len(column):
        return np.empty((0, _SHA1_BASE32), np.uint8)
    first = int(np.frombuffer(edges, np.int32, 1, 4 * column.offset)[0])
    return np.frombuffer(data, np.uint8, len(column) * _SHA1_BASE32, first).reshape(-1, _SHA1_BASE32)


def _joined(values: AnyArray) -> AnyArray:
    """Rows of 32 numbers below 32 as rows of 20 bytes: eight numbers are five bytes."""
    eights = values.reshape(-1, 8).astype(np.uint64)
    word = np.zeros(len(eights), np.uint64)
    for place in range(8):
        word = (word << np.uint64(5)) | (eights[:, place] & np.uint64(31))
    return np.ascontiguousarray(word.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 3:]).reshape(len(values), 20)


REVISIT = store_values.REVISIT
_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 100_000, 20_000
"""Captures and pages classified together: bounds the memory, some hundred bytes per capture."""
_FRESH_AT_ONCE = 200_000
"""Captures in memory that are classified together."""
_SHOWN = 500
"""Letters of the name of a record in an error."""


@dataclass(frozen=True, slots=True)
class CleaningRules:
    """What to leave out of an archive before it is classified (SHARC 7.2)."""

    merge_within: float = MERGE_WITHIN
    """Seconds within which several downloads of a page are one; the best response counts, and of those the last.
    With 0 nothing is merged."""
    depth: int | None = None
    """Maximum directories in the path of a page; ``None`` for any number."""
    resources: bool = False
    """Whether style sheets, images, robots.txt and the like are revisited as pages."""


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """The result of one source."""

    mark: ImportMark
    accepted: int = 0
    """Captures imported now; those of an earlier import do not count."""
    new: int = 0
    """Of these, captures that were not known before."""


@dataclass(frozen=True, slots=True)
class ClassifiedVisits:
    """How classifying changed the visits."""

    new: int = 0
    restart: int = 0
    """Stored visits with another verdict now."""
    withdrawn: int = 0
    """Visits that turned out to be part of another one."""

    def plus(self, others: ClassifiedVisits) -> ClassifiedVisits:
        """The sums of both."""
        return ClassifiedVisits(self.new + others.new, self.restart + others.restart, self.withdrawn + others.withdrawn)


class Importer:
    """One import: sources are imported one after the other, then all their pages are classified."""

    def __init__(  # noqa: PLR0913 - where to, how, and who is told
        self,
        store: Store,
        clock: Clock,
        cleaning: CleaningRules | None = None,
        progress: Callable[[int], None] = lambda _captures: None,
        *,
        again: bool = False,
        importance: float = 1.0,
    ) -> None:
        """With ``again``, what was imported before is read and classified again.

        ``importance`` is that of new pages; with 0 they are only known, and never visited.
        """
        self._store = store
        self._clock = clock
        self._cleaning = cleaning or CleaningRules()
        self._progress = progress
        self._again = again
        self._importance = importance
        self._began = clock.now()
        self._fresh: FreshCaptures | None = None
        self._early = ClassifiedVisits()
        """What was classified while sources were read."""
        self._classified: list[IntArray] = []
        """Pages that were classified from the captures in memory."""
        self._merged: list[tuple[IntArray, IntArray]] = []
        """Of these, the pages with captures that are no visits, and how many they have."""

    def begin(self, source: str, fingerprint: str) -> ImportMark:
        """Where to start with a source: where the last import stopped, if source and settings are the same.

        The settings are part of the fingerprint: another depth selects other captures, and another merge interval makes
        other visits.
        """
        asked = f"{fingerprint} depth={self._cleaning.depth} within={self._cleaning.merge_within:g}"
        asked += " resources" if self._cleaning.resources else ""
        mark = self._store.import_mark(source)
        if mark is None or mark.fingerprint != asked or self._again:
            return ImportMark(source, asked)
        return mark

    def take(  # noqa: PLR0913 - which source, what is in it, and where its bytes are
        self,
        source: str,
        fingerprint: str,
        batches: Iterable[Any],
        report: ReadReport,
        *,
        file: str = "",
        unpacked: bool = False,
    ) -> ImportedSource:
        """Record the captures of one source; a finished source adds nothing, an interrupted one resumes.

        ``batches`` are record batches of :func:`recrawl.formats.columnar.capture_batches.schema`. Each is one
        transaction, together with how far the source was read. ``file`` is where the bytes can be found again, if the
        source has them. The bytes of an ``unpacked`` source lie in the files that its batches name, in our folder; it
        starts from the beginning after an interruption, since a file that could not be unpacked then may be there now.
        """
        mark = self.begin(source, fingerprint)
        if mark.finished:
            report.skip("imported before", mark.accepted)
            return ImportedSource(mark)
        if unpacked:
            mark = replace(mark, position=0, accepted=0)
        before = self._store.import_mark(source)
        asked_before = before.fingerprint if before is not None else ""
        restart = self._again or (asked_before.startswith(f"{fingerprint} ") and asked_before != mark.fingerprint)
        accepted = new = 0
        position = mark.position
        if self._fresh is None:
            self._fresh = FreshCaptures(self._store.last_page())
        fresh = self._fresh
        located = unpacked or bool(file)

        def add(batch: Any, rows: range) -> int:  # noqa: ANN401 - pyarrow ships no types
            nonlocal mark, new
            captures, texts = self._captures(batch.slice(rows.start, len(rows)), report, file)
            after = replace(
                mark,
                position=position + rows.stop,
                accepted=mark.accepted + len(captures),
                skipped=sum(report.skipped.values()),
                broken=report.bad,
            )
            new += self._store.add_captures(captures, after, located=located, restart=restart)[0]
            mark = after
            if not located:
                fresh.add(captures, *texts)
            return len(captures)

        for batch in _from(batches, position):
            name = partial(_row_name, source, batch)
            for taken in report.by_halves(range(batch.num_rows), partial(add, batch), name):
                accepted += taken
                self._progress(taken)
            position += batch.num_rows
            if fresh.is_full:
                self._early = self._early.plus(self._judge_fresh(all_of_them=False))
        mark = replace(mark, skipped=sum(report.skipped.values()), broken=report.bad, finished=True)
        self._store.set_import_mark(mark)
        return ImportedSource(mark, accepted, new)

    def judge(
        self,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
        on_bad: Callable[[InputError], None] | None = None,
    ) -> ClassifiedVisits:
        """Derive visits from the digests of the captures of every waiting page.

        Pages wait in the store, also those of an interrupted import, until their visits are recorded. A page that our
        own code fails on is reported to ``on_bad``, and waits for the next import; without ``on_bad`` the error is
        raised.
        """
        judged = self._early.plus(self._judge_fresh(all_of_them=True, progress=progress))
        self._early = ClassifiedVisits()
        pages = self._store.unjudged()
        if self._classified:  # those that came again since are classified from the store
            self._classified = [np.setdiff1d(np.concatenate(self._classified), pages)]
        if len(pages):
            self._store.set_control(FITTED, None, self._clock.now())
        report = ReadReport(strict=True) if on_bad is None else ReadReport(on_bad=on_bad)
        done = 0
        for some in chunks_of(self._store, pages, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
            for new, restart, withdrawn in report.by_halves(
                some, self._judge, lambda pages: self._store.urls(pages)[0]
            ):
                judged = judged.plus(ClassifiedVisits(new, restart, withdrawn))
            done += len(some)
            progress(done, len(pages))
        return judged

    def touched(self) -> IntArray:
        """The pages of this import: those that wait to be classified, and those that were classified as it went on."""
        return np.unique(np.concatenate([self._store.unjudged(), *self._classified]))

    def found_here(self, pages: IntArray) -> BoolArray:
        """Which pages were not known before this import, so that nothing was said of them before."""
        return np.zeros(len(pages), np.bool_) if self._fresh is None else pages > self._fresh.after

    def merged(self, pages: IntArray, read: IntArray) -> MergedCaptures:
        """The captures of these pages that are no visits; pages that were ``read`` since are looked up in the store."""
        none = np.empty(0, np.int64)
        in_memory = np.setdiff1d(np.concatenate([none, *self._classified]), read)
        page, count = (np.concatenate([none, *column]) for column in zip(*self._merged, (none, none), strict=True))
        rows = np.isin(page, np.intersect1d(in_memory, pages))
        return merged_captures(self._store, np.setdiff1d(pages, in_memory), (page[rows], count[rows]))

    def _judge_fresh(
        self, *, all_of_them: bool, progress: Callable[[int, int], None] = lambda _done, _all: None
    ) -> ClassifiedVisits:
        """Classify pages from the captures in memory, if these are all that the store has of them.

        What is not classified here still waits in the store.
        """
        judged = ClassifiedVisits()
        taken = None if self._fresh is None else self._fresh.taken(all_of_them=all_of_them)
        if taken is None:
            return judged
        self._store.set_control(FITTED, None, self._clock.now())
        done = 0
        for listed, again in page_portions(*taken, _FRESH_AT_ONCE):
            pages, count = np.unique(listed.page, return_counts=True)
            done += len(pages)
            fine = self._store.capture_counts(pages) == count
            fine[np.searchsorted(pages, listed.page[again])] = False
            some = listed
            if not bool(fine.all()):
                some, pages = listed.part(np.flatnonzero(fine[np.searchsorted(pages, listed.page)])), pages[fine]
            if not len(pages):
                continue
            try:
                found, merged = self._judge_listed(pages, some)
            except RecrawlError:
                raise
            except Exception:  # noqa: BLE001, S112 - what is at fault is found and reported when they are read back
                continue
            judged = judged.plus(found)
            self._classified.append(pages)
            self._merged.append(np.unique(merged, return_counts=True))
            progress(done, done)
        return judged

    def _judge(self, pages: IntArray) -> tuple[int, int, int]:
        """Record the visits of some pages; return how many are new, changed and withdrawn."""
        found, _ = self._judge_listed(pages, listed_captures(self._store, pages, _CAPTURES_AT_ONCE))
        return found.new, found.restart, found.withdrawn

    def _judge_listed(self, pages: IntArray, listed: ListedCaptures) -> tuple[ClassifiedVisits, IntArray]:
        """Record the visits of pages by all their captures; also the page of each capture that is no visit."""
        self._tell_resources(pages, listed)
        known = self._store.observations(pages)
        found = differences(listed, known, self._cleaning.merge_within)
        if len(found.visits):
            self._store.record(with_costs(self._store, found.visits, found.ours))
        self._store.withdraw(*found.withdrawn)
        self._store.set_gone(*gone_after(known, found.visits))
        self._store.set_judged(pages)
        return (
            ClassifiedVisits(found.new, len(found.visits) - found.new, len(found.withdrawn[0])),
            listed.page[~found.kept & ~listed.ours & ~listed.beside],
        )

    def _tell_resources(self, pages: IntArray, listed: ListedCaptures) -> None:
        """Mark which of these pages are resources, by all their captures. ``pages`` ascend, and so do the captures.

        Only pages that this import added change their importance: a page that somebody wants stays wanted. A page that
        we visited is no resource either.
        """
        starts = np.searchsorted(listed.page, pages)
        held = np.append(starts[1:], len(listed)) > starts
        told = (listed.status // 100 == HTTPStatus.OK // 100) & ~listed.repeats
        names, codes = listed.media_types()
        # Each pair of page and media type once.
        pairs = np.unique(np.searchsorted(pages, listed.page[told]) * max(len(names), 1) + codes[told])
        first = np.searchsorted(pairs, np.arange(len(pages) + 1) * max(len(names), 1))
        types = [names[code] for code in (pairs % max(len(names), 1)).tolist()]
        all_beside, any_ours = np.zeros(len(pages), np.bool_), np.zeros(len(pages), np.bool_)
        all_beside[held] = np.logical_and.reduceat(listed.beside, starts[held]) if len(listed) else ()
        any_ours[held] = np.logical_or.reduceat(listed.ours, starts[held]) if len(listed) else ()
        found = all_beside.copy()  # robots.txt and the like of a crawl by recrawl
        if not self._cleaning.resources:
            rest = np.flatnonzero(~(all_beside | ~held) & ~any_ours)
            urls = self._store.urls(pages[rest])
            found[rest] = [
                is_resource(url, types[first[row] : first[row + 1]])
                for row, url in zip(rest.tolist(), urls, strict=True)
            ]
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
        report: ReadReport,
        records: IntArray | None = None,
        *,
        resources: BoolArray | None = None,
    ) -> IntArray:
        """The pages of these URLs, new ones included; -1 where one is not wanted: too deep, or no web page.

        ``records[i]`` records have URL i, one each if not given; those left out are reported as skipped. New pages that
        seem to be ``resources`` are only known, until all their captures are classified.
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

    def _captures(self, batch: Any, report: ReadReport, place: str) -> tuple[CaptureColumns, CaptureTexts]:  # noqa: ANN401
        """The captures of a batch for the store, and their texts in columns."""
        # Indexes are sorted by URL: most lines have the URL of the line before.
        encoded = batch.column("url").dictionary_encode()
        urls: list[str] = encoded.dictionary.to_pylist()
        which = encoded.indices.to_numpy()
        unwanted = np.zeros(len(urls), np.bool_) if self._cleaning.resources else _resources(urls, which, batch)
        if (roles := _roles(batch)) is not None:
            visited, other = (
                np.bincount(which[roles == role], minlength=len(urls)) > 0
                for role in (CaptureRole.VISIT, CaptureRole.UNKNOWN)
            )
            unwanted = (unwanted & ~visited) | ~(visited | other)
        page = self.pages(urls, report, np.bincount(which, minlength=len(urls)), resources=unwanted)[which]
        rows = np.flatnonzero(page >= 0)
        some = batch if len(rows) == len(page) else batch.take(rows)
        kind = some.column("kind").to_numpy()
        repeats = np.isin(kind, (RecordKind.REVISIT_IDENTICAL, RecordKind.REVISIT_NOT_MODIFIED))
        status = some.column("status").to_numpy().astype(np.int64)
        status[(kind == RecordKind.REVISIT_NOT_MODIFIED) & (status == NO_STATUS)] = HTTPStatus.NOT_MODIFIED
        types = some.column("mime").dictionary_encode()
        names = [*types.dictionary.to_pylist(), REVISIT]
        codes = types.indices.to_numpy().astype(np.int64)
        codes[repeats] = len(names) - 1
        mime = [names[code] for code in codes.tolist()]
        digests = digest_array(some.column("digest"))
        captures = CaptureColumns(
            page[rows],
            some.column("time").to_numpy(),
            status,
            mime,
            digests.to_pylist(),
            some.column("size").to_numpy(),
            [place] * len(rows) if place else _files(some.column("file")),
            some.column("offset").to_numpy(),
            some.column("length").to_numpy(),
            origin=_origins(some),
        )
        return captures, (names, codes, digests)

    def _shallow(self, urls: Sequence[str]) -> BoolArray:
        if self._cleaning.depth is None:
            return np.ones(len(urls), np.bool_)
        return np.array([url_depths(url).path <= self._cleaning.depth for url in urls], np.bool_)


def _row_name(source: str, batch: Any, rows: range) -> str:  # noqa: ANN401 - pyarrow ships no types
    """Which record of a source a row is of, in an error."""
    return f"{source}, {batch.column('url')[rows.start]}"[:_SHOWN]


def _files(column: Any) -> list[str]:  # noqa: ANN401 - pyarrow ships no types
    """The files of captures; none if an index names an invalid file name."""
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


def _roles(batch: Any) -> IntArray | None:  # noqa: ANN401 - pyarrow ships no types
    """The :class:`CaptureRole` of each capture; ``None`` if the source does not tell any."""
    return batch.column(ROLE).to_numpy().astype(np.int64) if ROLE in batch.schema.names else None


def _origins(batch: Any) -> IntArray | None:  # noqa: ANN401 - pyarrow ships no types
    """Where captures come from, as the store notes it, if their source tells what they were for."""
    roles = _roles(batch)
    return None if roles is None else _ORIGINS[roles]


_ORIGINS = np.array([0, CaptureOrigin.VISITED, CaptureOrigin.AUXILIARY])
"""By :class:`CaptureRole`; 0 leaves it to the store."""


def _from(batches: Iterable[Any], position: int) -> Iterator[Any]:
    """The batches without their first ``position`` rows, which an interrupted import recorded."""
    for batch in batches:
        if position >= batch.num_rows:
            position -= batch.num_rows
            continue
        yield batch.slice(position) if position else batch
        position = 0
