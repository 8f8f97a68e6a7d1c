"""The rules of :class:`recrawl.detect.detector.Detector` as tests."""

from __future__ import annotations

from dataclasses import replace

from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.change_verdict import ChangeResult, known_after, outcome_of
from recrawl.detect.detector import ConfirmingDetector, Detector
from recrawl.detect.fingerprint import PageState
from recrawl.detect.version import CostlyError, Effort
from recrawl.model import Capture, Outcome, Verdict
from recrawl.testing.checks import pickled

URL = "http://page.example/"
_HTML = "text/html; charset=utf-8"
_ODD = (
    b"",
    b"\xff\xfe\x00",
    b"<" * 3000,
    b"<p>" * 2000,
    "<title>x".encode("utf-16"),
    b'{"a": [1, 2',
    b"\x1f\x8b\x08 not gzip",
    bytes(range(256)),
)
"""Bodies that no server should send."""
_TYPES = (_HTML, "text/turtle", "application/json", "text/csv", "application/pdf", "x", "")


def page(body: bytes, time: float = 0.0, status: int = 200, media_type: str = _HTML, **headers: str) -> Capture:
    """A capture of :data:`URL`, as a server sends it."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {media_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Capture(URL, time, status, ("\r\n".join(lines) + "\r\n\r\n").encode(), body)


def _failures(time: float) -> list[Capture]:
    return [
        Capture(URL, time, 0, error="refused"),
        replace(page(b"half", time), truncated="time"),
        *(page(b"Sorry.", time, status) for status in (401, 403, 429, 500, 503, 999)),
    ]


class DetectorConformance:
    """Tests for one detector. Override :meth:`make`, and :meth:`versions` for one that reads something special."""

    def make(self) -> Detector:
        """The detector."""
        raise NotImplementedError

    def versions(self) -> tuple[Capture, Capture]:
        """Two captures of one page, an hour apart, between which it changed by the rules of the detector."""
        return (
            page(b"<html><title>One</title><body><p>The mill stands by the river.</p></body></html>"),
            page(b"<html><title>Two</title><body><p>The mill was sold to the town.</p></body></html>", 3600.0),
        )

    def _first(self) -> tuple[Detector, Capture, PageState]:
        detector, capture = self.make(), self.versions()[0]
        known = known_after(detector.classify(capture, None, ChangeCriteria()), None)
        assert known is not None
        return detector, capture, known

    def test_it_is_a_detector_with_a_name(self) -> None:
        """Members of the protocol."""
        assert isinstance(self.make(), Detector)
        assert self.make().name

    def test_the_first_answer_is_unknown(self) -> None:
        """Rule 3."""
        judged = self.make().classify(self.versions()[0], None, ChangeCriteria())
        assert judged.outcome == Outcome.FETCHED
        assert judged.verdict == Verdict.UNKNOWN
        assert judged.validators.digest or judged.validators.etag, "nothing to compare the next answer with"

    def test_a_change_is_found_and_then_known(self) -> None:
        """The version after a change is what the next capture is compared with."""
        detector, _, known = self._first()
        later = self.versions()[1]
        judged = detector.classify(later, known, ChangeCriteria())
        assert judged.verdict == Verdict.CHANGED
        assert judged.kinds
        again = detector.classify(replace(later, time=7200.0), known_after(judged, known), ChangeCriteria())
        assert again.verdict == Verdict.UNCHANGED

    def test_the_same_bytes_are_unchanged(self) -> None:
        """Rule 5, also with another time and other validators; and a 304."""
        detector, capture, known = self._first()
        for later in (replace(capture, time=60.0), page(capture.raw_body, 60.0, ETag='"2"')):
            assert detector.classify(later, known, ChangeCriteria()).verdict == Verdict.UNCHANGED
        judged = detector.classify(page(b"", 60.0, 304), known, ChangeCriteria())
        assert (judged.outcome, judged.verdict) == (Outcome.NOT_MODIFIED, Verdict.UNCHANGED)

    def test_a_failure_says_nothing_and_leaves_what_is_known(self) -> None:
        """Rule 4."""
        detector, capture, known = self._first()
        for failure in _failures(60.0):
            for before in (None, known):
                judged = detector.classify(failure, before, ChangeCriteria())
                assert judged.outcome == outcome_of(failure)
                assert judged.verdict == Verdict.UNKNOWN
                assert known_after(judged, before) == before
        assert detector.classify(replace(capture, time=90.0), known, ChangeCriteria()).verdict == Verdict.UNCHANGED

    def test_a_page_that_is_gone_is_a_change_once(self) -> None:
        """Rule 5: also its return."""
        detector, capture, known = self._first()
        for status in (404, 410):
            gone = detector.classify(page(b"Gone.", 60.0, status), known, ChangeCriteria())
            assert (gone.outcome, gone.verdict) == (Outcome.GONE, Verdict.CHANGED)
            after = known_after(gone, known)
            assert detector.classify(page(b"Gone!", 90.0, status), after, ChangeCriteria()).verdict == Verdict.UNCHANGED
            assert detector.classify(replace(capture, time=99.0), after, ChangeCriteria()).verdict == Verdict.CHANGED

    def test_it_never_raises_because_of_what_a_server_sent(self) -> None:
        """Rule 2: odd bodies of any type, before and after a good one, at any effort."""
        detector, _, known = self._first()
        for body in _ODD:
            for media_type in _TYPES:
                odd = page(body, 60.0, media_type=media_type)
                for before in (None, known):
                    for effort in Effort:
                        judged = self._at(detector, odd, before, effort)
                        assert judged is None or isinstance(judged, ChangeResult)

    def test_an_answer_that_was_not_parsed_can_be_compared_by_its_bytes(self) -> None:
        """Rule 7: ``Effort.BYTES`` never asks for more."""
        detector, capture, known = self._first()
        same = detector.classify(replace(capture, time=60.0), known, ChangeCriteria(), Effort.BYTES)
        assert same.verdict == Verdict.UNCHANGED

    def test_equal_arguments_give_equal_judgements(self) -> None:
        """Rule 1, also through pickle (rule 6)."""
        detector, _, known = self._first()
        later = self.versions()[1]
        judged = detector.classify(later, known, ChangeCriteria())
        assert detector.classify(later, known, ChangeCriteria()) == judged
        assert pickled(detector).classify(pickled(later), pickled(known), ChangeCriteria()) == judged
        assert pickled(detector.classify)(later, known, ChangeCriteria()) == judged
        assert pickled(judged) == judged

    def test_a_change_that_both_captures_show_is_confirmed(self) -> None:
        """:class:`~recrawl.detect.detector.ConfirmingDetector`: a second capture like the first confirms it."""
        detector, _, known = self._first()
        if not isinstance(detector, ConfirmingDetector):
            return
        later = self.versions()[1]
        first, second = detector.confirm(later, replace(later, time=later.time + 20.0), known, ChangeCriteria())
        assert first.verdict == Verdict.CHANGED
        assert isinstance(second, ChangeResult)

    @staticmethod
    def _at(detector: Detector, capture: Capture, known: PageState | None, effort: Effort) -> ChangeResult | None:
        try:
            return detector.classify(capture, known, ChangeCriteria(), effort)
        except CostlyError:
            assert effort is Effort.CHEAP
            return None
