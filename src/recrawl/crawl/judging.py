"""Judging answers in a crawl: by what was learned of their host, and after a second look where that is not enough.

Two things are learned of each host. Which parts of its pages are noise (``detect.learned_noise``): they are masked. And
whether its validators can be believed (``detect.conduct``): if not, its pages are asked for unconditionally.

*Look twice before you call it a change.* If a page differs in parts that nobody knows to be noise or not, the answer is
held back, and the page is asked for once more in the next turn of its host. What differs between the two looks is
nobody's work, so the first look is judged without it. Only then are both recorded, so that no change is ever recorded
that was none. If the second look fails, the first is recorded without a verdict, and the next visit is in the same
doubt. The second look is kept like any answer, but it is no look of the schedule: it has no verdict, closes no
gap of the page's history, and what is known of the page stays what the first look found. If a page did change
between the two looks, the next visit will find that.

The store has what all workers learned; what it says of a host is read again every few minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl import detect
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.parse_pool import NoWorkerError, OverBudgetError, ParseLimits, ParsePool
from recrawl.crawl.target import SeenOnce, Sight, Target, Visited
from recrawl.crawl.versions import NEVER_SEEN, known_after, seen_once, settled, visit_of
from recrawl.detect import Judgement, Known, judge
from recrawl.detect.comparison import NEAR, Compared
from recrawl.detect.conduct import CAUGHT, LIE, NO_SIGN, check_share, is_believed, is_check
from recrawl.detect.learned_noise import NO_NOISE, HostNoise, NoiseEvidence, audit_share, evidence, wants_second_look
from recrawl.detect.second_look import looked_twice
from recrawl.detect.standards import Standards
from recrawl.detect.verdict import outcome_of
from recrawl.detect.version import CostlyError, Effort
from recrawl.model import ANSWERED, Capture, IntArray, Outcome, Validators, Verdict
from recrawl.model.noise_counts import WHOLE_HOST
from recrawl.store.base import Store
from recrawl.store.values import Conduct, Lessons
from recrawl.time import MINUTE

_READ_AGAIN = 5 * MINUTE
"""Seconds after which the store is asked again what is known of a host."""
_CHECKED_AFTER_304 = 0.2
"""Of so many checks one is made right after a 304; it takes a request of its own."""
_HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
_MANY_WORDS = 2_000
"""As many as a page has of which not all shingles are kept."""
_MOST_HOSTS = 20_000
"""Hosts whose lessons are kept in memory."""
_MOST_PARTS_OF_ALL = 1_000_000
"""Parts of all hosts that are kept in memory, about 145 bytes each; the store has all."""
_MOST_PARTS = 4_000
"""Rows of evidence on one host, in memory and in the store: one for each part, and for parts of single pages."""
_STAYED = 2
"""Confirmations that agreed, none differing, from which on a part is content enough to convict a 304."""
_AUDIT = 1 << 40
"""Makes the draw of audits another one than that of checks."""
_AT_HAND = 1_000
"""Hosts that are kept whatever they take, since pages of them may be on their way: those prepared for last."""


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """What counts as a change, and how much is asked for to find out."""

    standards: Standards = field(default_factory=Standards)
    check_share: float = 0.05
    """Share of visits that are made without validators, to see whether these can be believed."""
    second_looks: bool = True
    """Whether a page is asked for again before its difference is called a change."""


@dataclass(slots=True)
class _Host:
    """What is known of one host."""

    read_at: float
    standards: Standards
    evidence: NoiseEvidence = field(default_factory=NoiseEvidence.empty)
    noise: HostNoise = NO_NOISE
    checks: int = 0
    lies: int = 0
    restless: int = 0
    visits: int = 0
    """Made by this worker."""
    looks: int = 0
    """Confirmations of changes; audits are not among them."""

    def standards_of(self, page: int) -> Standards:
        """What counts as a change on a page."""
        mask, content = self.noise.mask_of(page), self.noise.content_of(page)
        if mask is self.noise.mask and content is self.noise.content:
            return self.standards
        return replace(self.standards, mask=mask, content=content)


class Judging:
    """Judges answers by what was learned of their hosts, and learns from them."""

    def __init__(
        self,
        store: Store,
        rules: JudgingRules | None = None,
        log: JsonLinesLog | None = None,
        pool: ParsePool | None = None,
    ) -> None:
        """``pool`` reads what is not cheap to read; without it everything is read here, however long that takes."""
        self._store = store
        self.pool = pool
        self.rules = rules or JudgingRules()
        self._log = log
        self._hosts: OrderedDict[int, _Host] = OrderedDict()
        self._parts = 0
        """Of all hosts in memory."""
        self._masked = 0
        """Likewise, of what is noise."""

    def set_standards(self, standards: Standards) -> None:
        """Judge by other standards from now on; what was learned of hosts stays."""
        self.rules = replace(self.rules, standards=standards)
        for host in self._hosts.values():
            host.standards = _standards(standards, host.noise)

    def prepare(self, hosts: IntArray, now: float) -> None:
        """Read what the store knows of these hosts, unless that was read a moment ago. Two queries at most."""
        wanted = np.unique(hosts).tolist()
        for host in wanted:
            if host in self._hosts:
                self._hosts.move_to_end(host)
        stale = np.array([host for host in wanted if self._is_stale(host, now)], np.int64)
        if not len(stale):
            return
        found = NoiseEvidence.counted(self._store.noise(stale))
        known = self._store.hosts(stale)
        for row, host in enumerate(known.id.tolist()):
            mine = self._hosts.setdefault(host, _Host(now, self.rules.standards))
            mine.read_at = now
            mine.checks, mine.lies, mine.restless = (
                int(column[row]) for column in (known.checks, known.lies, known.restless)
            )
            self._learn_noise(host, mine, self._trimmed(host, found.of(host)))
        self._forget_some()

    @property
    def masked(self) -> int:
        """How many parts of pages are masked as noise, on the hosts at hand."""
        return self._masked

    def sends(self, target: Target) -> Validators:
        """The validators to send: none for a second look, a check, or a host that is not believed."""
        if target.known is None or target.seen is not None:
            return NEVER_SEEN
        host = self._host(target.host)
        share = check_share(host.lies, self.rules.check_share)
        if not is_believed(host.checks, host.lies) or is_check(target.page, target.due, share):
            return NEVER_SEEN
        return target.known.validators

    def believes_dates(self, host: int) -> bool:
        """Whether a page of this host that says when it was modified may mean it."""
        return self._host(host).restless < CAUGHT

    async def heard(self, target: Target, capture: Capture, *, conditional: bool) -> Visited | SeenOnce:
        """What an answer says; or, if only a second look can tell, the target with the answer to wait with."""
        host = self._host(target.host)
        host.visits += 1
        if target.seen is not None:
            return await self._again(target, target.seen, capture)
        judgement = await self._judged(capture, target.known, host.standards_of(target.page))
        sight = Sight(capture, judgement, conditional)
        if self._is_doubtful(target, judgement, host) or self._is_to_be_checked(target, judgement, host):
            host.looks += 1
            return SeenOnce(replace(target, seen=sight), capture)
        if self._is_audited(target, judgement, host):
            return SeenOnce(replace(target, seen=sight), capture)
        return seen_once(target, sight)

    def lessons(self, batch: Sequence[Visited]) -> Lessons:
        """What to record with these visits."""
        noise = NoiseEvidence.concat(
            self._evidence(visited, visited.judgement.compared) for visited in batch if visited.judgement.compared
        )
        signs = [(visited.target.host, *visited.sign) for visited in batch if any(visited.sign)]
        conduct = Conduct(*np.array(signs, np.int64).T) if signs else None
        return Lessons(
            [visited.judgement.fingerprint for visited in batch],
            noise if len(noise) else None,
            conduct,
        )

    def learn(self, lessons: Lessons) -> None:
        """Take in lessons that are recorded: they hold from the next answer on."""
        if lessons.noise is not None:
            found = NoiseEvidence.counted(lessons.noise)
            for number in np.unique(found.host).tolist():
                host = self._host(number)
                self._learn_noise(number, host, host.evidence.plus(found.of(number)))
        if lessons.conduct is not None:
            told = (lessons.conduct.host, lessons.conduct.checks, lessons.conduct.lies, lessons.conduct.restless)
            for number, checks, lies, restless in zip(*(column.tolist() for column in told), strict=True):
                self._learn_conduct(number, checks, lies, restless)

    # -- inside -------------------------------------------------------------------------------

    def _forget_some(self) -> None:
        """Leave it to the store to know the hosts that were longest not prepared for, if there are too many."""
        while len(self._hosts) > _MOST_HOSTS or (self._parts > _MOST_PARTS_OF_ALL and len(self._hosts) > _AT_HAND):
            _, host = self._hosts.popitem(last=False)
            self._parts -= len(host.evidence)
            self._masked -= host.noise.masked

    def _is_stale(self, host: int, now: float) -> bool:
        known = self._hosts.get(host)
        return known is None or now >= known.read_at + _READ_AGAIN

    def _host(self, host: int) -> _Host:
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = _Host(-np.inf, self.rules.standards)
        return known

    def _is_doubtful(self, target: Target, judgement: Judgement, host: _Host) -> bool:
        """Whether only a second look can tell if this is a change."""
        return (
            self.rules.second_looks
            and target.source is None
            and judgement.outcome == Outcome.FETCHED
            and judgement.verdict == Verdict.CHANGED
            and not target.was_sent_here
            and wants_second_look(host.noise, target.page, judgement.compared, looks=host.looks, visits=host.visits)
        )

    def _is_audited(self, target: Target, judgement: Judgement, host: _Host) -> bool:
        """Whether this visit is one of the share that is confirmed for ever, whatever is known of its host."""
        if not self.rules.second_looks or target.source is not None or target.was_sent_here:
            return False
        if judgement.outcome != Outcome.FETCHED or judgement.verdict == Verdict.UNKNOWN:
            return False
        changed = judgement.verdict == Verdict.CHANGED
        share = audit_share(host.noise, target.page, judgement.compared, changed=changed)
        return is_check(target.page ^ _AUDIT, target.due, share)

    def _is_to_be_checked(self, target: Target, judgement: Judgement, host: _Host) -> bool:
        """Whether a server that said 304 is asked for the page itself, to see whether that is true."""
        share = _CHECKED_AFTER_304 * check_share(host.lies, self.rules.check_share)
        return (
            self.rules.second_looks
            and target.source is None
            and judgement.outcome == Outcome.NOT_MODIFIED
            and judgement.verdict == Verdict.UNCHANGED
            and is_check(~target.page, target.due, share)
        )

    async def _judged(self, capture: Capture, known: Known | None, standards: Standards) -> Judgement:
        """The judgement of an answer; by its bytes alone if it cannot be read within its budget."""
        if self.pool is None:
            return judge(capture, known, standards)
        try:
            return judge(capture, known, standards, Effort.CHEAP)
        except CostlyError:
            pass
        try:
            return await self.pool.run(judge, capture, known, standards)
        except Exception as error:  # noqa: BLE001 - whatever happened to the worker, only this page is concerned
            not_read(self._log, capture.url, error)
            return _judged_unread(capture, known, standards, error)

    async def _judged_twice(
        self, first: Capture, second: Capture, known: Known | None, standards: Standards
    ) -> tuple[Judgement, Judgement] | None:
        """The judgements of two looks; nothing if they cannot be read within their budget."""
        if self.pool is None:
            return looked_twice(first, second, known, standards)
        try:
            return looked_twice(first, second, known, standards, Effort.CHEAP)
        except CostlyError:
            pass
        try:
            return await self.pool.run(looked_twice, first, second, known, standards)
        except Exception as error:  # noqa: BLE001 - as above
            not_read(self._log, second.url, error)
            return None

    async def _after_304(self, target: Target, seen: Sight, capture: Capture) -> Visited:
        """Both visits. If the page has other content than the server said a moment ago, the second found it, and a lie.

        Where what differs may be noise the 304 stands, since nobody takes a third look: a visit that says nothing would
        leave the page due at once, and be made again and again. A change among it is found by the next visit.
        """
        host, first, sign = self._host(target.host), seen.judgement, NO_SIGN
        judged = await self._judged(capture, target.known, host.standards_of(target.page))
        changed = judged.outcome == Outcome.FETCHED and judged.verdict == Verdict.CHANGED
        if changed and _is_content(host.evidence, judged):
            first, sign = _undecided(first, target.known), LIE
        else:
            judged = replace(_undecided(judged, target.known), validators=first.validators, mime=first.mime)
        before = seen_once(target, replace(seen, judgement=first))
        return replace(seen_once(target, Sight(capture, judged, conditional=True)), first=before, sign=sign)

    async def _again(self, target: Target, seen: Sight, capture: Capture) -> Visited:
        """The visit of a second look, with that of the first."""
        outcome, gap = outcome_of(capture), capture.time - seen.capture.time
        if seen.judgement.outcome == Outcome.NOT_MODIFIED:
            return await self._after_304(target, seen, capture) if gap > 0 else settled(target)
        is_decided = seen.judgement.verdict == Verdict.UNCHANGED  # an audit: it has its verdict
        unanswered = seen.judgement if is_decided else _undecided(seen.judgement, target.known)
        if outcome > ANSWERED:
            judged, compared = unanswered, None
        elif outcome != Outcome.FETCHED or not 0 < gap < NEAR:
            judged, compared = seen.judgement, None
        else:
            standards = self._host(target.host).standards_of(target.page)
            twice = await self._judged_twice(seen.capture, capture, target.known, standards)
            judged = twice[0] if twice else unanswered
            compared = twice[1].compared if twice else None
        before = replace(target, seen=None)
        first = seen_once(before, replace(seen, judgement=judged))
        if gap <= 0:  # a clock that stood still: the two are one visit
            return first
        judgement = Judgement(
            outcome, validators=judged.validators, mime=judged.mime, size=len(capture.raw_body), compared=compared
        )
        after = replace(before, known=known_after(first))
        return Visited(after, visit_of(after.page, capture, judgement), judgement, capture, first=first)

    def _learn_noise(self, number: int, host: _Host, found: NoiseEvidence) -> None:
        if len(found) > 2 * _MOST_PARTS:
            found = found.take(found.kept(_MOST_PARTS))
        self._parts += len(found) - len(host.evidence)
        before = host.noise
        host.evidence = found
        host.noise = found.noise_of(number, unconfirmed=not self.rules.second_looks)
        host.standards = _standards(self.rules.standards, host.noise)
        self._masked += host.noise.masked - before.masked
        if self._log is not None and before.masked != host.noise.masked:
            self._say_noise(number, before, host.noise)

    def _trimmed(self, number: int, found: NoiseEvidence) -> NoiseEvidence:
        """The evidence on a host without what there is least of, if there is too much; the store forgets that, too."""
        if len(found) <= _MOST_PARTS:
            return found
        keep = found.kept(_MOST_PARTS // 2)  # with room for more
        kept, dropped = found.take(keep), found.take(~keep)
        parts = dropped.part[dropped.page == WHOLE_HOST]
        pages = np.setdiff1d(dropped.page, kept.page[kept.page != WHOLE_HOST])
        self._store.trim_noise(number, parts, pages[pages != WHOLE_HOST])
        return kept

    def _say_noise(self, number: int, before: HostNoise, now: HostNoise) -> None:
        """Say in the log that noise was learned or withdrawn."""
        if self._log is None:
            return
        [name] = self._store.hosts(np.array([number])).name
        details = {"host": name, "masked": now.masked, "masked_before": before.masked}
        if now.masked > before.masked:
            self._log.event("fetch", "noise learned", details=details)
        else:
            self._log.event("fetch", "noise withdrawn", details=details)

    def _evidence(self, visited: Visited, compared: Compared) -> NoiseEvidence:
        """What a comparison teaches about noise.

        Only confirmations tell what differs moments apart. Where a page is simply visited every minute, what differs
        may well be somebody's work.
        """
        if visited.first is None:
            compared = replace(compared, gap=max(compared.gap, NEAR))
        page, noise = visited.target.page, self._host(visited.target.host).noise
        return evidence(visited.target.host, page, visited.visit.time, compared, noise)

    def _learn_conduct(self, number: int, checks: int, lies: int, restless: int) -> None:
        host = self._host(number)
        believed = is_believed(host.checks, host.lies)
        host.checks, host.lies, host.restless = host.checks + checks, host.lies + lies, host.restless + restless
        if self._log is not None and believed != is_believed(host.checks, host.lies):
            [name] = self._store.hosts(np.array([number])).name
            details = {"host": name, "lies": host.lies, "checks": host.checks, "believed": not believed}
            self._log.event("fetch", "validators judged", level="warn" if believed else "info", details=details)


def judged_apart(
    pool: ParsePool, capture: Capture, known: Known | None, standards: Standards, log: JsonLinesLog | None = None
) -> Judgement:
    """The judgement of an answer, made in the pool unless it is cheap; by its bytes alone if that fails. Blocks."""
    try:
        return judge(capture, known, standards, Effort.CHEAP)
    except CostlyError:
        pass
    try:
        return pool.call(judge, capture, known, standards)
    except Exception as error:  # noqa: BLE001 - whatever happened to the worker, only this page is concerned
        not_read(log, capture.url, error)
        return _judged_unread(capture, known, standards, error)


def _judged_unread(capture: Capture, known: Known | None, standards: Standards, error: Exception) -> Judgement:
    """The judgement of an answer that was not read: by its bytes.

    If other bytes came and no worker was free to read them, it says nothing: a machine that is busy must not turn noise
    into a change. The next visit compares with the same version.
    """
    judged = judge(capture, known, standards, Effort.BYTES)
    if isinstance(error, NoWorkerError) and judged.verdict == Verdict.CHANGED and judged.outcome == Outcome.FETCHED:
        return _undecided(judged, known)
    return judged


def not_read(log: JsonLinesLog | None, url: str, error: Exception) -> None:
    """Say that an answer could not be read within its budget; an error of our own code is said with its name."""
    expected = isinstance(error, OverBudgetError)
    reason = str(error) if expected else f"{error!r}"
    if log is not None:
        details = {"url": url, "reason": reason}
        log.event("fetch", "answer not read", level="warn" if expected else "error", details=details)


def readers(limits: ParseLimits, standards: Standards) -> ParsePool:
    """A pool that is ready to judge answers by these standards."""
    return ParsePool(limits, load_readers, standards)


def load_readers(standards: Standards) -> None:
    """Read something of each kind, so that a fork server has loaded what its workers need."""
    warm_up(standards)
    for mime, body in (("text/html", b"<p>One"), ("text/turtle", b"<a> <b> <c> ."), ("application/json", b"[1]")):
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode()
        judge(Capture("http://warm-up.invalid/", 0.0, 200, raw_head=head, raw_body=body), None, standards)


def warm_up(standards: Standards) -> None:
    """Judge small pages, so that compiled kernels are loaded or made before anybody waits for an answer.

    A text that has noise is gone through in another way than one that has none; so is one with letters beyond ASCII,
    and a page whose tags are not nested as they should be.
    """
    known: Known | None = None
    words = b" ".join(b"%d" % word for word in range(_MANY_WORDS))
    pages = [
        form % text + words
        for form in (b"<p>%s of 2<p>", b"<b><p><i>%s of 2</b></i></p></q>")
        for text in (b"One", b"At 12:30:00 two", b"\xc3\x9cber 12:30:00", b"\xe6\x97\xa5")
    ]
    for body in pages if standards.in_machine_code else ():
        capture = Capture("http://warm-up.invalid/", 0.0, 200, raw_head=_HTML, raw_body=body)
        known = detect.known_after(judge(capture, known, standards), known)


def _undecided(judged: Judgement, known: Known | None) -> Judgement:
    """The judgement of a look that was in doubt and stays so: it says nothing, and the next visit finds it again."""
    before = known or Known()
    return Judgement(judged.outcome, validators=before.validators, mime=before.mime, size=judged.size)


def _standards(base: Standards, noise: HostNoise) -> Standards:
    """The standards of a host; pages may have masks of their own."""
    return replace(base, mask=noise.mask, watched=noise.watched, content=noise.content)


def _is_content(found: NoiseEvidence, judged: Judgement) -> bool:
    """Whether something differs that confirmations have shown to be no noise."""
    stays = (found.page == WHOLE_HOST) & (found.near >= _STAYED) & (found.near_differed == 0)
    parts = frozenset(found.part[stays].tolist())
    return judged.compared is not None and not parts.isdisjoint(judged.compared.differed | judged.compared.doubtful)
