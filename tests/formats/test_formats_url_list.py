"""Plain lists of URLs: of any length, and what else stands in them."""

from __future__ import annotations

import gzip
import io
import itertools

import pytest

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.sitemap_feed import MAX_URLS, parse_sitemap, read_claims

MANY = MAX_URLS + 10_000


class Endless(io.RawIOBase):
    """A list without end, which no reader can hold."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0
        self.given += size
        return (b"http://a.example/\n" * (size // 18 + 1))[:size]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return offset


def urls_of(data: bytes, report: ReadReport) -> list[str]:
    return [
        url for batch in read_claims(io.BytesIO(data), "x.txt", 0.0, report) for url in batch.column("url").to_pylist()
    ]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: data.decode().encode("utf-16")])
def test_a_list_has_no_limit_and_a_sitemap_has(pack):
    lines = [f"http://a.example/{n}" for n in range(MANY)]
    data = "\n".join(lines).encode()
    report = ReadReport(strict=True)
    assert urls_of(pack(data), report) == lines
    assert report.skipped == {}
    found = parse_sitemap(data, "sitemap.txt")
    assert len(found.entries) == MAX_URLS
    assert found.broken_at == len("\n".join(lines[:MAX_URLS])) + 1


def test_xml_keeps_the_limit_and_says_where_reading_stopped():
    pages = [f"<url><loc>http://a.example/{n}</loc></url>" for n in range(MAX_URLS + 5)]
    data = f"<urlset>{''.join(pages)}</urlset>".encode()
    told: list[InputError] = []
    assert len(urls_of(data, ReadReport(on_bad=told.append))) == MAX_URLS
    [error] = told
    assert "it lists more than 50000 URLs" in str(error)
    beyond = len("<urlset>" + "".join(pages[:MAX_URLS]))
    assert beyond <= (error.position or 0) <= beyond + len(pages[-1])


def test_what_stands_in_lists_besides_urls():
    text = "# ours\r\nhttp://a.example/1\tdepth=2\r\n\r\n  http://a.example/2  \n+http://(example,b,)/\nnonsense\n"
    report = ReadReport()
    for data in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        assert urls_of(data, report) == ["http://a.example/1", "http://a.example/2"]
    assert report.skipped == {"not an http(s) URL": 6}
    assert report.bad == 0


def test_bytes_in_another_encoding_lose_no_line():
    report = ReadReport(strict=True)
    assert urls_of(b"http://a.example/1\nhttp://a.example/caf\xe9\n", report)[1] == "http://a.example/caf%E9"


def test_a_list_without_urls_is_told():
    told: list[InputError] = []
    assert urls_of(b"+http://(org,a,)/\n+http://(org,b,)/\n", ReadReport(on_bad=told.append)) == []
    assert [str(error) for error in told] == ["x.txt at byte 0: there is no http or https URL in this list"]


def test_of_a_torn_gzip_the_lines_before_are_taken():
    lines = [f"http://a.example/{n}" for n in range(2_000)]
    told: list[InputError] = []
    found = urls_of(gzip.compress("\n".join(lines).encode())[:-200], ReadReport(on_bad=told.append))
    assert found[:-1] == lines[: len(found) - 1]
    assert len(found) > 1_000
    assert "the gzip data break off" in str(told[0])


def test_a_list_is_read_as_far_as_it_is_asked_for():
    stream = Endless()
    batches = read_claims(stream, "x.txt", 0.0, ReadReport(strict=True))  # type: ignore[arg-type]
    rows = sum(batch.num_rows for batch in itertools.islice(batches, 5))
    assert rows > MAX_URLS
    assert stream.given < 8 << 20
