"""Crawls many pages with workers that join, leave and are killed, and checks the crawl by the log of the server.

uv run python benchmarks/soak.py                                        a million pages, both stores; hours
uv run python benchmarks/soak.py --pages 20000 --store postgresql       minutes
uv run python benchmarks/soak.py --pages 3000 --hosts 20 --budget 15 --every 60 --apart     what a takeover takes

Workers are ``recrawl run`` in processes of their own. Every few seconds one joins, stops (SIGTERM) or is killed
(SIGKILL), until every page was visited. They share a workspace, whose other workers find a dead one by its lock; with
``--apart`` each has a folder of its own, as on other machines, and they find it by its silence (PostgreSQL only).
Then, by the log of the server:

- politeness: no host was asked before its pause was over, by any worker;
- budget: over any span of t seconds, no more than what may be saved up, budget · t and what workers have in flight;
- exactly once: every page was visited, every visit that the store acknowledges was one request, and no page was asked
  for more often than what dead workers can have had in flight;
- takeover: how long after a kill the hosts of the dead worker were asked again, of those that had pages left.
"""

from __future__ import annotations

import argparse
import math
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from killed_crawls import Site, Starter, a_site, a_starter, is_alive
from soak_kills import LOOKS, OK, PAUSE, SETTINGS, postgres

from recrawl.store.open import open_store

BURST = 10.0
"""Seconds of budget that may be saved up."""
IN_FLIGHT = 8
"""Requests that a worker has under way at most."""
ARRIVED = 0.5
"""Seconds after a kill in which requests of the dead may still be read."""
ACTIONS = ("kill", "join", "leave")


@dataclass
class Soak:
    """What happened, and what the log of the server says of it."""

    pages: int
    joined: int = 0
    left: int = 0
    killed: int = 0
    seconds: float = 0.0
    requests: int = 0
    visits: int = 0
    shortest_pause: float = np.inf
    """Seconds from an answer of a host to the next request to it."""
    over_budget: float = 0.0
    """Visits beyond budget · t, over the span where that is most."""
    allowed_over: float = 0.0
    unacknowledged: int = 0
    """Requests whose visits the store does not have: their workers died."""
    takeovers: list[float] = field(default_factory=list)
    """Seconds for each kill: until the last host of the dead worker with pages left was asked again."""

    def rows(self) -> list[tuple[str, str]]:
        """What to print."""
        taken = ", ".join(f"{seconds:.1f} s" for seconds in sorted(self.takeovers)) or "no host had pages left"
        return [
            ("pages", f"{self.pages:,}, all visited"),
            ("workers", f"{self.joined} joined, {self.left} left, {self.killed} killed"),
            ("requests", f"{self.requests:,} in {self.seconds:,.0f} s"),
            ("shortest pause of a host", f"{1000 * self.shortest_pause:.1f} ms, {1000 * PAUSE:.0f} ms demanded"),
            ("most beyond budget · t", f"{self.over_budget:,.0f} visits, {self.allowed_over:,.0f} allowed"),
            ("visits", f"{self.visits:,}, each one request; {self.unacknowledged} requests of dead workers are none"),
            ("takeover after a kill", taken),
        ]


@dataclass
class SoakPlan:
    """How long, how many, how often."""

    pages: int
    workers: int = 3
    budget: float = 1_000.0
    """Visits per second, of all workers together."""
    every: float = 15.0
    """Seconds between two actions."""
    seed: int = 1
    most_kills: float = math.inf
    """Kills at most: each leaves the hosts of a worker alone until the others notice, where workers are apart."""
    apart: bool = False
    """Whether each worker has a folder of its own."""


