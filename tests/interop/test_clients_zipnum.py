"""The client pages through a real pywb over a ZipNum index that we wrote (conventions A3, A4, X4)."""

from __future__ import annotations

import asyncio
import io

import pytest

from recrawl.detect import decoded
from recrawl.errors import FetchError
from recrawl.fetch import ArchiveClient, CdxClient, CdxDialect, CdxServerQuery, CdxState, HttpFetcher, TransferLimits
from recrawl.formats.cdx.cdx_responses import read_answer
from recrawl.formats.cdx.cdxj import write_zipnum
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.time import VirtualClock

AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"
COUNT = 950
ROW = (
    '{"url": "http://example.org/%04d", "mime": "text/html", "status": "200", "digest": "%032d", '
    '"length": "9", "offset": "0", "filename": "x.warc.gz"}'
)
LINES = [f"org,example)/{n:04} 20240101000000 {ROW % (n, n)}\n".encode() for n in range(COUNT)]
QUERY = CdxServerQuery("example.org/*")


@pytest.fixture(scope="module")
def endpoint(wayback, tmp_path_factory):
    root = tmp_path_factory.mktemp("zipnum")
    with (root / "part.cdx.gz").open("wb") as data, (root / "cluster.idx").open("wb") as index:
        assert write_zipnum(LINES, data, index, "part", per_block=20) == 48
    (root / "cluster.loc").write_text(f"part\t{root / 'part.cdx.gz'}\n")
    index = f"{{type: zipnum, path: {root / 'cluster.idx'}, loc: {root / 'cluster.loc'}}}"
    (root / "config.yaml").write_text(f"collections: {{judged: {{index: {index}, archive_paths: {root}}}}}\n")
    with wayback(root) as base:
        yield f"{base}/cdx"


def asked(endpoint, query, state=None, most=1_000, dialect=CdxDialect.PYWB):
    """The first answers, and how many requests they took."""

    async def main():
        clock = VirtualClock(0.0)
        async with HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher:
            client = ArchiveClient(fetcher, clock)
            answers = []
            server = CdxClient(client, endpoint, body_of=decoded, dialect=dialect)
            async for answer in server.answers(query, state):
                answers.append(answer)
                if len(answers) == most:
                    break
            return answers, client.requests

    return asyncio.run(main())


def urls(answers):
    batches = [
        batch
        for answer in answers
        for batch in read_answer(io.BytesIO(answer.body), answer.url, ReadReport(strict=True))
    ]
    return [url for batch in batches for url in batch.column("url").to_pylist()]


def test_all_pages_are_read(endpoint):
    answers, requests = asked(endpoint, QUERY)
    assert urls(answers) == [f"http://example.org/{n:04}" for n in range(COUNT)]
    assert [answer.captures for answer in answers] == [200, 200, 200, 200, 150]
    assert requests == 2 + 5


@pytest.mark.parametrize("kept", [1, 4, 5])
def test_a_saved_state_goes_on_with_the_next_page(endpoint, kept):
    first, _ = asked(endpoint, QUERY, most=kept)
    rest, requests = asked(endpoint, QUERY, CdxState.from_text(first[-1].state.to_text()))
    assert urls([*first, *rest]) == [f"http://example.org/{n:04}" for n in range(COUNT)]
    assert requests == 5 - kept


def test_a_limit_spans_pages(endpoint):
    answers, _ = asked(endpoint, CdxServerQuery("example.org/*", limit=250))
    assert urls(answers) == [f"http://example.org/{n:04}" for n in range(250)]


@pytest.mark.parametrize(("url", "requests"), [("nothing.example/*", 2), ("nothing.example/", 1)])
def test_nothing_found_takes_few_requests(endpoint, url, requests):
    assert asked(endpoint, CdxServerQuery(url)) == ([], requests)


def test_pages_are_counted_though_the_page_at_which_they_begin_was_never_captured(endpoint):
    answers, _ = asked(endpoint, CdxServerQuery("example.org/0*"))
    assert sum(answer.captures for answer in answers) == COUNT


def test_what_pywb_refuses_is_told_in_its_words(endpoint):
    state = asked(endpoint, QUERY, most=1)[0][0].state
    beyond = CdxState(state.query, state.paging, page=9, pages=10)
    with pytest.raises(FetchError, match="Last Page is 4"):
        asked(endpoint, QUERY, beyond)
