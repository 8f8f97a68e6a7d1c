"""A client from outside: pycurl, as a crawler would use it."""

import io
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pycurl
import pytest

from recrawl.simulate.sites import PageMixture, SiteGrowth, lognormal_rates, synthetic_web, tree_site
from recrawl.simulate.virtual_web import PoissonProcess, join
from recrawl.time import DAY, VirtualClock
from recrawl_testweb import FaultProfile, VirtualWebServer

START = 1_700_000_000.0


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes
    error: int
    wire: bytes


class Client:
    """One curl handle: keeps its connection as a crawler would. ``wire`` is the body before transfer decoding."""

    def __init__(self, living):
        self._curl = pycurl.Curl()
        self._resolve = living.resolve()

    def get(self, url, *, method="GET", raw=False, **headers):
        curl, body, lines = self._curl, io.BytesIO(), []
        curl.reset()
        curl.setopt(pycurl.RESOLVE, self._resolve)
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.NOBODY, method == "HEAD")
        if method not in {"GET", "HEAD"}:
            curl.setopt(pycurl.CUSTOMREQUEST, method)
        curl.setopt(pycurl.HTTPHEADER, [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()])
        curl.setopt(pycurl.WRITEFUNCTION, body.write)
        curl.setopt(pycurl.HEADERFUNCTION, lambda line: lines.append(line.decode("latin-1").strip()))
        curl.setopt(pycurl.HTTP_TRANSFER_DECODING, not raw)
        error = 0
        try:
            curl.perform()
        except pycurl.error as fault:
            error = fault.args[0]
        pairs = (line.split(": ", 1) for line in lines if ": " in line)
        named = {name.lower(): value for name, value in pairs}
        return Response(curl.getinfo(pycurl.RESPONSE_CODE), named, body.getvalue(), error, body.getvalue())

    def close(self):
        self._curl.close()


class Running:
    """A test web with its clock and a client."""

    def __init__(self, web, fault_profile, seed, now, stack):
        self.web = web
        self.clock = VirtualClock(web.start if now is None else now)
        self.living = stack.enter_context(VirtualWebServer(web, self.clock, fault_profile=fault_profile, seed=seed))
        self.client = Client(self.living)
        stack.callback(self.client.close)
        self.urls = self.living.urls()

    def get(self, page, **more):
        return self.client.get(self.urls[page], **more)

    def pages(self, wanted):
        """Pages whose traits satisfy a condition."""
        return [page for page in range(len(self.web)) if wanted(self.living.faults_of(page))]


@pytest.fixture
def run():
    """Start a test web; all are closed, and faults of the server raised, at the end of the test."""
    with ExitStack() as stack:
        yield lambda web, fault_profile=None, *, seed=0, now=None: Running(
            web, fault_profile or FaultProfile.none(), seed, now, stack
        )


@pytest.fixture(scope="session")
def small():
    """Two hosts of 60 and 30 pages, data and private pages among them, about two changes a day."""
    rng = np.random.default_rng(1)
    end = START + 14 * DAY
    news, data = (
        tree_site(
            name,
            lognormal_rates(pages, median=2 / DAY, sigma=0.5, rng=rng),
            start=START,
            end=end,
            rng=rng,
            outdegree=5,
            law=PoissonProcess(),
            growth=SiteGrowth(appearing=0.2, vanishing=0.2, cross_links=0.5),
            mixture=mixture,
        )
        for name, pages, mixture in (
            ("news", 60, PageMixture(private=0.2)),
            ("data", 30, PageMixture(rdf=0.3, json=0.3, csv=0.3)),
        )
    )
    return join([news, data])


@pytest.fixture(scope="session")
def usual():
    """The web the demo runs on, in small."""
    return synthetic_web(start=START, pages=90, days=14, seed=3)


@pytest.fixture
def client_of():
    """Make one more client of a test web."""
    return Client
