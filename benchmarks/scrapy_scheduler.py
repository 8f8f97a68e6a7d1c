"""What recrawl's scheduler costs inside Scrapy, beside Scrapy's own.

    uv run python benchmarks/scrapy_scheduler.py --pages 1000

The same spider fetches the same pages of a server on loopback: with Scrapy's scheduler (queues in memory, and on disk
with JOBDIR) and with that of recrawl, whose store is a file in memory. Figures are CPU seconds of the spider's process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

SPIDER = """
import json, resource, sys
import scrapy
from scrapy.crawler import CrawlerProcess

BASE, PAGES, KEYS = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])

class Pages(scrapy.Spider):
    name = "pages"
    start_urls = [BASE + "/0"]

    def parse(self, response):
        if response.url.endswith("/0"):
            for number in range(1, PAGES):
                yield response.follow(f"/{number}")

process = CrawlerProcess({"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
                          "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": False, **KEYS})
crawler = process.create_crawler(Pages)
process.crawl(crawler)
process.start()
used = resource.getrusage(resource.RUSAGE_SELF)
count = crawler.stats.get_value("downloader/response_count")
print(json.dumps({"responses": count, "cpu_s": used.ru_utime + used.ru_stime}))
"""


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of a connection with the same page."""
    body = b"<html><title>A page</title>" + b"word " * 400 + b"</html>"
    head = f'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "1"\r\nContent-Length: {len(body)}\r\n\r\n'.encode()
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def serve() -> int:
    """Start the server in a thread; its port."""
    ready: list[int] = []
    there = threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        there.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    there.wait()
    return ready[0]


def crawl(script: Path, base: str, pages: int, settings: dict[str, object]) -> dict[str, float]:
    """Run the spider; what it used."""
    command = [sys.executable, str(script), base, str(pages), json.dumps(settings)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert found["responses"] == pages, found
    return found


def main() -> None:
    """Measure each scheduler with few and with many pages: the difference is the cost of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000)
    asked = parser.parse_args()
    base = f"http://127.0.0.1:{serve()}"
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        place, few = Path(folder), max(asked.pages // 10, 10)
        script = place / "spider.py"
        script.write_text(SPIDER)
        for name in ("memory", "disk", "recrawl"):
            seconds = []
            for pages in (few, asked.pages):
                settings: dict[str, object] = {}
                if name == "disk":
                    settings = {"JOBDIR": str(place / f"job-{pages}")}
                if name == "recrawl":
                    archive = place / f"archive-{pages}"
                    flags = ["--set", "schedule.budget=10000/s", "--set", "schedule.discovery_share=1"]
                    init = [sys.executable, "-m", "recrawl", "init", str(archive), *flags]
                    subprocess.run(init, check=True, capture_output=True)
                    settings = {
                        "ADDONS": {"recrawl.integrations.scrapy.Addon": 500},
                        "RECRAWL_WORKSPACE": str(archive),
                        "RECRAWL_POLITENESS": "scrapy",
                        "RECRAWL_FOREVER": False,
                    }
                seconds.append(crawl(script, base, pages, settings)["cpu_s"])
            cost = (seconds[1] - seconds[0]) / (asked.pages - few)
            start = seconds[0] - few * cost
            facts = {"scheduler": name, "ms_per_page": round(1_000 * cost, 2), "start_s": round(start, 2)}
            print(json.dumps({**facts, "load": round(os.getloadavg()[0], 1)}), flush=True)


if __name__ == "__main__":
    main()
