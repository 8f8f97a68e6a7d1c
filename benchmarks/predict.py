"""How fast features are made and related pages are found.

    uv run python benchmarks/predict.py                  the sizes of the goals; some ten minutes, 8 GB
    uv run python benchmarks/predict.py --scale .05      a twentieth of them

Goals, on 2 cores: related pages of 384,000 × 192 vectors, k = 30, in under 5 minutes with a recall of 0.95, in under
4 GB; features of 1 million pages × 8 periods, texts not counted, in under 5 minutes; scores of 200,000 pages a second;
PageRank of 10 million links in under 10 s. Vectors are drawn around topics, as those of texts lie; links lead to
popular pages more often. Beside the time that passed stands that of all processors: on a busy machine only that says
something, and with two processors of its own a measurement takes at least half of it.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from figures import note, options_of

from recrawl.errors import require
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.predict.feature_extraction import (
    FeatureEvidence,
    ObservationCounts,
    PeriodCounts,
    RelatedContext,
    count_columns,
    first_sight,
    page_features,
    related_columns,
    site_ids,
)
from recrawl.predict.page_versions import COLUMNS, PageGraph, PageVersions, TimedLinks
from recrawl.predict.prior_model import CHANGES, train_model
from recrawl.predict.related_pages import RelatedPages, SingleArray, descend, within_clusters
from recrawl.predict.static_features import FeatureSet, FeatureTable, PredictionTarget, choose, link_ranks, table_of
from recrawl.time import DAY
from recrawl_lab.learners.link_learners import Learner, LearnerSettings, LinkModel, fit

R = TypeVar("R")
NOW = 1.7e9
_PORTION = 100_000
"""Pages that are scored at once."""


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes of the goals")
    measures = {"ranks": ranks, "scores": scores, "features": features, "related": related}
    parser.add_argument("--only", choices=list(measures), help="one of the measurements")
    options = options_of(parser)
    for name, measure in measures.items():
        if options.only in {None, name}:
            measure(options.scale, np.random.default_rng(1))


def ranks(scale: float, rng: np.random.Generator) -> None:
    """PageRank, cold and from the ranks before a thousandth of the links was added."""
    pages, links = int(1_000_000 * scale), int(10_000_000 * scale)
    source, target = rng.integers(0, pages, links), _popular(rng, pages, links)
    internal = np.ones(links, np.bool_)
    earlier = links - links // 1000
    before = PageGraph(pages, source[:earlier], target[:earlier], internal[:earlier])
    graph = PageGraph(pages, source, target, internal)
    cold, spent = _timed(f"PageRank, {links:,} links", lambda: link_ranks(before))
    warm, again = _timed("  after 0.1 % more links", lambda: link_ranks(graph, start=cold.rank))
    beside = "from the ranks before 0.1 % of the links"
    note("ranks", spent, "s", f"{pages:,} pages, {links:,} links", baseline=again, beside=beside)
    print(f"  rounds: {cold.rounds}, then {warm.rounds}")


def scores(scale: float, rng: np.random.Generator) -> None:
    """What models say of pages: priors by their first copies and by their URLs alone, then new links. In portions."""
    pages, taught = int(1_000_000 * scale), 20_000
    table, site = _first_sights(rng, taught)
    size = np.nan_to_num(table.column("content_size"))
    count = ObservationCounts(rng.poisson(0.02 * (size + 10.0)).astype(np.float64), np.full(taught, 30 * DAY))
    model = train_model(table, {CHANGES: count}, site)
    for name, seen in (("first copies", True), ("URLs alone", False)):

        def portion(rows: int, *, seen: bool = seen) -> Callable[[], object]:
            asked, sites = _first_sights(rng, rows, seen=seen)
            return lambda: model.prior(CHANGES, asked, sites)

        _tell_speed(f"priors by {name}", pages, *_in_portions(portion, pages))
    _link_scores(pages, taught, rng)


def _link_scores(pages: int, taught: int, rng: np.random.Generator) -> None:
    """New links by LBLA features: with the formula that recrawl trusts, and with trees beside scikit-learn's own."""
    table = _related_features(rng, taught)
    truth = rng.poisson(0.3 + np.nan_to_num(table.values).mean(axis=1)).astype(np.float64)
    for learner, rounds in (
        (Learner.SHRUNKEN_COUNTS, 0),
        (Learner.HISTOGRAM_BOOSTING, 100),
        (Learner.HISTOGRAM_BOOSTING, 500),
    ):
        how = LearnerSettings(learner=learner, rounds=rounds)
        model = fit(table, PredictionTarget.NNL, truth, np.random.default_rng(1), how)

        def portion(rows: int, *, model: LinkModel = model) -> Callable[[], object]:
            asked = _related_features(rng, rows)
            return lambda: model.predict_links(asked)

        name = f"new links, {learner}" + (f", {rounds} rounds" if rounds else "")
        _tell_speed(name, pages, *_in_portions(portion, pages), *(_own_speed(table, truth, how) if rounds else ()))


