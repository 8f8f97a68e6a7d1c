"""Classifies responses: changed or unchanged, by what was learned of the host, with a confirmation where needed.

The crawler learns two things about each host. Which parts of its pages are noise (``detect.noise.learned_noise``):
these are masked. And whether its validators are reliable (``detect.validator_trust``): if not, requests are
unconditional. Noise that imported archives showed is masked from the first visit on (``detect.noise.archive_noise``).

If a page differs in parts that are not known to be noise or content, the response is held back, and the page is fetched
a second time in the next turn of its host (confirmation). Parts that differ between the two fetches are noise, so the
first fetch is compared without them. Only then are both recorded, so that noise is never recorded as a change. If the
confirmation fails, the first fetch is recorded without a verdict, and the next visit decides.

The confirmation is archived like any response, but it is not an observation: it has no verdict, closes no interval of
the page's history, and the state of the page stays that of the first fetch. If the page did change between the two, the
next visit finds it.

The store holds what all workers learned; the knowledge about a host is read again every few minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.visit_machine import (
    NEVER_SEEN,
    FirstFetch,
    NeedsConfirmation,
    VisitDone,
    VisitTarget,
    known_after,
    seen_once,
    unconfirmed_visit,
    visit_of,
)
from recrawl.crawl.worker.event_loop import on_large_answer
from recrawl.detect import ChangeResult, PageState
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.change_verdict import outcome_of
from recrawl.detect.comparison import NEAR, PartComparison
from recrawl.detect.detector import PARTS, ConfirmingDetector, Detector
from recrawl.detect.noise.archive_noise import (
    ARCHIVE_NOISE,
    NoisePartReport,
    ReportsByHost,
    unpack_reports,
    with_archived,
)
from recrawl.detect.noise.learned_noise import (
    NO_NOISE,
    HostNoise,
    NoiseEvidence,
    audit_share,
    evidence,
    wants_confirmation,
)
from recrawl.detect.validator_trust import FALSE_ANSWERS, LIE, NO_SIGN, check_share, is_believed, is_check
from recrawl.detect.version import CostlyError, Effort
from recrawl.model import ANSWERED, Capture, IntArray, Outcome, Validators, Verdict
from recrawl.model.noise_counts import WHOLE_HOST
from recrawl.parse.parse_pool import ParsePool, classified_unread, log_unread, undecided
from recrawl.store.base import HistoryStore
from recrawl.store.store_values import LearnedFacts, ValidatorCounts
from recrawl.time import MINUTE

_READ_AGAIN = 5 * MINUTE
"""Seconds after which the knowledge about a host is read again from the store."""
_CHECKED_AFTER_304 = 0.2
"""Share of validator checks that are made right after a 304; each takes an extra request."""
_MOST_HOSTS = 20_000
"""Maximum hosts whose knowledge is in memory."""
_MOST_PARTS_OF_ALL = 1_000_000
"""Maximum parts in memory over all hosts, about 145 bytes each; the store has all."""
_MOST_PARTS = 4_000
"""Maximum rows of evidence on one host, in memory and in the store: one per part, also per part of a single page."""
_STAYED = 2
"""Tested differences, none of which differed moments apart, that make a part content enough to refute a 304."""
_AUDIT = 1 << 40
"""Makes the draw of audits independent of the draw of checks."""
LARGE = 1024 * 1024
"""Bytes of a response from which on even cheap work on it leaves the event loop."""
_MIN_HOSTS = 1_000
"""Hosts that are kept whatever they take, since their pages may be under way: those prepared last."""


@dataclass(frozen=True, slots=True)
class ClassifierRules:
    """What counts as a change, and how much is fetched to find out."""

    standards: ChangeCriteria = field(default_factory=ChangeCriteria)
    check_share: float = 0.05
    """Share of visits without validators, to test whether these are reliable."""
    confirm_changes: bool = True
    """Whether a page is fetched again before a difference counts as a change."""
    detector: Detector = PARTS
    """Compares captures. With one that cannot confirm changes no page is fetched twice."""
    archive_noise: bool = True
    """Whether parts that imported archives showed to be noise are masked until confirmations say otherwise."""

    def confirms(self) -> bool:
        """Whether pages are fetched twice to tell noise from change."""
        return self.confirm_changes and isinstance(self.detector, ConfirmingDetector)


@dataclass(slots=True)
class _HostState:
    """The knowledge about one host."""

    read_at: float
    standards: ChangeCriteria
    evidence: NoiseEvidence = field(default_factory=NoiseEvidence.empty)
    noise: HostNoise = NO_NOISE
    archived: Sequence[NoisePartReport] = ()
    """What imported archives showed to be noise."""
    checks: int = 0
    lies: int = 0
    restless: int = 0
    visits: int = 0
    """Visits of this worker."""
    observations: int = 0
    """Confirmations of changes, without audits."""

    def criteria_of(self, page: int) -> ChangeCriteria:
        """What counts as a change on a page."""
        noise = self.noise
        if not noise.is_special(page):
            return self.standards
        return replace(
            self.standards,
            mask=noise.mask_of(page),
            content=noise.content_of(page),
            probable=noise.probable_on(page),
            suspects=noise.suspects_on(page),
        )


class ChangeClassifier:
    """Classifies responses by what was learned of their hosts, and learns from them."""

    def __init__(
        self,
        store: HistoryStore,
        rules: ClassifierRules | None = None,
        log: JsonLinesLog | None = None,
        pool: ParsePool | None = None,
    ) -> None:
        """``pool`` does expensive parsing; without it everything is parsed in this process, however long that takes."""
        self._store = store
        self.pool = pool
        self.rules = rules or ClassifierRules()
        self._log = log
        self._hosts: OrderedDict[int, _HostState] = OrderedDict()
        self._parts = 0
        """Over all hosts in memory."""
        self._masked = 0
        """Masked parts over all hosts in memory."""
        self._archived: ReportsByHost = {}
        """What imported archives showed to be noise, by name of the host."""
        self._archived_read_at = -np.inf

    def set_criteria(self, standards: ChangeCriteria) -> None:
        """Apply other criteria from now on; what was learned of hosts stays."""
        self.rules = replace(self.rules, standards=standards)
        for host in self._hosts.values():
            host.standards = _standards(standards, host.noise)

    def prepare(self, hosts: IntArray, now: float) -> None:
        """Read the stored knowledge about these hosts, unless it was read a moment ago. At most three queries."""
        wanted = np.unique(hosts).tolist()
        for host in wanted:
            if host in self._hosts:
                self._hosts.move_to_end(host)
        stale = np.array([host for host in wanted if self._is_stale(host, now)], np.int64)
        if not len(stale):
            return
        found = NoiseEvidence.counted(self._store.noise(stale))
        known = self._store.hosts(stale)
        self._read_archived(now)
        for row, host in enumerate(known.id.tolist()):
            mine = self._hosts.setdefault(host, _HostState(now, self.rules.standards))
            mine.read_at = now
            mine.archived = self._archived.get(known.name[row], ())
            mine.checks, mine.lies, mine.restless = (
                int(column[row]) for column in (known.checks, known.lies, known.restless)
            )
            self._learn_noise(host, mine, self._trimmed(host, found.of(host)))
        self._forget_some()

    @property
    def masked(self) -> int:
        """Number of parts masked as noise on the hosts in memory."""
        return self._masked

    def validators_to_send(self, target: VisitTarget) -> Validators:
        """The validators to send: none for a confirmation, a check, or a host with unreliable validators."""
        if target.known is None or target.seen is not None:
            return NEVER_SEEN
        host = self._host(target.host)
        share = check_share(host.lies, self.rules.check_share)
        if not is_believed(host.checks, host.lies) or is_check(target.page, target.due, share):
            return NEVER_SEEN
        return target.known.validators

    def trusts_dates(self, host: int) -> bool:
        """Whether the modification dates of this host are reliable."""
        return self._host(host).restless < FALSE_ANSWERS

    async def classify(
        self, target: VisitTarget, capture: Capture, *, conditional: bool, requisites: tuple[Capture, ...] = ()
    ) -> VisitDone | NeedsConfirmation:
        """Classify a response; if only a confirmation can tell, return the target with the response held back."""
        host = self._host(target.host)
        host.visits += 1
        if target.seen is not None:
            return await self._again(target, target.seen, capture)
        judgement = await self._verdict(capture, target.known, host.criteria_of(target.page))
        sight = FirstFetch(capture, judgement, conditional, requisites)
        if self._is_doubtful(target, judgement, host) or self._is_to_be_checked(target, judgement, host):
            host.observations += 1
            return NeedsConfirmation(replace(target, seen=sight), capture)
        if self._is_audited(target, judgement, host):
            return NeedsConfirmation(replace(target, seen=sight), capture)
        return seen_once(target, sight)

    def learned_facts(self, batch: Sequence[VisitDone]) -> LearnedFacts:
        """The facts to record with these visits."""
        noise = NoiseEvidence.concat(
            self._evidence(visited, visited.judgement.compared) for visited in batch if visited.judgement.compared
        )
        signs = [(visited.target.host, *visited.sign) for visited in batch if any(visited.sign)]
        validator_trust = ValidatorCounts(*np.array(signs, np.int64).T) if signs else None
        return LearnedFacts(
            [visited.judgement.fingerprint for visited in batch],
            noise if len(noise) else None,
            validator_trust,
        )

    def learn(self, learned_facts: LearnedFacts) -> None:
        """Apply recorded facts, from the next response on."""
        if learned_facts.noise is not None:
            found = NoiseEvidence.counted(learned_facts.noise)
            for number in np.unique(found.host).tolist():
                host = self._host(number)
                self._learn_noise(number, host, host.evidence.plus(found.of(number)))
        if learned_facts.validator_trust is not None:
            told = (
                learned_facts.validator_trust.host,
                learned_facts.validator_trust.checks,
                learned_facts.validator_trust.lies,
                learned_facts.validator_trust.restless,
            )
            for number, checks, lies, restless in zip(*(column.tolist() for column in told), strict=True):
                self._learn_validator_trust(number, checks, lies, restless)

    # -- inside -------------------------------------------------------------------------------

    def _forget_some(self) -> None:
        """Drop the hosts that were prepared longest ago if there are too many; the store has them."""
        while len(self._hosts) > _MOST_HOSTS or (self._parts > _MOST_PARTS_OF_ALL and len(self._hosts) > _MIN_HOSTS):
            _, host = self._hosts.popitem(last=False)
            self._parts -= len(host.evidence)
            self._masked -= host.noise.masked

    def _read_archived(self, now: float) -> None:
        """Read what imported archives taught about noise, unless it was read a moment ago: an import may have run."""
        if self.rules.archive_noise and now >= self._archived_read_at + _READ_AGAIN:
            self._archived = unpack_reports(self._store.load_state(ARCHIVE_NOISE))
            self._archived_read_at = now

    def _is_stale(self, host: int, now: float) -> bool:
        known = self._hosts.get(host)
        return known is None or now >= known.read_at + _READ_AGAIN

    def _host(self, host: int) -> _HostState:
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = _HostState(-np.inf, self.rules.standards)
        return known

    def _is_doubtful(self, target: VisitTarget, judgement: ChangeResult, host: _HostState) -> bool:
        """Whether only a confirmation can tell if this is a change."""
        return (
            self.rules.confirms()
            and target.source is None
            and judgement.outcome == Outcome.FETCHED
            and judgement.verdict == Verdict.CHANGED
            and not target.was_redirected_here
            and wants_confirmation(
                host.noise, target.page, judgement.compared, observations=host.observations, visits=host.visits
            )
        )

    def _is_audited(self, target: VisitTarget, judgement: ChangeResult, host: _HostState) -> bool:
        """Whether this visit is in the share that is always confirmed, whatever is known of its host."""
        if not self.rules.confirms() or target.source is not None or target.was_redirected_here:
            return False
        if judgement.outcome != Outcome.FETCHED or judgement.verdict == Verdict.UNKNOWN:
            return False
        changed = judgement.verdict == Verdict.CHANGED
        share = audit_share(host.noise, target.page, judgement.compared, changed=changed)
        return is_check(target.page ^ _AUDIT, target.due, share)

    def _is_to_be_checked(self, target: VisitTarget, judgement: ChangeResult, host: _HostState) -> bool:
        """Whether to fetch the page without validators after a 304, to test the 304."""
        share = _CHECKED_AFTER_304 * check_share(host.lies, self.rules.check_share)
        return (
            self.rules.confirm_changes
            and target.source is None
            and judgement.outcome == Outcome.NOT_MODIFIED
            and judgement.verdict == Verdict.UNCHANGED
            and is_check(~target.page, target.due, share)
        )

    async def _verdict(self, capture: Capture, known: PageState | None, standards: ChangeCriteria) -> ChangeResult:
        """Classify a response; by its bytes alone if it cannot be parsed within the limits."""
        detector = self.rules.detector
        if self.pool is None:
            return detector.classify(capture, known, standards)
        is_large = len(capture.raw_body) > LARGE  # even its digest takes long
        try:
            cheaply = partial(detector.classify, capture, known, standards, Effort.CHEAP)
            return await on_large_answer(cheaply) if is_large else cheaply()
        except CostlyError:
            pass
        try:
            return await self.pool.run(detector.classify, capture, known, standards)
        except Exception as error:  # noqa: BLE001 - whatever happened to the subprocess, only this page is concerned
            log_unread(self._log, capture.url, error)
            by_bytes = partial(classified_unread, capture, known, standards, error, detector)
            return await on_large_answer(by_bytes) if is_large else by_bytes()

    async def _classified_pair(
        self, first: Capture, second: Capture, known: PageState | None, standards: ChangeCriteria
    ) -> tuple[ChangeResult, ChangeResult] | None:
        """Classify two fetches; ``None`` if they cannot be parsed within the limits."""
        detector = self.rules.detector
        if not isinstance(detector, ConfirmingDetector):
            return None
        if self.pool is None:
            return detector.confirm(first, second, known, standards)
        try:
            cheaply = partial(detector.confirm, first, second, known, standards, Effort.CHEAP)
            is_large = len(first.raw_body) + len(second.raw_body) > LARGE
            return await on_large_answer(cheaply) if is_large else cheaply()
        except CostlyError:
            pass
        try:
            return await self.pool.run(detector.confirm, first, second, known, standards)
        except Exception as error:  # noqa: BLE001 - as above
            log_unread(self._log, second.url, error)
            return None

    async def _after_304(self, target: VisitTarget, seen: FirstFetch, capture: Capture) -> VisitDone:
        """Both visits of a tested 304. If the content differs, the second visit is a change, and the 304 was false.

        If the difference may be noise the 304 stands, because there is no third fetch: a visit without a verdict would
        leave the page due at once, again and again. The next visit finds a change that it may hide.
        """
        host, first, sign = self._host(target.host), seen.judgement, NO_SIGN
        judged = await self._verdict(capture, target.known, host.criteria_of(target.page))
        changed = judged.outcome == Outcome.FETCHED and judged.verdict == Verdict.CHANGED
        if changed and _is_content(host.evidence, judged):
            first, sign = undecided(first, target.known), LIE
        else:
            judged = replace(undecided(judged, target.known), validators=first.validators, mime=first.mime)
        before = seen_once(target, replace(seen, judgement=first))
        return replace(seen_once(target, FirstFetch(capture, judged, conditional=True)), first=before, sign=sign)

    async def _again(self, target: VisitTarget, seen: FirstFetch, capture: Capture) -> VisitDone:
        """The visit of a confirmation, with that of the first fetch."""
        outcome, gap = outcome_of(capture), capture.time - seen.capture.time
        if seen.judgement.outcome == Outcome.NOT_MODIFIED:
            return await self._after_304(target, seen, capture) if gap > 0 else unconfirmed_visit(target)
        is_decided = seen.judgement.verdict == Verdict.UNCHANGED  # an audit: it has its verdict
        unanswered = seen.judgement if is_decided else undecided(seen.judgement, target.known)
        if outcome > ANSWERED:
            judged, compared = unanswered, None
        elif outcome != Outcome.FETCHED or not 0 < gap < NEAR:
            judged, compared = seen.judgement, None
        else:
            standards = self._host(target.host).criteria_of(target.page)
            twice = await self._classified_pair(seen.capture, capture, target.known, standards)
            judged = twice[0] if twice else unanswered
            compared = twice[1].compared if twice else None
        before = replace(target, seen=None)
        first = seen_once(before, replace(seen, judgement=judged))
        if gap <= 0:  # the clock did not advance: the two are one visit
            return first
        judgement = ChangeResult(
            outcome, validators=judged.validators, mime=judged.mime, size=len(capture.raw_body), compared=compared
        )
        after = replace(before, known=known_after(first))
        return VisitDone(after, visit_of(after.page, capture, judgement), judgement, capture, first=first)

    def _learn_noise(self, number: int, host: _HostState, found: NoiseEvidence) -> None:
        if len(found) > 2 * _MOST_PARTS:
            found = found.take(found.kept(_MOST_PARTS))
        self._parts += len(found) - len(host.evidence)
        before = host.noise
        host.evidence = found
        learned = found.noise_of(number, unconfirmed=not self.rules.confirm_changes)
        host.noise = with_archived(learned, number, host.archived)
        host.standards = _standards(self.rules.standards, host.noise)
        self._masked += host.noise.masked - before.masked
        if self._log is not None and (before.masked or host.noise.masked):
            self._say_noise(number, before, host.noise)

    def _trimmed(self, number: int, found: NoiseEvidence) -> NoiseEvidence:
        """The evidence on a host without its weakest rows, if there are too many; the store drops them, too."""
        if len(found) <= _MOST_PARTS:
            return found
        keep = found.kept(_MOST_PARTS // 2)  # with space for more
        kept, dropped = found.take(keep), found.take(~keep)
        parts = dropped.part[dropped.page == WHOLE_HOST]
        pages = np.setdiff1d(dropped.page, kept.page[kept.page != WHOLE_HOST])
        self._store.trim_noise(number, parts, pages[pages != WHOLE_HOST])
        return kept

    def _say_noise(self, number: int, before: HostNoise, now: HostNoise) -> None:
        """Log that noise was learned or withdrawn."""
        learned, withdrawn = (
            now.pages_and_keys() - before.pages_and_keys(),
            before.pages_and_keys() - now.pages_and_keys(),
        )
        if self._log is None or not (learned or withdrawn):
            return
        [name] = self._store.hosts(np.array([number])).name
        details = {"host": name, "masked": now.masked, "masked_before": before.masked}
        if learned:
            self._log.event("fetch", "noise learned", details=details)
        if withdrawn:
            self._log.event("fetch", "noise withdrawn", details=details)

    def _evidence(self, visited: VisitDone, compared: PartComparison) -> NoiseEvidence:
        """The evidence on noise in a comparison.

        Only confirmations show what differs moments apart. On a page visited every minute, a difference may well be
        content.
        """
        if visited.first is None:
            compared = replace(compared, gap=max(compared.gap, NEAR))
        page, noise = visited.target.page, self._host(visited.target.host).noise
        return evidence(visited.target.host, page, visited.visit.time, compared, noise)

    def _learn_validator_trust(self, number: int, checks: int, lies: int, restless: int) -> None:
        host = self._host(number)
        believed = is_believed(host.checks, host.lies)
        host.checks, host.lies, host.restless = host.checks + checks, host.lies + lies, host.restless + restless
        if self._log is not None and believed != is_believed(host.checks, host.lies):
            [name] = self._store.hosts(np.array([number])).name
            details = {"host": name, "lies": host.lies, "checks": host.checks, "believed": not believed}
            self._log.event("fetch", "validator trust changed", level="warn" if believed else "info", details=details)


def _standards(base: ChangeCriteria, noise: HostNoise) -> ChangeCriteria:
    """The criteria of a host; pages may have masks of their own."""
    return replace(
        base,
        mask=noise.mask,
        watched=noise.watched,
        content=noise.content,
        probable=noise.probable,
        suspects=noise.suspects,
    )


def _is_content(found: NoiseEvidence, judged: ChangeResult) -> bool:
    """Whether a differing part is content by earlier confirmations."""
    stays = (found.page == WHOLE_HOST) & (found.tested >= _STAYED) & (found.near_differed == 0)
    parts = frozenset(found.part[stays].tolist())
    return judged.compared is not None and not parts.isdisjoint(judged.compared.differed | judged.compared.doubtful)
