"""Classifies responses within limits: cheap ones in this process, the rest in the parse pool."""

from __future__ import annotations

from typing import Literal, Protocol

from recrawl import detect
from recrawl.detect import ChangeResult, PageState, classify_change
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.detector import PARTS, Detector
from recrawl.detect.version import CostlyError, Effort
from recrawl.model import Capture, Outcome, Verdict
from recrawl.parse.parse_pool import NoWorkerError, OverBudgetError, ParseLimits, ParsePool

_HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


_MANY_WORDS = 2_000
"""The words of a page from which on not all shingles are stored."""


class EventLog(Protocol):
    """The part of a log that is needed here."""

    def event(self, context: str, message: str, *, level: Literal["warn", "error"], details: dict[str, object]) -> None:
        """Write one event."""
        ...


def classify_in_pool(  # noqa: PLR0913 - where, what, and how
    pool: ParsePool,
    capture: Capture,
    known: PageState | None,
    standards: ChangeCriteria,
    log: EventLog | None = None,
    *,
    detector: Detector = PARTS,
) -> ChangeResult:
    """Classify a response in the pool unless it is cheap; by its bytes alone if that fails. Blocks."""
    try:
        return detector.classify(capture, known, standards, Effort.CHEAP)
    except CostlyError:
        pass
    try:
        return pool.call(detector.classify, capture, known, standards)
    except Exception as error:  # noqa: BLE001 - whatever happened to the subprocess, only this page is concerned
        log_unread(log, capture.url, error)
        return classified_unread(capture, known, standards, error, detector)


def classified_unread(
    capture: Capture,
    known: PageState | None,
    standards: ChangeCriteria,
    error: Exception,
    detector: Detector = PARTS,
) -> ChangeResult:
    """Classify a response that was not parsed, by its bytes.

    If the bytes differ and no subprocess was free to parse them, there is no verdict: a busy machine must not turn
    noise into a change. The next visit compares with the same version.
    """
    judged = detector.classify(capture, known, standards, Effort.BYTES)
    if isinstance(error, NoWorkerError) and judged.verdict == Verdict.CHANGED and judged.outcome == Outcome.FETCHED:
        return undecided(judged, known)
    return judged


def log_unread(log: EventLog | None, url: str, error: Exception) -> None:
    """Log that a response could not be parsed within its limits; an error of our own code is logged with its name."""
    expected = isinstance(error, OverBudgetError)
    reason = str(error) if expected else f"{error!r}"
    if log is not None:
        details: dict[str, object] = {"url": url, "reason": reason}
        log.event("fetch", "response not parsed", level="warn" if expected else "error", details=details)


def new_parse_pool(limits: ParseLimits, standards: ChangeCriteria) -> ParsePool:
    """A pool that is ready to classify responses by these criteria."""
    return ParsePool(limits, load_readers, standards)


def load_readers(standards: ChangeCriteria) -> None:
    """Parse something of each kind, so that a fork server has imported what its subprocesses need."""
    warm_up(standards)
    for mime, body in (("text/html", b"<p>One"), ("text/turtle", b"<a> <b> <c> ."), ("application/json", b"[1]")):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode()
        classify_change(Capture("http://warm-up.invalid/", 0.0, 200, raw_head=head, raw_body=body), None, standards)


def warm_up(standards: ChangeCriteria) -> None:
    """Classify small pages, so that compiled kernels are loaded or made before a response waits for them.

    Text with noise takes another code path than text without; so do text beyond ASCII, a page with wrongly nested tags,
    and one that only a full parser can read.
    """
    known: PageState | None = None
    words = b" ".join(b"%d" % word for word in range(_MANY_WORDS))
    pages = [
        form % text + words
        for form in (b"<p>%s of 2<p>", b"<b><p><i>%s of 2</b></i></p></q>", b"<p>%s of 2<xmp>")
        for text in (b"One", b"At 12:30:00 two", b"\xc3\x9cber 12:30:00", b"\xe6\x97\xa5")
    ]
    for body in pages if standards.use_kernels else ():
        capture = Capture("http://warm-up.invalid/", 0.0, 200, raw_head=_HTML, raw_body=body)
        known = detect.known_after(classify_change(capture, known, standards), known)


def undecided(judged: ChangeResult, known: PageState | None) -> ChangeResult:
    """The classification of a doubtful fetch that stays so: it has no verdict, and the next visit finds it again."""
    before = known or PageState()
    return ChangeResult(judged.outcome, validators=before.validators, mime=before.mime, size=judged.size)
