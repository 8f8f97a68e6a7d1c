"""Why aims are not reached, by hand: a sentence or two for each, shown on the page as long as the aim is missed."""

from __future__ import annotations

REASONS = {
    "warc: indexing small": "It is met with larger bodies, so it is likely what each record costs, whatever its size.",
    "import: import": (
        "The judge learns parts, noise and shingles of every version. Beside common libraries it is quick all the same."
    ),
    "simulate: valued-archive": (
        "The default learns beliefs of all pages on the way; rules that only count visits do not have to."
    ),
    "priors: both beside history from one prior for all, unseen sites": (
        "What features say was learned on other sites: it helps at the first visit and misleads a little at the next "
        "ones. On unseen pages of known sites it helps throughout."
    ),
    "predict-scores: new links, histogram-boosting, 500 rounds": (
        "A page walks 500 trees, one step after the other. The default is the formula, which needs none."
    ),
    "predict-features: new links, features: all": (
        "A hundredth short: 220 columns of a million pages do not fit near the processor. The default needs none."
    ),
}
"""By key of the aim."""
