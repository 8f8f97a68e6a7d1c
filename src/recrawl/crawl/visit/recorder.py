"""The recorder: archives responses, then writes visits, links and due times in one transaction.

The order makes a kill at any moment harmless. New pages come first: a page without links to it does no harm. The bytes
come next and are synced: an archive record without a visit is cut off at the next start (``outages.py``). The visit
comes last, with the links of the page, its due time and the end of its lease. Once that is committed, the visit is
acknowledged.

If the store or the disk fails on the way, the same batch can be recorded again: each step is idempotent, and archived
bytes are not written twice.

If our own code fails, one visit of the batch is the cause and must not affect the others. Ever smaller batches are
tried until one works or only the failing visit is left. That one is recorded as failed, with its bytes as received; if
that fails, without them; if even that fails, its lease is returned and the page is retried a day later.

:class:`PageStateCache` holds the state of recently visited pages, so that it need not be read back. A cached state
belongs to one version: if the store names another last version, the cached state is ignored. So several workers may
visit the same page in turn.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from recrawl.crawl.visit.change_classifier import ChangeClassifier
from recrawl.crawl.visit.fault_isolation import FaultReporter, InternalFault
from recrawl.crawl.visit.scope import MOST_HOPS, CrawlScope, HostCap, SeedScope
from recrawl.crawl.visit.site_claims import news, signals, sitemap_claims
from recrawl.crawl.visit.visit_machine import (
    Result,
    VisitDone,
    VisitEvent,
    failed_visit,
    known_after,
    last_version,
    links_stand,
)
from recrawl.crawl.visit.warc_archive import ResponseArchive, pack_ahead
from recrawl.detect import PageState
from recrawl.formats.atomic_files import waits_for
from recrawl.formats.sitemap_feed import ClaimedPage
from recrawl.model import Capture, FloatArray, IntArray, Validators, Visits
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.store.base import HistoryStore, PageTable, Store
from recrawl.store.store_values import (
    CaptureRecord,
    LearnedFacts,
    LeasedPages,
    LinksSeen,
    last_modified_claims,
    newly_stated,
)
from recrawl.time import DAY, HOUR, Clock
from recrawl.urls import address, surt

MOST = 1_000_000
"""Links in the cache, about 150 MB where pages share none."""
_BYTES = 100
"""Bytes of a fingerprint that count as one link."""


class PageStateCache:
    """Page states by page; the longest unused is dropped first. Every call is O(1) amortised."""

    def __init__(self, most: int = MOST) -> None:
        """``most`` is counted in links."""
        self._most = most
        self._pages: OrderedDict[int, PageState] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        """Number of pages in the cache."""
        return len(self._pages)

    def recall(self, page: int, validators: Validators) -> PageState | None:
        """The state of the page if ``validators`` is its last version; ``None`` if it is not cached."""
        known = self._pages.get(page)
        if known is None or known.validators != validators:
            return None
        self._pages.move_to_end(page)
        return known

    def forget(self, page: int) -> None:
        """Drop the state of a page; the store has it."""
        before = self._pages.pop(page, None)
        if before is not None:
            self._size -= _size(before)

    def remember(self, page: int, known: PageState) -> None:
        """Store the state of a page, replacing the last one."""
        self.forget(page)
        if known.links_last is not known.links_ever and len(known.links_last) == len(known.links_ever):
            known = replace(known, links_last=known.links_ever)
        self._pages[page] = known
        self._size += _size(known)
        while self._size > self._most and self._pages:
            _, oldest = self._pages.popitem(last=False)
            self._size -= _size(oldest)


def _size(known: PageState) -> int:
    """Links and other memory of a state; a set that stands for both kinds of links counts once."""
    links = len(known.links_ever) + (0 if known.links_last is known.links_ever else len(known.links_last))
    return 4 + links + len(known.fingerprint) // _BYTES


_REMEMBERED = 1_000_000
"""URLs whose page id is in memory, about 200 MB; beyond that the store is queried."""
_ANY_NUMBER = 1 << 30
"""Visits that are recorded together if nothing fails."""


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """Visits about to be acknowledged, and what is written with them."""

    batch: Sequence[VisitDone]
    """As they are recorded: visits that our own code failed on are failed visits."""
    covers: int
    """How many of the visits to be prepared this batch handles; the rest is left for another batch."""
    visits: Visits
    due: FloatArray
    validators: Sequence[Validators | None]
    """The validators of each page; ``None`` leaves the stored ones."""
    host_ready: FloatArray
    learned_facts: LearnedFacts
    again: IntArray
    """Pages to be visited again at once, whatever the policy says."""
    captures: Sequence[CaptureRecord]
    """Where their bytes are."""
    links: LinksSeen | None
    """Their links, where these are new."""


class Recorder:
    """Writes visits to the archive and the store."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts it writes to
        self,
        worker: str,
        store: Store,
        scheduler: RevisitScheduler,
        scope: CrawlScope,
        archive: ResponseArchive,
        classifier: ChangeClassifier | None = None,
        cap: HostCap | None = None,
        behind_until: float = 0.0,
        is_ours: Callable[[str], bool] | None = None,
    ) -> None:
        """``cap`` limits the pages per host where the scope does not; without it there is no limit.

        Up to ``behind_until``, seconds since the epoch, the clock is behind what is recorded, and visits are marked.

        ``is_ours`` says of the name of a host whether this unit visits it; without it there are no other units. New
        pages of other hosts are stored as all are, and wait to be sent to their unit.
        """
        self._is_ours = is_ours
        self._behind_until = behind_until
        self._worker = worker
        self._store = store
        self._scheduler = scheduler
        self._scope = scope
        self._seed_scope = SeedScope(store, scope)
        self._archive = archive
        self._classifier = classifier or ChangeClassifier(store)
        self._memory = PageStateCache()
        self._cap = cap
        self.at_once: frozenset[int] = frozenset()
        """Pages that wait to be visited at once, whatever the policy says."""
        self._page_of: dict[str, int] = {}
        self._lost: list[IntArray] = []
        """Pages of the batch being recorded whose leases were lost by then."""
        self._kept: dict[tuple[int, float], list[CaptureRecord]] = {}
        """Capture records of unacknowledged visits, by page and time."""
        self._together = _ANY_NUMBER
        """Visits that are prepared together: fewer while one of them breaks our code, then more again."""
        self.faults = FaultReporter()
        """Reports internal faults."""

    def record(self, batch: Sequence[VisitDone], now: float, host_ready: FloatArray) -> None:
        """Acknowledge a batch of visits; ``host_ready`` holds, per visit, when its host may be requested again."""
        while len(batch):
            group = self.prepare(batch, now, host_ready)
            self.sync(group)
            self.acknowledge(group)()
            self.finish(group)
            batch, host_ready = batch[group.covers :], host_ready[group.covers :]

    def prepare(self, batch: Sequence[VisitDone], now: float, host_ready: FloatArray) -> CommitBatch:
        """Add discovered pages, archive the responses, and compute the due times.

        The result holds all visits of the batch, or the first of them if our own code fails on one.

        Raises:
            StoreError: the disk is full, or the store is unreachable. Nothing is lost; call it again.
        """
        batch, given_back = list(batch), 0
        while True:
            some = batch[: self._together]
            ready = host_ready[given_back : given_back + len(some)]
            try:
                group = self._prepare(some, now, ready, given_back + len(some))
            except Exception as error:
                if (trouble := waits_for(error)) is not None:
                    raise trouble from error
                instead = self._instead(some, error, now)
                batch[: len(some)] = instead
                given_back += len(some) - len(instead)
            else:
                return group

    def not_recorded(self, group: CommitBatch, error: Exception, now: float) -> list[VisitDone]:
        """The visits to prepare instead after our own code failed on a prepared batch."""
        return self._instead(group.batch, error, now)

    def _instead(self, batch: Sequence[VisitDone], error: Exception, now: float) -> list[VisitDone]:
        """The visits to prepare after our own code failed on these: fewer of them, or one in a simpler form."""
        self._together = max(len(batch) // 2, 1)
        if len(batch) != 1:
            return list(batch)
        [visited] = batch
        fault, target = InternalFault.of(error), visited.target
        self.faults.broke_visit(target.url, fault)
        if not visited.is_our_fault:
            failed = failed_visit(target, visited.visit.time, fault.words, visited.capture)
            return [replace(failed, is_first=visited.is_first)]
        if visited.capture is not None:
            self.give_up()  # what was archived of it does not count
            return [replace(visited, capture=None)]
        self.give_back(target.page, now)
        if not visited.is_first:
            target.machine.feed(VisitEvent.DROP)
        return []

    def give_back(self, page: int, now: float) -> None:
        """Return the lease of a page whose visit cannot be recorded in any form; it is retried a day later."""
        with self.faults.contained():
            self._store.reschedule(np.array([page]), np.array([now + DAY]))
            self._store.acknowledge(self._worker, np.array([page]))

    def _prepare(self, batch: Sequence[VisitDone], now: float, host_ready: FloatArray, covers: int) -> CommitBatch:
        if all(visited.is_our_fault for visited in batch):
            return self._prepare_failed(batch, now, host_ready, covers)
        links = self._links(batch, now)
        self._take_embeds(batch, now)
        self._dates(batch)
        self._redirects(batch, now)
        captures = self._keep(batch)
        visits = Visits.from_rows(visited.visit for visited in batch)
        again = visits.page[self._respelled(batch)]
        validators = [None if visited.is_our_fault else last_version(visited) for visited in batch]
        learned_facts = self._classifier.learned_facts(batch)
        # Last, since the policy cannot forget a visit.
        due = self._due(batch, visits, now)
        due[np.isin(visits.page, again)] = now
        return CommitBatch(batch, covers, visits, due, validators, host_ready, learned_facts, again, captures, links)

    def _prepare_failed(
        self, batch: Sequence[VisitDone], now: float, host_ready: FloatArray, covers: int
    ) -> CommitBatch:
        """Prepare visits that failed because of our own code, with as few steps as possible."""
        captures = self._keep([visited for visited in batch if visited.capture is not None])
        visits = Visits.from_rows(visited.visit for visited in batch)
        nothing = LearnedFacts([b""] * len(batch))
        due, none = self._due(batch, visits, now), visits.page[:0]
        return CommitBatch(batch, covers, visits, due, [None] * len(batch), host_ready, nothing, none, captures, None)

    def sync(self, group: CommitBatch) -> None:
        """Sync the archived responses to disk. A thread may do it, one batch at a time."""
        if group.captures:
            self._archive.sync()

    def acknowledge(self, group: CommitBatch) -> Callable[[], object]:
        """Record the visits of a synced batch. They are acknowledged once the returned function has returned.

        A thread may call that function.
        """
        return self._store.record_ahead(
            group.visits,
            due=group.due,
            validators=group.validators,
            captures=group.captures,
            links=group.links,
            worker=self._worker,
            tokens=np.array([visited.target.token for visited in group.batch], np.int64),
            host_ready=group.host_ready,
            reasons=_reasons(group.batch),
            learned_facts=group.learned_facts,
            on_lost=self._lost.append,
            behind_until=self._behind_until,
        )

    def finish(self, group: CommitBatch) -> list[str]:
        """Learn from acknowledged visits; return the URLs of pages whose leases were lost before.

        A fault in one part does not stop the others.
        """
        self._together = min(2 * self._together, _ANY_NUMBER)
        with self.faults.contained():
            self._classifier.learn(group.learned_facts)
        self._remember_or_forget(group)
        lost = {page for pages in self._lost for page in pages.tolist()}
        self._lost.clear()
        for page in lost:
            self._memory.forget(page)
        self.at_once = self.at_once.difference(group.visits.page.tolist()).union(group.again.tolist())
        with self.faults.contained():
            self._archive.acknowledged(group.captures)
        for visited in group.batch:
            self._kept.pop((visited.visit.page, visited.visit.time), None)
        return [one.target.url for one in group.batch if one.visit.page in lost] if lost else []

    def give_up(self) -> None:
        """Drop visits that were tried and not acknowledged; what was archived of them does not count."""
        self._lost.clear()
        self._kept = {}
        self._archive.give_up()

    async def pack_ahead(self, result: Result, clock: Clock) -> None:
        """Compress a large response in a thread before it is recorded."""
        await pack_ahead(self._archive, result, clock, self.faults)

    def archive_auxiliary(self, capture: Capture, hops: str = "") -> None:
        """Archive a response that belongs to no page; ``hops`` says why it was requested (conventions L2)."""
        self._archive.write_auxiliary(capture, hops)

    def discover(self, urls: Iterable[str], now: float) -> IntArray:
        """Page ids of these URLs. Pages in scope are scheduled, others only stored as link targets."""
        wanted = list(urls)
        unknown = list(dict.fromkeys([url for url in wanted if url not in self._page_of]))
        inside = self._inside(unknown)
        outside = [url for url in unknown if url not in inside]
        for some, importance in ((list(inside), 1.0), (outside, 0.0)):
            if some:
                self._page_of.update(
                    zip(some, self._store.discover(some, now, importance=importance).tolist(), strict=True)
                )
        if inside:
            found = np.unique(np.array([self._page_of[url] for url in inside], dtype=np.int64))
            pages = self._store.pages(found)
            self._count(inside, frozenset(pages.id[pages.discovered == now].tolist()))
            if self._is_ours is not None:
                pages = pages.take(np.isin(pages.id, self._visited_here(inside, self._is_ours)))
                found = pages.id
            self._scheduler.add(pages)
            if len(waiting := self._scheduler.enqueue_new_pages(found, now)):
                found_now = np.full(len(waiting), now)  # not those that another worker found and visited before
                self._store.reschedule(waiting, self._scheduler.due(waiting, now), before=found_now)
        ids = self._ids(wanted)
        if len(self._page_of) > _REMEMBERED:
            self._page_of.clear()
        return ids

    def widen_scope(self, leased: LeasedPages, sources: Collection[int]) -> None:
        """Widen the scope by leased pages that were added since the start; ``sources`` widen nothing."""
        if self._seed_scope.widen_scope(leased, sources):
            self._page_of.clear()  # what was outside may be inside now

    def schedule_covered(self) -> None:
        """Schedule stored link targets that the scope covers by now."""
        for _ in self.schedule_covered_steps():
            pass

    def schedule_covered_steps(self) -> Iterator[int]:
        """The same in steps of milliseconds, none if the scope is unchanged; each yields the pages it added.

        If the scope grows meanwhile, the next call goes through all pages again.
        """
        if not self._seed_scope.is_wider:
            return
        self._seed_scope.is_wider = False
        try:
            for pages, urls in self._seed_scope.left_out():
                inside = self._inside(urls)
                chosen = pages[np.array([url in inside for url in urls], np.bool_)]
                if len(chosen):
                    self._store.set_importance(chosen, np.ones(len(chosen)))
                for url in inside if self._cap is not None else ():
                    where = address(url)
                    if self._cap is not None and where is not None:
                        self._cap.took(where.host)
                yield len(chosen)
        except BaseException:  # the store is unreachable, or the caller stopped
            self._seed_scope.is_wider = True
            raise

    def record_claims(self, entries: Sequence[ClaimedPage], source: str, now: float) -> None:
        """Record the claims of a sitemap: pages, and dates of their changes.

        New claims are stored. A date that advanced is a signal, and may make the page due sooner.
        """
        pages, first = np.unique(self.discover((entry.url for entry in entries), now), return_index=True)
        claims = sitemap_claims([entries[row] for row in first.tolist()], pages, source, now)
        before = self._store.claims(pages)
        fresh = claims.take(np.flatnonzero(news(claims, before)))
        self._store.add_claims(fresh)
        heard, when = signals(before.plus(fresh))
        self._announce(heard[when == now], when[when == now], now)

    def _announce(self, page: IntArray, time: FloatArray, now: float) -> None:
        page, hears = announce(self._store, self._scheduler, page, time)
        if hears and len(page):
            self._store.reschedule(page, self._scheduler.due(page, now))

    def recall(self, leased: LeasedPages, now: float) -> list[PageState | None]:
        """The state of each leased page, for the change detector."""
        self._classifier.prepare(leased.host, now)
        known = list(map(self._memory.recall, leased.page.tolist(), leased.validators))
        rows = [row for row, found in enumerate(known) if found is None]
        if rows:
            asked = recall(self._store, leased.page[rows], [leased.validators[row] for row in rows])
            for row, found in zip(rows, asked, strict=True):
                known[row] = found
        return known

    # -- inside -------------------------------------------------------------------------------

    def _ids(self, urls: Sequence[str]) -> IntArray:
        """The pages that have these URLs; raises KeyError if one is not cached."""
        page_of = self._page_of
        return np.fromiter([page_of[url] for url in urls], np.int64, len(urls))

    def _inside(self, urls: Iterable[str]) -> dict[str, None]:
        """The URLs to be visited if they are new."""
        inside: dict[str, None] = {}
        more: Counter[str] = Counter()
        for url in urls:
            where = address(url)
            if where is None or not self._scope.covers(where):
                continue
            if self._cap is None or self._cap.has_room(where.host, more[where.host]):
                inside[url] = None
                more[where.host] += 1
        return inside

    def _visited_here(self, urls: Iterable[str], is_ours: Callable[[str], bool]) -> list[int]:
        """Pages of these URLs on hosts of this unit."""
        return [self._page_of[url] for url in urls if (where := address(url)) is not None and is_ours(where.host)]

    def _count(self, urls: Iterable[str], new: frozenset[int]) -> None:
        """Add the new pages among these URLs to the counts of their hosts."""
        left = set(new) if self._cap is not None else set()
        for url in urls if left else ():
            where = address(url)
            if self._cap is not None and where is not None and self._page_of[url] in left:
                left.remove(self._page_of[url])
                self._cap.took(where.host)

    def _keep(self, batch: Sequence[VisitDone]) -> list[CaptureRecord]:
        """Archive the responses that an earlier try did not archive."""
        keys = [(visited.visit.page, visited.visit.time) for visited in batch]
        new = {key: visited for key, visited in zip(keys, batch, strict=True) if key not in self._kept}
        for key, kept in zip(new, self._archive.write(list(new.values())), strict=True):
            self._kept[key] = kept
        return [record for key in dict.fromkeys(keys) for record in self._kept[key]]

    def _due(self, batch: Sequence[VisitDone], visits: Visits, now: float) -> FloatArray:
        """Update the policy with visits; return the due times. Failed visits are recorded although the policy fails."""
        try:
            self._scheduler.tell(visits)
            return self._scheduler.due(visits.page, now)
        except Exception as error:
            if waits_for(error) is not None or not all(visited.is_our_fault for visited in batch):
                raise
            return np.full(len(batch), now + HOUR)

    def _redirects(self, batch: Sequence[VisitDone], now: float) -> None:
        """Add the redirect targets of pages, unless the chain is too long."""
        for visited in batch:
            to = visited.judgement.redirect_to
            if to and len(visited.hops) < MOST_HOPS:
                self.discover([to], now)

    def _remember_or_forget(self, group: CommitBatch) -> None:
        """Cache the states after these visits; where that fails the store has them."""
        try:
            self._remember(group.batch, group.validators)
        except Exception as error:  # noqa: BLE001 - nothing is lost
            self.faults.beside_pages(error)
            for page in group.visits.page.tolist():
                self._memory.forget(page)

    def _remember(self, batch: Sequence[VisitDone], last: Sequence[Validators | None]) -> None:
        """Cache the states after these visits. A page with several is dropped: each visit brought links."""
        often = Counter(visited.visit.page for visited in batch)
        for visited, version in zip(batch, last, strict=True):
            if version is not None and often[visited.visit.page] == 1:
                self._memory.remember(visited.visit.page, known_after(visited, version))
            else:
                self._memory.forget(visited.visit.page)

    def _links(self, batch: Sequence[VisitDone], now: float) -> LinksSeen | None:
        """The links of pages. Where they equal those of the last version, nothing is written."""
        read = [one for one in batch if one.judgement.links_read and one.judgement.links and not links_stand(one)]
        if not read:
            return None
        targets = self._known_targets(read)
        if targets is None:
            targets = self.discover(chain.from_iterable(visited.judgement.links for visited in read), now)
        counts = [len(visited.judgement.links) for visited in read]
        return LinksSeen(
            np.repeat(np.array([visited.target.page for visited in read], dtype=np.int64), counts),
            targets,
            np.repeat(np.array([visited.visit.time for visited in read]), counts),
        )

    def _take_embeds(self, batch: Sequence[VisitDone], now: float) -> None:
        """Add the page requisites within the scope as pages. They do not count as links."""
        new = dict.fromkeys(url for one in batch for url in one.judgement.embeds if url not in self._page_of)
        inside = self._inside(new) if new else {}
        if inside:
            self.discover(inside, now)

    def _known_targets(self, read: Sequence[VisitDone]) -> IntArray | None:
        """The link targets of these visits, if all are cached; mostly they are, since pages link to each other."""
        page_of = self._page_of
        with suppress(KeyError):
            found = [page_of[url] for visited in read for url in visited.judgement.links]
            return np.fromiter(found, np.int64, len(found))
        return None

    def _respelled(self, batch: Sequence[VisitDone]) -> list[int]:
        """Adopt the spelling that a redirect of a page to itself asks for; return the rows to visit again at once.

        ``/news`` and ``/news/``, or http and https, are one page. If one such redirect led to another the page waits
        for its turn: they may form a loop.
        """
        rows = [row for row, visited in enumerate(batch) if names_itself(visited)]
        if rows:
            pages = np.array([batch[row].visit.page for row in rows], dtype=np.int64)
            self._store.respell(pages, [batch[row].judgement.redirect_to for row in rows])
        return [row for row in rows if not batch[row].target.was_redirected_here]

    def _dates(self, batch: Sequence[VisitDone]) -> None:
        """Record the modification dates of pages as claims, where they are new."""
        said: list[tuple[int, float, float]] = []
        for visited in batch:
            known = visited.target.known
            when = newly_stated(visited.judgement.validators, known.validators if known else None)
            if when is not None and not visited.sign.restless and self._classifier.trusts_dates(visited.target.host):
                said.append((visited.visit.page, visited.visit.time, when))
        if said:
            self._store.add_claims(last_modified_claims(said))


def announce(store: PageTable, scheduler: RevisitScheduler, page: IntArray, time: FloatArray) -> tuple[IntArray, bool]:
    """Signal changes of pages to a scheduler; return the pages to visit, and whether the policy uses signals."""
    known = store.pages(np.unique(page))
    wanted = known.take(known.importance > 0)
    scheduler.add(wanted)  # another worker may have added them since the start
    heard = np.isin(page, wanted.id)
    return page[heard], scheduler.add_signals(page[heard], time[heard])


def recall_signals(store: Store, scheduler: RevisitScheduler, pages: IntArray, since: float | None) -> None:
    """Replay the stored signals of these pages (``since`` a time): state is a fold over events, so recovery is replay.

    Other workers receive signals, too.
    """
    page, time = signals(store.claims(pages))
    if since is not None:
        page, time = page[time >= since], time[time >= since]
    announce(store, scheduler, page, time)


def _reasons(batch: Sequence[VisitDone]) -> list[str] | None:
    """For each visit, how our own code failed; ``None`` if it did not."""
    if not any(visited.is_our_fault for visited in batch):
        return None
    return [visited.reason if visited.is_our_fault else "" for visited in batch]


def recall(store: HistoryStore, pages: IntArray, validators: Sequence[Validators]) -> list[PageState | None]:
    """The state of each page for the change detector: its last version and its links. A few queries for all."""
    read = np.array([last.links_read_at > -math.inf for last in validators], dtype=np.bool_)
    links, fingerprints = store.outlinks(pages[read]), store.fingerprints(pages)
    keys = np.array([_key(url) for url in store.urls(links.target)], dtype=np.object_)
    known: list[PageState | None] = []
    for page, last, fingerprint, has_links in zip(pages.tolist(), validators, fingerprints, read.tolist(), strict=True):
        if not has_links:
            known.append(PageState(last, last.gone, last.mime, fingerprint=fingerprint, links_read=False))
            continue
        mine = slice(*np.searchsorted(links.source, [page, page + 1]).tolist())
        # Links of a visit that was never acknowledged (a kill came in between) are ignored.
        old = links.first_seen[mine] <= last.links_read_at
        standing = old & (links.last_seen[mine] >= last.links_read_at)
        mine_now, mine_ever = frozenset(keys[mine][standing]), frozenset(keys[mine][old])
        known.append(PageState(last, last.gone, last.mime, mine_now, mine_ever, fingerprint))
    return known


def _key(url: str) -> str:
    found = address(url)
    return found.key if found else url


def names_itself(visited: VisitDone) -> bool:
    """Whether the response is a redirect to another spelling of the same page."""
    to, url = visited.judgement.redirect_to, visited.target.url
    return bool(to) and to != url and surt(to) == surt(url)
