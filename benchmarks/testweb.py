"""How fast the test web answers: ``python benchmarks/testweb.py [--requests N]``.

One pycurl client on one kept-alive connection asks, in the same process, the test web and, as a
baseline, the standard library's ``http.server`` that always sends the same bytes. The client's own cost is
in both figures.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import perf_counter, process_time

import pycurl

from recrawl.simulate.sites import synthetic_web
from recrawl.time import HOUR, VirtualClock
from recrawl_testweb import FaultProfile, VirtualWebServer

START = 1_700_000_000.0
BODY = b"x" * 2_500


class _Constant(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for header and body, as any careful server does

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's signature
        """Say nothing."""


def _rate(ask: Callable[[int], str], curl: pycurl.Curl, requests: int) -> tuple[float, float, int]:
    """Requests per second of real time and of processor time, and how many bytes came."""
    received = 0

    def count(data: bytes) -> None:
        nonlocal received
        received += len(data)

    curl.setopt(pycurl.WRITEFUNCTION, count)
    wall, processor = perf_counter(), process_time()
    for number in range(requests):
        curl.setopt(pycurl.URL, ask(number))
        with suppress(pycurl.error):  # answers that break off are among the quirks
            curl.perform()
    return requests / (perf_counter() - wall), requests / (process_time() - processor), received


def main() -> None:
    """Measure both servers and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4_000)
    requests = parser.parse_args().requests

    constant = ThreadingHTTPServer(("127.0.0.1", 0), _Constant)
    thread = threading.Thread(target=constant.serve_forever)
    thread.start()
    curl = pycurl.Curl()
    baseline = _rate(lambda _: f"http://127.0.0.1:{constant.server_port}/", curl, requests)
    curl.close()
    constant.shutdown()
    thread.join()
    constant.server_close()
    print(f"{'':28}{'per s':>8}{'per CPU s':>11}{'MB':>7}{'ratio':>7}")
    _line("http.server, constant bytes", baseline, baseline)

    for name, fault_profile in (("none", FaultProfile.none()), ("mild", FaultProfile.mild())):
        clock = VirtualClock(START)
        with VirtualWebServer(synthetic_web(start=START), clock, fault_profile=fault_profile) as living:
            urls = living.urls()

            def later(number: int, clock: VirtualClock = clock, urls: list[str] = urls) -> str:
                clock.advance_to(START + number * 0.05 * HOUR)
                return urls[number % len(urls)]

            curl = pycurl.Curl()
            curl.setopt(pycurl.RESOLVE, living.resolve())
            try:
                _line(f"test web, Quirks.{name}()", _rate(later, curl, requests), baseline)
            finally:
                curl.close()


def _line(name: str, figures: tuple[float, float, int], baseline: tuple[float, float, int]) -> None:
    per_second, per_processor_second, received = figures
    ratio = per_processor_second / baseline[1]
    print(f"{name:28}{per_second:8.0f}{per_processor_second:11.0f}{received / 1e6:7.1f}{ratio:7.2f}")


if __name__ == "__main__":
    main()
