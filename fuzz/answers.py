"""Point a real crawl at a server that answers with changed real answers: it must not end, hang or grow.

    uv run python fuzz/answers.py --answers 100000 --samples ../shared/data/formats
    uv run python fuzz/answers.py --answers 100000 --seed 2          # other answers
    uv run python fuzz/answers.py --answers 100000 --first-round 12  # goes on behind the first twelve rounds

The server runs here, on loopback, under thousands of addresses, so that hosts which the crawl leaves alone for a while
do not matter. The crawl runs in a process of its own, for rounds of ``--round`` seconds, each in a new workspace. A
defect is: the crawl ends by itself, makes no request for ten seconds of CPU time after its first, its process tree takes
more than 1 GB, or an error of our own code is in its log. The last answers before a defect are kept in the folder ``--found``.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter, deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from mutate import DATES, MIMES, NUMBERS, TOKENS, mutated, samples

LONGEST, LARGEST = 10.0, 1 << 30
PAGES = 6
"""Of each host."""
_URLS = [
    "/",
    "//x/",
    "http://[",
    "http://127.0.0.1:99999/",
    "javascript:x",
    "http://xn--/",
    "/" + "a" * 9_000,
    "?" * 500,
    "\xff",
    "http:///",
    "/\t/",
]
_STATUSES = ["200 OK"] * 12 + ["301 Moved", "302 Found", "304 Not Modified", "404 No", "410 Gone", "429 Slow", "503 Busy", "204 No", "206 Part", "100 Go", "999 X", "099 X", "20 X", ""]  # fmt: skip
_LINE = re.compile(rb"[^\r\n]+\r?\n")


def headers(rng: random.Random) -> list[bytes]:
    """Fields that a crawl reads, with values that it should not trust."""
    number, date, token = (
        rng.choice(NUMBERS),
        rng.choice([*DATES, b"Sat, 02 Feb 2013 10:00:00 GMT"]),
        rng.choice(TOKENS),
    )
    url = rng.choice(_URLS).encode("latin-1")
    known = [
        b"Last-Modified: " + date, b"Date: " + date, b"Expires: " + date, b"Retry-After: " + rng.choice((number, date)), b"Age: " + number,
        b"ETag: " + rng.choice((b'"a"', b'W/"a"', token, b'"' + b"a" * 8_000)), b"Location: " + url, b"Link: <" + url + b'>; rel="' + token + b'"',
        b"Content-Length: " + number, b"X-Robots-Tag: " + token, b"Content-Range: bytes 0-" + number + b"/" + number, b"Vary: *",
        b"Content-Encoding: " + rng.choice((b"gzip", b"deflate", b"br", b"zstd", b"gzip, gzip", b"identity", token)),
        b"Transfer-Encoding: " + rng.choice((b"chunked", b"gzip, chunked", b"chunked, chunked", token)), b"Connection: " + rng.choice((b"close", b"keep-alive", token)),
        b"X-SPARQL-MaxRows: " + number, b"Memento-Datetime: " + date, b"Set-Cookie: " + token, b"Refresh: 0; url=" + url, token + b": " + token,
        b"Content-Type: " + rng.choice((*(mime.encode() for mime in MIMES.values()), b"text/html; charset=" + token, token)),
    ]  # fmt: skip
    return rng.sample(known, rng.choice((0, 1, 1, 2, 4)))


def in_chunks(body: bytes, rng: random.Random) -> bytes:
    """The body in chunks, now and then with a wrong head."""
    out, at = [], 0
    while at < len(body):
        size = rng.choice((1, 7, 100, 4_096))
        piece = body[at : at + size]
        head = b"%x" % len(piece) if rng.random() < 0.95 else rng.choice(NUMBERS)[:40]
        out.append(head + rng.choice((b"", b"", b";a=b")) + b"\r\n" + piece + b"\r\n")
        at += len(piece)
        if len(out) > 200:
            out.append(b"%x\r\n%s\r\n" % (len(body) - at, body[at:]) if at < len(body) else b"")
            break
    return b"".join(out) + rng.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b""))


def answer_of(rng: random.Random, found: dict[str, list[bytes]], heads: list[bytes]) -> bytes:
    """One answer, head and body."""
    name = rng.choice(sorted(MIMES))
    body = rng.choice(found[name])[:20_000]
    if rng.random() < 0.7:
        body = mutated(body, rng, rng.choice(found[name])[:20_000])[:200_000]
    if heads and rng.random() < 0.3:
        lines = _LINE.findall(rng.choice(heads))
        status, fields = (
            lines[0],
            [
                line.rstrip(b"\r\n")
                for line in lines[1:]
                if not line.lower().startswith((b"content-length", b"transfer-"))
            ],
        )
    else:
        status, fields = (
            f"HTTP/1.{rng.choice('110')} {rng.choice(_STATUSES)}\r\n".encode(),
            [f"Content-Type: {MIMES[name]}".encode()],
        )
    fields += headers(rng)
    match rng.randrange(6):
        case 0:
            body = gzip.compress(body, 1)
            body = mutated(body, rng) if rng.random() < 0.3 else body
            fields.append(b"Content-Encoding: gzip")
        case 1:
            body = zlib.compress(body, 1)
            fields.append(b"Content-Encoding: deflate")
        case 2:
            body = in_chunks(body, rng)
            fields.append(b"Transfer-Encoding: chunked")
        case 3:
            fields.append(b"Content-Length: %d" % len(body))
        case _:
            pass
    head = status + b"".join(field + b"\r\n" for field in fields) + b"\r\n"
    if rng.random() < 0.1:
        head = mutated(head, rng)[:300_000]
    return head + body


def robots_of(rng: random.Random, found: dict[str, list[bytes]]) -> bytes:
    """The rules of a host: mostly none."""
    if rng.random() < 0.8:
        return b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n"
    body = mutated(rng.choice(found["robots"])[:20_000], rng)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body


class Server:
    """Answers every request with changed bytes, then closes the connection."""

    def __init__(self, seed: int, folders: list[Path]) -> None:
        self.seed = seed
        self._found = samples(folders)
        self._heads = [
            head for path in sorted(path for one in folders for path in one.rglob("*.warc")) for head in heads_of(path)
        ][:3_000]
        self._asked: Counter[str] = Counter()
        self.answers = 0
        self.last: deque[tuple[str, bytes]] = deque(maxlen=300)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one answer."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path, host = head.split(b" ", 2)[1].decode("latin-1"), str(writer.get_extra_info("sockname")[0])
            name = f"{host}{path}"
            self._asked[name] += 1
            rng = random.Random(f"{self.seed}:{name}:{self._asked[name]}")
            data = robots_of(rng, self._found) if path == "/robots.txt" else answer_of(rng, self._found, self._heads)
            self.answers += path != "/robots.txt"
            self.last.append((name, data))
            writer.write(data)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


def heads_of(path: Path) -> list[bytes]:
    """The heads of HTTP answers in an archive file."""
    data = path.read_bytes()[:5_000_000]
    return [match[0] for match in re.finditer(rb"HTTP/1\.[01] \d{3}[^\r\n]*\r\n(?:[^\r\n]+\r\n){1,60}\r\n", data)][:200]


def crawl(options: argparse.Namespace) -> None:
    """Be the crawl of one round."""
    import faulthandler

    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.visit.change_classifier import ClassifierRules
    from recrawl.crawl.visit.scope import HostScope
    from recrawl.crawl.worker import event_loop
    from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
    from recrawl.crawl.worker.crawl_worker import WorkerPace
    from recrawl.detect import ChangeCriteria
    from recrawl.fetch.http.dns import AddressPolicy
    from recrawl.fetch.http.transfer import TransferLimits
    from recrawl.parse.parse_pool import ParseLimits
    from recrawl.schedule.policies.fixed_interval import FixedInterval
    from recrawl.schedule.politeness.host_politeness import PolitenessRules
    from recrawl.schedule.politeness.retry import Retry
    from recrawl.store.open import open_store

    class Loopback(AddressPolicy):
        """Mutated links lead anywhere; nobody but this machine is asked."""

        def covers(self, address: str) -> bool:
            """Whether it is this machine."""
            return address.startswith("127.")

    faulthandler.register(signal.SIGUSR1, file=(Path(options.folder) / "stack.txt").open("w"))
    clock, folder = RealClock(), Path(options.folder)
    settings = WorkerSettings(
        1e6,
        "recrawl-fuzz/1 (+mailto:fuzz@example.org)",
        limits=TransferLimits(connect=5.0, idle=5.0, total=10.0),
        politeness=PolitenessRules(factor=0.0, shortest=0.0, longest=0.0, crawl_delay_cap=1.0),
        retry=Retry.beginning(1.0),
        durable=False,
        reach=Loopback(),
        pace=WorkerPace(concurrency=32, poll=1.0),
        classifier=ClassifierRules(ChangeCriteria(use_kernels=True)),
        parsing=ParseLimits(cpu=3.0, memory=256 << 20),
    )

    async def go() -> None:
        with open_store(folder / "store.db", create=True, durable=False) as store:
            urls = [
                f"http://{address(host)}:{options.port}/p{page}"
                for host in range(options.hosts)
                for page in range(PAGES)
            ]
            store.discover(urls, clock.now())
            scope = HostScope(frozenset(f"{address(host)}:{options.port}" for host in range(options.hosts)))
            async with live_crawl(
                "fuzz", FixedInterval(3.0), clock=clock, store=store, folder=folder, scope=scope, settings=settings
            ) as driver:
                await driver.run(clock.now() + options.round)

    event_loop.run(go())


def address(host: int) -> str:
    """An address on loopback."""
    return f"127.{1 + host // 60_000}.{host // 250 % 240}.{1 + host % 250}"


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def memory(pid: int) -> int:
    """Bytes that a process and all below it take; what they share counts once."""
    total = 0
    for one in tree(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def cpu(pid: int) -> float:
    """CPU seconds of a process: on a busy machine a crawl may be slow."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def errors_in(folder: Path) -> list[str]:
    """Errors of our own code that the log of a crawl tells, without repeats."""
    found: dict[str, str] = {}
    log = folder / "recrawl.log"
    for line in log.read_bytes().splitlines() if log.exists() else ():
        event = json.loads(line)
        if event["logLevel"] == "error":
            details = event.get("details", {})
            trace = str(details.get("traceback", details.get("reason", ""))).strip().splitlines()
            found.setdefault(
                " | ".join(trace[-3:]), f"{event['message']}: {details.get('url', '')} {' | '.join(trace[-4:])}"[:600]
            )
    return list(found.values())


