"""What a file is, told from its first bytes."""

from __future__ import annotations

import gzip
import subprocess
import zipfile

import pytest

from recrawl.errors import InputError
from recrawl.formats.sniff import SourceFormat, sniff, sniff_bytes

HEADS = {
    b"WARC/1.0\r\nWARC-Type: warcinfo\r\n": SourceFormat.WARC,
    b"\r\nWARC/0.18\r\n": SourceFormat.WARC,
    b"filedesc://a.arc 0.0.0.0 20050101000000 text/plain 77\n": SourceFormat.ARC,
    b" CDX N b a m s k r M S V g\n": SourceFormat.CDX,
    b"com,example)/ 20140101000000 http://example.com/ text/html 200 AAAA - - 12 34 a.warc.gz\n": SourceFormat.CDX,
    b'com,example)/ 20140101000000 {"url": "http://example.com/"}\n': SourceFormat.CDXJ,
    b'!context ["x"]\n!meta {"a": 1}\ncom,example)/ 20140101000000 {"url": "x"}\n': SourceFormat.CDXJ,
    b'!context ["x"]\n!meta {"a": 1}\n20140101000000 {"uri": "x"}\n': SourceFormat.TIMEMAP,
    b'<http://example.com/>; rel="original",\n': SourceFormat.TIMEMAP,
    b'{"original_uri": "http://example.com/", "mementos": {}}': SourceFormat.TIMEMAP,
    b'{\n  "original_uri": "http://example.com/"}': SourceFormat.TIMEMAP,
    b"com,example)/ 20140101000000\tzipnum\t0\t100\t1\n": SourceFormat.ZIPNUM,
    b'[["urlkey","timestamp"],["com,example)/","2014"]]': SourceFormat.CDX_ANSWER,
    b'{"urlkey": "com,example)/", "timestamp": "20140101000000"}\n': SourceFormat.CDX_ANSWER,
    b'{"timestamp": "2026-01-02T03:04:05.678Z", "logLevel": "info", "context": "run"}\n': SourceFormat.EVENT_LOG,
    b'{"timestamp":"2026-01-02T03:04:05.678Z","logLevel":"info"}\n': SourceFormat.EVENT_LOG,
    b"2014-01-01T00:00:00.123Z   200       1234 http://example.com/ - - text/html #001\n": SourceFormat.CRAWL_LOG,
    b"2014-01-01T00:00:00.123Z    -2          - http://example.com/ L -\n": SourceFormat.CRAWL_LOG,
    b'<?xml version="1.0"?>\n<!-- made by x -->\n<urlset xmlns="x">': SourceFormat.SITEMAP,
    b"<sitemapindex>": SourceFormat.SITEMAP,
    b'\xef\xbb\xbf<?xml version="1.0"?><urlset>': SourceFormat.SITEMAP,
    "\ufeff<urlset>".encode("utf-16-le"): SourceFormat.SITEMAP,
    b'<?xml version="1.0"?><rss version="2.0">': SourceFormat.FEED,
    b'<feed xmlns="http://www.w3.org/2005/Atom">': SourceFormat.FEED,
    b"# seeds\nhttp://example.com/\n": SourceFormat.SEEDS,
    b"PAR1\x15\x04": SourceFormat.PARQUET,
    b"PK\x03\x04": SourceFormat.WACZ,
    b"%PDF-1.4": SourceFormat.UNKNOWN,
    b"": SourceFormat.UNKNOWN,
}


@pytest.mark.parametrize("head", HEADS)
def test_the_beginning_tells(head):
    assert sniff_bytes(head) is HEADS[head]


@pytest.mark.parametrize(
    "head", [head for head, what in HEADS.items() if what not in (SourceFormat.UNKNOWN, SourceFormat.WACZ)]
)
def test_it_tells_through_gzip_too(head):
    assert sniff_bytes(gzip.compress(head)) is HEADS[head] or head.startswith(b"PAR1")


def test_where_the_content_cannot_tell_the_name_may():
    assert sniff_bytes(b"\x28\xb5\x2f\xfd....", "a.warc.zst") is SourceFormat.WARC
    assert sniff_bytes(b"\x1f\x8bbroken", "a.arc.gz") is SourceFormat.ARC
    assert sniff_bytes(b"\x28\xb5\x2f\xfd....", "a.zst") is SourceFormat.UNKNOWN


def test_folders(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path / "site"], check=True)
    assert sniff(tmp_path / "site") is SourceFormat.GIT
    assert sniff(tmp_path) is SourceFormat.UNKNOWN
    for name in ("pages.parquet", "events.parquet"):
        (tmp_path / name).touch()
    assert sniff(tmp_path) is SourceFormat.SITES


def test_what_is_not_there_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(InputError, match="Check the path"):
        sniff(tmp_path / "nothing")


@pytest.mark.big
def test_every_sample_is_recognised(data_folder):
    expected = {
        "arc": {SourceFormat.ARC},
        "warc": {SourceFormat.WARC},
        "warc_malformed": {SourceFormat.WARC},
        "cdx": {SourceFormat.CDX, SourceFormat.CDXJ, SourceFormat.ZIPNUM},
        "cdxj": {SourceFormat.CDXJ, SourceFormat.TIMEMAP},
        "timemap": {SourceFormat.TIMEMAP},
        "sitemap": {SourceFormat.SITEMAP, SourceFormat.FEED, SourceFormat.SEEDS},
        "wacz": {SourceFormat.WACZ},
    }
    for name, formats in expected.items():
        files = [
            file for file in (data_folder / "formats" / name).rglob("*") if file.is_file() and file.suffix != ".md"
        ]
        assert files
        assert {sniff(file) for file in files} <= formats


def test_a_zip_is_a_wacz_only_with_a_package_or_archives(tmp_path):
    for names, what in (
        (["datapackage.json"], SourceFormat.WACZ),
        (["archive/a.warc.gz"], SourceFormat.WACZ),
        (["feed.xml"], SourceFormat.ZIP),
        (["more/archive/a.warc.gz", "x/datapackage.json"], SourceFormat.ZIP),
    ):
        with zipfile.ZipFile(tmp_path / "x.wacz", "w") as file:
            for name in names:
                file.writestr(name, "{}")
        assert sniff(tmp_path / "x.wacz") is what
    whole = (tmp_path / "x.wacz").read_bytes()
    (tmp_path / "x.wacz").write_bytes(whole[: len(whole) // 2])  # its reader says what is wrong with it
    assert sniff(tmp_path / "x.wacz") is SourceFormat.WACZ


def test_the_version_of_a_warc_in_any_case():
    assert sniff_bytes(b"warc/1.0\r\nwarc-type: warcinfo\r\n") is SourceFormat.WARC
