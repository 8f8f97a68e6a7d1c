"""URLs of archives as people paste them."""

import pytest

from recrawl.errors import ConfigError
from recrawl.fetch import CdxDialect, CdxServerFilter, CdxServerQuery, MapForm
from recrawl.fetch.archives.archive_url import CdxAddress, MapAddress, archive_address, read_filter

IA = "https://web.archive.org/cdx/search/cdx"
FIELDS_AND_FILTERS = "&fl=timestamp,digest&filter=!statuscode:404&filter=mimetype:text.html"
CC = "https://index.commoncrawl.org/CC-MAIN-2025-33-index"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            f"{IA}?url=example.org/*&output=json&showResumeKey=true",
            CdxAddress(IA, CdxDialect.WAYBACK, CdxServerQuery("example.org/*")),
        ),
        (
            f"{IA}?url=example.org&matchType=domain&from=2020&to=2021&limit=5&collapse=digest{FIELDS_AND_FILTERS}",
            CdxAddress(
                IA,
                CdxDialect.WAYBACK,
                CdxServerQuery(
                    "example.org",
                    "domain",
                    "2020",
                    "2021",
                    (CdxServerFilter("statuscode", "404", inverted=True), CdxServerFilter("mimetype", "text.html")),
                    ("timestamp", "digest"),
                    "digest",
                    5,
                ),
            ),
        ),
        (f"{CC}?url=*.example.org", CdxAddress(CC, CdxDialect.PYWB, CdxServerQuery("*.example.org"))),
        (
            "http://localhost:8080/coll/cdx?url=http%3A%2F%2Fa.org%2F%3Fb%3D1%26c&collapseTime=8",
            CdxAddress(
                "http://localhost:8080/coll/cdx",
                CdxDialect.PYWB,
                CdxServerQuery("http://a.org/?b=1&c", collapse="timestamp:8"),
            ),
        ),
        (
            "https://web.archive.org/web/timemap/link/http://example.org/?a=1",
            MapAddress("https://web.archive.org/web/timemap/{form}/{url}", MapForm.LINK, "http://example.org/?a=1"),
        ),
        (
            "http://memgator.example/timemap/json/example.org",
            MapAddress("http://memgator.example/timemap/{form}/{url}", MapForm.JSON, "example.org"),
        ),
        (
            "http://archive.example/timemap/http://example.org/",
            MapAddress("http://archive.example/timemap/{url}", MapForm.LINK, "http://example.org/"),
        ),
        ("https://example.org/", None),
        ("https://example.org/cdx", None),
        ("https://example.org/sitemap.xml?url=x", None),
        ("file:///cdx?url=x", None),
    ],
)
def test_what_a_url_asks_for(url, expected):
    assert archive_address(url) == expected


@pytest.mark.parametrize(
    "query", ["limit=-5", "sort=reverse", "filter=status", "from=May", "matchType=fuzzy", "filter=:x"]
)
def test_a_query_we_would_not_answer_truly_is_refused(query):
    with pytest.raises(ConfigError):
        archive_address(f"{IA}?url=example.org&{query}")


@pytest.mark.parametrize(
    ("text", "written"),
    [("=status:200", "=status:200"), ("!~mime:text", "!~mime:(?:text.*)$"), ("url:a.b", r"~url:(?:.*a\.b.*)$")],
)
def test_filters_of_pywb_keep_their_meaning(text, written):
    assert read_filter(text, CdxDialect.PYWB).written(CdxDialect.PYWB) == written
