"""How fast capture strategies decide, how near SHARC-Optimal comes to its bound, and what a wrong guess of size costs.

    uv run python benchmarks/capture.py                        all of it at 1,000,000 pages
    uv run python benchmarks/capture.py --pages 100000
    uv run python benchmarks/capture.py --sensitivity          sizes guessed wrong, and estimated on the way
    uv run python benchmarks/capture.py --compare              what every strategy reaches on two small sites
    uv run python benchmarks/capture.py --memory               bytes per page, and whether they grow with the site

Online strategies are walked from the home page through a tree of eight links a page, beside breadth-first, which only
keeps a queue. A decision is one ``next_page`` with the ``discover`` of the links of that page, both made by the walk.
Plans are made for log-normal rates. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from figures import note, options_of
from scipy.optimize import linear_sum_assignment

from recrawl.assess.blur_coherence import average_blur, expected_coherence
from recrawl.capture import OFFLINE, REVISITING, STRATEGIES, CaptureTerms
from recrawl.capture.pyramid import best_valley, pyramid
from recrawl.capture.sharc_optimal import optimal, sharc_optimal
from recrawl.capture.sharc_selective import sharc_selective
from recrawl.capture.strategy import LinkGraph, walk
from recrawl.model import CapturePlan, FloatArray
from recrawl.simulate.sites import power_rates

P = ParamSpec("P")
R = TypeVar("R")
ONLINE = [name for name in STRATEGIES if name.startswith("sharc") and name not in OFFLINE]
DEFAULT = "sharc-selective-online"
GUESSES = (0.25, 0.5, 1.0, 2.0, 4.0, None)


def main() -> None:
    """Print the chosen tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--sensitivity", action="store_true", help="only the table of wrong guesses of the size")
    parser.add_argument("--compare", action="store_true", help="only the table of what every strategy reaches")
    parser.add_argument("--memory", action="store_true", help="only the memory of the default strategy")
    parser.add_argument("--seed", type=int, default=0)
    options = options_of(parser)
    if options.memory:
        memory(options.pages, options.seed)
        return
    if options.sensitivity:
        sensitivity(min(options.pages, 10_000), options.seed)
        return
    if options.compare:
        compare(min(options.pages, 2_000))
        return
    plans(options.pages, options.seed)
    decisions(options.pages, options.seed)


def plans(pages: int, seed: int) -> None:
    """Selective beside Algorithm 5 as printed, and optimal beside exact assignment, both small; then both large."""
    print(f"{'plan':<44}{'pages':>11}{'seconds':>9}{'expected coherent':>19}{'baseline s':>12}{'ratio':>8}")
    rate = rates(5_000, seed)
    slow, printed = timed(as_printed, rate)
    quick, plan = timed(sharc_selective, rate, 1.0)
    line("selective, beside Algorithm 5 as printed", rate, quick, plan, baseline=slow)
    beside = "Algorithm 5 as printed"
    note("selective, small", quick, "s", f"{len(rate):,} pages", baseline=slow, beside=beside)
    print(f"{'  Algorithm 5 itself':<44}{len(rate):>11,}{slow:>9.3f}{coherence(rate, printed):>19,.3f}")
    slow_at_5000, rate = slow, rates(1_500, seed)
    slow, exact = timed(assignment, rate)
    line("optimal, beside exact assignment", rate, *timed(sharc_optimal, rate, 1.0), baseline=slow)
    print(f"{'  exact assignment itself':<44}{len(rate):>11,}{slow:>9.3f}{coherence(rate, exact):>19,.3f}")
    best_valley(rates(5_000, seed), 1.0)  # compiles
    rate = rates(20_000, seed)
    seconds, order = timed(best_valley, rate, 1.0)
    line("best valley, beside optimal", rate, seconds, pyramid(order, once=True), baseline=timed(optimal, rate, 1.0)[0])
    rate = rates(pages, seed)
    quick, plan = timed(sharc_selective, rate, 1.0)
    line("selective", rate, quick, plan)
    grown = slow_at_5000 * (pages / 5_000) ** 2
    note(
        "selective", quick, "s", f"{pages:,} pages", baseline=grown, beside=f"{beside}, by its square from 5,000 pages"
    )
    seconds, best = timed(optimal, rate, 1.0)
    line(f"optimal, at most {best.gap:.1e} below the best", rate, seconds, best.plan)
    note("optimal, gap", best.gap, "of the bound", f"{pages:,} pages", baseline=0.0, beside="bound by duality")
    rng = np.random.default_rng(seed)
    weighted("weights 0.2, 1, 5", rate, rng.choice([0.2, 1.0, 5.0], pages))
    weighted("any weights", rate, rng.lognormal(size=pages))


