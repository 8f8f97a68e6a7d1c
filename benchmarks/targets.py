"""The aims of the project: what was to be reached.

An aim names a figure that a run notes (``runs.py``, ``figures.py``), or that ``quality.py`` reads off the table of an
experiment. Every aim has a row in ``docs/figures.md``. Why some are not reached is said in ``reasons.py``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Aim:
    """What a figure is to be."""

    run: str
    """Name of a run, or of an experiment."""
    figure: str
    what: str
    """The figure in words."""
    limit: float
    at_least: bool
    """Whether more is better."""
    of_ratio: bool = False
    """Whether it is measured ÷ baseline that has to keep to the limit."""

    @property
    def key(self) -> str:
        """Names the aim among all."""
        return f"{self.run}: {self.figure}"


def least(run: str, figure: str, what: str, limit: float, *, ratio: bool = False) -> Aim:
    """An aim that more is better for."""
    return Aim(run, figure, what, limit, at_least=True, of_ratio=ratio)


def most(run: str, figure: str, what: str, limit: float, *, ratio: bool = False) -> Aim:
    """An aim that less is better for."""
    return Aim(run, figure, what, limit, at_least=False, of_ratio=ratio)


_TABLE = "the grand table"
AIMS = {
    "The product": (
        most("start", "help", "recrawl --help, processor time", 1 / 3),
        most("demo", "demo", "recrawl demo, from command to plot", 60),
        most("tests", "tests", "all tests, two processors", 20 * 60),
    ),
    "Store": (
        most("store-sqlite", "lease", "leasing 1,000 pages of 10 million, beside 1 million, SQLite", 2, ratio=True),
        most("store-postgres", "lease", "the same, PostgreSQL", 2, ratio=True),
        least("store-sqlite", "append", "appending visits in batches, SQLite", 50_000),
        least("store-postgres", "append", "the same, PostgreSQL", 50_000),
        least("store-sqlite", "histories", "loading histories, SQLite", 2e6),
        least("store-postgres", "histories", "the same, PostgreSQL", 2e6),
    ),
    "Formats": (
        least("index", "CDX", "CDX into columns, one core", 500_000),
        least("index", "CDXJ", "CDXJ into columns, one core", 500_000),
        least("warc", "indexing small", "indexing WARC, small bodies", 0.8, ratio=True),
        least("warc", "indexing large", "indexing WARC, larger bodies", 0.8, ratio=True),
        least("warc", "writing", "writing WARC", 3, ratio=True),
        least("import", "import", "import of WARC with verdicts, one core", 250),
        least("import", "import", "the same, beside common libraries", 3, ratio=True),
        most("import-memory", "memory", "memory of importing a WARC of 5 GB", 500),
    ),
    "Estimators": (
        most("mle", "error, irregular gaps", "maximum likelihood, relative error", 1e-12),
        least("mle", "speed, irregular gaps", "maximum likelihood, irregular histories", 20, ratio=True),
        least("mle", "speed, regular gaps", "maximum likelihood, regular histories", 200, ratio=True),
        least("beliefs", "grid, all looks at once", "grid beliefs, in a batch", 2e6),
        least("beliefs", "grid, one look after the other", "grid beliefs, look by look", 2e6),
        least("beliefs", "Gamma, all looks at once", "Gamma beliefs, in a batch", 15e6),
        least("beliefs", "Gamma, one look after the other", "Gamma beliefs, look by look", 15e6),
        least("beliefs", "value", "value of a visit", 2e6),
        most("parquet", "parquet", "from Parquet to beliefs, estimator posterior", 180),
        most("parquet", "parquet, memory", "the same, memory", 8),
        most(
            "rates-long", "rates, long and thin", "rates of 1,077 pages over 14 years, beside posterior", 3, ratio=True
        ),
        least(
            "rates", "default wins or ties", "the default wins or ties in log loss: data sets × lengths of history", 21
        ),
    ),
    "Scheduling": (
        most("schedule", "price, freshness", "price and rates of 10 million pages", 2),
        most("schedule", "price, gap", "the same, objective below a full solve", 1e-9),
        most(
            "schedule-million",
            "price, freshness",
            "the same of 1 million, a 20th of the 3.9 s of LambdaCrawl's code",
            3.9 / 20,
        ),
        most("schedule", "hosts", "price with limits of hosts", 15),
        least("schedule", "hosts, freshness", "the same, never below clipping", 1, ratio=True),
        most("schedule", "ranking", "ranking 10 million pages", 0.5),
        least("schedule", "frontier", "decisions of the frontier", 200_000),
        most("schedule", "frontier, memory", "the same, memory", 200),
        *(
            least("simulate", name, f"simulating {name}", 1e6)
            for name in (
                "uniform",
                "proportional",
                "hacs",
                "nutch",
                "window",
                "historic-classes",
                "aduana",
                "valued-archive",
            )
        ),
        least("optimum", "true rates, 0.03", "simulated optimum, true rates, .03 visits a page a day", 0.995),
        least("optimum", "true rates, 0.1", "the same, .1 visits", 0.995),
        least("optimum", "learned, 0.03", "simulated optimum, learned rates, .03 visits", 0.8),
        least("optimum", "learned, 0.1", "the same, .1 visits", 0.8),
        most("policies", "staleness beside even visits", f"{_TABLE}: median staleness of the default", 0.75),
        most("policies", "staleness beside the best named", f"{_TABLE}: beside the best named policy of each", 0.9),
        most("policies", "worse off", f"{_TABLE}: collections worse off than with even visits", 0),
        most("policies", "behind the reference", f"{_TABLE}: collections behind the reference R by .002 or more", 0),
        most("policies", "recall lost", f"{_TABLE}: collections where another catches more changes", 2),
        most("crawl-time", "beside the printed", "crawl time predicted, median error", 1 / 3, ratio=True),
        most("crawl-time", "beside the corrected", "the same, beside the heuristic corrected", 1 / 3, ratio=True),
        least("crawl-time", "covered", "crawl time predicted, 90 % intervals that cover", 0.9),
    ),
    "Captures": (
        most("capture", "selective", "SHARC-Selective, 1 million pages", 10),
        *(
            least("capture", f"{name}{size}", f"{name}{size}", 50_000)
            for name in (
                "sharc-online",
                "sharc-intervals-online",
                "sharc-selective-online",
                "sharc-threshold-outermost",
            )
            for size in ("", ", size not given")
        ),
        most("capture-memory", "memory", "memory grows no faster than the site", 1.1, ratio=True),
        least("sharc-real", "order", "sites where optimal ≥ selective ≥ every baseline in expected coherence", 15),
    ),
    "Crawling": (
        least("crawl-speed", "speed, Scrapy's engine alone", "everything, beside Scrapy doing nothing", 3, ratio=True),
        least(
            "crawl-speed", "speed, aiohttp, lxml, warcio, SQLite", "everything, beside the usual parts", 2, ratio=True
        ),
        least("crawl-processes", "two processes", "two processes beside one", 1.7, ratio=True),
        most("crawl-memory", "memory", "memory after a million fetches, beside half of them", 1.1, ratio=True),
        most("crawl-starts", "start", "CPU to the first request at a million pages, beside 10,000", 3, ratio=True),
        most("crawl-polite", "too early", "requests earlier than their slot", 0),
        most("crawl-polite", "late", "lateness at 1,000 hosts 1 s apart, median", 20),
    ),
    "Prediction": (
        most("predict-related", "related", "related pages", 300),
        least("predict-related", "related, recall", "the same, recall", 0.95),
        most("predict-related", "related, memory", "the same, memory", 4),
        most("predict-features", "features", "features", 300),
        least("predict-scores", "priors by first copies", "scoring: priors by first copies", 200_000),
        least("predict-scores", "priors by URLs alone", "scoring: priors by URLs alone", 200_000),
        least("predict-scores", "new links, shrunken-counts", "scoring: new links, by the formula", 200_000),
        least("predict-scores", "new links, histogram-boosting, 100 rounds", "the same, 100 rounds of trees", 200_000),
        least("predict-scores", "new links, histogram-boosting, 500 rounds", "the same, 500 rounds of trees", 200_000),
        least("predict-features", "new links, features: LBLA", "scoring: new links, LBLA features", 200_000),
        least("predict-features", "new links, features: all", "scoring: new links, all features", 200_000),
        most("predict-ranks", "ranks", "PageRank of 10 million links", 10),
        least("lbla", "least lead", "LBLA alone, lead over every single feature in Precision@k% area", 0),
        most(
            "priors", "unseen pages", "static prior beside the global one, first visits of unseen pages", 1, ratio=True
        ),
        most("priors", "unseen sites", "the same, unseen sites", 1, ratio=True),
        *(
            most("priors", f"both beside {name}, unseen {split}", f"{words}, unseen {split}", 1, ratio=True)
            for split in ("pages", "sites")
            for name, words in (
                ("the prior alone", "prior × history beside the prior alone, first ten visits"),
                ("history from one prior for all", "prior × history beside history alone"),
            )
        ),
    ),
    "Showing": (
        most("report", "report", "report of a capture of 60,000 pages", 30),
        most("report", "file", "the same, its file", 15),
        most("report-graph", "scripts", "moving the site graph with every page drawn, our part of a frame", 1000 / 60),
        most("serve", "TimeGate", "TimeGate, 99 % of answers", 20),
        most("serve", "CDX, nearest", "CDX, nearest capture, 99 % of answers", 20),
        most("serve", "CDX, prefix", "CDX, 100 lines of a prefix, 99 % of answers", 20),
        most("serve", "dashboard", "dashboard, first view of its slowest page", 300),
    ),
}
"""By part of the product."""
