"""Seeds of every format, and how they are changed: what ``files.py`` and ``answers.py`` have in common.

A case is a number: the same seed and number give the same bytes on every machine that has the same samples.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import zipfile
import zlib
from pathlib import Path

LARGEST = 16_000
"""Bytes of a sample; the changed one may be twice as long."""
NUMBERS = [
    b"0", b"-1", b"1", b"2147483648", b"4294967296", b"9223372036854775807", b"18446744073709551616", b"1" + b"0" * 30,
    b"9" * 5_000, b"FFFFFFFFFFFFFFFF", b"7FFFFFFFFFFFFFFF", b"1e309", b"-1e309", b"NaN", b"0x10", b"1_0", "²".encode(), b"",
]  # fmt: skip
DATES = [
    b"Sun, 06 Nov 9999999999999999999999999 08:49:37 GMT", b"Fri, 31 Dec 9999 23:59:59 -1200", b"99991231235959", b"00000000000000",
    b"9999-12-31T23:59:59-12:00", b"0001-01-01T00:00:00+12:00", b"20210230120000", b"Sun, 06 Nov 1994 08:49:37 +99999",
]  # fmt: skip
TOKENS = [
    b"\0", b"\r\n", b"\n\n", b"\xff\xfe", b"\xef\xbb\xbf", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<![CDATA[", b"]]>", b"<!--",
    b"&#x110000;", b"&#0;", b"{", b"[", b'"', b"'", b"\\u0000", b"\\ud800", b"%", b"%00", b"http://[", b"http://a:99999999/",
    b"//", b"://", b"http://xn--/", b"data:", b"javascript:", "\u2028".encode(), "\U0001f600".encode(), b"\xed\xa0\x80", b"1:", b"#",
    b"\t", b" ", b"=", b"?", b"*", b"$", b"WARC/1.0\r\n", b"HTTP/1.1 200 OK\r\n", b"\x1f\x8b\x08", b"PK\x03\x04", b"PAR1",
]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_DATE = re.compile(rb"\d{14}|\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT")


def mutated(data: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """The bytes with one to six changes; ``other`` is another sample of the format to take pieces from."""
    unpacked = _unpacked(data) if rng.random() < 0.7 else None
    work = bytearray(data if unpacked is None else unpacked)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        _change(work, rng, other)
        del work[2 * LARGEST :]
    return bytes(work) if unpacked is None else gzip.compress(bytes(work), 1, mtime=0)


def _unpacked(data: bytes) -> bytes | None:
    if data[:2] != b"\x1f\x8b":
        return None
    try:
        return zlib.decompressobj(31).decompress(data, LARGEST)
    except zlib.error:
        return None


def _change(work: bytearray, rng: random.Random, other: bytes) -> None:  # noqa: C901 - a list of ways
    at, end = sorted((rng.randrange(len(work) + 1), rng.randrange(len(work) + 1)))
    end = min(end, at + rng.choice((1, 4, 16, 256, 4096)))
    match rng.randrange(12):
        case 0 if work:
            work[rng.randrange(len(work))] ^= 1 << rng.randrange(8)
        case 1 if work:
            work[rng.randrange(len(work))] = rng.randrange(256)
        case 2:
            del work[at:end]
        case 3:
            work[at:at] = work[at:end]
        case 4:
            work[at:at] = rng.choice(TOKENS)
        case 5 | 6:
            _replace(work, rng, _NUMBER, NUMBERS)
        case 7:
            _replace(work, rng, _DATE, DATES)
        case 8:
            work[at:at] = work[at:end] * rng.choice((2, 10, 1_000))
        case 9:
            work[at:at] = rng.choice(TOKENS) * rng.choice((10, 1_000, 10_000))
        case 10 if other:
            start = rng.randrange(len(other))
            work[at:end] = other[start : start + rng.choice((16, 256, 4096))]
        case _:
            del work[at:]


def _replace(work: bytearray, rng: random.Random, what: re.Pattern[bytes], by: list[bytes]) -> None:
    start = rng.randrange(len(work) + 1)
    found = what.search(work, start) or what.search(work)
    if found:
        begin, end = found.span()
        work[begin:end] = rng.choice(by)


# -- samples ----------------------------------------------------------------------------------

_HTTP = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"
    b"<html><p>Hi <a href='/b?x=1'>b</a> 12:30:00</p></html>"
)
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n4;n=1\r\n you\r\n0\r\n\r\n"


def _warc() -> bytes:
    def record(kind: bytes, number: int, block: bytes, more: bytes = b"") -> bytes:
        return (
            b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-%012d>\r\n"
            b"WARC-Date: 2020-01-0%dT00:00:00Z\r\nWARC-Target-URI: http://a.org/%d\r\n%sContent-Length: %d\r\n\r\n%s\r\n\r\n"
        ) % (kind, number, number, number, more, len(block), block)

    revisit = (
        b"WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n"
        b"WARC-Refers-To-Target-URI: http://a.org/1\r\nWARC-Refers-To-Date: 2020-01-01T00:00:00Z\r\n"
        b"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\n"
    )
    return b"".join(
        (
            record(b"warcinfo", 1, b"software: x\r\nformat: WARC File Format 1.0\r\n"),
            record(b"response", 2, _HTTP, b"Content-Type: application/http; msgtype=response\r\n"),
            record(b"response", 3, _CHUNKED, b"Content-Type: application/http\r\n"),
            record(b"revisit", 4, b"HTTP/1.1 200 OK\r\n\r\n", revisit),
            record(b"resource", 5, b"text", b"Content-Type: text/plain\r\n"),
            record(b"metadata", 6, b"fetchTimeMs: 14\r\nvia: http://a.org/1\r\n"),
        )
    )


def _wacz() -> bytes:
    out = io.BytesIO()
    warc = gzip.compress(_warc(), mtime=0)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as package:
        package.writestr("archive/a.warc.gz", warc)
        package.writestr(
            "pages/pages.jsonl",
            '{"format": "json-pages-1.0"}\n{"url": "http://a.org/1", "ts": "2020-01-01T00:00:00Z"}\n',
        )
        resources = [{"name": "a.warc.gz", "path": "archive/a.warc.gz", "bytes": len(warc), "hash": "sha256:00"}]
        package.writestr(
            "datapackage.json", json.dumps({"profile": "data-package", "wacz_version": "1.1.1", "resources": resources})
        )
    return out.getvalue()


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"url": ["http://a.org/"], "fetch_time": [1_600_000_000_000], "fetch_status": [200], "content_digest": ["A" * 32],
            "content_mime_type": ["text/html"], "warc_filename": ["a.warc.gz"], "warc_record_offset": [1], "warc_record_length": [9]}  # fmt: skip
    table = pa.table(rows)
    table = table.set_column(1, "fetch_time", pa.array(rows["fetch_time"], pa.timestamp("ms")))
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


_CDX = b"org,a)/%d 2020010203040%d http://a.org/%d text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 5 0 x.warc.gz\n"
_CDXJ = b'org,a)/%d 2020010203040%d {"url": "http://a.org/%d", "mime": "text/html", "status": "200", "digest": "ABC", "length": "5", "offset": "0", "filename": "x.warc.gz"}\n'
_LINK = b'<http://a.org/>; rel="original", <http://x/t>; rel="timegate", <http://x/20130202100000/http://a.org/>; rel="first memento"; datetime="Sat, 02 Feb 2013 10:00:00 GMT",\n'
_SITEMAP = b'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.org/1</loc><lastmod>2020-01-01</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url><url><loc>http://a.org/2</loc></url></urlset>'
_RSS = b'<?xml version="1.0"?><rss version="2.0"><channel><title>x</title><item><link>http://a.org/1</link><pubDate>Sat, 02 Feb 2013 10:00:00 GMT</pubDate><guid>http://a.org/1</guid></item></channel></rss>'
_ATOM = b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="http://a.org/1"/><updated>2020-01-01T00:00:00Z</updated></entry></feed>'
_RDF = b'<?xml version="1.0"?><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><r:Description r:about="http://s/"><e:p>v</e:p></r:Description></r:RDF>'
_SRX = b'<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/></head><results><result><binding name="x"><literal>a</literal></binding></result></results></sparql>'
_LOG = b"2020-01-01T00:00:00.000Z   200       1234 http://a.org/ LL http://b.org/ text/html #012 20200101000000000+12 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - -\n"

FILES: dict[str, list[bytes]] = {
    "warc": [_warc(), gzip.compress(_warc(), mtime=0)],
    "arc": [
        b"filedesc://a.arc 0.0.0.0 20200101000000 text/plain 20\n1 0 x\nURL IP-address\n\n"
        b"http://a.org/ 1.2.3.4 20200101000000 text/html %d\n%s\n" % (len(_HTTP), _HTTP)
    ],
    "cdx": [b" CDX N b a m s k r M S V g\n" + b"".join(_CDX % (n, n, n) for n in range(6))],
    "cdxj": [b"".join(_CDXJ % (n, n, n) for n in range(6))],
    "zipnum": [b"org,a)/ 20200101000000\tpart\t0\t100\t1\norg,b)/ 20200101000000\tpart\t100\t100\t2\n"],
    "cdx-answer": [b'[["urlkey","timestamp","original","mimetype","statuscode","digest","length"],["org,a)/","20200101000000","http://a.org/","text/html","200","ABC","5"]]'],
    "timemap": [
        _LINK * 3,
        b'{"original_uri": "http://a.org/", "mementos": {"list": [{"datetime": "2013-02-02T10:00:00Z", "uri": "http://x/1"}]}}',
        b'!context ["http://x"]\n20130202100000 {"uri": "http://x/1", "datetime": "Sat, 02 Feb 2013 10:00:00 GMT"}\n',
    ],
    "crawl-log": [_LOG * 4],
    "sitemap": [_SITEMAP, b"<sitemapindex><sitemap><loc>http://a.org/s.xml</loc></sitemap></sitemapindex>", gzip.compress(_SITEMAP, mtime=0)],
    "feed": [_RSS, _ATOM, b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "http://a.org/1", "date_published": "2020-01-01T00:00:00Z"}]}'],
    "seeds": [b"# seeds\nhttp://a.org/\n+http://(org,b,)/\nb.org\n"],
    "robots": [b"User-agent: *\nDisallow: /a*b$\nAllow: /a\nCrawl-delay: 3\nSitemap: http://a.org/s.xml\n\nUser-agent: recrawl\nDisallow:\n"],
    "wacz": [_wacz()],
    "parquet": [_parquet()],
    "git-log": [b"\x01" + b"a" * 40 + b" 1600000000 1600000000\0\n:100644 100644 " + b"a" * 40 + b" " + b"b" * 40 + b" M\0x.html\0"],
    "html": [_HTTP.partition(b"\r\n\r\n")[2] * 5],
    "json": [b'{"a": [1, 2.5, "x"], "generated": "2020-01-01", "rows": [{"b": 1}, {"b": 2}]}'],
    "csv": [b"a,b,c\n1,2,3\n4,5,6\n"],
    "text": [b"Some text at 12:30:00.\nVisits: 12, token=abcdefgh 2020-01-01 10:00 UTC, 3 days ago.\n" * 4],
    "turtle": [b'@prefix e: <http://e/> . e:a e:b [ e:c 1, "x"@en ] ; e:d ( 1 2 ) .\n'],
    "n-triples": [b'<http://a/> <http://b/> "c" .\n_:x <http://b/> _:y .\n'],
    "trig": [b"@prefix e: <http://e/> . e:g { e:a e:b e:c . }\n"],
    "rdf-xml": [_RDF],
    "json-ld": [
        b'{"@context": {"a": "http://a/"}, "@id": "http://x/", "a": ["b", {"@value": "c"}]}',
        b'{"@context": ["https://schema.org/", {"n": {"@id": "http://n/", "@type": "@id", "@container": "@list"}}], "n": ["_:a", [1, 2]], "@graph": [{"@id": "_:a", "name": "x", "@reverse": {"n": {"id": "_:b"}}}]}',
        b'[{"@context": null, "@type": "A", "x y": {"@list": [[1], 2.5e3]}}, {"@context": {"@version": 1.1, "@import": "http://i/", "p": {"@id": "http://p/", "@context": {"q": null}}}, "p": {"q": 1}}]',
    ],
    "memento": [
        b'HTTP/1.1 200 OK\r\nMemento-Datetime: Sat, 02 Feb 2013 10:00:00 GMT\r\nLink: <http://x.org/>; rel="original", <http://a/>; rel="timemap"\r\nX-Archive-Orig-Content-Length: 5\r\nX-Archive-Orig-Server: y\r\nX-Archive-Src: z\r\nContent-Type: text/html\r\n\r\n<p>on',
        b"HTTP/1.1 302 Found\r\nMemento-Datetime: Sat, 02 Feb 2013 10:00:00 GMT\r\nLocation: http://x.org/b\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n0\r\n\r\n",
    ],
    "rdf-untyped": [
        b'# data\n@prefix e: <http://e/> . e:a e:b [ e:c 1, "x"@en ] ; e:d ( 1 2 ) .\n',
        b'<http://a/> <http://b/> "c" .\n_:x <http://b/> _:y <http://g/> .\n',
        b'\xef\xbb\xbf{"@context": {"a": "http://a/"}, "a": "b"}',
        _RDF,
    ],
    "sparql-json": [b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"http://x/"}},{"x":{"type":"bnode","value":"b"}}]}}'],
    "sparql-xml": [_SRX],
}  # fmt: skip
"""Small samples of each format, by its name here."""
MIMES = {
    "html": "text/html", "json": "application/json", "csv": "text/csv", "text": "text/plain", "turtle": "text/turtle",
    "n-triples": "application/n-triples", "trig": "application/trig", "rdf-xml": "application/rdf+xml", "json-ld": "application/ld+json",
    "sparql-json": "application/sparql-results+json", "sparql-xml": "application/sparql-results+xml", "sitemap": "application/xml",
    "feed": "application/rss+xml", "rdf-untyped": "application/octet-stream",
}  # fmt: skip
"""Media types of those that servers send as pages."""
_ENDINGS = {
    "warc": (".warc", ".warc.gz"), "arc": (".arc", ".arc.gz"), "cdx": (".cdx",), "cdxj": (".cdxj",), "zipnum": (".idx",),
    "wacz": (".wacz",), "json-ld": (".jsonld",), "turtle": (".ttl",), "n-triples": (".nt",), "trig": (".trig",), "rdf-xml": (".rdf", ".owl"),
}  # fmt: skip
_FOLDERS = {"sitemap": "sitemap", "timemap": "timemap", "robots": "robots_weird", "cdx-answer": "cdx_api_responses"}


def samples(folders: list[Path]) -> dict[str, list[bytes]]:
    """The built-in samples, and the files of these folders whose format their name or place tells; the first of long ones."""
    found = {name: list(data) for name, data in FILES.items()}
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = next((name for name, ends in _ENDINGS.items() if path.name.endswith(ends)), "")
            name = name or next((name for name, part in _FOLDERS.items() if part in path.parts), "")
            if name and len(found[name]) < 200:
                data = path.read_bytes()
                if name in ("wacz", "parquet") and len(data) > LARGEST:
                    continue
                found[name].append(data[:LARGEST])
    return found
