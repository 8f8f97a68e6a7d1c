"""Keep what visits brought: pages found, bytes archived, visits, links and due times in one transaction.

Order matters for a kill at any moment. New pages come first: one that nothing links to does no harm. The bytes come
next, and wait for the disk: an archive record without a visit is cut off at the next start (``recovery.py``). The visit
comes last, together with the links of the page, its due time and the end of its lease; once that is written, the visit
is acknowledged.

If the store or the disk fails on the way, the same batch can be recorded again: each step says what should be so, and
bytes that were kept are not written twice.

If our own code fails on the way, one visit of the batch is to blame, and must harm no other. Ever smaller groups are
tried, until one works or it is the blamed visit alone. That one is recorded as failed, with its bytes as they came; if
that fails, too, without them; if even that does, it is given back and tried again a day later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from recrawl.crawl.archive import Archive
from recrawl.crawl.faults import Fault, Faults, waits_for
from recrawl.crawl.homes import Homes
from recrawl.crawl.judging import Judging
from recrawl.crawl.memory import KnownMemory
from recrawl.crawl.scope import Scope
from recrawl.crawl.site_claims import LAST_MODIFIED, news, signals, sitemap_claims
from recrawl.crawl.target import Visited, failed_visit
from recrawl.crawl.traps import MOST_HOPS, HostCap
from recrawl.crawl.versions import known_after, last_version, links_stand
from recrawl.detect import Known
from recrawl.formats.claims import Entry
from recrawl.model import Capture, FloatArray, IntArray, Validators, Visits
from recrawl.schedule.agenda import Agenda
from recrawl.store.base import Store
from recrawl.store.values import CaptureRecord, Claims, Leased, Lessons, LinksSeen
from recrawl.time import DAY, HOUR, from_http_date
from recrawl.urls import address, surt

_REMEMBERED = 1_000_000
"""URLs whose page id is kept in memory, about 200 MB; beyond that the store is asked again."""
_ANY_NUMBER = 1 << 30
"""Visits that are recorded together if nothing fails."""


@dataclass(frozen=True, slots=True)
class Group:
    """Visits that are about to be acknowledged, and what is written with them."""

    batch: Sequence[Visited]
    """As they are recorded: those that our own code failed on as failed visits."""
    covers: int
    """How many of the visits that were to be prepared are dealt with: the rest is left for another group."""
    visits: Visits
    due: FloatArray
    validators: Sequence[Validators | None]
    """What each page said about its version; ``None`` leaves what is known."""
    host_ready: FloatArray
    lessons: Lessons
    again: IntArray
    """Pages among them that are to be visited at once, whatever the policy says."""
    captures: Sequence[CaptureRecord]
    """Where their bytes are."""
    links: LinksSeen | None
    """What they link to, where that is news."""


class Recorder:
    """Between the visitor and the store."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts it writes to, and who judges
        self,
        worker: str,
        store: Store,
        agenda: Agenda,
        scope: Scope,
        archive: Archive,
        judging: Judging | None = None,
        cap: HostCap | None = None,
    ) -> None:
        """``cap`` ends what no rule of the scope does; without it a host may have any number of pages."""
        self._worker = worker
        self._store = store
        self._agenda = agenda
        self._scope = scope
        self._homes = Homes(store, scope)
        self._archive = archive
        self._judging = judging or Judging(store)
        self._memory = KnownMemory()
        self._cap = cap
        self.at_once: frozenset[int] = frozenset()
        """Pages that wait to be visited at once, whatever the policy says."""
        self._page_of: dict[str, int] = {}
        self._lost: list[IntArray] = []
        """Pages of the group that is recorded whose leases were somebody else's by then."""
        self._kept: dict[tuple[int, float], list[CaptureRecord]] = {}
        """What was archived of visits that are not acknowledged yet, by page and time."""
        self._together = _ANY_NUMBER
        """Visits that are prepared together: fewer while one of them breaks our code, then more again."""
        self.faults = Faults()
        """Who is told of faults of our own code."""

    def record(self, batch: Sequence[Visited], now: float, host_ready: FloatArray) -> None:
        """Acknowledge a batch of visits; ``host_ready`` says, per visit, when its host may be asked again."""
        while len(batch):
            group = self.prepare(batch, now, host_ready)
            self.settle(group)
            self.acknowledge(group)()
            self.finish(group)
            batch, host_ready = batch[group.covers :], host_ready[group.covers :]

    def prepare(self, batch: Sequence[Visited], now: float, host_ready: FloatArray) -> Group:
        """Write down which pages were found, archive what came, and decide when they are due.

        The group holds all visits of the batch, or the first of them if our own code fails on one.

        Raises:
            StoreError: the disk is full, or the store away. Nothing is lost, and the same can be called again.
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

    def not_recorded(self, group: Group, error: Exception, now: float) -> list[Visited]:
        """Our own code failed on a group that was prepared: what to prepare instead."""
        return self._instead(group.batch, error, now)

    def _instead(self, batch: Sequence[Visited], error: Exception, now: float) -> list[Visited]:
        """What to prepare after our own code failed on these visits: fewer of them, or one in a plainer form."""
        self._together = max(len(batch) // 2, 1)
        if len(batch) != 1:
            return list(batch)
        [visited] = batch
        fault, target = Fault.of(error), visited.target
        self.faults.broke_visit(target.url, fault)
        if not visited.is_our_fault:
            return [failed_visit(target, visited.visit.time, fault.words, visited.capture)]
        if visited.capture is not None:
            self.give_up()  # what was archived of it does not count
            return [replace(visited, capture=None)]
        self.give_back(target.page, now)
        return []

    def give_back(self, page: int, now: float) -> None:
        """Let a page go whose visit cannot be recorded in any form; it is tried again a day later."""
        with self.faults.contained():
            self._store.reschedule(np.array([page]), np.array([now + DAY]))
            self._store.acknowledge(self._worker, np.array([page]))

    def _prepare(self, batch: Sequence[Visited], now: float, host_ready: FloatArray, covers: int) -> Group:
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
        lessons = self._judging.lessons(batch)
        # Last, since the policy cannot be untold of a visit.
        due = self._due(batch, visits, now)
        due[np.isin(visits.page, again)] = now
        return Group(batch, covers, visits, due, validators, host_ready, lessons, again, captures, links)

    def _prepare_failed(self, batch: Sequence[Visited], now: float, host_ready: FloatArray, covers: int) -> Group:
        """The same for visits that failed because our own code did: no more is done than has to be."""
        captures = self._keep([visited for visited in batch if visited.capture is not None])
        visits = Visits.from_rows(visited.visit for visited in batch)
        lessons = Lessons([b""] * len(batch))
        due, none = self._due(batch, visits, now), visits.page[:0]
        return Group(batch, covers, visits, due, [None] * len(batch), host_ready, lessons, none, captures, None)

    def settle(self, group: Group) -> None:
        """Wait until the disk has what was archived. A thread may do it, a group at a time."""
        if group.captures:
            self._archive.settle()

    def acknowledge(self, group: Group) -> Callable[[], object]:
        """Record the visits of a group that is settled. They are acknowledged when what is returned has returned, too.

        A thread may call that.
        """
        return self._store.record_ahead(
            group.visits,
            due=group.due,
            validators=group.validators,
            captures=group.captures,
            links=group.links,
            worker=self._worker,
            host_ready=group.host_ready,
            reasons=_reasons(group.batch),
            lessons=group.lessons,
            on_lost=self._lost.append,
        )

    def finish(self, group: Group) -> list[str]:
        """Learn from visits that are acknowledged; the URLs of pages among them whose leases were lost before that.

        A fault in one part keeps no other from being done.
        """
        self._together = min(2 * self._together, _ANY_NUMBER)
        with self.faults.contained():
            self._judging.learn(group.lessons)
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
        """Forget visits that were tried and not acknowledged; what was archived of them does not count."""
        self._lost.clear()
        self._kept = {}
        self._archive.give_up()

    def keep_aside(self, capture: Capture, hops: str = "") -> None:
        """Archive an answer that belongs to no page; ``hops`` says what it was asked for (conventions L2)."""
        self._archive.keep_aside(capture, hops)

    def discover(self, urls: Iterable[str], now: float) -> IntArray:
        """Page ids of these URLs; those in scope are put on the agenda, others only remembered."""
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
            self._agenda.add(pages)
            self._count(inside, frozenset(pages.id[pages.discovered == now].tolist()))
            if len(waiting := self._agenda.welcome(found, now)):
                found_now = np.full(len(waiting), now)  # not those that somebody else found, and visited, before
                self._store.reschedule(waiting, self._agenda.due(waiting, now), before=found_now)
        ids = self._ids(wanted)
        if len(self._page_of) > _REMEMBERED:
            self._page_of.clear()
        return ids

    def move_in(self, leased: Leased, sources: Collection[int]) -> None:
        """Let what lies near pages that were added since we began be visited, too; ``sources`` stand alone."""
        if self._homes.move_in(leased, sources):
            self._page_of.clear()  # what was outside may be inside now

    def take_in(self) -> None:
        """Let pages count that were only remembered, as targets of links, and lie in the scope by now."""
        for _ in self.take_in_steps():
            pass

    def take_in_steps(self) -> Iterator[int]:
        """The same in steps of milliseconds, none if the scope is as it was; each gives how many pages it took in.

        Where the scope grows meanwhile, all is gone through again the next time.
        """
        if not self._homes.is_wider:
            return
        self._homes.is_wider = False
        try:
            for pages, urls in self._homes.left_out():
                inside = self._inside(urls)
                chosen = pages[np.array([url in inside for url in urls], np.bool_)]
                if len(chosen):
                    self._store.set_importance(chosen, np.ones(len(chosen)))
                for url in inside if self._cap is not None else ():
                    where = address(url)
                    if self._cap is not None and where is not None:
                        self._cap.took(where.host)
                yield len(chosen)
        except BaseException:  # the store is away, or nobody goes on
            self._homes.is_wider = True
            raise

    def hear(self, entries: Sequence[Entry], source: str, now: float) -> None:
        """Take in what a sitemap says: pages, and dates of their changes.

        What is new is kept as a claim. A date that moved on is a signal, and the page may be due sooner for it.
        """
        pages, first = np.unique(self.discover((entry.url for entry in entries), now), return_index=True)
        claims = sitemap_claims([entries[row] for row in first.tolist()], pages, source, now)
        before = self._store.claims(pages)
        fresh = claims.take(np.flatnonzero(news(claims, before)))
        self._store.add_claims(fresh)
        heard, when = signals(before.plus(fresh))
        self._announce(heard[when == now], when[when == now], now)

    def _announce(self, page: IntArray, time: FloatArray, now: float) -> None:
        page, hears = announce(self._store, self._agenda, page, time)
        if hears and len(page):
            self._store.reschedule(page, self._agenda.due(page, now))

    def recall(self, leased: Leased, now: float) -> list[Known | None]:
        """What the judge must know of each leased page."""
        self._judging.prepare(leased.host, now)
        known = list(map(self._memory.recall, leased.page.tolist(), leased.validators))
        rows = [row for row, found in enumerate(known) if found is None]
        if rows:
            asked = recall(self._store, leased.page[rows], [leased.validators[row] for row in rows])
            for row, found in zip(rows, asked, strict=True):
                known[row] = found
        return known

    # -- inside -------------------------------------------------------------------------------

    def _ids(self, urls: Sequence[str]) -> IntArray:
        """The pages that have these URLs; a KeyError if one is not remembered."""
        page_of = self._page_of
        return np.fromiter([page_of[url] for url in urls], np.int64, len(urls))

    def _inside(self, urls: Iterable[str]) -> dict[str, None]:
        """Which of these URLs are to be visited if they are new."""
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

    def _count(self, urls: Iterable[str], new: frozenset[int]) -> None:
        """Count the new pages among these URLs to their hosts."""
        left = set(new) if self._cap is not None else set()
        for url in urls if left else ():
            where = address(url)
            if self._cap is not None and where is not None and self._page_of[url] in left:
                left.remove(self._page_of[url])
                self._cap.took(where.host)

    def _keep(self, batch: Sequence[Visited]) -> list[CaptureRecord]:
        """Archive what was not archived when this batch was tried before."""
        keys = [(visited.visit.page, visited.visit.time) for visited in batch]
        new = {key: visited for key, visited in zip(keys, batch, strict=True) if key not in self._kept}
        for key, kept in zip(new, self._archive.keep(list(new.values())), strict=True):
            self._kept[key] = kept
        return [record for key in dict.fromkeys(keys) for record in self._kept[key]]

    def _due(self, batch: Sequence[Visited], visits: Visits, now: float) -> FloatArray:
        """Tell the policy of visits; when their pages are due. Failed visits are recorded although the policy fails."""
        try:
            self._agenda.tell(visits)
            return self._agenda.due(visits.page, now)
        except Exception as error:
            if waits_for(error) is not None or not all(visited.is_our_fault for visited in batch):
                raise
            return np.full(len(batch), now + HOUR)

    def _redirects(self, batch: Sequence[Visited], now: float) -> None:
        """Let what pages redirect to become pages, unless too many led there."""
        for visited in batch:
            to = visited.judgement.redirect_to
            if to and len(visited.hops) < MOST_HOPS:
                self.discover([to], now)

    def _remember_or_forget(self, group: Group) -> None:
        """Keep what is known after these visits; where that fails the store knows."""
        try:
            self._remember(group.batch, group.validators)
        except Exception as error:  # noqa: BLE001 - nothing is lost
            self.faults.beside_pages(error)
            for page in group.visits.page.tolist():
                self._memory.forget(page)

    def _remember(self, batch: Sequence[Visited], last: Sequence[Validators | None]) -> None:
        """Keep what is known after these visits. Of a page with several the store knows better: each brought links."""
        often = Counter(visited.visit.page for visited in batch)
        for visited, version in zip(batch, last, strict=True):
            if version is not None and often[visited.visit.page] == 1:
                self._memory.remember(visited.visit.page, known_after(visited, version))
            else:
                self._memory.forget(visited.visit.page)

    def _links(self, batch: Sequence[Visited], now: float) -> LinksSeen | None:
        """The links that pages have now. Where they are those of the version before, nothing is written about them."""
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

    def _take_embeds(self, batch: Sequence[Visited], now: float) -> None:
        """Let what pages embed become pages of their own, within the scope. They do not count as links."""
        new = dict.fromkeys(url for one in batch for url in one.judgement.embeds if url not in self._page_of)
        inside = self._inside(new) if new else {}
        if inside:
            self.discover(inside, now)

    def _known_targets(self, read: Sequence[Visited]) -> IntArray | None:
        """The pages that these link to, if all are remembered: mostly they are, since pages name each other."""
        page_of = self._page_of
        with suppress(KeyError):
            found = [page_of[url] for visited in read for url in visited.judgement.links]
            return np.fromiter(found, np.int64, len(found))
        return None

    def _respelled(self, batch: Sequence[Visited]) -> list[int]:
        """Take over the spelling that a redirect to the page itself asks for; the rows to be visited again at once.

        ``/news`` that becomes ``/news/``, or http that becomes https, is one page to us. Where one such redirect led
        to another the page waits for its turn: they may lead in a circle.
        """
        rows = [row for row, visited in enumerate(batch) if _names_itself(visited)]
        if rows:
            pages = np.array([batch[row].visit.page for row in rows], dtype=np.int64)
            self._store.respell(pages, [batch[row].judgement.redirect_to for row in rows])
        return [row for row in rows if not batch[row].target.was_sent_here]

    def _dates(self, batch: Sequence[Visited]) -> None:
        """Note what pages say of their last change, as a claim, whenever they say something new."""
        said: list[tuple[int, float, float]] = []
        for visited in batch:
            known = visited.target.known
            when = newly_stated(visited.judgement.validators, known.validators if known else None)
            if when is not None and not visited.sign.restless and self._judging.believes_dates(visited.target.host):
                said.append((visited.visit.page, visited.visit.time, when))
        self._store.add_claims(last_modified_claims(said))


def announce(store: Store, agenda: Agenda, page: IntArray, time: FloatArray) -> tuple[IntArray, bool]:
    """Tell an agenda that sites said that pages changed; the pages that are to be visited, and whether it hears."""
    known = store.pages(np.unique(page))
    wanted = known.take(known.importance > 0)
    agenda.add(wanted)  # somebody else may have added them since we began
    heard = np.isin(page, wanted.id)
    return page[heard], agenda.hear(page[heard], time[heard])


def recall_signals(store: Store, agenda: Agenda, pages: IntArray) -> None:
    """Tell an agenda what sites announced of these pages so far: state is a fold, so recovery is replay."""
    announce(store, agenda, *signals(store.claims(pages)))


def _reasons(batch: Sequence[Visited]) -> list[str] | None:
    """What our own code failed at, for each visit; ``None`` if it did not."""
    if not any(visited.is_our_fault for visited in batch):
        return None
    return [visited.reason if visited.is_our_fault else "" for visited in batch]


def recall(store: Store, pages: IntArray, validators: Sequence[Validators]) -> list[Known | None]:
    """What the judge must know of each page: its last version and its links. A few queries for all."""
    read = np.array([last.links_read_at > -math.inf for last in validators], dtype=np.bool_)
    links, fingerprints = store.outlinks(pages[read]), store.fingerprints(pages)
    keys = np.array([_key(url) for url in store.urls(links.target)], dtype=np.object_)
    known: list[Known | None] = []
    for page, last, fingerprint, has_links in zip(pages.tolist(), validators, fingerprints, read.tolist(), strict=True):
        if not has_links:
            known.append(Known(last, last.gone, last.mime, fingerprint=fingerprint, links_read=False))
            continue
        mine = slice(*np.searchsorted(links.source, [page, page + 1]).tolist())
        # Links noted by a visit that was never acknowledged (a kill came between) are not known.
        old = links.first_seen[mine] <= last.links_read_at
        standing = old & (links.last_seen[mine] >= last.links_read_at)
        mine_now, mine_ever = frozenset(keys[mine][standing]), frozenset(keys[mine][old])
        known.append(Known(last, last.gone, last.mime, mine_now, mine_ever, fingerprint))
    return known


def _key(url: str) -> str:
    found = address(url)
    return found.key if found else url


def _names_itself(visited: Visited) -> bool:
    """Whether the answer is a redirect to another spelling of the same page."""
    to, url = visited.judgement.redirect_to, visited.target.url
    return bool(to) and to != url and surt(to) == surt(url)


def newly_stated(validators: Validators, before: Validators | None) -> float | None:
    """When the page says it last changed, if it says so and said something else before; seconds since the epoch."""
    stated = validators.last_modified
    if not stated or (before is not None and before.last_modified == stated):
        return None
    return from_http_date(stated)


def last_modified_claims(said: Sequence[tuple[int, float, float]]) -> Claims:
    """Claims that pages made in their Last-Modified headers: page, time of the visit, time of the change."""
    page, time, when = (np.array(column) for column in zip(*said, strict=True)) if said else (np.empty(0),) * 3
    nothing = np.zeros(len(said), np.int64)
    return Claims(page.astype(np.int64), time, [LAST_MODIFIED] * len(said), when, nothing, np.full(len(said), -1.0))
