"""Why aims are not reached, by hand: a sentence or two for each, shown on the page as long as the aim is missed."""

from __future__ import annotations

REASONS = {
    "demo: demo": "The time includes making the environment; the demo alone waits for a quiet machine.",
    "tests: tests": (
        "There are more than 8,000 tests, and those of browsers, servers and killed processes use real ones. Which of "
        "them take most is on no record."
    ),
    "warc: indexing small": "It is met with larger bodies, so it is likely what each record costs, whatever its size.",
    "import: import": (
        "It was 232 to 256 when it was built. The judge has learned parts, noise and shingles of every version since, "
        "which is the likely reason; the two were not run side by side."
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
    "crawl-speed: speed, Scrapy's engine alone": (
        "Ours understands and keeps each page, Scrapy's engine drops it. A third of Scrapy's time leaves half of what "
        "Python takes now beside the machine code that is called (`benchmarks/crawl.py floor`)."
    ),
    "crawl-polite: late": (
        "A thousand requests a second are close to what one processor can do, so some wait for their turn."
    ),
}
"""By key of the aim."""