def _own_speed(table: FeatureTable, truth: FloatArray, how: LearnerSettings) -> tuple[float, str]:
    """Pages a second that scikit-learn scores with the same trees, on one processor."""
    learner = require("sklearn.ensemble", "predict").HistGradientBoostingRegressor(
        max_iter=how.rounds,
        learning_rate=how.rate,
        min_samples_leaf=how.boosted_leaf,
        max_leaf_nodes=how.leaves,
        early_stopping=False,
        random_state=1,
    )
    with require("threadpoolctl", "predict").threadpool_limits(1):
        learner.fit(table.values, truth)
        start = time.perf_counter()
        learner.predict(table.values)
        return len(table) / (time.perf_counter() - start), "scikit-learn's own predict, one processor"


def _in_portions(portion: Callable[[int], Callable[[], object]], pages: int) -> tuple[float, float]:
    """Seconds that passed and that processors worked while portions of the pages were scored, not while made."""
    passed, used = 0.0, 0.0
    portion(10)()
    for begin in range(0, pages, _PORTION):
        score = portion(min(_PORTION, pages - begin))
        start, begun = time.perf_counter(), time.process_time()
        score()
        passed, used = passed + time.perf_counter() - start, used + time.process_time() - begun
    return passed, used


def features(scale: float, rng: np.random.Generator) -> None:
    """All features of pages with nine observations each, then a model of them."""
    pages = int(1_000_000 * scale)
    told = _evidence(rng, pages)
    table, spent = _timed(f"features, {pages:,} pages × 8 periods", lambda: page_features(*told))
    note("features", spent, "s", f"{pages:,} pages × 8 periods, {len(table.columns)} columns")
    print(f"  columns: {len(table.columns)}")
    truth = rng.poisson(0.3, pages).astype(np.float64)
    for learner, chosen in (
        (Learner.HISTOGRAM_BOOSTING, FeatureSet.LBLA),
        (Learner.HISTOGRAM_BOOSTING, FeatureSet.ALL),
    ):
        _score(
            choose(table, chosen, PredictionTarget.NNL, internal=True),
            truth,
            LearnerSettings(learner=learner, rounds=100),
            chosen,
        )


def related(scale: float, rng: np.random.Generator) -> None:
    """Related pages by nearest-neighbour descent and within clusters."""
    pages = int(384_000 * scale)
    vectors, held, measured = _vectors(rng, pages), _gigabytes(), []
    for name, search in (("descent", descend), ("clusters", within_clusters)):
        found, spent = _timed(f"related pages of {pages:,}, {name}", lambda search=search: search(vectors, rng))  # type: ignore[misc] # a default binds the loop's variable
        print(f"  recall on {found.sampled:,} pages: {found.recall:.4f}")
        measured.append((spent, found.recall, _gigabytes()))
    sizes, beside = f"{pages:,} pages × {vectors.shape[1]}, k = 30", "within clusters"
    (spent, recall, peak), (other_spent, other_recall, _) = measured
    note("related", spent, "s", sizes, baseline=other_spent, beside=beside)
    note("related, recall", recall, "", sizes, baseline=other_recall, beside=beside)
    note("related, memory", peak, "GB", sizes, baseline=held, beside="the vectors and what is loaded")


def _score(table: FeatureTable, truth: FloatArray, settings: LearnerSettings, name: str) -> None:
    taught = slice(0, 20_000)
    model = fit(table.take(taught), PredictionTarget.NNL, truth[taught], np.random.default_rng(1), settings)
    start, begun = time.perf_counter(), time.process_time()
    model.predict_links(table)
    passed, used = time.perf_counter() - start, time.process_time() - begun
    _tell_speed(f"new links, features: {name}", len(table), passed, used)


