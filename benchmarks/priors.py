"""What a prior learned from features is worth on pages and sites it was not trained on: log loss of their first visits.

    uv run python benchmarks/priors.py                     the extract of 15 sites that the tests keep
    uv run python benchmarks/priors.py --data FOLDER ...   other recorded sites

The baseline is one prior for all pages, learned from the same visits. "Both" is prior x history: the prior of each page
becomes a belief with its visits; "history" is the same from one prior for all. Unseen pages are a random third. Unseen
sites are left out in turn: a quarter of the sites is predicted by the others, until each was. Printed are means over
seeds, in nats a visit; then both beside history.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from figures import note, options_of
from hashes import SHOWN, hash_of

from recrawl.app.predict.model_training import material
from recrawl.app.workspace.workspace import make_workspace
from recrawl.predict.prior_model import ModelScore
from recrawl.predict.prior_scores import TrainingPages, TrainingSplit, evaluate_split, splits

EXTRACT = Path(__file__).resolve().parents[1] / "tests" / "data" / "sites"
FOLDS = 4
HEADS = ("first, features", "first, one prior", "ten, both", "ten, features", "ten, history", "both/history")


def main() -> None:
    """Print a line for each data set and split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", default=[EXTRACT], help="folders with events and pages.parquet")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--pages", type=int, default=10_000, help="number of random pages; 0 for all")
    options = options_of(parser)
    for folder in options.data:
        measure(folder, options.seeds, options.pages)


def measure(data: Path, seeds: list[int], most: int) -> None:
    """Score the priors on one data set."""
    with tempfile.TemporaryDirectory() as folder:
        place = make_workspace(Path(folder) / "empty", {"fetch.contact": "https://example.org/benchmark"})
        with place.open_store() as store:
            pages = material(place, store, data).training_pages
    pages = pages.sample(most or len(pages), np.random.default_rng(0))
    print(f"{data.name}: {len(pages):,} pages of {len(np.unique(pages.site))} sites; log loss, nats a visit")
    print(f"{'unseen':<8}" + "".join(f"{head:>18}" for head in HEADS))
    sizes = f"{len(pages):,} pages, {len(seeds)} seeds, data {hash_of(data)[:SHOWN]}"
    of = "" if data == EXTRACT else f" of {data.name}"
    for split in ("pages", "sites"):
        scores = [one for seed in seeds for one in scores_of(pages, split, seed)]
        weight = [one.pages for one in scores]
        first, flat = (float(np.average([one.first[name] for one in scores], weights=weight)) for name in PRIORS)
        both, history = (float(np.average([one.ten[name] for one in scores], weights=weight)) for name in PRIORS)
        alone = float(np.average([one.alone for one in scores], weights=weight))
        row = (first, flat, both, alone, history, both / history)
        print(f"{split:<8}" + "".join(f"{one:>18.4f}" for one in row), flush=True)
        note(f"unseen {split}{of}", first, "nats a visit", sizes, baseline=flat, beside="one prior for all pages")
        for name, other in (("the prior alone", alone), ("history from one prior for all", history)):
            note(f"both beside {name}, unseen {split}{of}", both, "nats a visit", sizes, baseline=other, beside=name)


PRIORS = ("model", "all pages")


def scores_of(pages: TrainingPages, split: str, seed: int) -> list[ModelScore]:
    """The scores of one random third of the pages, or of each quarter of the sites in turn."""
    rng = np.random.default_rng(seed)
    if split == "pages":
        return [evaluate_split(pages, split, splits(pages, rng)[split], seed=1)]
    sites = rng.permutation(np.unique(pages.site))
    found = []
    for fold in np.array_split(sites, min(FOLDS, len(sites))):
        held = np.isin(pages.site, fold)
        taught = np.flatnonzero(~held)
        parted = TrainingSplit(taught, pages.histories.take(taught), np.flatnonzero(held))
        found.append(evaluate_split(pages, split, parted, seed=1))
    return found


if __name__ == "__main__":
    main()
