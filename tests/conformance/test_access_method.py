"""What every access method promises (``recrawl.fetch.access.access_method``), run over every built-in one."""

import pytest

from recrawl.fetch.access.access_methods import PLAIN, AccessMethods
from recrawl.testing import AccessConformance

SELECT, CONSTRUCT = "SELECT DISTINCT ?s { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"
PAGED = {"page_size": "1", "max_pages": "20"}
SOURCES = {
    "rdf": ("rdf", "http://x.example/thing", {}),
    "sparql whole": ("sparql", "http://x.example/sparql", {"query": SELECT}),
    "sparql pages": ("sparql", "http://x.example/sparql", {"query": SELECT, **PAGED}),
    "sparql graph": ("sparql", "http://x.example/sparql", {"query": CONSTRUCT, **PAGED}),
    "sparql posted": ("sparql", "http://x.example/sparql?a=b", {"query": "ASK {} # " + "x" * 3000}),
    "file": ("file", "file:///srv/data/a.csv", {}),
}


class TestEveryAccessMethod(AccessConformance):
    @pytest.fixture(autouse=True, params=list(SOURCES))
    def chosen(self, request):
        self.name, self.url, self.options = SOURCES[request.param]

    def make(self):
        method = AccessMethods([]).get(self.name)
        assert method.name == self.name
        return method


def test_no_built_in_method_is_left_out():
    assert set(AccessMethods([]).names()) == {PLAIN, *(name for name, *_ in SOURCES.values())}
