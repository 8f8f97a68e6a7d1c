"""The frontier service: URLs per CPU second of the server process, and latency as the store grows.

    uv run python benchmarks/frontier.py --sizes 10000 100000

A server process (``recrawl frontier``) and this process as its client, over gRPC on loopback, in a folder in memory.
Figures are CPU seconds of the server, its fit process not included; latencies are wall time and depend on the load.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from recrawl.web.urlfrontier.messages import messages

BATCH = 500
HOSTS = 5_000


class Server:
    """A server process in a new workspace."""

    def __init__(self, folder: Path, budget: str) -> None:
        self._command = [sys.executable, "-m", "recrawl"]
        limits = (f"schedule.budget={budget}", "schedule.discovery_share=1", "politeness.min_delay=0s")
        flags = [word for one in limits for word in ("--set", one)]
        subprocess.run([*self._command, "init", folder, *flags], check=True, capture_output=True)
        self.process = subprocess.Popen(
            [*self._command, "frontier", "-w", folder, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r":(\d+)$", self.process.stdout.readline().strip())
        assert found is not None
        self.port = int(found[1])

    def cpu(self) -> float:
        """CPU seconds of the server so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Peak memory of the server in MB."""
        [line] = [
            line
            for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        ]
        return int(line.split()[1]) / 1024


class Client:
    """Calls of the service."""

    def __init__(self, port: int) -> None:
        self.make = messages()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._kinds = {
            (False, False): self.channel.unary_unary,
            (False, True): self.channel.unary_stream,
            (True, True): self.channel.stream_stream,
        }
        self._methods = {method.name: method for method in self.make.methods}

    def call(self, name: str, request: Any) -> Any:  # noqa: ANN401 - a message or a stream of them
        """Call a method."""
        method = self._methods[name]
        made = self._kinds[method.takes_stream, method.gives_stream](
            f"/{self.make.service}/{name}",
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        return made(request)


def urls(start: int, count: int) -> Iterator[str]:
    """URLs of many hosts."""
    for number in range(start, start + count):
        yield f"http://host{number * 7919 % HOSTS}.example.org/section/{number % 17}/page-{number}.html"


def discover(client: Client, start: int, count: int) -> None:
    """Send URLs in batches."""

    def batches() -> Iterator[Any]:
        left = urls(start, count)
        while some := list(islice(left, BATCH)):
            yield client.make.DiscoveredBatch(ID="b", items=[client.make.URLInfo(url=url) for url in some])

    answered = sum(len(ack.statuses) for ack in client.call("PutDiscovered", batches()))
    assert answered == count, answered


def take(client: Client, count: int) -> list[str]:
    """Get URLs until there are enough, or no more."""
    found: list[str] = []
    while len(found) < count:
        params = client.make.GetParams(max_urls_per_queue=20, delay_requestable=86_400, crawlID="DEFAULT")
        some = [one.url for one in client.call("GetURLs", params)]
        if not some:
            break
        found += some
    return found


def report(client: Client, found: list[str]) -> None:
    """Report URLs with what StormCrawler says of a fetch."""

    def items() -> Iterator[Any]:
        for number, url in enumerate(found):
            item = client.make.URLItem(ID=str(number))
            item.known.info.url, item.known.refetchable_from_date = url, 9_999_999_999
            said = {"fetch.statusCode": "200", "signature": f"{number:032x}", "last-modified": "Mon, 01 Jan 2024"}
            for name, value in said.items():
                item.known.info.metadata[name].values.append(value)
            yield item

    done = sum(ack.status == 0 for ack in client.call("PutURLs", items()))
    assert done == len(found), done


def latencies(client: Client, rounds: int, start: int) -> dict[str, list[float]]:
    """Milliseconds of single calls: 5 URLs handed out, one reported, one found; median and 95th percentile."""
    spans: dict[str, list[float]] = {"GetURLs": [], "PutURLs": [], "PutDiscovered": []}
    for number in range(rounds):
        began = time.perf_counter()
        params = client.make.GetParams(max_urls_per_queue=1, max_queues=5, delay_requestable=86_400, crawlID="DEFAULT")
        got = [one.url for one in client.call("GetURLs", params)]
        spans["GetURLs"].append(time.perf_counter() - began)
        began = time.perf_counter()
        report(client, got[:1] or list(urls(number, 1)))
        spans["PutURLs"].append(time.perf_counter() - began)
        began = time.perf_counter()
        discover(client, start + number, 1)
        spans["PutDiscovered"].append(time.perf_counter() - began)
    return {name: [round(1_000 * float(np.quantile(one, q)), 1) for q in (0.5, 0.95)] for name, one in spans.items()}


def main() -> None:
    """Measure, and print one line of JSON per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--fetches", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--budget", default="100000/s", help="With a small one, found URLs have to be queued.")
    asked = parser.parse_args()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        server = Server(Path(folder) / "archive", asked.budget)
        client, there = Client(server.port), 0
        try:
            for size in sorted(asked.sizes):
                facts: dict[str, object] = {"urls": size, "load": round(os.getloadavg()[0], 1)}
                before = server.cpu()
                discover(client, there, size - there)
                facts["found_per_cpu_s"] = round((size - there) / (server.cpu() - before))
                before = server.cpu()
                discover(client, 0, size)
                facts["known_per_cpu_s"] = round(size / max(server.cpu() - before, 0.01))
                there = size
                before = server.cpu()
                got = take(client, min(asked.fetches, size // 2))
                facts["handed_out"], facts["handed_out_per_cpu_s"] = len(got), round(len(got) / (server.cpu() - before))
                before = server.cpu()
                report(client, got)
                facts["reported_per_cpu_s"] = round(len(got) / (server.cpu() - before))
                facts["ms_median_p95"] = latencies(client, asked.rounds, 10**9 + size)
                facts["server_mb"] = round(server.memory())
                print(json.dumps(facts), flush=True)
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