def weighted(kind: str, rate: FloatArray, weight: FloatArray) -> None:
    """Optimal beside selective, with weights."""
    seconds, best = timed(optimal, rate, 1.0, weight)
    greedy = sharc_selective(rate, 1.0, weight)
    kept = float(weight @ np.exp(-rate * (greedy.revisit_times(0.0, 1.0) - greedy.visit_times(0.0, 1.0))))
    print(f"{f'optimal, {kind}, at most {best.gap:.1e} below':<44}{len(rate):>11,}{seconds:>9.3f}", end="")
    print(f"{best.expected_coherence:>19,.3f}   selective has {kept / best.bound:.1%} of the bound", flush=True)


def line(name: str, rate: FloatArray, seconds: float, plan: CapturePlan, baseline: float | None = None) -> None:
    """One line of the table of plans."""
    beside = "" if baseline is None else f"{baseline:>12.3f}{baseline / seconds:>8.1f}"
    print(f"{name:<44}{len(rate):>11,}{seconds:>9.3f}{coherence(rate, plan):>19,.3f}{beside}", flush=True)


def decisions(pages: int, seed: int) -> None:
    """Decisions per second of every online strategy, the size given and not."""
    rate, graph = rates(pages, seed), tree(pages, 8)
    baseline = 0.0
    print(f"\n{'strategy':<44}{'pages':>11}{'decisions/s':>13}{'of breadth-first':>18}")
    for name in ["bfs", *ONLINE]:
        for expected in (pages, None) if name != "bfs" else (pages,):
            strategy = STRATEGIES[name](CaptureTerms(delay=1.0, expected=expected))
            seconds = timed(walk, strategy, graph, np.array([0]), rate)[0]
            baseline = baseline or seconds
            label = name if expected else f"{name}, size not given"
            print(f"{label:<44}{pages:>11,}{pages / seconds:>13,.0f}{baseline / seconds:>18.2f}", flush=True)
            beside = "breadth-first"
            note(label, pages / seconds, "decisions/s", f"{pages:,} pages", baseline=pages / baseline, beside=beside)


