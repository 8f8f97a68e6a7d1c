"""How long a user waits: for the help, for the demo, for the tests, for the status of many pages.

uv run python benchmarks/start.py help        processor time of recrawl --help, beside Python that does nothing
uv run python benchmarks/start.py demo        recrawl demo in an empty folder
uv run python benchmarks/start.py tests       all tests; some twenty minutes
uv run python benchmarks/start.py status --pages 1000000      recrawl status; eight visits a page, 1 % of the pages due
uv run python benchmarks/start.py status --pages 10000000 --visits 2
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from figures import note, options_of
from store_population import DUE_SPAN, add_visits, populate_sqlite, temporary_folder

from recrawl.time import DAY

ROOT = Path(__file__).resolve().parents[1]
TRIES = 7


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[..., None]] = {
        "help": show_help,
        "demo": show_demo,
        "tests": run_tests,
        "status": show_status,
    }
    parser.add_argument("what", choices=parts, nargs="?", default="help")
    parser.add_argument("--pages", type=int, default=1_000_000, help="for status")
    parser.add_argument("--visits", type=int, default=8, help="for status: of each page")
    given = options_of(parser)
    parts[given.what](*([given.pages, given.visits] if given.what == "status" else []))


def show_help() -> None:
    """The help, after one run that compiles the files."""
    ours, nothing = (
        median(spent([sys.executable, *words], ROOT)[1] for _ in range(TRIES))
        for words in (("-m", "recrawl", "--help"), ("-c", "pass"))
    )
    print(f"recrawl --help {ours:.3f} s of a processor, Python alone {nothing:.3f} s")
    note("help", ours, "s", f"median of {TRIES}", baseline=nothing, beside="Python that does nothing")


def show_demo() -> None:
    """The demo, once: most of it is a crawl."""
    with tempfile.TemporaryDirectory() as folder:
        wall, processor = spent([sys.executable, "-m", "recrawl", "demo"], Path(folder))
    print(f"recrawl demo {wall:.1f} s, {processor:.1f} s of processors")
    note("demo", wall, "s", "the demo as it is", baseline=processor, beside="processor time of the same")


def run_tests() -> None:
    """All tests, by as many processes as there are processors."""
    wall, processor = spent([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], ROOT, shown=True)
    print(f"tests {wall:.0f} s, {processor:.0f} s of processors")
    note("tests", wall, "s", "all tests", baseline=processor, beside="processor time of the same")


def show_status(pages: int, visits: int) -> None:
    """``recrawl status`` and what the first view of the dashboard asks for, beside the same of 10,000 pages."""
    took = []
    for count in (10_000, pages):
        with temporary_folder() as folder:
            place, now = folder / "workspace", time.time()  # noqa: TID251 - visits of the last weeks
            spent([sys.executable, "-m", "recrawl", "init", str(place)], ROOT)
            (place / "recrawl.db").unlink()
            populate_sqlite(place / "recrawl.db", count, max(count // 100, 1), since=now - DUE_SPAN / 100)
            add_visits(place / "recrawl.db", count, visits, now - DAY)
            command = ("-m", "recrawl", "status", "-w", str(place))
            status, view, opened, helped = (
                median(spent([sys.executable, *words], ROOT)[1] for _ in range(3))
                for words in (
                    command,
                    ("-c", _FIRST_VIEW, str(place)),
                    ("-c", "import recrawl.web.dashboard.workspace_dashboard"),
                    ("-m", "recrawl", "status", "--help"),
                )
            )
        took.append(status)
        print(
            f"{count:,} pages: recrawl status {status:.2f} s of a processor ({helped:.2f} s for its help); first view "
            f"of the dashboard {view:.2f} s, {opened:.2f} s of them to load the program",
            flush=True,
        )
    print(f"{took[1] / took[0]:.2f} x")


_FIRST_VIEW = """
import sys
from pathlib import Path
from recrawl.app.workspace.workspace import open_workspace
from recrawl.crawl.clock import RealClock
from recrawl.web.dashboard.workspace_dashboard import WorkspaceDashboard
board = WorkspaceDashboard(open_workspace(Path(sys.argv[1]), {}), None, RealClock().now)
board.counts(), board.work()
board.close()
"""


def spent(command: list[str], folder: Path, *, shown: bool = False) -> tuple[float, float]:
    """Seconds that passed and seconds of processors, of a command with all that it started."""
    begun, before = time.perf_counter(), os.times()
    told = None if shown else subprocess.DEVNULL
    subprocess.run(command, cwd=folder, check=True, stdout=told, stdin=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begun, used


if __name__ == "__main__":
    main()
