"""Classifies archived captures by their bytes: text, links and data, not only digests.

Page by page, in the order of time, each capture goes to the same change detector as in a live crawl, with what was
learned from the captures before it. Bytes are read only where the digest differs from the last: an unchanged page costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from recrawl.detect import ChangeCriteria, ChangeResult, PageState, known_after, unchanged
from recrawl.detect.detector import PARTS, Detector
from recrawl.detect.digest_verdicts import methods_of, outcomes_of
from recrawl.detect.noise.learned_noise import NO_NOISE, HostNoise, NoiseEvidence
from recrawl.errors import InputError, RecrawlError, our_fault
from recrawl.model import (
    ANSWERED,
    BoolArray,
    Capture,
    ChangeKind,
    FloatArray,
    IntArray,
    Outcome,
    Validators,
    Verdict,
    Visit,
    Visits,
)
from recrawl.parse.parse_pool import ParsePool, classify_in_pool
from recrawl.store.base import Store
from recrawl.store.store_values import (
    REVISIT,
    CaptureColumns,
    CaptureOrigin,
    LearnedFacts,
    last_modified_claims,
    newly_stated,
)
from recrawl.transfer.archive_noise_learning import forget_archive_noise, learn_archive_noise
from recrawl.transfer.listed_captures import (
    MERGE_WITHIN,
    as_stored,
    captures_in_pieces,
    chunks_of,
    kept_captures,
    with_costs,
)

ReadCapture = Callable[[str, int], Capture | None]
"""The bytes of the record at an offset of an archive file; ``None`` if they cannot be had."""

_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 2_000, 500
"""Captures and pages that are classified and recorded together: bounds the memory for their links."""
_MANY = 2_000
"""Captures from which on they are read in compiled code: that takes half the time, but some seconds to be loaded, and
twenty to be made for the first time."""
_LINKS_REMEMBERED = 500_000
_PLACES_REMEMBERED = 100_000
_NOWHERE = ("", -1)
_RECORDED = (CaptureOrigin.OURS, CaptureOrigin.RECORDED)


class _CaptureContent(NamedTuple):
    """The result of one capture."""

    visit: Visit
    judgement: ChangeResult
    validators: Validators
    ours: bool
    stated: float | None
    """The date that the page claims for its last change, if it is new."""
    stays: bool = False
    """Whether the stored visit stays as it is."""


@dataclass(slots=True)
class _Page:
    """What the captures of one page taught so far."""

    known: PageState | None = None
    digest: bytes = b""
    blind: bool = False
    """The bytes of the last version are missing: the next capture can only be classified by its digest."""
    recorded: bool = True
    """Whether a crawl recorded the visit of the last version; there may be none."""
    links_read_at: float = -np.inf
    held: dict[bytes, tuple[str, int]] = field(default_factory=dict)
    """Location of the bytes of each digest, for revisits; only the latest if there are very many."""

    def hold(self, digest: bytes, file: str, offset: int) -> None:
        """Store the location of the bytes of a digest."""
        self.held[digest] = file, offset
        if len(self.held) > _PLACES_REMEMBERED:
            del self.held[next(iter(self.held))]


class PayloadClassifier:
    """Reads archived bytes and records their verdicts; visits that were classified before are classified again."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it reads, and by which standards
        self,
        store: Store,
        read: ReadCapture,
        merge_within: float | None = 0.0,
        standards: ChangeCriteria | None = None,
        pool: ParsePool | None = None,
        on_bad: Callable[[InputError], None] = lambda _error: None,
        *,
        learns_noise: bool = False,
        keeps_recorded: bool = False,
        detector: Detector = PARTS,
    ) -> None:
        """``merge_within`` as in :class:`~recrawl.transfer.archive_import.CleaningRules`; ``standards`` define change.

        With ``None``, captures are visits if they are visits in the store: the rules of their imports hold.

        What live visits taught about noise on a host holds for its archived pages, too. ``pool`` reads what is not
        cheap to read. ``on_bad`` receives captures that our own code fails on; their digests classify them. With
        ``learns_noise``, what differs in nearly every capture of nearly every page of a host is noise, too.
        ``detector`` compares the captures. With ``keeps_recorded``, visits that a crawl recorded stay as they are where
        they follow another such visit: a crawl knows more than the bytes, such as its confirmation fetches.
        """
        self._keeps_recorded = keeps_recorded
        self._store = store
        self._pool = pool
        self._on_bad = on_bad
        self._base = standards or ChangeCriteria()
        self._standards: dict[int, ChangeCriteria] = {}
        """The criteria of each page in the current batch whose host has noise."""
        self._read = read
        self._merge_within = merge_within
        self._moments = MERGE_WITHIN if merge_within is None else merge_within
        """Seconds within which versions of a page are too close to prove that a part differs every time."""
        self._page_of: dict[str, int] = {}
        self._learns_noise = learns_noise
        self._detector = detector
        self._of_archive: dict[int, HostNoise] = {}
        """What the captures themselves taught about noise, by host."""

    def judge(self, pages: IntArray, progress: Callable[[int, int], None] = lambda _done, _all: None) -> int:
        """Classify all captures of these pages that have bytes; return how many visits were recorded.

        Pages are noted as read portion by portion, so that after a kill only the rest has to be read.
        """
        if int(self._store.capture_counts(pages).sum()) >= _MANY:
            self._base = replace(self._base, use_kernels=True)
        if self._learns_noise:
            self._of_archive = learn_archive_noise(
                self._store, pages, self._read, self._read_alone, self._base, self._moments
            )
        else:
            forget_archive_noise(self._store, pages)
        recorded = done = 0
        for some in chunks_of(self._store, pages, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
            keep = kept_captures(self._store, some, self._merge_within, _CAPTURES_AT_ONCE)
            start, page = 0, _Page()
            self._standards = self._learned(some)
            for captures in captures_in_pieces(self._store, some, _CAPTURES_AT_ONCE):
                if len(some) > 1:
                    page = _Page()
                recorded += self._record_each(list(self._visits(captures, keep[start : start + len(captures)], page)))
                start += len(captures)
            self._store.set_read(some)
            done += len(some)
            progress(done, len(pages))
        return recorded

    def _learned(self, pages: IntArray) -> dict[int, ChangeCriteria]:
        """The standards for those of the pages whose hosts are known to have noise."""
        known = self._store.pages(pages)
        found = NoiseEvidence.counted(self._store.noise(np.unique(known.host)))
        noise = {host: found.noise_of(host) for host in np.unique(found.host).tolist()}
        return {
            page: replace(self._base, mask=mask)
            for page, host in zip(known.id.tolist(), known.host.tolist(), strict=True)
            if (mask := noise.get(host, NO_NOISE).mask_of(page) | self._of_archive.get(host, NO_NOISE).mask_of(page))
        }

    def _read_alone(self, capture: Capture, mime: str) -> ChangeResult:
        """A capture as if it were the first of its page."""
        answer = _as_answer(capture, mime, capture.time)
        if self._pool is None:
            return self._detector.classify(answer, None, self._base)
        return classify_in_pool(self._pool, answer, None, self._base, detector=self._detector)

    def _visits(self, captures: CaptureColumns, keep: BoolArray, page: _Page) -> Iterator[_CaptureContent]:
        """The results of the captures of a batch; ``page`` is the state of its first page before."""
        outcome = outcomes_of(captures.status)
        for row in range(len(captures)):
            if row and captures.page[row] != captures.page[row - 1]:
                page = _Page()
            if captures.mime[row] != REVISIT and captures.warc_file[row] and captures.digest[row] not in page.held:
                page.hold(captures.digest[row], captures.warc_file[row], int(captures.warc_offset[row]))
            if not keep[row]:
                continue
            try:
                found = self._judged(captures, row, page, Outcome(int(outcome[row])))
            except RecrawlError:
                raise
            except Exception as error:  # noqa: BLE001 - one capture must not end the import
                self._on_bad(our_fault(error, captures.warc_file[row], int(captures.warc_offset[row])))
                page.digest, page.blind = captures.digest[row], True  # as if its bytes could not be had
                continue
            if found is not None:
                yield found

    def _judged(self, captures: CaptureColumns, row: int, page: _Page, outcome: Outcome) -> _CaptureContent | None:
        """The visit of one capture, if its bytes give more than its digest."""
        time, digest = float(captures.time[row]), captures.digest[row]
        repeats = captures.mime[row] == REVISIT
        ours = captures.ours is not None and bool(captures.ours[row])
        recorded = captures.origin is not None and int(captures.origin[row]) in _RECORDED
        stays = self._keeps_recorded and recorded and page.recorded
        if outcome <= ANSWERED:
            page.recorded = recorded
        ours = ours or recorded
        was_blind, page.blind = page.blind, False
        if page.known is not None and not was_blind and outcome < Outcome.GONE and digest and digest == page.digest:
            judgement = unchanged(ChangeResult(outcome, validators=page.known.validators, mime=page.known.mime))
        else:
            capture = self._bytes_of(captures, row, page)
            if capture is None:
                if outcome <= ANSWERED and digest != page.digest:
                    page.digest, page.blind = digest, True
                return None
            standards = self._standards.get(int(captures.page[row]), self._base)
            answer = _as_answer(capture, captures.mime[row], time)
            if self._pool is None:
                judgement = self._detector.classify(answer, page.known, standards)
            else:
                judgement = classify_in_pool(self._pool, answer, page.known, standards, detector=self._detector)
            if capture.truncated == "length" and _differ(digest, page.digest):
                judgement = _changed_beyond(judgement)
        visit = Visit(
            int(captures.page[row]),
            time,
            outcome if repeats else judgement.outcome,
            judgement.verdict,
            judgement.kinds,
            int(captures.status[row]),
            max(int(captures.size[row]), 0),
            0.0,
            judgement.new_internal,
            judgement.new_external,
            judgement.added_internal,
            judgement.added_external,
            judgement.magnitude,
        )
        if was_blind:
            page.blind = judgement.outcome > ANSWERED
            if not page.blind:
                _learn(page, judgement, time, digest)
            return None
        if judgement.outcome > ANSWERED:
            before = page.known.validators if page.known else Validators()
            return _CaptureContent(visit, judgement, before, ours, None, stays)
        stated = newly_stated(judgement.validators, page.known.validators if page.known else None)
        return _CaptureContent(visit, judgement, _learn(page, judgement, time, digest), ours, stated, stays)

    def _bytes_of(self, captures: CaptureColumns, row: int, page: _Page) -> Capture | None:
        """The bytes of a capture: its own, else those of an earlier capture of the page with the same digest."""
        digest = captures.digest[row]
        if captures.mime[row] != REVISIT:
            place = captures.warc_file[row], int(captures.warc_offset[row])
            if (capture := self._bytes_at(*place)) is not None:
                page.hold(digest, *place)  # an index may have named a file before that is not here
                return capture
        return self._bytes_at(*page.held.get(digest, _NOWHERE)) if digest else None

    def _bytes_at(self, file: str, offset: int) -> Capture | None:
        return self._read(file, offset) if file and offset >= 0 else None

    def _record_each(self, judged: list[_CaptureContent]) -> int:
        """Record visits together; one at a time if our own code fails on some."""
        try:
            return self._record(judged)
        except RecrawlError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            if len(judged) == 1:
                [url] = self._store.urls(np.array([judged[0].visit.page]))
                self._on_bad(our_fault(error, url))
                return 0
        half = len(judged) // 2
        return self._record_each(judged[:half]) + self._record_each(judged[half:])

    def _record(self, judged: list[_CaptureContent]) -> int:
        if not judged:
            return 0
        read = [(one.visit, one.judgement) for one in judged if one.judgement.links_read and one.judgement.links]
        counts = [len(judgement.links) for _, judgement in read]
        source = np.repeat(np.array([visit.page for visit, _ in read], dtype=np.int64), counts)
        times = np.repeat(np.array([visit.time for visit, _ in read]), counts)
        targets = self._pages([url for _, judgement in read for url in judgement.links], times)
        self._store.record_links(source, targets, times)
        said = [(one.visit.page, one.visit.time, one.stated) for one in judged if one.stated is not None]
        self._store.add_claims(last_modified_claims(said))
        visits = Visits.from_rows(one.visit for one in judged)
        visits = with_costs(self._store, visits, np.array([one.ours for one in judged], np.bool_))
        visits = as_stored(self._store, visits, np.array([one.stays for one in judged], np.bool_))
        self._store.record(
            visits,
            validators=[one.validators for one in judged],
            learned_facts=LearnedFacts([one.judgement.fingerprint for one in judged]),
        )
        return len(judged)

    def _pages(self, urls: list[str], times: FloatArray) -> IntArray:
        """Page ids of link targets, seen at these times; new ones are only remembered, not scheduled."""
        unknown: dict[str, float] = {}
        for url, time in zip(urls, times.tolist(), strict=True):  # page by page: a later one may name it earlier
            if url not in self._page_of and time < unknown.get(url, np.inf):
                unknown[url] = time
        if unknown:
            ids = self._store.discover(list(unknown), np.array(list(unknown.values())), importance=0.0)
            self._page_of.update(zip(unknown, ids.tolist(), strict=True))
        found = np.array([self._page_of[url] for url in urls], dtype=np.int64)
        if len(self._page_of) > _LINKS_REMEMBERED:
            self._page_of.clear()
        return found


def _as_answer(capture: Capture, mime: str, time: float) -> Capture:
    """The capture at another time; a payload without HTTP becomes an HTTP response, so that it can be classified."""
    if capture.raw_head:
        return replace(capture, time=time)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime or 'application/octet-stream'}\r\n\r\n"
    return replace(capture, time=time, status=200, raw_head=head.encode("latin-1", "replace"))


def _differ(digest: bytes, before: bytes) -> bool:
    """Whether two digests of one algorithm differ."""
    method = methods_of([digest, before])
    return digest != before and bool(method[0] == method[1] != 0)


def _changed_beyond(judgement: ChangeResult) -> ChangeResult:
    """Mark a truncated capture as changed: the archive's digest of the whole body differs."""
    if judgement.verdict != Verdict.UNCHANGED:
        return judgement
    return replace(judgement, verdict=Verdict.CHANGED, kinds=judgement.kinds | ChangeKind.CONTENT)


def _learn(page: _Page, judgement: ChangeResult, time: float, digest: bytes) -> Validators:
    """Make the version of an answered capture the state of its page."""
    if judgement.links_read:
        page.links_read_at = time
    validators = replace(
        judgement.validators,
        mime=judgement.mime,
        gone=judgement.outcome == Outcome.GONE,
        links_read_at=page.links_read_at,
    )
    page.known = replace(known_after(judgement, page.known) or PageState(), validators=validators)
    page.digest = digest
    return validators
