"""``recrawl experiment crawl-time``: on a few simulated crawls and on logs of crawls that really take that long."""

import csv
from datetime import UTC, datetime

import numpy as np
import pytest

START = 1_714_557_600.0
DELAY = {"a.org": 2.0, "b.org": 5.0, "c.org": 1.0}


def stamp(when, form="%Y%m%d%H%M%S"):
    return datetime.fromtimestamp(int(when), UTC).strftime(form) + f"{int(when * 1000) % 1000:03}"


def crawl_log(file, rng, begin, given, found):
    """Each host is asked one page after another, rests in between; ``found`` pages come by links."""
    rows = []
    for thread, (host, delay) in enumerate(DELAY.items()):
        now = begin
        for page in range(given[host] + found[host]):
            seconds = round(float(rng.lognormal(-1.0, 0.4)), 3)
            hops, via = ("-", "-") if page < given[host] else ("L", f"http://{host}/0")
            logged = datetime.fromtimestamp(now + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            rows.append(
                f"{logged} 200 1234 http://{host}/{page} {hops} {via} text/html #{thread:03} "
                f"{stamp(now)}+{int(seconds * 1000)} sha1:ABC - -"
            )
            now += seconds + delay
    rows.append(f"{rows[0].split()[0]} 1 50 dns:a.org P http://a.org/ text/dns #000 {stamp(begin)}+10 sha1:ABC - -")
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def logs(tmp_path):
    rng = np.random.default_rng(4)
    files = []
    for number in range(4):
        given = {host: int(rng.integers(30, 90)) for host in DELAY}
        found = {host: int(rng.poisson(0.3 * given[host])) for host in DELAY}
        files.append(crawl_log(tmp_path / f"crawl-{number}.log", rng, START + 86_400.0 * number, given, found))
    return files


def test_simulated_and_recorded_crawls(run, tmp_path, logs):
    named = [argument for file in logs for argument in ("--log", file)]
    result = run("experiment", "crawl-time", "--crawls", "5", "--output", tmp_path / "out", *named)
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "out" / "crawl-time.md").read_text(encoding="utf-8")
    assert text in result.stdout
    assert "| t < 30 min | 78 % (202) | −16 % (154) |" in text
    with (tmp_path / "out" / "crawl-time.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 5 + 3
    recorded = [row for row in rows if row["kind"] == "recorded crawls"]
    for row in recorded:
        actual, low, high = (float(row[name]) for name in ("actual", "low", "high"))
        # The longest host decides: b.org, with its rests of five seconds.
        assert abs(float(row["recrawl"]) / actual - 1) < 0.35
        assert abs(float(row["recrawl"]) - actual) < abs(float(row["printed"]) - actual)
        assert low < float(row["recrawl"]) < high
    assert (tmp_path / "out" / "crawl-time.png").stat().st_size > 10_000


def test_warc_files_of_heritrix_are_recorded_crawls_too(tmp_path, logs):
    import gzip

    import numpy as np

    from recrawl_lab.experiments.experiment_crawl_time import evaluate_logs

    def archive(file, day):
        """A seed and then a page every six seconds."""
        parts = []
        for number in range(30):
            moment = f"2014-03-{day:02}T12:{6 * number // 60:02}:{6 * number % 60:02}Z"
            block = f"{'seed: ' if number == 0 else 'hopsFromSeed: L'}\r\nfetchTimeMs: 900\r\n"
            head = (
                f"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://a.test/{number}\r\nWARC-Date: {moment}\r\n"
                f"WARC-Record-ID: <urn:uuid:{number:032x}>\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            parts.append(gzip.compress(f"{head}{block}\r\n\r\n".encode()))
        file.write_bytes(b"".join(parts))
        return file

    files = [archive(tmp_path / f"crawl-{day}.warc.gz", day) for day in (1, 2, 3)]
    judged = evaluate_logs(files, "recorded", np.random.default_rng(1))
    assert [round(one.actual) for one in judged] == [175, 175]
    assert all(one.covered for one in judged)


def test_logs_that_teach_nothing_are_refused(run, tmp_path, logs):
    def refused(*files):
        named = [argument for file in files for argument in ("--log", file)]
        result = run("experiment", "crawl-time", "--crawls", "5", "--output", tmp_path / "out", *named)
        assert result.returncode == 1
        return result.stderr

    assert "One crawl alone" in refused(logs[0])
    empty = tmp_path / "empty.log"
    empty.write_text("\n", encoding="utf-8")
    assert "there is no download in it" in refused(logs[0], empty)
    empty.write_text("what is this\n", encoding="utf-8")
    assert "line 1: the line has 3 fields" in refused(logs[0], empty)
    assert "cannot be read" in refused(logs[0], tmp_path / "missing.log")
