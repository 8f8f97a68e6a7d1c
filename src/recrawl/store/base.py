"""What a store promises. Everybody outside this room knows only this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypedDict, Unpack

from recrawl.model import (
    BoolArray,
    ChangeKind,
    FloatArray,
    Histories,
    IntArray,
    NoiseCounts,
    Page,
    Pages,
    Validators,
    Visits,
)
from recrawl.model.robots import RobotsCopies
from recrawl.store.ahead import FoundAhead, Misdated
from recrawl.store.base_archives import Archives
from recrawl.store.base_checks import Checks
from recrawl.store.base_look_ups import LookUps
from recrawl.store.browse import HostCounts, PageQuery, PageRows
from recrawl.store.site_values import FoundPages, SiteCapture, SiteCounts, SiteLog, SiteProgress, SiteStep
from recrawl.store.values import (
    Backlog,
    CaptureRecord,
    DuePages,
    Failing,
    Hosts,
    Leased,
    Lessons,
    Links,
    LinksSeen,
    StoreCounts,
)


class Recorded(TypedDict, total=False):
    """What may be recorded with visits, in the same transaction. What has an entry for each visit says so."""

    due: FloatArray | None
    """When to come back, for each visit. Of several visits to a page the latest decides, here and below."""
    validators: Sequence[Validators | None] | None
    """What the page said about its version, for each visit; ``None`` leaves what is known."""
    captures: Sequence[CaptureRecord] | None
    """Where the bytes are."""
    links: LinksSeen | None
    """Links that were seen: see :meth:`Store.record_links`."""
    worker: str | None
    """Whose leases on these pages end, and its hold on hosts where it has no other lease.

    Where the lease is not this worker's any more, somebody else may have visited the page since. Then the visit and its
    capture are kept, with no word on change; what is known of the page, its links and its due time stay as they are."""
    on_lost: Callable[[IntArray], object] | None
    """Told the pages whose leases were lost that way, if there are any. May be told again if the call is repeated."""
    host_ready: FloatArray | None
    """Before which time nobody asks the host, for each visit; the latest stands."""
    site: SiteProgress | None
    """The step of a site capture that the visit was. It is refused if another process made that step."""
    reasons: Sequence[str] | None
    """What our own code failed at, for each visit; empty where it did not."""
    lessons: Lessons | None
    """What else they taught: what pages look like now, and counts about noise and about hosts that are added."""


class Store(Archives, LookUps, RobotsCopies, Checks, Protocol):
    """Hosts, pages, visits, links, captures, schedule and policy state.

    Every call is one transaction: when it returns, its effect is there for every other process and survives the
    death of this one; when it raises, there is no effect. All times are seconds since the epoch. A store may be
    shared by threads (calls then wait for each other) and opened by several processes.

    After a lost connection the next call connects again. Calls that only read are repeated by themselves. A call
    that writes raises if it cannot tell whether its commit arrived; calling it again is safe, since every
    writing call says what should be so, and doing it twice changes nothing more. (Noise and conduct alone are counted:
    they may then count twice.)
    """

    # -- pages --------------------------------------------------------------------------------

    def discover(self, urls: Sequence[str], now: float | FloatArray, *, importance: float = 1.0) -> IntArray:
        """The id of the page each URL names; -1 where it is not an http(s) URL.

        New pages are added with this importance and are due ``now``, or never if it is 0: such pages are only
        remembered, as targets of links. Known pages are not changed in any way. ``now`` may have an entry a URL.
        URLs with the same SURT are one page, written as first named and heard of at the earliest time.
        """
        ...

    def find(self, url: str) -> Page | None:
        """The page a URL names, if it is known."""
        ...

    def pages(self, pages: IntArray | None = None) -> Pages:
        """Pages as columns by ascending id: all, or those of these ids that exist."""
        ...

    def urls(self, pages: IntArray) -> list[str]:
        """The URL of each page, in order. An id that is no page is a ``KeyError``."""
        ...

    def validators(self, pages: IntArray) -> list[Validators]:
        """What each page last said about its version, in order. An id that is no page is a ``KeyError``."""
        ...

    def set_importance(self, pages: IntArray, importance: FloatArray) -> None:
        """Set the weight of distinct pages in every objective. With 0 a page is never due; raised from 0, at once."""
        ...

    def set_gone(self, pages: IntArray, gone: BoolArray) -> None:
        """Note of distinct pages whether the last answer was that there is no such page: what others found of them."""
        ...

    def respell(self, pages: IntArray, urls: Sequence[str]) -> None:
        """Write the URLs of distinct pages in another way that has the same key: where a redirect points to.

        Raises:
            ValueError: a URL names another page.
        """
        ...

    # -- hosts --------------------------------------------------------------------------------

    def hosts(self, hosts: IntArray | None = None) -> Hosts:
        """Hosts as columns by ascending id: all, or those of these ids that exist."""
        ...

    def set_host(self, hosts: IntArray, *, ready_at: FloatArray | None = None, delay: FloatArray | None = None) -> None:
        """Set before which time nobody asks these hosts, or how long they rest between two requests."""
        ...

    def pause(self, hosts: IntArray) -> None:
        """Let nobody lease a page of these hosts until ``resume``. Leases that there are go on."""
        ...

    def resume(self, hosts: IntArray) -> None:
        """Let pages of these hosts be leased again."""
        ...

    # -- visits -------------------------------------------------------------------------------

    def record(self, visits: Visits, **more: Unpack[Recorded]) -> None:
        """Append visits with all that follows from them. When it returns, the batch is acknowledged.

        A visit recorded twice (same page, same time) is read back once, as it was last recorded: so a capture can be
        judged again. A capture recorded twice stays as it was first recorded. A visit by somebody who lost the lease is
        recorded all the same: it happened (see :attr:`Recorded.worker`).
        """
        ...

    def record_ahead(self, visits: Visits, **more: Unpack[Recorded]) -> Callable[[], object]:
        """As :meth:`record`, but for what waits for others: that is left to what is returned, for a thread to call.

        When that has returned, the batch is acknowledged. If it raises, the batch is to be recorded again.
        """
        ...

    def visits(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Visits:
        """Visits with all columns, by page and time, each once.

        All of them, or those of a host, of these pages, with since <= time <= until.
        """
        ...

    def looks(self, pages: IntArray | None = None, *, since: float | None = None) -> Visits:
        """Visits (of these pages, from a time on) by page and time, quickly: page, time, outcome, verdict and kinds.

        The rest says nothing: 0, and no magnitude.
        """
        ...

    def latest_visits(self, limit: int, *, host: int | None = None) -> Visits:
        """The latest ``limit`` visits (of a host), latest first, each once. Memory: about so many visits."""
        ...

    def repair_ahead(self, now: float, *, lease_time: float) -> FoundAhead:
        """Mark visits that lie ahead of the clock as misdated, and repair what follows from them; what was found.

        Visits ahead of the clock that go on from those before it without a gap are not marked: the clock may be wrong
        now. Pauses of hosts and due times are moved back with the visits they follow from, and no lease lasts longer
        than ``lease_time`` seconds from ``now``. Cheap where nothing lies ahead.
        """
        ...

    def misdated(self) -> Misdated:
        """How many visits are marked as misdated, and when the last of them were found. Cheap."""
        ...

    def misdated_visits(self, pages: IntArray | None = None) -> Visits:
        """The visits (of these pages) that are marked as misdated, by page and time: no other call returns them."""
        ...

    def withdraw(self, page: IntArray, time: FloatArray) -> None:
        """Take visits back that turned out to be none: no reader sees them any more, unless they are recorded again."""
        ...

    def histories(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: ChangeKind | None = None,
    ) -> Histories:
        """Histories of the visits in the selection, in one pass. Pages without a visit have no row.

        The first look inside the span opens a history. With a ``kind``, only changes of that kind count.
        """
        ...

    def failing(self, limit: int, *, host: int | None = None) -> Failing:
        """Pages (of a host) whose last visit recorded by a worker failed, latest first, at most ``limit``."""
        ...

    def fingerprints(self, pages: IntArray) -> list[bytes]:
        """What each page looked like when its text was last new, in order; empty where nothing is kept."""
        ...

    def noise(self, hosts: IntArray | None = None) -> NoiseCounts:
        """How often parts of pages were compared and differed, by host, page and part: of all hosts, or of these."""
        ...

    def drop_noise(self, hosts: IntArray) -> int:
        """Forget all evidence on the parts of pages of these hosts; return how many rows there were."""
        ...

    def trim_noise(self, host: int, parts: IntArray, pages: IntArray) -> None:
        """Forget the evidence on some parts of a host, and all evidence of some of its pages."""
        ...

    # -- links --------------------------------------------------------------------------------

    def record_links(self, source: IntArray, target: IntArray, time: FloatArray) -> None:
        """Note links seen at a time: the first time stays with the link, the latest replaces the one before."""
        ...

    def outlinks(self, pages: IntArray) -> Links:
        """Every link ever seen on these pages, by source and target."""
        ...

    # -- schedule -----------------------------------------------------------------------------

    def lease(  # noqa: PLR0913 - who, when, and how much
        self, worker: str, now: float, limit: int, *, per_host: int = 1, ttl: float, share: tuple[int, int] = (0, 1)
    ) -> Leased:
        """Take at most ``limit`` pages with due <= now, earliest first, for ``ttl`` seconds.

        Never a page of a host that is not ready (``ready_at > now``) or that anybody holds, this worker included:
        a host can be leased from again when every lease on it was recorded, given back or has expired. At most
        ``per_host`` pages of one host. Expired leases are dropped first. ``share`` is the place of this worker among
        so many: each then takes from other hosts (those whose id leaves that rest), and none waits for the others.
        """
        ...

    def renew(self, worker: str, now: float, *, ttl: float, pages: IntArray | None = None) -> int:
        """Keep this worker's leases (all, or on these pages) until ``now + ttl``; return how many it still had."""
        ...

    def acknowledge(self, worker: str, pages: IntArray | None = None) -> int:
        """Give back this worker's leases (all, or on these pages) without a visit; return how many it still had."""
        ...

    def release_worker(self, worker: str, now: float, *, pause: float, unless: tuple[str, str] | None = None) -> int:
        """Free all leases of a worker that died, and its holds on hosts; return how many leases that were.

        Nobody knows when it last asked its hosts: each rests as long as it asks for, and at least ``pause`` seconds
        from ``now``. With ``unless``, the name and the value of a control, nothing happens (-1) if that control has
        another value by now: the worker spoke meanwhile.
        """
        ...

    def lease_holders(self) -> dict[str, int]:
        """How many leases there are by the name of the worker that has them."""
        ...

    def held(self, worker: str) -> IntArray:
        """The pages this worker has leases on, ascending."""
        ...

    def expire(self, now: float) -> int:
        """Drop the leases that ended by ``now``; return how many. ``lease`` does it by itself."""
        ...

    def reschedule(self, pages: IntArray, due: FloatArray, *, before: FloatArray | None = None) -> None:
        """Set when pages are due, ``inf`` for never. Leases stay.

        ``before`` says when each was due when ``due`` was thought out: a page that was rescheduled since, because
        somebody visited it, stays as it is.
        """
        ...

    def due(self, pages: IntArray) -> FloatArray:
        """When each of these pages is due, in order; ``inf`` for never. An id that is no page is a ``KeyError``."""
        ...

    def due_pages(self, now: float, limit: int, *, host: int | None = None) -> DuePages:
        """The first ``limit`` pages (of a host) with due <= now, by due time and id, leased ones included."""
        ...

    def backlog(self, now: float) -> Backlog:
        """How many pages are due, and since when. Costs what is due, not what there is."""
        ...

    def next_due(self) -> float:
        """The earliest time at which ``lease`` could return something; ``inf`` if nothing is scheduled."""
        ...

    def soon_free(self, now: float, pause: float) -> float:
        """When the first host can be leased from that has a page due by ``now``; ``inf`` if there is none.

        Hosts that anybody holds do not count, nor those that rest for longer than the pause they ask for, or for
        ``pause`` seconds if that is more: they are in trouble, or sent us away. O(hosts with a page due).
        """
        ...

    def quarantined(self) -> int:
        """How many pages are quarantined: our own code failed on them twice in a row. O(pages that fail)."""
        ...

    # -- captures of whole sites ----------------------------------------------------------------

    def begin_site_capture(self, site: str, terms: str, *, delay: float, now: float, known: FoundPages) -> int:
        """Note a capture that begins, with the pages known beforehand; return its id.

        ``terms`` is what was asked for, as JSON; ``delay`` the seconds of a slot. From here on steps are recorded with
        the visits they are (see ``record``).
        """
        ...

    def site_captures(self, *, only: IntArray | None = None) -> list[SiteCapture]:
        """Every capture of a site, oldest first, or ``only`` these numbers."""
        ...

    def latest_site_captures(self, before: int, limit: int) -> list[int]:
        """The numbers of at most ``limit`` captures with a number below ``before``, latest first."""
        ...

    def site_log(self, capture: int) -> SiteLog:
        """The pages of a capture in the order found, and its steps in the order made."""
        ...

    def site_steps(self, capture: int, every: int) -> list[SiteStep]:
        """One of ``every`` steps of a capture, the first included, in the order made: enough for a picture."""
        ...

    def site_counts(self, capture: int) -> SiteCounts:
        """How far a capture is, for who only watches. O(steps), but nothing of them is handed over."""
        ...

    def finish_site_capture(self, capture: int, statement: str, now: float) -> None:
        """Note that a capture is complete, and how good it is, as JSON."""
        ...

    # -- what people tell a crawl ---------------------------------------------------------------

    def set_source(self, pages: IntArray, method: str, options: str = "{}") -> None:
        """Ask for these pages by this access method from now on, with options as JSON; without one, by plain HTTP."""
        ...

    def sources(self, pages: IntArray | None = None) -> dict[int, tuple[str, str]]:
        """Method and options of each of these pages, or of all, that has a method of its own. Cheap where none has."""
        ...

    def set_control(self, name: str, value: str | None, now: float) -> None:
        """Tell whoever runs the crawl something while it runs; ``None`` takes it back."""
        ...

    def controls(self) -> dict[str, str]:
        """What was told and not taken back, by name."""
        ...

    def controls_changed(self) -> float:
        """When a control was last set or taken back; -inf if never. Cheap enough to ask every second."""
        ...

    # -- policies and totals --------------------------------------------------------------------

    def save_state(self, name: str, state: bytes, now: float) -> None:
        """Keep a policy's state under a name, in place of what was there."""
        ...

    def load_state(self, name: str) -> bytes | None:
        """The state kept under a name, ``None`` if there is none."""
        ...

    def rough_size(self) -> tuple[int, int]:
        """The largest page id, and about how many visits there are. Cheap, whatever the size."""
        ...

    def counts(self, now: float) -> StoreCounts:
        """How much there is, and how many pages are due. Looks at every page once."""
        ...

    def browse_pages(self, query: PageQuery, now: float) -> PageRows:
        """One screen of pages, in an order, from a row on. Costs the same wherever in the list that is."""
        ...

    def find_host(self, name: str) -> int | None:
        """The id of the host of this name, if it is known."""
        ...

    def host_counts(self, now: float) -> HostCounts:
        """Pages of each host: how many there are, are due, are never due, fail. Looks at every page once."""
        ...

    def time(self) -> float | None:
        """The time of the database server, seconds since the epoch; ``None`` if the store is a file of this machine."""
        ...

    def close(self) -> None:
        """Let go of the files and connections. Leases stay until they expire."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: object) -> None: ...
