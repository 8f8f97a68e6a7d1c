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
from recrawl.errors import InputError
from recrawl.formats.atomic_files import is_file_name
from recrawl.formats.columnar.capture_batches import NO_STATUS, ROLE, CaptureRole, ReadReport, RecordKind
from recrawl.model import AnyArray, BoolArray, IntArray
from recrawl.predict.static_features import url_depths
from recrawl.store import store_values
from recrawl.store.base import Store
from recrawl.store.store_values import FITTED, CaptureColumns, CaptureOrigin, ImportMark
from recrawl.time import Clock
from recrawl.transfer.listed_captures import (
    MERGE_WITHIN,
    ListedCaptures,
    chunks_of,
    differences,
    gone_after,
    listed_captures,
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
    """The same for a column. SHA-1 in base32, the common case in indexes, is decoded all at once. O(n)."""
    usual = [row for row, text in enumerate(column) if len(text) == _SHA1_BASE32 and text.isascii()]
    found: list[bytes | None] = [None] * len(column)
    if usual:
        letters = np.frombuffer("".join([column[row] for row in usual]).encode(), np.uint8).reshape(-1, _SHA1_BASE32)
        values = _VALUES[letters]
        whole = (values != _BAD).all(axis=1)
        data = _joined(values).tobytes()
        for place, (row, good) in enumerate(zip(usual, whole.tolist(), strict=True)):
            if good:
                found[row] = data[20 * place : 20 * place + 20]
    return [digest_bytes(text) if known is None else known for text, known in zip(column, found, strict=True)]


def _joined(values: AnyArray) -> AnyArray:
    """Rows of 32 numbers below 32 as rows of 20 bytes: eight numbers are five bytes."""
    eights = values.reshape(-1, 8).astype(np.uint64)
    word = np.zeros(len(eights), np.uint64)
    for place in range(8):
        word = (word << np.uint64(5)) | (eights[:, place] & np.uint64(31))
    return np.ascontiguousarray(word.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 3:]).reshape(len(values), -1)


REVISIT = store_values.REVISIT
_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 100_000, 20_000
"""Captures and pages classified together: bounds the memory, some hundred bytes per capture."""
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

        def add(batch: Any, rows: range) -> int:  # noqa: ANN401 - pyarrow ships no types
            nonlocal mark, new
            captures = self._captures(batch.slice(rows.start, len(rows)), report, file)
            after = replace(
                mark,
                position=position + rows.stop,
                accepted=mark.accepted + len(captures),
                skipped=sum(report.skipped.values()),
                broken=report.bad,
            )
            new += self._store.add_captures(captures, after, located=unpacked or bool(file), restart=restart)[0]
            mark = after
            return len(captures)

        for batch in _from(batches, position):
            name = partial(_row_name, source, batch)
            for taken in report.by_halves(range(batch.num_rows), partial(add, batch), name):
                accepted += taken
                self._progress(taken)
            position += batch.num_rows
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
        pages = self._store.unjudged()
        if len(pages):
            self._store.set_control(FITTED, None, self._clock.now())
        report = ReadReport(strict=True) if on_bad is None else ReadReport(on_bad=on_bad)
        done, judged = 0, ClassifiedVisits()
        for some in chunks_of(self._store, pages, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
            for new, restart, withdrawn in report.by_halves(
                some, self._judge, lambda pages: self._store.urls(pages)[0]
            ):
                judged = ClassifiedVisits(judged.new + new, judged.restart + restart, judged.withdrawn + withdrawn)
            done += len(some)
            progress(done, len(pages))
        return judged

    def _judge(self, pages: IntArray) -> tuple[int, int, int]:
        """Record the visits of some pages; return how many are new, changed and withdrawn."""
        listed = listed_captures(self._store, pages, _CAPTURES_AT_ONCE)
        self._tell_resources(pages, listed)
        known = self._store.observations(pages)
        found = differences(listed, known, self._cleaning.merge_within)
        if len(found.visits):
            self._store.record(with_costs(self._store, found.visits, found.ours))
        self._store.withdraw(*found.withdrawn)
        self._store.set_gone(*gone_after(known, found.visits))
        self._store.set_judged(pages)
        return found.new, len(found.visits) - found.new, len(found.withdrawn[0])

    def _tell_resources(self, pages: IntArray, listed: ListedCaptures) -> None:
        """Mark which of these pages are resources, by all their captures. ``pages`` ascend, and so do the captures.

        Only pages that this import added change their importance: a page that somebody wants stays wanted. A page that
        we visited is no resource either.
        """
        offsets = np.append(np.searchsorted(listed.page, pages), len(listed))
        told = (listed.status // 100 == HTTPStatus.OK // 100) & ~listed.repeats
        mimes = np.array(listed.mime, dtype=object)
        found = np.zeros(len(pages), np.bool_)
        for row, url in enumerate(self._store.urls(pages)):
            captures = slice(offsets[row], offsets[row + 1])
            if listed.beside[captures].all():  # robots.txt and the like of a crawl by recrawl
                found[row] = offsets[row] < offsets[row + 1]
            elif not self._cleaning.resources and not listed.ours[captures].any():
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

    def _captures(self, batch: Any, report: ReadReport, place: str) -> CaptureColumns:  # noqa: ANN401 - pyarrow ships no types
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
        mime, digest = (some.column(name).to_pylist() for name in ("mime", "digest"))
        for row in np.flatnonzero(repeats).tolist():
            mime[row] = REVISIT
        return CaptureColumns(
            page[rows],
            some.column("time").to_numpy(),
            status,
            mime,
            digest_column(digest),
            some.column("size").to_numpy(),
            [place] * len(rows) if place else _files(some.column("file")),
            some.column("offset").to_numpy(),
            some.column("length").to_numpy(),
            origin=_origins(some),
        )

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
