"""``recrawl experiment crawl-time``: Table 3 of paper 001, on simulated and on recorded crawls.

Recorded crawls come from files of Heritrix. A crawl.log has everything. A WARC file has the duration of each response,
but neither failures nor the number of threads: beside a response or revisit, Heritrix writes a metadata record with
``fetchTimeMs``, the path from the seed (``hopsFromSeed``), and ``seed`` for the seeds. Fetches without a response have
no record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.crawl_log import LogLine, parse_line
from recrawl.formats.dates import w3c_time
from recrawl.formats.warc.warc_fields import parse_date, target_of, text_of_bytes
from recrawl.formats.warc.warc_reader import opened
from recrawl.formats.warc.warc_stream import ReadWindow, records
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.plan.crawl_time import DEFAULT_DELAY, HostTreatment, PlannedCrawl
from recrawl.plan.download_times import Downloads
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.time import MINUTE
from recrawl.urls import host_of
from recrawl_lab.experiments.report_folder import ReportFolder
from recrawl_lab.trials.crawl_time_trial import CrawlRecord, TimedCrawl, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recrawl.app.result_tables import PlotPanel
    from recrawl_lab.trials.crawl_time_trial import TimedCrawl


_HEAD = 1 << 12
_MILLISECONDS = re.compile("[0-9]{1,12}")
"""Bytes of a metadata record that are read: outlinks follow what is wanted."""


class TimedFetch(NamedTuple):
    """One fetch that was answered."""

    url: str
    began: float
    """Seconds since the epoch, to the second."""
    seconds: float
    hops: str
    """The way from the seed, a letter a hop (conventions L2); empty for a seed."""


def read_fetches(path: Path, report: ReadReport) -> Iterator[TimedFetch]:
    """The fetches of a file in its order; records without times are passed over.

    Raises:
        InputError: the file cannot be read.
    """
    with opened(path) as file:
        for record, _ in records(ReadWindow(file), str(path), report):
            headers = record.headers
            if (headers.get("WARC-Type") or "").strip().lower() != "metadata":
                continue
            noted = _fields(record.reader.read(_HEAD))
            began, took = parse_date(headers.get("WARC-Date") or ""), noted.get("fetchTimeMs", "")
            target = headers.get_bytes(b"WARC-Target-URI")
            if began is not None and target and _MILLISECONDS.fullmatch(took):
                yield TimedFetch(target_of(target), began, int(took) / 1000.0, noted.get("hopsFromSeed", ""))


def _fields(block: bytes) -> dict[str, str]:
    r"""The first value of each field.

    >>> _fields(b"seed: \r\nfetchTimeMs: 14\r\nfetchTimeMs: 15\r\n")
    {'seed': '', 'fetchTimeMs': '14'}
    """
    found: dict[str, str] = {}
    for line in text_of_bytes(block).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


HERITRIX_THREADS = 25
"""What Heritrix 3 starts with; a WARC file does not say."""
_ANY_ANSWER = 200
ANSWERED = 1
"""Statuses above this are answers of a web server; 1 is one of the DNS (conventions L3)."""


@dataclass(frozen=True, slots=True)
class _Logged:
    """One crawl as columns."""

    host: IntArray
    start: FloatArray
    seconds: FloatArray
    status: IntArray
    seed: IntArray
    """1 where the URL was given, 0 where it was found on the way."""
    concurrency: int


def evaluate_logs(files: Sequence[Path], name: str, rng: np.random.Generator) -> list[TimedCrawl]:
    """Evaluate the estimates of every crawl from those before it; the first only teaches.

    Files in the order of time.
    """
    names: dict[str, int] = {}
    crawls = [_read(file, names) for file in files]
    if len(crawls) <= 1:
        raise InputError("One crawl alone cannot be predicted.", "Give the logs of two crawls or more, earliest first.")
    hosts = len(names)
    records = [_record(crawl, number, hosts) for number, crawl in enumerate(crawls)]
    judged = []
    for number in range(1, len(crawls)):
        delay, heard = _delays(crawls[:number], hosts)
        treatment = HostTreatment(PolitenessRules(0.0, 0.0, 0.0, np.inf))
        crawl = PlannedCrawl(records[number].given, delay, crawls[number].concurrency, treatment, ~heard)
        judged.append(judge(name, crawl, records[:number], records[number].seconds, rng, limit=math.inf))
    return judged


def _read(file: Path, names: dict[str, int]) -> _Logged:
    if file.name.endswith((".warc", ".warc.gz")):
        return _read_warc(file, names)
    lines = list(_lines(file))
    if not lines:
        raise InputError("there is no download in it.", "Give a crawl.log of Heritrix.", source=str(file))
    host = [names.setdefault(host_of(line.url) or "", len(names)) for line in lines]
    return _Logged(
        np.array(host, dtype=np.int64),
        np.array([_began(line.timestamp) for line in lines]),
        np.array([line.duration for line in lines]),
        np.array([line.status for line in lines], dtype=np.int64),
        np.array([line.hop_count == 0 for line in lines], dtype=np.int64),
        max(len({line.worker for line in lines}), 1),
    )


def _read_warc(file: Path, names: dict[str, int]) -> _Logged:
    from recrawl.formats.columnar.capture_batches import ReadReport

    fetches = [one for one in read_fetches(file, ReadReport(strict=True)) if _is_page(one.url, one.hops)]
    if not fetches:
        raise InputError("no download times are in it.", "Give a WARC file that Heritrix wrote.", source=str(file))
    return _Logged(
        np.array([names.setdefault(host_of(one.url) or "", len(names)) for one in fetches], dtype=np.int64),
        np.array([one.began for one in fetches]),
        np.array([one.seconds for one in fetches]),
        np.full(len(fetches), _ANY_ANSWER),
        np.array([one.hops == "" for one in fetches], dtype=np.int64),
        HERITRIX_THREADS,
    )


def _is_page(url: str, hops: str) -> bool:
    """Names and robots.txt are not pages."""
    return url.startswith("http") and not hops.endswith("P")


def _began(stamp: str) -> float:
    """Seconds since the epoch of 14 or 17 digits.

    >>> _began("20240501100000250") - _began("20240501100000")
    0.25
    """
    return (w3c_time(stamp[:14]) or 0.0) + int(stamp[14:17] or 0) / 1000


def _lines(file: Path) -> Iterator[LogLine]:
    """Attempts that took time; names and robots.txt are not pages."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror}).", "Check the path.", source=str(file)) from error
    for number, row in enumerate(text.splitlines(), start=1):
        if not row.strip():
            continue
        try:
            line = parse_line(row)
        except InputError as error:
            raise InputError(f"line {number}: {error.what}", "Give a crawl.log.", source=str(file)) from error
        if _is_page(line.url, line.hops) and not math.isnan(line.duration):
            yield line


