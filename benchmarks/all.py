"""Run every benchmark that has an aim, keep what it found, and write ``docs/figures.md``.

    uv run --group bench python benchmarks/all.py                        everything, at full size: two hours
    uv run --group bench python benchmarks/all.py --missing --within 10  what was not measured yet, for ten minutes
    uv run --group bench python benchmarks/all.py --only serve --only report
    uv run --group bench python benchmarks/all.py --quick --missing      small sizes, for runs without any result
    uv run --group bench python benchmarks/all.py --write                only the page, from what is kept
    uv run --group bench python benchmarks/all.py --list                 what there is, and what is kept of it

Each run is a process of its own. What it found is kept in ``benchmarks/results`` as soon as it ends, so that the whole
can be done in pieces; one that fails does not stop the others, and leaves what was kept. A result of small sizes never
takes the place of one at full size. Measure on a machine that does nothing else: the load average is part of a result.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from figures import read_notes
from figures_page import PAGE, page
from hashes import keep_hashes
from kept import FOLDER, Result, kept_results
from runs import RUNS, Run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def main() -> None:
    """Run what was asked for, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[run.name for run in RUNS], help="a run; may be repeated")
    parser.add_argument("--missing", action="store_true", help="only runs without a result of this size or larger")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--within", type=float, metavar="MINUTES", help="begin nothing that would not end by then")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with the data sets")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder in which results are kept")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that is written")
    parser.add_argument("--write", action="store_true", help="run nothing, write the page from what is kept")
    parser.add_argument("--list", action="store_true", help="run nothing, say what there is")
    options = parser.parse_args()
    if options.list:
        tell_runs(kept_results(options.results))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    failed = [] if options.write else run_all(chosen(options), options)
    keep_hashes(options.data, options.results)
    options.page.write_text(page(options.results), "utf-8")
    print(f"{options.page.name} is written")
    if failed:
        sys.exit(f"These failed, and what was kept of them stays: {', '.join(failed)}")


def chosen(options: argparse.Namespace) -> list[Run]:
    """The runs that are to be made."""
    kept = kept_results(options.results)
    runs = [run for run in RUNS if not options.only or run.name in options.only]
    if options.quick:
        full = {name for name, result in kept.items() if not result.quick}
        runs = [run for run in runs if run.quick and run.name not in full]
    if options.missing:
        done = {name for name, result in kept.items() if options.quick or not (result.quick or result.remark)}
        runs = [run for run in runs if run.name not in done]
    return runs


def run_all(runs: list[Run], options: argparse.Namespace) -> list[str]:
    """One after the other; the names of those that failed."""
    begun, failed = time.perf_counter(), []
    for number, run in enumerate(runs, 1):
        spent = (time.perf_counter() - begun) / 60
        expected = 0.5 if options.quick else run.minutes
        if options.within is not None and spent + expected > options.within:
            print(f"[{number}/{len(runs)}] {run.name}: left for another time, it takes about {expected:g} minutes")
            continue
        words = run.quick if options.quick else run.command
        print(f"[{number}/{len(runs)}] {run.name}: {words}", flush=True)
        if measure(run, words, options):
            print(f"    {(time.perf_counter() - begun) / 60 - spent:.1f} minutes", flush=True)
        else:
            failed.append(run.name)
    return failed


def measure(run: Run, words: str, options: argparse.Namespace) -> bool:
    """Run one command and keep what it noted; whether it went well."""
    file, *rest = words.split()
    load, begun = os.getloadavg()[0], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "figures.jsonl"
        arguments = [word.replace("DATA", str(options.data)) for word in rest]
        command = [sys.executable, str(HERE / file), *arguments, "--json", str(notes)]
        status = finished(command)
        figures = read_notes(notes)
    if status or not figures:
        print(f"    {run.name} ended with {status} and {len(figures)} figures", flush=True)
        return False
    Result(
        run=run.name,
        command=f"python benchmarks/{words}",
        quick=options.quick,
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        load=round(load, 1),
        cores=len(os.sched_getaffinity(0)),
        seconds=round(time.perf_counter() - begun, 1),
        figures=tuple(figures),
    ).keep(options.results)
    return True


def finished(command: list[str]) -> int:
    """Run a command to its end. If we are ended first, so is it, with all that it started."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def tell_runs(kept: Mapping[str, Result]) -> None:
    """A line for each run."""
    for run in RUNS:
        result = kept.get(run.name)
        size = "" if result is None else "small sizes, " if result.quick else "copied, " if result.remark else ""
        state = "nothing kept" if result is None else f"{size}{result.date}, load {result.load}"
        print(f"{run.name:<18}{run.minutes:>5g} min  {state:<34} {run.command}")


if __name__ == "__main__":
    main()
