"""How long a new page waits: for the help, for the demo, for the tests.

uv run python benchmarks/start.py help        processor time of recrawl --help, beside Python that does nothing
uv run python benchmarks/start.py demo        recrawl demo in an empty folder
uv run python benchmarks/start.py tests       all tests; some twenty minutes
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from figures import note, options_of

ROOT = Path(__file__).resolve().parents[1]
TRIES = 7


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"help": show_help, "demo": show_demo, "tests": run_tests}
    parser.add_argument("what", choices=parts, nargs="?", default="help")
    parts[options_of(parser).what]()


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