class SoakRun:
    """One crawl in one workspace."""

    def __init__(self, folder: Path, location: str, site: Site, starter: Starter, plan: SoakPlan) -> None:
        self._workspace, self._site, self._starter, self._plan = folder / "w", site, starter, plan
        self._rng = np.random.default_rng(plan.seed)
        self.found = Soak(plan.pages)
        self._alive: list[int] = []
        self._most = 0
        """Workers that were alive at the same time."""
        self._kills: list[tuple[float, list[str]]] = []
        """When a worker was killed, and its hosts."""
        per_host = -(-plan.pages // site.hosts)
        self._urls = [f"{home}{n}" for n in range(per_host) for home in site.seed_scope][: plan.pages]
        self._run(folder, location)

    def _run(self, folder: Path, location: str) -> None:
        folder.mkdir(parents=True)
        self._given = location
        self._make(self._workspace)
        seeds = folder / "seeds.txt"
        seeds.write_text("\n".join(self._urls), encoding="utf-8")
        self._command("add", "-w", self._workspace, "--file", seeds)
        self.location = location if "://" in location else str(self._workspace / location)

    def _make(self, workspace: Path) -> None:
        self._command("init", workspace, "--store", self._given)
        schedule = {"policy": "uniform", "budget": f"{self._plan.budget}/s", "burst": f"{BURST}s"}
        settings = SETTINGS | {"schedule": schedule, "store": {"location": self._given}}
        (workspace / "recrawl.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")

    def _command(self, *arguments: object) -> None:
        code = self._starter.run(*arguments)
        if code != OK:
            raise AssertionError(f"{arguments}: exit code {code}\n{self._starter.said()[-3000:]}")

    def run(self, tell: Callable[[str], None] = lambda _text: None) -> Soak:
        """Crawl until every page was visited; then check.

        Raises:
            AssertionError: what the log of the server says is not allowed.
        """
        began = time.perf_counter()
        for _ in range(self._plan.workers):
            self._join()
        actions, act_at, waiting, read = 0, began + self._plan.every, set(self._urls), 0
        known = 0
        while waiting:
            time.sleep(0.2)
            new = self._site.log[read:]
            read += len(new)
            waiting.difference_update(request.url for request in new)
            if time.perf_counter() >= act_at and waiting:
                known = self._visits_after(known)
                action = ACTIONS[actions] if actions < len(ACTIONS) else str(self._rng.choice(ACTIONS))
                actions, act_at = actions + 1, time.perf_counter() + self._plan.every
                self._act(action)
                tell(f"{len(waiting):,} pages left; {action}; {len(self._alive)} workers")
        while self._alive:
            self._leave(self._alive[0])
        self._site.until_all_is_read()
        self._visits_after(known)
        self.found.seconds = time.perf_counter() - began
        self._check()
        return self.found

    def _visits_after(self, known: int) -> int:
        """The number of visits in the store, which never falls."""
        with open_store(self.location) as store:
            found = store.count_before(np.inf).visits
        if found < known:
            raise AssertionError(f"{known - found} acknowledged visits are gone")
        return found

    # -- workers --------------------------------------------------------------------------------

    def _act(self, action: str) -> None:
        process = int(self._rng.choice(self._alive))
        if action == "kill" and self.found.killed < self._plan.most_kills:
            self._kill(process)
        elif action == "leave" and len(self._alive) > 1:
            self._leave(process)
        elif len(self._alive) < 2 * self._plan.workers:
            self._join()
        if len(self._alive) < 2:
            self._join()

    def _join(self) -> None:
        workspace = self._workspace
        if self._plan.apart:
            workspace = workspace.with_name(f"w{self.found.joined}")
            self._make(workspace)
        self._alive.append(self._starter.start("run", "-w", workspace))
        self.found.joined += 1
        self._most = max(self._most, len(self._alive))

    def _leave(self, process: int) -> None:
        code = self._starter.end(process, signal.SIGTERM)
        self._alive.remove(process)
        if code not in {OK, 11}:
            raise AssertionError(f"a worker that was told to stop ended with {code}\n{self._starter.said()[-3000:]}")
        self.found.left += 1

    def _kill(self, process: int) -> None:
        if not is_alive(process):
            raise AssertionError(f"a worker ended by itself\n{self._starter.said()[-3000:]}")
        with open_store(self.location) as store:
            owner, hosts = store.buckets().owner, store.hosts()
        mine = np.array([f"-{process}-" in (name or "") for name in owner], np.bool_)
        now = time.time()  # noqa: TID251 - the clock of the server's log
        self._starter.end(process, signal.SIGKILL)
        self._alive.remove(process)
        self._kills.append((now, [hosts.name[row] for row in np.flatnonzero(mine[hosts.bucket]).tolist()]))
        self.found.killed += 1

    # -- the log of the server ------------------------------------------------------------------

    def _check(self) -> None:
        self._check_pauses()
        self._check_budget()
        self._check_visits()
        self.found.takeovers = [taken for kill in self._kills if (taken := self._takeover(*kill)) is not None]

    def _check_pauses(self) -> None:
        last: dict[str, float] = {}
        for request in self._site.all:
            if request.host in last:
                pause = request.time - last[request.host]
                self.found.shortest_pause = min(self.found.shortest_pause, pause)
                if pause < PAUSE - 0.001:
                    raise AssertionError(f"asked after {pause:.4f} s: {request}")
            last[request.host] = request.answered

    def _check_budget(self) -> None:
        time_of = np.sort(np.array([request.time for request in self._site.log]))
        number = np.arange(len(time_of))
        ahead = number - self._plan.budget * time_of
        self.found.over_budget = float((ahead + 1 - np.minimum.accumulate(ahead)).max(initial=0.0))
        self.found.allowed_over = self._plan.budget * BURST + IN_FLIGHT * self._most
        if self.found.over_budget > self.found.allowed_over:
            raise AssertionError(f"{self.found.over_budget:.0f} visits beyond the budget")

    def _check_visits(self) -> None:
        with open_store(self.location) as store:
            visits = store.visits()
            asked = Counter(request.url for request in self._site.log)
            asked.subtract(store.urls(visits.page))
        self.found.requests, self.found.visits = len(self._site.log), len(visits)
        dead = self.found.killed + self.found.left  # a worker that stops drops what takes too long
        odd = {url: count for url, count in asked.items() if not 0 <= count <= LOOKS * dead}
        if odd:
            raise AssertionError(f"requests that are no visits, or visits without a request: {list(odd.items())[:5]}")
        self.found.unacknowledged = asked.total()
        if self.found.unacknowledged > LOOKS * IN_FLIGHT * dead:
            raise AssertionError(f"{self.found.unacknowledged} requests are no visits")

    def _takeover(self, killed_at: float, hosts: list[str]) -> float | None:
        """Seconds until the last of these hosts that had pages left was asked again; ``None`` if none had."""
        pages = Counter(url.split("/")[2] for url in self._urls)
        done = Counter(url.split("/")[2] for url in {one.url for one in self._site.log if one.time < killed_at})
        again: dict[str, float] = {}
        for request in self._site.log:
            if request.time > killed_at + ARRIVED and request.host not in again:
                again[request.host] = request.time - killed_at
        taken = [again[host] for host in hosts if done[host] < pages[host] and host in again]
        return max(taken) if taken else None


def main() -> None:
    """Run the soak on each store and print what the server saw."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=1_000_000)
    options.add_argument("--hosts", type=int, default=200)
    options.add_argument("--workers", type=int, default=3)
    options.add_argument("--budget", type=float, default=1_000.0, help="visits per second")
    options.add_argument("--every", type=float, default=15.0, help="seconds between two actions")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--apart", action="store_true", help="a folder for each worker")
    options.add_argument("--store", choices=("sqlite", "postgresql", "both"), default="both")
    given = options.parse_args()
    plan = SoakPlan(given.pages, given.workers, given.budget, given.every, given.seed, given.apart)
    if plan.apart:
        given.store = "postgresql"
    for kind in ("sqlite", "postgresql") if given.store == "both" else (given.store,):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recrawl-soak-")))
            location = "recrawl.db" if kind == "sqlite" else stack.enter_context(postgres())()
            site = stack.enter_context(a_site(hosts=given.hosts))
            starter = stack.enter_context(a_starter(folder))
            found = SoakRun(folder / "place", location, site, starter, plan).run(lambda text: print(text, flush=True))
        print(f"\n{kind}")
        for what, said in found.rows():
            print(f"  {what:26} {said}")


if __name__ == "__main__":
    main()
