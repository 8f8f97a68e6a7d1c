"""The Detector seam: a detector receives a capture and the state of its page, and returns a :class:`ChangeResult`.

Two detectors are built in. ``parts`` compares texts, links and data under learned noise (:mod:`.change_verdict`) and
confirms changes by a second fetch (:mod:`.confirmation`). ``bytes`` compares nothing but bytes, for collections in
which every difference counts.

Every implementation passes :class:`recrawl.testing.DetectorConformance`. Packages register detectors as entry points of
the group ``recrawl.detectors``: a callable without arguments that returns a detector. The setting ``detect.detector``
chooses one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.change_verdict import ChangeResult, classify_change
from recrawl.detect.confirmation import classify_confirmed
from recrawl.detect.fingerprint import PageState
from recrawl.detect.version import Effort
from recrawl.model import Capture


@runtime_checkable
class Detector(Protocol):
    """Decides whether a page changed.

    Rules for all implementations:
     1. A detector is a function: equal arguments give equal judgements. It reads no clock, does no I/O, stores nothing
        and modifies no argument. What must be known at the next visit is in the judgement (``validators``,
        ``fingerprint``) and comes back in ``known``.
     2. It does not raise because of what a server sent. An answer that cannot be used has the verdict unknown.
     3. The first answer of a page (``known`` is ``None``) has the verdict unknown: there is nothing to compare with.
     4. A failure has no verdict: no answer, a body that was cut off, 5xx, 429, 4xx other than 404 and 410.
        ``outcome`` is that of :func:`recrawl.detect.change_verdict.outcome_of`.
     5. The same bytes again are unchanged. 404 and 410 after an answer are a change, once.
     6. A detector pickles: large answers are classified in worker processes, with limits of CPU time and memory.
     7. With ``Effort.CHEAP`` it takes some milliseconds or raises :class:`~recrawl.detect.version.CostlyError`; with
        ``Effort.BYTES`` it does not parse; with ``Effort.ALL`` it may take what it needs. O(bytes of the body).
    """

    @property
    def name(self) -> str:
        """The name in settings. Not empty."""
        ...

    def classify(
        self, capture: Capture, known: PageState | None, criteria: ChangeCriteria, effort: Effort = Effort.ALL
    ) -> ChangeResult:
        """Compare a capture with the ``known`` state of its page (``None`` before its first answer).

        ``criteria`` are the rules of the user and the learned noise of the host. The captures of a page come in the
        order of their time.

        Raises:
            CostlyError: more than a cheap effort is needed, and no more is allowed.
        """
        ...


@runtime_checkable
class ConfirmingDetector(Detector, Protocol):
    """A detector that can separate noise from change by a second capture, fetched moments after the first.

    For other detectors no page is fetched a second time.
    """

    def confirm(
        self,
        first: Capture,
        second: Capture,
        known: PageState | None,
        criteria: ChangeCriteria,
        effort: Effort = Effort.ALL,
    ) -> tuple[ChangeResult, ChangeResult]:
        """The results of both captures, the first one corrected by the second. Raises as ``classify`` does."""
        ...


@dataclass(frozen=True, slots=True)
class PartsDetector:
    """Compares text, links and data of a page, part by part, without noise."""

    name: str = "parts"

    def classify(
        self, capture: Capture, known: PageState | None, criteria: ChangeCriteria, effort: Effort = Effort.ALL
    ) -> ChangeResult:
        """See :func:`~recrawl.detect.change_verdict.classify_change`."""
        return classify_change(capture, known, criteria, effort)

    def confirm(
        self,
        first: Capture,
        second: Capture,
        known: PageState | None,
        criteria: ChangeCriteria,
        effort: Effort = Effort.ALL,
    ) -> tuple[ChangeResult, ChangeResult]:
        """See :func:`~recrawl.detect.confirmation.classify_confirmed`."""
        return classify_confirmed(first, second, known, criteria, effort)


@dataclass(frozen=True, slots=True)
class BytesDetector:
    """Compares the bytes of the body. Every difference is a change, noise too. Finds no links."""

    name: str = "bytes"

    def classify(
        self, capture: Capture, known: PageState | None, criteria: ChangeCriteria, effort: Effort = Effort.ALL
    ) -> ChangeResult:
        """Cheap at any effort."""
        del effort
        return classify_change(capture, known, criteria, Effort.BYTES)


PARTS = PartsDetector()
"""The default."""
DETECTORS: Mapping[str, Detector] = MappingProxyType({PARTS.name: PARTS, "bytes": BytesDetector()})
"""The built-in detectors by name."""
