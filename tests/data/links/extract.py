"""Cut a small table of new links out of recorded sites: ``extract.py FOLDER``, written beside this file.

Run from the root of the repository. Kept are numbers only: how many new links pages had in each period, whether they
changed, and which pages read alike. Texts are read to find the latter, as they were when the first period that is
learned from began, and left behind.
"""

import sys
from pathlib import Path

import numpy as np

from recrawl.app.predict.model_data import link_data
from recrawl.predict.feature_extraction import LinkPeriods, look_around, period_counts
from recrawl.predict.related_pages import learn_semantics
from recrawl.time import DAY

END = 1_727_740_800.0
"""1 October 2024: the last judged period ends."""
PERIODS, BACK, LEARNED = 21, 8, 4
PAGES = 1_800
"""Drawn from those of all sites, as the experiment draws them."""


def main(folder: Path) -> None:
    """Pages of all sites that were there when learning begins, with their related pages among them."""
    told = link_data(folder)
    rng = np.random.default_rng(1)
    periods = LinkPeriods(END, 91 * DAY, PERIODS)
    begin = float(periods.edges[BACK])
    there = told.alive(begin) & told.recorded_at(END)
    kept = np.zeros(len(there), np.bool_)
    kept[rng.choice(np.flatnonzero(there), PAGES, replace=False)] = True
    evidence = told.evidence.of_pages(kept)
    semantics = learn_semantics(evidence.texts.before(begin).last_of(evidence.page), rng)
    related = look_around(evidence, begin, semantics, rng).related
    counts = period_counts(evidence.versions, evidence.page, periods)

    def whole(values: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(values), -1, values).astype(np.int16)

    np.savez_compressed(
        Path(__file__).with_name("links.npz"),
        site=told.site[kept].astype(np.int8),
        new_internal=whole(counts.new_internal),
        new_external=whole(counts.new_external),
        changed=whole(counts.changed).astype(np.int8),
        related=related.row.astype(np.int16),
        cosine=np.round(np.clip(related.similarity, 0, 1) * 255).astype(np.uint8),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