def memory(pages: int, seed: int) -> None:
    """Bytes that each further page takes at the peak, between a quarter of the site and half, and half and all."""
    peaks = []
    for part in (pages // 4, pages // 2, pages):
        strategy = STRATEGIES[DEFAULT](CaptureTerms(delay=1.0, expected=None))
        walk(strategy, tree(part, 8), np.array([0]), rates(part, seed))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    first, second = (peaks[1] - peaks[0]) / (pages // 4), (peaks[2] - peaks[1]) / (pages // 2)
    print(f"{DEFAULT}: {first:.0f} bytes for each further page up to {pages // 2:,}, {second:.0f} up to {pages:,}")
    beside = f"each page of {pages // 4:,} to {pages // 2:,}"
    note("memory", second, "bytes a further page", f"{pages:,} pages", baseline=first, beside=beside)


def sensitivity(pages: int, seed: int) -> None:
    """How much blur or how many incoherent pages each guess of the size costs, beside the true size."""
    rng = np.random.default_rng(seed)
    spread = rates(pages, seed)
    sites = {
        "tree, cold leaves": (tree(pages, 100), power_rates(pages, scale=0.5, leaves="cold")),
        "tree, hot leaves": (tree(pages, 100), power_rates(pages, scale=0.5, leaves="hot")),
        "deep tree": (tree(pages, 3), spread),
        "links anywhere": (anywhere(pages, 5, rng), spread),
    }
    print(
        f"{pages:,} pages. Blur (single visit) or incoherent pages (visit–revisit), where those at the true size are 1"
    )
    print(f"{'site':<20}{'strategy':<28}" + "".join(f"{guess or 'estimated':>11}" for guess in GUESSES))
    for site, (graph, rate) in sites.items():
        for name in ONLINE:
            lost = [loss(name, graph, rate, guess) for guess in GUESSES]
            figures = "".join(f"{one / lost[GUESSES.index(1.0)]:>11.3f}" for one in lost)
            print(f"{site:<20}{name:<28}{figures}", flush=True)


def compare(pages: int) -> None:
    """Blur, and expected coherent pages, of every strategy on a tree with cold and with hot leaves, nothing told."""
    print(f"{pages:,} pages{'':<23}{'blur a page':>26}{'coherent pages':>26}")
    print(f"{'':<34}" + f"{'cold leaves':>13}{'hot leaves':>13}" * 2)
    graph = tree(pages, pages // 25)
    for name in STRATEGIES:
        figures = ""
        for leaves in ("cold", "hot"):
            rate = power_rates(pages, leaves=leaves)
            seeds = np.arange(pages) if name in OFFLINE else np.array([0])
            plan = walk(STRATEGIES[name](CaptureTerms(delay=1.0)), graph, seeds, rate).plan()
            figures += f"{coherence(rate, plan) if name in REVISITING else blur(rate, plan):>13,.2f}"
        print(f"{name:<34}{'' if name not in REVISITING else ' ' * 26}{figures}")


def blur(rate: FloatArray, plan: CapturePlan) -> float:
    """Average blur at one second a slot."""
    return average_blur(rate, plan.visit_times(0.0, 1.0), 0.0, len(rate) - 1.0)


def loss(name: str, graph: LinkGraph, rate: FloatArray, guess: float | None) -> float:
    """Average blur, or expected incoherent pages, of a capture with that guess of the size."""
    expected = None if guess is None else max(round(guess * len(rate)), 1)
    plan = walk(STRATEGIES[name](CaptureTerms(delay=1.0, expected=expected)), graph, np.array([0]), rate).plan()
    if name in REVISITING:
        return len(rate) - coherence(rate, plan)
    return blur(rate, plan)


def coherence(rate: FloatArray, plan: CapturePlan) -> float:
    """Expected number of coherent pages at one second a slot."""
    return expected_coherence(rate, plan.revisit_times(0.0, 1.0) - plan.visit_times(0.0, 1.0))


def rates(pages: int, seed: int) -> FloatArray:
    """Log-normal, the median page changing three times while a capture of visits only would last."""
    return np.random.default_rng(seed).lognormal(np.log(3.0 / pages), 1.5, pages)


def tree(pages: int, links: int) -> LinkGraph:
    """A complete tree, numbered breadth first."""
    parent = (np.arange(1, pages) - 1) // links
    return LinkGraph(np.searchsorted(parent, np.arange(pages + 1)), np.arange(1, pages))


def anywhere(pages: int, links: int, rng: np.random.Generator) -> LinkGraph:
    """Every page links to the next one, so that all can be reached, and to some at random."""
    target = np.column_stack([np.minimum(np.arange(1, pages + 1), pages - 1), rng.integers(0, pages, (pages, links))])
    return LinkGraph(np.arange(0, target.size + 1, links + 1), target.reshape(-1))


def as_printed(rate: FloatArray) -> CapturePlan:
    """SHARC Algorithm 5 with both sums made again for every page (as corrected in the papers page of the docs)."""
    hottest = np.argsort(-rate, kind="stable")
    fast, hopeful = rate[hottest], [0]
    hopeless: list[int] = []
    for page in range(1, len(rate)):
        length = 2.0 * np.arange(len(hopeful), len(rate) - len(hopeless))
        left = fast[page:]
        keep, give = np.exp(-left * length).sum(), np.exp(-np.append(left[1:], left[0]) * length).sum()
        (hopeful if keep >= give else hopeless).append(page)
    return pyramid(hottest[np.array(hopeful + hopeless[::-1])], once=True)


def assignment(rate: FloatArray) -> CapturePlan:
    """The optimum by scipy alone."""
    worth = np.exp(-np.outer(rate, 2.0 * np.arange(len(rate))))
    return pyramid(np.argsort(linear_sum_assignment(worth, maximize=True)[1]), once=True)


def timed(call: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> tuple[float, R]:
    """Processor seconds, and what it returned."""
    begin = time.process_time()
    result = call(*arguments, **options)
    return time.process_time() - begin, result


if __name__ == "__main__":
    main()