def _record(crawl: _Logged, number: int, hosts: int) -> CrawlRecord:
    seeds = np.bincount(crawl.host, crawl.seed, hosts).astype(np.int64)
    pages = np.bincount(crawl.host, minlength=hosts)
    # A host that was only found on the way was given its first page by the link that led there.
    given = np.where((seeds == 0) & (pages > 0), 1, seeds)
    downloads = Downloads(crawl.host, np.full(len(crawl.host), number), crawl.seconds, crawl.status > ANSWERED)
    took = float((crawl.start + crawl.seconds).max() - crawl.start.min())
    return CrawlRecord(given, pages - given, downloads, took)


def _delays(crawls: Sequence[_Logged], hosts: int) -> tuple[FloatArray, BoolArray]:
    """The rest that each host usually got between an answer and the next request, and of which hosts that is known."""
    host, rest = [], []
    for crawl in crawls:
        order = np.lexsort((crawl.start, crawl.host))
        same = np.flatnonzero(np.diff(crawl.host[order]) == 0)
        end = (crawl.start + crawl.seconds)[order]
        host.append(crawl.host[order][same])
        rest.append(np.maximum(crawl.start[order][same + 1] - end[same], 0.0))
    of, rests = np.concatenate(host), np.concatenate(rest)
    order = np.lexsort((rests, of))
    first, behind = (np.searchsorted(of[order], np.arange(hosts), side) for side in ("left", "right"))
    heard = behind > first
    middle = np.minimum((first + behind) // 2, max(len(of) - 1, 0))
    found = np.full(hosts, DEFAULT_DELAY)
    found[heard] = rests[order][middle[heard]]
    return found, heard


EDGES = (0.0, 30.0, 60.0, 120.0, 180.0, 240.0, float("inf"))
"""Minutes that crawls took, as Table 3 groups them."""
GROUPS = ("t < 30 min", "30–60 min", "60–120 min", "120–180 min", "180–240 min", "t > 240 min")
PUBLISHED = (
    ("78 % (202)", "−16 % (154)"),
    ("134 % (25)", "−18 % (46)"),
    ("638 % (19)", "−11 % (51)"),
    ("1.3 % (15)", "−1 % (215)"),
    ("– (0)", "−36 % (4)"),
    ("– (0)", "−44 % (28)"),
)
"""Over- and underestimates of Table 3; they add up to 759 of the 1,388 crawls that the paper speaks of."""
NAMES = {"printed": "001 as printed", "corrected": "001 corrected", "recrawl": "recrawl"}
RECORDED = "recorded crawls"


def run(output: Path, logs: Sequence[Path], *, seed: int, crawls: int) -> None:
    """Evaluate all estimates; write crawl-time.csv, crawl-time.md and crawl-time.png into ``output``."""
    import numpy as np

    from recrawl.app.progress import bars
    from recrawl.app.result_tables import draw_panels
    from recrawl_lab.trials.crawl_time_trial import KINDS, evaluate_kind

    rng = np.random.default_rng(seed)
    recorded = evaluate_logs(logs, RECORDED, rng) if logs else []
    written = ReportFolder(output)
    judged: list[TimedCrawl] = []
    with bars() as bar:
        for kind in KINDS:
            task = bar.add_task(kind.name, total=crawls)
            judged += evaluate_kind(kind, crawls, rng, progress=lambda task=task: bar.advance(task))  # type: ignore[misc]
    judged += recorded
    written.table("crawl-time.csv", _columns(judged))
    draw_panels(
        written.file("crawl-time.png"),
        [_panel(kind, [one for one in judged if one.kind == kind]) for kind in kinds_of(judged)],
        x_label="minutes that the crawl took, middle of group",
        y_label="error of the estimate, middle half of crawls, %",
        title="How long will a crawl take?",
    )
    written.end("crawl-time.md", report(judged))


def kinds_of(judged: Sequence[TimedCrawl]) -> list[str]:
    """Kinds of crawls in the order of their first crawl."""
    return list(dict.fromkeys(one.kind for one in judged))


def report(judged: Sequence[TimedCrawl]) -> str:
    """How far off each method was and whether the interval held; then Table 3, published and own."""
    from recrawl.app.result_tables import markdown_table
    from recrawl_lab.trials.crawl_time_trial import median_error

    rows = []
    for kind in [*kinds_of(judged), "all"]:
        own = [one for one in judged if kind in (one.kind, "all")]
        errors = [median_error(own, method) for method in NAMES]
        covered = sum(one.covered for one in own) / len(own)
        shares = [f"{errors[2] / error:.2f}" if error else "–" for error in errors[:2]]
        rows.append([kind, f"{len(own)}", *(f"{error:.1%}" for error in errors), *shares, f"{covered:.0%}"])
    headings = ["crawls", "n", *NAMES.values(), "ours / printed", "ours / corrected", "in 90 % interval"]
    parts = [
        "Median distance of the estimate from what the crawl took, as a share of that.",
        markdown_table(headings, rows),
        "Table 3 of paper 001: mean over- and underestimate (number of crawls) by what crawls took.",
        markdown_table(
            [
                "crawl took",
                "published +",
                "published −",
                *(f"{name} {sign}" for name in NAMES.values() for sign in "+−"),
            ],
            [
                [group, *published, *(cell for method in NAMES for cell in _cells(_within(judged, number), method))]
                for number, (group, published) in enumerate(zip(GROUPS, PUBLISHED, strict=True))
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _within(judged: Sequence[TimedCrawl], number: int) -> list[TimedCrawl]:
    return [one for one in judged if EDGES[number] <= one.actual / MINUTE < EDGES[number + 1]]


def _cells(judged: Sequence[TimedCrawl], method: str) -> tuple[str, str]:
    """Mean over- and underestimate, and how many there were."""
    errors = [one.error(method) for one in judged]
    over, under = [error for error in errors if error > 0], [error for error in errors if error <= 0]
    shown = [
        f"{100 * sum(part) / len(part):.1f} % ({len(part)})".replace("-", "−") if part else "– (0)"
        for part in (over, under)
    ]
    return shown[0], shown[1]


def _columns(judged: Sequence[TimedCrawl]) -> dict[str, list[object]]:
    names = ("kind", "actual", *NAMES, "low", "high", "covered")
    return {name: [getattr(one, name) for one in judged] for name in names}


def _panel(kind: str, judged: Sequence[TimedCrawl]) -> PlotPanel:
    import numpy as np

    from recrawl.app.result_tables import PlotLine, PlotPanel

    middles = (15.0, 45.0, 90.0, 150.0, 210.0, 300.0)
    groups = [(middle, _within(judged, number)) for number, middle in enumerate(middles)]
    groups = [(middle, own) for middle, own in groups if own]
    lines = []
    for method, name in NAMES.items():
        quartiles = [100 * np.quantile([abs(one.error(method)) for one in own], [0.25, 0.5, 0.75]) for _, own in groups]
        low, middle, high = np.array(quartiles).T.tolist()
        lines.append(PlotLine(name, [x for x, _ in groups], middle, low, high, ours=method == "recrawl"))
    return PlotPanel(kind, lines)
