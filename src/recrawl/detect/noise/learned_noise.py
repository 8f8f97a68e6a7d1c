"""Learned noise: parts of a host's pages that differ between two requests moments apart.

No markup says that a box shows random articles. But if the page is fetched again at once (a *confirmation*), the box
differs, on every page that has it. Each comparison of two versions of a page is evidence on the parts in both:

    near, near_differed   confirmations: versions less than two minutes apart, and how often the part differed
    far, far_differed     the same for other versions; that a part differs after a month is no evidence of noise
    tested                confirmations of a difference: the part had just differed from the version before, or
                          differed moments apart
    run                   tested differences that agreed since it last differed moments apart
    near_pages, times     pages on which, and minutes in which, it differed moments apart
    agreed_pages          pages on which it was the same moments apart

A part is identified by path or template, by position, and by kind of difference (``noise_keys``). It is **noise of the
host** if

1. it differed in four confirmations, in three different minutes, on three different pages. One page that ticks is no
   evidence about its siblings, though they share its markup;
2. the confirmations are ten times as likely if it is noise as if it is content (:meth:`NoiseEvidence.log_odds`). What
   is drawn at each request differs as often after a second as after a day. What somebody writes does not: a text that
   changes every half minute differs on every visit, and in few confirmations. And it differed on 0.6 times as many of
   the pages as it differs from visit to visit, and on a fifth at least;
3. it still differs from visit to visit: in a tenth of the last visits at least.

It is **noise of one page** if on that page it differed in four confirmations, in three different minutes, and these are
ten times as likely if it is noise. A page on which three confirmations agreed and none differed keeps the part, though
its host has that as noise.

Whether a part is **content**, and needs no more confirmations, follows from tested differences alone. A box with one
link agrees in every confirmation, and says nothing about a box in the same markup with two links in any order.

Confirmations never stop (:data:`AUDIT_SHARE`), and old evidence fades: counts are halved when there are more than
:data:`NEAR_WINDOW`. Counts before a run of agreements that noise does not show are dropped at once:
three in a row where it had differed in nine of ten, nine where it had differed in every second. So noise is withdrawn
once confirmations agree.

An archive that others made has no confirmations. There, and only if asked to (``unconfirmed``), a part is noise if it
differed in at least 95 % of eight comparisons, on three pages, each over less than a month.

How to use it, without a crawl::

    found = [evidence(host, page, time, compared) for ...]   # ``compared``: ChangeResult.compared of each comparison
    noise = NoiseEvidence.concat(found).noise_of(host, unconfirmed=True)
    standards = replace(standards, mask=noise.mask_of(page))  # compare by these
    noise.why(key)                                            # in words
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

import numpy as np

from recrawl.detect.comparison import NEAR, PartComparison
from recrawl.detect.noise.noise_keys import Difference, NoiseKey, split_key
from recrawl.errors import counted
from recrawl.model import BoolArray, FloatArray, IntArray, NoiseCounts
from recrawl.model.arrays import starts_of_runs
from recrawl.model.noise_counts import (
    FAR_WINDOW,
    LONGEST_RUN,
    NEAR_WINDOW,
    NOISE_SUMS,
    RUNS,
    WHOLE_HOST,
    runs_at_end,
)
from recrawl.time import DAY, MINUTE

NEAR_ENOUGH, NEAR_TIMES, NEAR_PAGES = 4, 3, 3
"""Confirmations in which a part differed, minutes and pages in which they were, before it is noise."""
WRITTEN_SHARE = 0.15
"""How often content differs moments apart, as a share of how often it differs from visit to visit. An upper bound: a
page that is edited every half minute, and confirmed after four seconds."""
LEAST_OFTEN, MOST_OFTEN = 0.5, 0.95
"""Share of confirmations in which noise differs. At most: the same text may come again by chance. At least: of what is
drawn at each request, a text other than the one before comes again in every second confirmation at most. The share of
visits may be far lower, where the part stays on other pages of the host."""
SURE, SURE_OF_CONTENT = math.log(10.0), -math.log(20.0)
"""Log odds from which on a part is noise, and below which it is content."""
NEAR_SHARE, OF_FAR_SHARE = 0.2, 0.6
"""Minimum share of pages on which it differed; absolute, and relative to the share of visits."""
STILL_SHARE, STILL_AFTER = 0.1, 16
"""Share of visits in which noise must go on to differ, once there were this many."""
PAGE_AGREED = 3
"""Confirmations that agree, none differing, after which a page keeps a part that is noise of its host."""
FAR_ENOUGH, FAR_SHARE, FAR_PAGES = 8, 0.95, 3
FAR_LIMIT = 30 * DAY
"""Seconds between versions beyond which a difference is no evidence: after years all of a site is another."""
MOST_CONFIRMATIONS = 4
"""Confirmations needed for parts on which only confirmations are evidence; for others it depends on the differences."""
KNOWN_AFTER = 8
"""Confirmations after which a part that differed in some, but too few for noise, is known to be content."""
FIRST_CONFIRMATIONS, CONFIRMATION_SHARE = 8, 0.05
"""Confirmations of changes on a host: the first few, and beyond them this share of its visits. Twice as many where a
part is suspected of being noise, four times as many where it probably is."""
AUDIT_SHARE, DOUBT_AUDIT_SHARE, CONTENT_AUDIT_SHARE = 0.05, 0.25, 0.02
"""Shares of visits that are confirmed for ever: where noise hid a difference; where the last confirmations of that
noise agreed, or too many of all; where a change was found in parts that are known to be content."""
_SET_BITS = 62
_SPREAD = 0x9E37_79B9_7F4A_7C15
_KEYS = ("host", "page", "part")


@dataclass(frozen=True, slots=True)
class NoiseEvidence(NoiseCounts):
    """Evidence on parts, a row for each host, page and part, sorted by these: all there is, or what one visit adds."""

    @classmethod
    def counted(cls, counts: NoiseCounts) -> NoiseEvidence:
        """What was counted, as evidence; rows must be sorted. Nothing is copied."""
        return cls(*(getattr(counts, one.name) for one in fields(cls)))

    @classmethod
    def empty(cls) -> NoiseEvidence:
        """No evidence."""
        return cls(*(np.empty(0, np.int64) for _ in fields(cls)))

    @classmethod
    def concat(cls, some: Iterable[NoiseEvidence]) -> NoiseEvidence:
        """All evidence as one, the older first: counts are added, sets united, nothing fades. O(n log n).

        >>> one = evidence(7, 1, 0.0, PartComparison(frozenset({1283}), frozenset({1540}), 30.0))
        >>> both = NoiseEvidence.concat([one, one])
        >>> both.part.tolist(), both.near.tolist(), both.near_differed.tolist()
        ([1283, 1540, 1283], [2, 2, 2], [2, 0, 2])
        """
        tables = list(some)
        if not tables:
            return cls.empty()
        columns = {one.name: np.concatenate([getattr(table, one.name) for table in tables]) for one in fields(cls)}
        keys = [columns[name] for name in _KEYS]
        if not len(keys[0]):
            return cls.empty()
        order = np.lexsort(keys[::-1])  # stable: what is older comes first
        columns = {name: column[order] for name, column in columns.items()}
        starts = np.flatnonzero(starts_of_runs(*(columns[name] for name in _KEYS)))
        merged = {name: columns[name][starts] for name in _KEYS}
        merged |= {name: np.add.reduceat(columns[name], starts) for name in NOISE_SUMS}
        merged["run"] = runs_at_end(starts, columns["near_differed"], columns["run"])
        sets = (name for name in columns if name not in merged)
        merged |= {name: np.bitwise_or.reduceat(columns[name], starts) for name in sets}
        return cls(**merged)

    def plus(self, other: NoiseEvidence) -> NoiseEvidence:
        """This with newer evidence, of which the old fades. What ``Store.record`` does with its rows. O(n log n)."""
        return NoiseEvidence.concat([self, other]).faded()

    def faded(self) -> NoiseEvidence:
        """Counts above their windows halved, sets emptied where nothing is left that they were counted with. O(n).

        After a run of agreements that noise does not show, what was counted before it is forgotten: the part is not
        what it was.
        """
        full, far_full = self.near > NEAR_WINDOW, self.far > FAR_WINDOW
        over = (self.near_differed > 0) & (self.run >= self._longest_run())
        near, near_differed, tested = (
            np.where(over, fresh, np.where(full, count // 2, count))
            for fresh, count in ((self.run, self.near), (0, self.near_differed), (self.run, self.tested))
        )
        far, far_differed = (np.where(far_full, count // 2, count) for count in (self.far, self.far_differed))
        mostly = full & (2 * near_differed >= near)
        return replace(
            self,
            near=near,
            near_differed=near_differed,
            tested=tested,
            far=far,
            far_differed=far_differed,
            near_pages=np.where(near_differed > 0, self.near_pages, 0),
            agreed_pages=np.where(mostly, 0, self.agreed_pages),
            far_pages=np.where(far_differed > 0, self.far_pages, 0),
            times=np.where(near_differed > 0, self.times, 0),
        )

    def _longest_run(self) -> IntArray:
        """How many agreements in a row noise does not show."""
        before = self.near - self.run + 1
        differed = [b * self.near_differed >= a * before for a, b, _ in RUNS]
        longest: IntArray = np.select(differed, [n for *_, n in RUNS], LONGEST_RUN)
        return longest

    def of(self, host: int) -> NoiseEvidence:
        """The rows of one host. O(log n)."""
        return self.take(slice(*np.searchsorted(self.host, [host, host + 1]).tolist()))

    def take(self, rows: slice | IntArray | BoolArray) -> NoiseEvidence:
        """Some rows."""
        return NoiseEvidence(*(getattr(self, one.name)[rows] for one in fields(self)))

    def kept(self, rows: int) -> BoolArray:
        """Which N rows to keep: those that are noise, then those there is most evidence on. O(n log n).

        Every sentence with a number that ever changed is a row; most were met once and will not be met again.
        """
        keep = np.ones(len(self), np.bool_)
        if len(self) > rows:
            order = np.lexsort((-self.far_differed, -self.near, -self.near_differed, ~self.is_noise()))
            keep[order[rows:]] = False
        return keep

    def share_needed(self) -> FloatArray:
        """The share of pages on which each part must differ to be noise of the host. O(n)."""
        often = (self.far_differed + 1.0) / (self.far + 1.0)
        return np.maximum(NEAR_SHARE, OF_FAR_SHARE * np.minimum(often, 1.0))

    def log_odds(self, confirmations: IntArray) -> FloatArray:
        """How much likelier ``near_differed`` of N confirmations are if a part is noise, as a logarithm. O(n).

        Noise differs as often moments apart as from visit to visit: two variants drawn at random in every second
        confirmation. Content differs :data:`WRITTEN_SHARE` times as often. So an agreement says much about a part that
        differs on every visit, and little about one that differs on every second: that is the same by chance.
        """
        often = np.clip((self.far_differed + 1.0) / (self.far + 1.0), LEAST_OFTEN, MOST_OFTEN)
        agreed = np.log((1.0 - often) / (1.0 - WRITTEN_SHARE * often))
        odds: FloatArray = self.near_differed * -math.log(WRITTEN_SHARE) + (confirmations - self.near_differed) * agreed
        return odds

    def is_noise(self, *, unconfirmed: bool = False) -> BoolArray:
        """Which rows the evidence shows to be noise, of the host or of one page. O(n).

        ``unconfirmed``: also parts without any confirmation that differed on nearly every visit, all over the host.
        """
        of_host, needed = self.page == WHOLE_HOST, self.share_needed()
        agreed = _members(self.near_pages | self.agreed_pages)
        widely = _members(self.near_pages) >= np.maximum(NEAR_PAGES, needed * agreed)
        near = (self.near_differed >= NEAR_ENOUGH) & (_members(self.times) >= NEAR_TIMES)
        near &= self.log_odds(self.near) >= SURE
        near &= widely | ~of_host
        near &= (self.far < STILL_AFTER) | (self.far_differed >= STILL_SHARE * self.far)
        if unconfirmed:
            often = (self.far >= FAR_ENOUGH) & (self.far_differed >= FAR_SHARE * self.far)
            near |= of_host & (self.near == 0) & often & (_members(self.far_pages) >= FAR_PAGES)
        noise: BoolArray = near
        return noise

    def is_suspect(self) -> BoolArray:
        """Which rows may be noise: they differed moments apart, and not so seldom that they are content. O(n)."""
        suspect: BoolArray = (self.near_differed > 0) & (self.log_odds(self.tested) > SURE_OF_CONTENT)
        return suspect

    def is_probable(self) -> BoolArray:
        """Which rows are noise even if one more confirmation agrees, though too little is known for a mask. O(n)."""
        several = (self.near_differed > 1) & ((_members(self.near_pages) > 1) | (self.page != WHOLE_HOST))
        probable: BoolArray = several & (self.log_odds(self.tested + 1) >= SURE)
        return probable

    def is_content(self) -> BoolArray:
        """Which rows are content: differences were tested, and agreed more often than chance explains. O(n)."""
        content: BoolArray = (self.tested >= MOST_CONFIRMATIONS) & (self.log_odds(self.tested) <= SURE_OF_CONTENT)
        return content

    def is_stable(self) -> BoolArray:
        """Which rows need no further confirmation, audits apart: noise, or confirmed often enough. O(n).

        Confirmations double with what there is to explain: the n-th is made once the part differed 2ⁿ⁻² times from
        visit to visit. A part that shows itself on every other request is found in the end; news cost a handful.
        """
        enough = np.where(self.far > 0, 2.0**self.tested > 2.0 * self.far_differed, self.near >= MOST_CONFIRMATIONS)
        enough &= (self.near_differed == 0) | ((self.tested >= KNOWN_AFTER) & ~self.is_suspect())
        stable: BoolArray = self.is_noise() | enough
        return stable

    def noise_of(self, host: int, *, unconfirmed: bool = False) -> HostNoise:
        """What is noise on a host, and what is not, ready for its pages. O(rows of the host).

        ``unconfirmed`` as in :meth:`is_noise`: for archives without confirmations.
        """
        mine = self.of(host)
        if not len(mine):
            return HostNoise()
        noise, of_host = mine.is_noise(unconfirmed=unconfirmed), mine.page == WHOLE_HOST
        agreed = ~of_host & (mine.near >= PAGE_AGREED) & (mine.near_differed == 0)
        often = np.minimum(1.0, mine.share_needed() / OF_FAR_SHARE)
        stopping = (mine.run > 0) & (mine.near_differed >= 0.75 * (mine.near - mine.run))
        uncertain = noise & (stopping | (mine.near_differed < 0.8 * often * mine.near))
        mask = _keys(mine, noise & of_host)
        noise &= of_host | ~np.isin(mine.part, list(mask))  # pages need no mask of their own for what their host has
        content = _keys(mine, of_host & mine.is_content())
        stable, probable = mine.is_stable(), mine.is_probable() & ~noise
        return HostNoise(
            mask,
            _by_page(mine, noise & ~of_host),
            _by_page(mine, agreed),
            _by_page(mine, ~of_host),
            _keys(mine, of_host),
            content,
            _keys(mine, of_host & stable) | _known_positions(mine.take(of_host)),
            _keys(mine, of_host & mine.is_suspect() & ~noise),
            _by_page(mine, ~of_host & mine.is_suspect() & ~noise & ~np.isin(mine.part, list(mask))),
            _keys(mine, of_host & (mine.near_differed > 0) & ~noise),
            _by_page(mine, ~of_host & (mine.tested >= MOST_CONFIRMATIONS) & stable),
            _by_page(mine, ~of_host & mine.is_content()),
            _keys(mine, uncertain & noise),
            _keys(mine, probable & of_host) - mask,
            _by_page(mine, probable & ~of_host),
            dict(zip(mine.part[noise & of_host].tolist(), mine.near_pages[noise & of_host].tolist(), strict=True)),
            mine,
        )


def _members(sets: IntArray) -> IntArray:
    members: IntArray = np.bitwise_count(sets.astype(np.uint64)).astype(np.int64)
    return members


def _keys(some: NoiseEvidence, rows: BoolArray) -> frozenset[int]:
    return frozenset(some.part[rows].tolist())


def _by_page(some: NoiseEvidence, rows: BoolArray) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for page, part in zip(some.page[rows].tolist(), some.part[rows].tolist(), strict=True):
        found.setdefault(page, set()).add(part)
    return {page: frozenset(parts) for page, parts in found.items()}


def _known_positions(of_host: NoiseEvidence) -> frozenset[int]:
    """Positions of paths that were confirmed often enough, taken together, and never differed: prose.

    Else each paragraph of a site would need confirmations of its own.
    """
    kind = of_host.part & 7
    identity = of_host.part >> 8
    words = kind == Difference.WORDS
    names, row = np.unique(identity[words], return_inverse=True)
    near, differed = (np.bincount(row, count[words], len(names)) for count in (of_host.tested, of_host.near_differed))
    known = (near >= 2 * MOST_CONFIRMATIONS) & (differed == 0)
    return frozenset(of_host.part[words][known[row]].tolist())


@dataclass(frozen=True, slots=True)
class HostNoise:
    """What was learned of the parts of a host's pages, by their keys."""

    mask: frozenset[int] = frozenset()
    """Noise on all pages."""
    page_masks: dict[int, frozenset[int]] = field(default_factory=dict)
    """Noise on single pages."""
    spared: dict[int, frozenset[int]] = field(default_factory=dict)
    """What is no noise on single pages, though it may be on the host."""
    paged: dict[int, frozenset[int]] = field(default_factory=dict)
    """What there is evidence on from single pages."""
    watched: frozenset[int] = frozenset()
    """All that there is evidence on."""
    content: frozenset[int] = frozenset()
    """What confirmations have shown to be content."""
    stable: frozenset[int] = frozenset()
    """What needs no further confirmation, audits apart."""
    suspects: frozenset[int] = frozenset()
    """What may be noise, though the evidence is not enough."""
    page_suspects: dict[int, frozenset[int]] = field(default_factory=dict)
    """What may be noise on single pages, whatever the rest of the host shows."""
    mixed: frozenset[int] = frozenset()
    """What differed in some confirmations of the host and is no noise there: pages may differ in that."""
    confirmed: dict[int, frozenset[int]] = field(default_factory=dict)
    """What was confirmed often enough on single pages."""
    page_content: dict[int, frozenset[int]] = field(default_factory=dict)
    """What confirmations have shown to be content on single pages, whatever the rest of the host shows."""
    uncertain: frozenset[int] = frozenset()
    """Noise that is to be audited often: its last confirmations agreed, or too many of all did."""
    probable: frozenset[int] = frozenset()
    """What differs as noise does, but on too few pages or in too few minutes to be masked."""
    page_probable: dict[int, frozenset[int]] = field(default_factory=dict)
    """Likewise, on single pages."""
    noisy_pages: dict[int, int] = field(default_factory=dict)
    """By noise of the host: the set of pages on which it differed moments apart."""
    rows: NoiseEvidence = field(default_factory=NoiseEvidence.empty)
    """The evidence."""

    @property
    def masked(self) -> int:
        """How many parts are masked, on the host or on single pages."""
        return len(self.mask) + sum(map(len, self.page_masks.values()))

    def pages_and_keys(self) -> set[tuple[int, int]]:
        """What is masked, by page (or the whole host) and key."""
        masks = {WHOLE_HOST: self.mask, **self.page_masks}
        return {(page, key) for page, mask in masks.items() for key in mask}

    def is_noisy(self, key: int, page: int) -> bool:
        """Whether the agreement of a part on a page, given as a set of one, is evidence on noise of the host.

        Not where it never differed moments apart: such a page may be spared, and the others go on.
        """
        pages = self.noisy_pages.get(key)
        return pages is None or bool(pages & page)

    def is_special(self, page: int) -> bool:
        """Whether a page is classified otherwise than its host."""
        own = (self.page_masks, self.spared, self.page_suspects, self.page_content, self.page_probable)
        return any(page in some for some in own)

    def mask_of(self, page: int) -> frozenset[int]:
        """The keys of what is noise on a page."""
        if page not in self.page_masks and page not in self.spared:
            return self.mask
        return (self.mask - self.spared.get(page, frozenset())) | self.page_masks.get(page, frozenset())

    def content_of(self, page: int) -> frozenset[int]:
        """The keys of what is known to be content on a page."""
        suspects, own = self.page_suspects.get(page), self.page_content.get(page)
        content = self.content - suspects if suspects else self.content
        return content | own if own else content

    def probable_on(self, page: int) -> frozenset[int]:
        """The keys of what is probably noise on a page, and not masked yet."""
        own, content = self.page_probable.get(page), self.page_content.get(page)
        probable = self.probable - content if content else self.probable
        return probable | own if own else probable

    def suspects_on(self, page: int) -> frozenset[int]:
        """The keys of what differed moments apart on a page or its host, and may be noise."""
        own, content = self.page_suspects.get(page), self.page_content.get(page)
        suspects = self.suspects - content if content else self.suspects
        return suspects | own if own else suspects

    def why(self, key: int, page: int = WHOLE_HOST) -> str:
        """Why a part is noise, in words. O(rows)."""
        mine = self.rows.take((self.rows.part == key) & np.isin(self.rows.page, [WHOLE_HOST, page]))
        for row in reversed(range(len(mine))):
            if mine.page[row] != WHOLE_HOST and key not in self.page_masks.get(page, frozenset()):
                continue
            where = "this host" if mine.page[row] == WHOLE_HOST else "this page"
            if mine.near[row]:
                observations = counted(int(mine.near[row]), "confirmation")
                return f"learned: it differed in {mine.near_differed[row]} of the last {observations} on {where}"
            return f"learned: it differed on {mine.far_differed[row]} of the last {mine.far[row]} visits to {where}"
        return "learned noise"


