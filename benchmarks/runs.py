"""The commands that measure what has an aim, at full size and small, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """A command that measures something."""

    name: str
    command: str
    """A file of this folder with its options; ``DATA`` stands for the folder with the large data sets."""
    quick: str
    """The same with small sizes: seconds instead of minutes; empty where there is no such thing."""
    minutes: float
    """About how long it takes, two processors being free."""


_WARC = "DATA/formats/warc"
RUNS = (
    Run("start", "start.py help", "", 0.2),
    Run("demo", "start.py demo", "", 2),
    Run("tests", "start.py tests", "", 20),
    Run(
        "store-sqlite",
        "store.py --engine sqlite",
        "store.py --engine sqlite --pages 2000 8000 --hosts 200 --visits 3",
        6,
    ),
    Run(
        "store-postgres",
        "store.py --engine postgres",
        "store.py --engine postgres --pages 2000 8000 --hosts 200 --visits 3",
        9,
    ),
    Run("index", "formats_index.py", "formats_index.py --lines 20000", 1),
    Run("warc", "formats_warc.py --rounds 20", "formats_warc.py --rounds 2 --gigabytes .01", 3),
    Run("import", f"formats.py --pages {_WARC}", "formats.py --versions 1", 1),
    Run("import-memory", "formats.py --gigabytes 5", "formats.py --gigabytes .02", 4),
    Run("mle", "estimate_mle.py", "estimate_mle.py --pages 2000 --baseline-pages 200 --exact-pages 5 --repeat 2", 1.5),
    Run("beliefs", "estimate.py", "estimate.py --pages 10000 --baseline-pages 200 --repeat 2", 1),
    Run("parquet", "estimate.py --parquet 10000000", "estimate.py --parquet 20000", 6),
    Run(
        "rates-long",
        "rates_long.py",
        "rates_long.py --pages 40 --hosts 10 --visits 400 --years 3 --repeat 1",
        1,
    ),
    Run("schedule", "schedule.py --full", "schedule.py --pages 20000 --only prices,hosts,rankings,frontier", 5),
    Run(
        "schedule-million", "schedule.py --pages 1000000 --only prices", "schedule.py --pages 20000 --only prices", 0.5
    ),
    Run("simulate", "simulate.py", "simulate.py --pages 500 --days 30 --replayed 20", 4),
    Run(
        "optimum",
        "optimum.py --pages 3000 --seeds 1 2 --budgets 0.03 0.1",
        "optimum.py --pages 100 --budgets 0.03 0.1",
        4,
    ),
    Run("capture", "capture.py", "capture.py --pages 5000", 5),
    Run("capture-memory", "capture.py --memory", "capture.py --memory --pages 40000", 1),
    Run("crawl-speed", "crawl.py speed --fetches 6000", "crawl.py speed --fetches 600", 3),
    Run("crawl-processes", "crawl.py processes --seconds 30", "crawl.py processes --seconds 15", 5),
    Run("crawl-memory", "crawl.py memory --fetches 1000000", "crawl.py memory --fetches 4000", 30),
    Run("crawl-starts", "crawl.py starts --pages 1000000 --visits 2", "crawl.py starts --pages 10000 --visits 1", 4),
    Run("crawl-polite", "crawl.py polite --seconds 30", "crawl.py polite --hosts 50 --seconds 4", 1.5),
    Run("predict-ranks", "predict.py --only ranks", "predict.py --only ranks --scale .01", 0.5),
    Run("predict-scores", "predict.py --only scores", "predict.py --only scores --scale .02", 2),
    Run("predict-features", "predict.py --only features", "predict.py --only features --scale .02", 6),
    Run("predict-related", "predict.py --only related", "predict.py --only related --scale .01", 4),
    Run("priors", "priors.py", "", 0.5),
    Run("report", "report.py", "report.py --pages 500", 2),
    Run("report-graph", "report_graph.py --software", "report_graph.py --software --pages 500", 3),
    Run("serve", "serve.py", "serve.py --pages 2000 --seconds 2", 4),
)