def _tell_speed(  # noqa: PLR0913, PLR0917 - the name, what was measured, and what beside
    name: str, pages: int, passed: float, used: float, baseline: float | None = None, beside: str = ""
) -> None:
    print(f"{name:<44}{pages / passed:>12,.0f} pages/s{pages / used:>12,.0f} a second of processor", flush=True)
    if baseline is not None:
        print(f"  {beside}: {baseline:,.0f} pages/s", flush=True)
    note(name, pages / passed, "pages/s", f"{pages:,} pages", baseline=baseline, beside=beside)


def _first_sights(rng: np.random.Generator, pages: int, *, seen: bool = True) -> tuple[FeatureTable, IntArray]:
    """Features of pages at first sight, observed once if ``seen``, and their sites."""
    found: dict[str, AnyArray] = {name: rng.integers(0, 100, pages).astype(np.float64) for name in COLUMNS}
    found |= {"changed": np.zeros(pages, np.bool_), "mime": rng.integers(0, 5, pages)}
    page, urls = np.arange(pages), _urls(pages)
    observations = PageVersions.of(page, np.full(pages, NOW), found) if seen else None
    return first_sight(page, urls, observations), site_ids(urls)


def _related_features(rng: np.random.Generator, pages: int) -> FeatureTable:
    """LBLA features for the number of new links within the site; one page in twenty has some in a period."""
    counts = [np.where(rng.random((pages, 8)) < 0.05, rng.poisson(3.0, (pages, 8)), 0).astype(float) for _ in range(3)]
    past = PeriodCounts(*counts)
    near = rng.integers(0, pages, (pages, 30)).astype(np.int32)
    related = RelatedPages(near, rng.random((pages, 30)).astype(np.float32), recall=1.0, sampled=0)
    columns = count_columns(past, 8) + related_columns(past, related, 8)
    return choose(table_of(np.arange(pages), NOW, columns), FeatureSet.LBLA, PredictionTarget.NNL, internal=True)


def _urls(pages: int) -> tuple[str, ...]:
    return tuple(f"http://h{page % 1000}.test/a/b{page % 77}/p{page}.html" for page in range(pages))


def _evidence(rng: np.random.Generator, pages: int) -> tuple[FeatureEvidence, float, RelatedContext]:
    observations, links = 9 * pages, 10 * pages
    found: dict[str, AnyArray] = {name: rng.integers(0, 100, observations).astype(np.float64) for name in COLUMNS}
    found |= {"changed": rng.random(observations) < 0.3, "mime": rng.integers(0, 5, observations)}
    age = np.tile(np.arange(8, -1, -1), pages) * 7 * DAY + rng.uniform(1.0, 6 * DAY, observations)
    versions = PageVersions.of(np.repeat(np.arange(pages), 9), NOW - age, found, complete=True)
    added = NOW - rng.uniform(0.0, 100 * DAY, links)
    source, target = rng.integers(0, pages, links), _popular(rng, pages, links)
    timed = TimedLinks(source, target, added, np.full(links, np.inf), rng.random(links) < 0.8)
    near = rng.integers(0, pages, (pages, 30)).astype(np.int32)
    likeness = rng.random((pages, 30)).astype(np.float32)
    topics = rng.random((pages, 20)).astype(np.float32)
    around = RelatedContext(np.arange(pages), NOW, topics, RelatedPages(near, likeness, recall=1.0, sampled=0))
    return FeatureEvidence(np.arange(pages), _urls(pages), versions, timed), NOW, around


def _popular(rng: np.random.Generator, pages: int, links: int) -> IntArray:
    return (pages * rng.random(links) ** 3).astype(np.int64)


def _vectors(rng: np.random.Generator, pages: int) -> SingleArray:
    fall = np.geomspace(1.0, 0.1, 192, dtype=np.float32)
    topics = rng.normal(size=(max(pages // 100, 1), 192)).astype(np.float32) * fall
    rows = topics[rng.integers(0, len(topics), pages)]
    rows += 0.5 * rng.standard_normal((pages, 192), dtype=np.float32) * fall
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _gigabytes() -> float:
    """The most memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _timed(name: str, run: Callable[[], R]) -> tuple[R, float]:
    """What it gives, and the seconds that passed."""
    start, begun = time.perf_counter(), time.process_time()
    found = run()
    wall, used = time.perf_counter() - start, time.process_time() - begun
    print(f"{name:<44}{wall:>10.1f} s{used:>10.1f} s of processors{_gigabytes():>8.1f} GB at most so far", flush=True)
    return found, wall


if __name__ == "__main__":
    main()
