"""What a prior learned from features is worth on pages and sites it was not trained on: log loss of their first visits.

    uv run python benchmarks/priors.py                  the extract of 15 sites that the tests keep
    uv run python benchmarks/priors.py --data FOLDER    other recorded sites

The baseline is one prior for all pages, learned from the same visits. Printed are means over seeds, in nats a visit.
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
from recrawl.predict.prior_scores import evaluate_split, splits

EXTRACT = Path(__file__).resolve().parents[1] / "tests" / "data" / "sites"


def main() -> None:
    """Print a line for each split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=EXTRACT, help="folder with events.parquet and pages.parquet")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    options = options_of(parser)
    with tempfile.TemporaryDirectory() as folder:
        place = make_workspace(Path(folder) / "empty", {"fetch.contact": "https://example.org/benchmark"})
        with place.open_store() as store:
            learned_facts = material(place, store, options.data).training_pages
    print(f"{len(learned_facts):,} pages; log loss, nats a visit")
    heads = ("first, features", "first, one prior", "ten, both", "ten, features", "ten, history")
    print(f"{'unseen':<8}" + "".join(f"{head:>18}" for head in heads))
    sizes = f"{len(learned_facts):,} pages, {len(options.seeds)} seeds, data {hash_of(options.data)[:SHOWN]}"
    for split in ("pages", "sites"):
        scores = [
            evaluate_split(learned_facts, split, splits(learned_facts, np.random.default_rng(seed))[split], seed=1)
            for seed in options.seeds
        ]
        first, flat = (float(np.mean([one.first[name] for one in scores])) for name in ("model", "all pages"))
        both, history = (float(np.mean([one.ten[name] for one in scores])) for name in ("model", "all pages"))
        alone = float(np.mean([one.alone for one in scores]))
        print(f"{split:<8}" + "".join(f"{one:>18.4f}" for one in (first, flat, both, alone, history)), flush=True)
        note(f"unseen {split}", first, "nats a visit", sizes, baseline=flat, beside="one prior for all pages")
        for name, other in (("the prior alone", alone), ("history from one prior for all", history)):
            note(f"both beside {name}, unseen {split}", both, "nats a visit", sizes, baseline=other, beside=name)


if __name__ == "__main__":
    main()
