"""What every fetcher promises (``recrawl.fetch.request``), run over every built-in one that speaks HTTP."""

import pytest

from recrawl.fetch.access.access_methods import FileFetcher
from recrawl.fetch.http.http_fetcher import FETCHERS
from recrawl.fetch.request import Fetcher
from recrawl.testing import FetcherConformance
from recrawl.testing.checks import pickled
from recrawl.time import VirtualClock


class TestEveryFetcher(FetcherConformance):
    @pytest.fixture(autouse=True, params=list(FETCHERS))
    def chosen(self, request):
        self.name = request.param

    def open(self, terms):
        return pickled(FETCHERS[self.name])(terms)


def test_files_have_a_fetcher_too():
    assert isinstance(FileFetcher(VirtualClock(0.0), []), Fetcher)
