"""What the crawl benchmark compares with: Scrapy's engine alone, and a crawler put together of the usual parts.

Each function fetches the URLs in the process that calls it, and tells of each page it got.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from recrawl.crawl.clock import RealClock
from recrawl.detect.text.shingles import SAMPLE, shingles_of

AT_ONCE = 50
"""Requests at once, over all hosts."""
COMMIT_EVERY = 100
"""Pages."""
DAY = 86_400.0
"""Seconds until it would come back: a crawler of the usual parts has no better guess."""


def scrapy_engine(urls: Sequence[str], _folder: Path, on_page: Callable[[], None]) -> None:
    """Scrapy with a spider that does nothing: no links, no items, no robots.txt, no retries, no log."""
    scrapy: Any = import_module("scrapy")

    async def start(_spider: object) -> AsyncIterator[Any]:
        for url in urls:
            yield scrapy.Request(url, dont_filter=True)

    def parse(_spider: object, response: Any) -> None:  # noqa: ANN401 - Scrapy's response
        assert response.body  # a benchmark of nothing would be quick
        on_page()

    bare = type("Bare", (scrapy.Spider,), {"name": "bare", "start": start, "parse": parse})
    process: Any = import_module("scrapy.crawler").CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": AT_ONCE,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": False,
            "RETRY_ENABLED": False,
            "COOKIES_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_ENABLED": False,
        }
    )
    process.crawl(bare)
    process.start()


def usual_parts(urls: Sequence[str], folder: Path, on_page: Callable[[], None]) -> None:
    """aiohttp, lxml, warcio and sqlite3: links, digest of the text, shingles, WARC with gzip, rows.

    For shingles it has our own function in numpy, without compiled code: a loop in Python takes five times as long.
    """
    import uvloop

    writer: Any = import_module("warcio.warcwriter").WARCWriter
    database = sqlite3.connect(folder / "pages.db")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(
        "CREATE TABLE page (url TEXT PRIMARY KEY, due REAL, status INTEGER, text_digest BLOB, shingles BLOB)"
    )
    database.execute("CREATE TABLE link (source TEXT, target TEXT, PRIMARY KEY (source, target)) WITHOUT ROWID")
    with (folder / "pages.warc.gz").open("wb") as file:
        uvloop.run(_fetch_all(urls, writer(file, gzip=True), database, on_page))
    database.commit()
    database.close()


async def _fetch_all(
    urls: Sequence[str],
    warc: Any,  # noqa: ANN401 - warcio's writer
    database: sqlite3.Connection,
    on_page: Callable[[], None],
) -> None:
    aiohttp: Any = import_module("aiohttp")
    queue = enumerate(urls)

    async def work(session: Any) -> None:  # noqa: ANN401 - aiohttp's session
        for number, url in queue:
            async with session.get(url) as response:
                body = await response.read()
                _keep(url, response, body, warc, database)
            on_page()
            if number % COMMIT_EVERY == 0:
                database.commit()

    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        await asyncio.gather(*(work(session) for _ in range(AT_ONCE)))


def _keep(url: str, response: Any, body: bytes, warc: Any, database: sqlite3.Connection) -> None:  # noqa: ANN401 - libraries' own
    """What a crawler has to do with a page, in the plainest way."""
    tree: Any = import_module("lxml.html").fromstring(body)
    links = {urljoin(url, href) for href in tree.xpath("//a/@href")}
    for node in tree.xpath("//script | //style"):
        node.drop_tree()
    text = " ".join(tree.text_content().split()).encode()
    text_digest = hashlib.sha1(text, usedforsecurity=False).digest()
    headers = [(name.decode(), value.decode()) for name, value in response.raw_headers]
    head = import_module("warcio.statusandheaders").StatusAndHeaders(
        f"{response.status} {response.reason}", headers, protocol="HTTP/1.1"
    )
    warc.write_record(warc.create_warc_record(url, "response", payload=BytesIO(body), http_headers=head))
    row = (url, RealClock().now() + DAY, response.status, text_digest, shingles_of(text, SAMPLE).tobytes())
    database.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?, ?)", row)
    database.executemany("INSERT OR IGNORE INTO link VALUES (?, ?)", ((url, link) for link in sorted(links)))