async def run(options: argparse.Namespace) -> list[str]:
    """Rounds until enough answers were given; the defects."""
    server = Server(options.seed, [Path(folder) for folder in options.samples])
    listening = await asyncio.start_server(server.serve, "0.0.0.0", 0, limit=1 << 20)
    port = listening.sockets[0].getsockname()[1]
    defects: list[str] = []
    began, peak, round_ = time.monotonic(), 0, options.first_round
    while server.answers < options.answers:
        with tempfile.TemporaryDirectory(prefix="recrawl-fuzz-") as name:
            server.seed = options.seed * 1_000_003 + round_
            words = [
                sys.executable,
                __file__,
                "--crawl",
                "--folder",
                name,
                "--port",
                str(port),
                "--round",
                str(options.round),
                "--hosts",
                str(options.hosts),
            ]
            process = subprocess.Popen(words, stderr=subprocess.PIPE)
            before, seen, used = server.answers, server.answers, 0.0
            while process.poll() is None:
                await asyncio.sleep(0.5)
                peak = max(peak, taken := memory(process.pid))
                if server.answers == before or server.answers != seen:  # none yet: it may compile
                    seen, used = server.answers, cpu(process.pid)
                stuck = cpu(process.pid) - used > LONGEST
                if taken > LARGEST or stuck or server.answers >= options.answers:
                    if taken > LARGEST or stuck:
                        process.send_signal(signal.SIGUSR1)
                        await asyncio.sleep(1)
                        stack = (Path(name) / "stack.txt").read_text()[-1_500:]
                        defects.append(
                            f"round {round_}: {'no request' if stuck else 'memory'}, {taken >> 20} MB\n{stack}"
                        )
                    process.kill()
                    break
            said = process.communicate()[1].decode("utf-8", "replace")
            if process.returncode not in (0, -signal.SIGKILL):
                defects.append(f"round {round_}: the crawl ended ({process.returncode}): {said[-1_500:]}")
            new = [error for error in errors_in(Path(name)) if error not in defects]
            if new or (defects and defects[-1].startswith(f"round {round_}:")):
                _keep(server, Path(options.found), round_)
            defects += [f"round {round_}: {error}" for error in new]
            print(
                f"round {round_}: {server.answers - before:,} answers, {server.answers:,} in all, {peak >> 20} MB, {len(defects)} defects",
                flush=True,
            )
            round_ += 1
    listening.close()
    await asyncio.sleep(1.0)  # those who are answered still
    print(
        f"{server.answers:,} answers in {time.monotonic() - began:.0f} s, peak {peak >> 20} MB, {len(defects)} defects"
    )
    for defect in defects:
        print(" ", defect)
    return defects


def _keep(server: Server, folder: Path, round_: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"answers-{round_}.txt").open("wb") as file:
        for name, data in server.last:
            file.write(b"==== %s %d\n%s\n" % (name.encode("latin-1", "replace"), len(data), data))


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first-round", type=int, default=0, help="number of the first round")
    parser.add_argument("--round", type=float, default=60.0, help="seconds of a round")
    parser.add_argument("--samples", action="append", default=[], help="folder with files to begin from")
    parser.add_argument("--hosts", type=int, default=9_000, help="addresses of a round")
    parser.add_argument("--found", default="fuzz-found", help="folder for answers before a defect")
    parser.add_argument("--crawl", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main() -> None:
    """Run."""
    options = parsed()
    if options.crawl:
        crawl(options)
    elif asyncio.run(run(options)):
        sys.exit(1)


if __name__ == "__main__":
    main()