NO_NOISE = HostNoise()


def evidence(host: int, page: int, time: float, compared: PartComparison, noise: HostNoise = NO_NOISE) -> NoiseEvidence:
    """What one comparison of two versions of a page adds: rows of the host and, if they are moments apart, of the page.

    ``time`` is when the later one was captured; ``compared`` says how far they are apart; ``noise`` is what was known
    of the host. What is noise of the host needs no rows of the page, unless it stayed there.
    """
    parts = sorted(compared.differed | compared.same)
    differed = np.array([one in compared.differed for one in parts], np.int64)
    near = np.full(len(parts), int(abs(compared.gap) < NEAR), np.int64)
    lasting = np.array([one not in compared.passing for one in parts], np.int64)
    far = (1 - near) * lasting * (1 if abs(compared.gap) < FAR_LIMIT else 1 - differed)
    in_question = np.array([one in compared.in_question for one in parts], np.int64)
    member, minute = _bit(page), _bit(int(time // MINUTE))
    of_host = NoiseEvidence(
        np.full(len(parts), host, np.int64),
        np.full(len(parts), WHOLE_HOST, np.int64),
        np.array(parts, np.int64),
        near,
        near * differed,
        near * (differed | in_question),
        near * (1 - differed) * in_question * np.array([noise.is_noisy(one, member) for one in parts], np.int64),
        far,
        far * differed,
        near * differed * member,
        near * (1 - differed) * member,
        far * differed * member,
        near * differed * minute,
    )
    own_rows = noise.paged.get(page, frozenset())
    if page == WHOLE_HOST or not (near.any() or own_rows):
        return of_host
    wanted = (compared.differed if near.any() else own_rows) - (noise.mask - noise.spared.get(page, frozenset()))
    wanted |= compared.same & (noise.mask | noise.mixed | own_rows if near.any() else own_rows)
    own = np.array([part in wanted for part in parts], np.bool_)
    of_page = of_host.take(own)
    of_page.page[:] = page
    return NoiseEvidence.concat([of_host, of_page])


def _bit(member: int) -> int:
    """A set of one."""
    return 1 << (member * _SPREAD % (1 << 64) * _SET_BITS >> 64)


def wants_confirmation(
    noise: HostNoise, page: int, compared: PartComparison | None, *, observations: int, visits: int
) -> bool:
    """Whether a page that was found changed should be asked for again at once, to see what of it is noise.

    True if parts differ that were not confirmed often enough yet, and the host has confirmations left: ``observations``
    and ``visits`` are how many it had so far. Not to be asked of a confirmation: that would make a third.
    """
    allowed = FIRST_CONFIRMATIONS + CONFIRMATION_SHARE * visits
    if compared is None or observations >= 4.0 * allowed:
        return False
    suspects = noise.page_suspects.get(page, frozenset())
    stable = noise.stable - (noise.spared.get(page, frozenset()) & noise.mask) - suspects
    stable -= noise.mixed - noise.confirmed.get(page, frozenset())
    stable |= noise.page_content.get(page, frozenset())
    open_parts = (compared.differed | compared.doubtful) - stable - noise.mask_of(page)
    if observations >= 2.0 * allowed:
        open_parts &= noise.probable_on(page)
    elif observations >= allowed:
        open_parts &= noise.suspects | suspects
    return bool(open_parts)


def audit_share(noise: HostNoise, page: int, compared: PartComparison | None, *, changed: bool) -> float:
    """The share of such visits that are confirmed for ever, to see whether noise is still noise and content content."""
    if compared is None:
        return 0.0
    hidden = compared.differed & noise.mask_of(page)
    if hidden:
        return AUDIT_SHARE if hidden.isdisjoint(noise.uncertain) else DOUBT_AUDIT_SHARE
    return CONTENT_AUDIT_SHARE if changed and (compared.differed or compared.doubtful) else 0.0


def masked_parts(noise: HostNoise) -> list[tuple[int, int, NoiseKey]]:
    """The masked parts, for display: page (0: the whole host), key, and its description; most evidence first."""
    rows = noise.rows
    order = np.argsort(-rows.near_differed, kind="stable").tolist()
    return [
        (page, part, split_key(part))
        for page, part in ((int(rows.page[row]), int(rows.part[row])) for row in order)
        if part in (noise.mask if page == WHOLE_HOST else noise.page_masks.get(page, frozenset()))
    ]
