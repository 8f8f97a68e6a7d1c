"""Download times that Heritrix leaves in metadata records."""

from __future__ import annotations

import gzip

from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl_lab.experiments.experiment_crawl_time import read_fetches


def record(kind, url, date, block):
    body = block.encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"WARC-Record-ID: <urn:uuid:{abs(hash((kind, url, date))):032x}>\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + body + b"\r\n\r\n")


def test_fetches_are_read_with_their_times_and_ways(tmp_path):
    file = tmp_path / "a.warc.gz"
    file.write_bytes(
        record("metadata", "http://a.test/", "2014-03-25T12:12:38Z", "seed: \r\nfetchTimeMs: 14\r\noutlink: x L a\r\n")
        + record("response", "http://a.test/b", "2014-03-25T12:12:40Z", "fetchTimeMs: 99\r\n")
        + record("metadata", "http://a.test/b", "2014-03-25T12:12:40Z", "hopsFromSeed: LE\r\nfetchTimeMs: 2500\r\n")
        + record("metadata", "http://a.test/c", "2014-03-25T12:12:41Z", "note: no time\r\n")
        + record("metadata", "http://a.test/d", "no date", "fetchTimeMs: 7\r\n")
    )
    found = list(read_fetches(file, ReadReport()))
    assert [(one.url, one.seconds, one.hops) for one in found] == [
        ("http://a.test/", 0.014, ""),
        ("http://a.test/b", 2.5, "LE"),
    ]
    assert found[1].began - found[0].began == 2.0
