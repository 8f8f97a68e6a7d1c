"""CdxServer against scripted servers of both dialects: paging, resuming, garbage, circles (conventions A1-A4)."""

from __future__ import annotations

import asyncio
import io
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from recrawl.detect import decoded
from recrawl.errors import ConfigError, FetchError, InputError
from recrawl.fetch import (
    ArchiveClient,
    CdxClient,
    CdxDialect,
    CdxServerFilter,
    CdxServerQuery,
    CdxState,
    HttpFetcher,
    Paging,
    TransferLimits,
)
from recrawl.formats.cdx.cdx_responses import read_answer
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.time import VirtualClock, to_timestamp14

AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"
HEADER = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
ROWS = [
    ["org,example)/", f"2024010{n}000000", "http://example.org/", "text/html", "200", "A" * 32, "7"]
    for n in range(1, 8)
]


class Archive(dict):
    """A server whose answers are computed: ``reply(arguments, count)`` gives status and body."""

    def __init__(self, reply):
        super().__init__()
        self.reply = reply
        self.asked = []

    def get(self, path, default=None):
        arguments = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        self.asked.append(arguments)
        status, body = self.reply(arguments, len(self.asked))
        body = body.encode() if isinstance(body, str) else body
        return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def run(serving, reply, use, **options):
    async def main():
        clock = VirtualClock(0.0)
        archive = Archive(reply)
        async with serving(archive) as server, HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher:

            def make(**more):
                client = ArchiveClient(fetcher, clock)
                return CdxClient(client, server.url("/cdx"), body_of=decoded, **{**options, **more})

            return await use(make), archive.asked

    return asyncio.run(main())


async def collected(server, query, state=None):
    return [answer async for answer in server.answers(query, state)]


def wayback(arguments, _count):
    """As the Wayback Machine: rows from the resume key on, and a key behind them if there are more."""
    begin = 0
    if "resumeKey" in arguments:
        begin = next(i for i, row in enumerate(ROWS) if f"{row[0]} {row[1]}!" == arguments["resumeKey"])
    end = min(begin + int(arguments["limit"]), len(ROWS))
    rows = [HEADER, *ROWS[begin:end]]
    if end < len(ROWS):
        rows += [
            [],
            [f"{ROWS[end][0]} {ROWS[end][1]}!".replace(",", "%2C").replace(")/ ", "%29%2F+").replace("!", "%21")],
        ]
    return 200, "[" + ",\n".join(map(json.dumps, rows)) + "]\n"


def rows_of(answers):
    listed = [json.loads(answer.body) for answer in answers]
    assert all(rows[0] == HEADER for rows in listed)
    return [row for rows in listed for row in rows[1:]]


def captures_of(answers):
    """As the reader of such answers sees them."""
    return [
        row
        for answer in answers
        for batch in read_answer(io.BytesIO(answer.body), answer.url, ReadReport(strict=True))
        for row in batch.to_pylist()
    ]


def test_answers_are_what_their_reader_reads(serving):
    use = lambda make: collected(make(), CdxServerQuery("example.org/*"))  # noqa: E731
    read = captures_of(run(serving, wayback, use, page_captures=3)[0])
    assert [to_timestamp14(row["time"]) for row in read] == [row[1] for row in ROWS]
    read = captures_of(run(serving, lambda *_: (200, lines(ROWS)), use, paging=Paging.ONE)[0])
    assert [to_timestamp14(row["time"]) for row in read] == [row[1] for row in ROWS]


def test_resume_keys_lead_through_all_answers(serving):
    answers, asked = run(
        serving, wayback, lambda make: collected(make(), CdxServerQuery("example.org/*")), page_captures=3
    )
    assert rows_of(answers) == ROWS
    assert [answer.captures for answer in answers] == [3, 3, 1]
    assert [one.get("resumeKey", "") for one in asked] == [
        "",
        "org,example)/ 20240104000000!",
        "org,example)/ 20240107000000!",
    ]
    assert asked[0] == {"url": "example.org/*", "output": "json", "showResumeKey": "true", "limit": "3"}
    assert answers[-1].state.done


def test_a_limit_ends_the_query_early(serving):
    answers, asked = run(
        serving, wayback, lambda make: collected(make(), CdxServerQuery("example.org", limit=4)), page_captures=3
    )
    assert rows_of(answers) == ROWS[:4]
    assert [one["limit"] for one in asked] == ["3", "1"]


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_saved_state_goes_on_where_it_stopped(serving, kept):
    query = CdxServerQuery("example.org", since="2024")

    async def use(make):
        first = []
        async for answer in make().answers(query):
            first.append(answer)
            if len(first) == kept:
                break
        state = CdxState.from_text(first[-1].state.to_text())
        return first + await collected(make(), query, state)

    answers, asked = run(serving, wayback, use, page_captures=3)
    assert rows_of(answers) == ROWS
    assert len(asked) == 3


def test_a_state_fits_only_its_own_query(serving):
    async def use(make):
        state = (await collected(make(), CdxServerQuery("example.org")))[0].state
        with pytest.raises(InputError, match="another query"):
            await collected(make(), CdxServerQuery("example.com"), state)
        with pytest.raises(InputError, match="another query"):
            await collected(make(dialect=CdxDialect.PYWB), CdxServerQuery("example.org"), state)

    run(serving, wayback, use)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1}', '{"version": 2, "query": "", "paging": ""}',
                                  '{"version": 1, "query": "", "paging": "", "page": "x"}'])  # fmt: skip
def test_a_broken_state_is_refused(text):
    with pytest.raises(InputError, match="again"):
        CdxState.from_text(text)


def lines(rows):
    return "".join(json.dumps({"urlkey": row[0], "timestamp": row[1], "url": row[2]}) + "\n" for row in rows)


@pytest.mark.parametrize("count", ['{"pages": 3, "pageSize": 5, "blocks": 12}\n', "3\n", '[["numpages"],["3"]]'])
def test_pages_are_counted_and_read_in_turn(serving, count):
    def reply(arguments, _count):
        if "showNumPages" in arguments:
            return 200, count
        page = int(arguments["page"])
        return 200, lines(ROWS[3 * page : 3 * page + 3])

    answers, asked = run(
        serving, reply, lambda make: collected(make(), CdxServerQuery("*.example.org")), dialect=CdxDialect.PYWB
    )
    assert b"".join(answer.body for answer in answers).decode() == lines(ROWS)
    assert [one.get("page") for one in asked] == [None, None, "0", "1", "2"]
    assert [one["url"] for one in asked[:2]] == ["example.org", "*.example.org"]
    assert [answer.state.captures for answer in answers] == [3, 6, 7]


@pytest.mark.parametrize(
    "query", [CdxServerQuery("x/*"), CdxServerQuery("*.x"), CdxServerQuery("x", match="domain"), CdxServerQuery("x")]
)
@pytest.mark.parametrize("captured", [True, False], ids=["captured", "never captured"])
def test_a_server_that_does_not_count_pages_is_asked_about_one_and_then_for_all(serving, query, captured):
    def reply(arguments, _count):
        if "showNumPages" not in arguments:
            return 200, lines(ROWS)
        assert arguments.get("matchType", "exact") == "exact"
        assert "*" not in arguments["url"]
        return 200, lines(ROWS[:1]) if captured else ""

    answers, asked = run(serving, reply, lambda make: collected(make(), query), dialect=CdxDialect.PYWB)
    assert ["showNumPages" in one for one in asked] == [True, False]
    assert "page" not in asked[1]
    assert [answer.captures for answer in answers] == [7]


@pytest.mark.parametrize("paging", [Paging.ONE, Paging.PAGES])
def test_a_server_with_a_limit_of_its_own_is_asked_for_more(serving, paging):
    def reply(arguments, _count):
        if "showNumPages" in arguments:
            return 200, "1"
        return 200, lines(ROWS[: int(arguments.get("limit", "3"))])

    answers, _ = run(serving, reply, lambda make: collected(make(), CdxServerQuery("x")), paging=paging)
    assert sum(answer.captures for answer in answers) == len(ROWS)


@pytest.mark.parametrize(
    ("status", "body"), [(200, ""), (200, "[]\n"), (404, '{"message": "No Captures found for: x"}')]
)
@pytest.mark.parametrize("paging", [Paging.ONE, Paging.RESUME_KEY])
def test_nothing_found_is_an_empty_answer(serving, status, body, paging):
    answers, _ = run(
        serving, lambda *_: (status, body), lambda make: collected(make(), CdxServerQuery("x")), paging=paging
    )
    assert [answer.captures for answer in answers] == [0]


def test_no_pages_are_no_answers(serving):
    use = lambda make: collected(make(), CdxServerQuery("x"))  # noqa: E731
    answers, asked = run(serving, lambda *_: (200, '{"pages": 0}'), use, paging=Paging.PAGES)
    assert (answers, len(asked)) == ([], 1)


@pytest.mark.parametrize(
    "cut", ['[["urlkey"],["org', '{"urlkey": "a"}\n{"urlk', "<html>Busy</html>", '"words"', "[1, 2]"]
)
def test_a_garbled_answer_is_asked_for_again(serving, cut):
    answers, asked = run(
        serving,
        lambda _arguments, count: (200, cut if count == 1 else lines(ROWS)),
        lambda make: collected(make(), CdxServerQuery("x")),
        paging=Paging.ONE,
    )
    assert (len(asked), answers[0].captures) == (2, 7)


@pytest.mark.parametrize(
    ("status", "words"), [(400, "Bad regex"), (403, "Blocked"), (404, "nothing here"), (501, "never")]
)
def test_what_the_server_refuses_is_told_in_its_own_words(serving, status, words):
    async def use(make):
        with pytest.raises(FetchError, match=rf"answered {status} \({words}\)"):
            await collected(make(), CdxServerQuery("x"))

    _, asked = run(serving, lambda *_: (status, words), use)
    assert len(asked) == 1


@pytest.mark.parametrize("period", [1, 2])
def test_keys_that_lead_in_circles_are_noticed(serving, period):
    def reply(_arguments, count):
        return 200, json.dumps([HEADER, ROWS[0], [], [f"org,example)/ {count % period}!"]])

    async def use(make):
        answers, got = make().answers(CdxServerQuery("x")), []
        for _ in range(period):
            got.append(await anext(answers))  # noqa: PERF401 - one after the other
        with pytest.raises(FetchError, match="circles"):
            await anext(answers)
        return len(got)

    got, asked = run(serving, reply, use)
    assert got == period
    assert len(asked) == period + 1


def test_endless_answers_end(serving):
    def reply(_arguments, count):
        return 200, json.dumps([HEADER, ROWS[0], [], [f"org,example)/ {count}!"]])

    async def use(make):
        with pytest.raises(FetchError, match="after 5 answers"):
            await collected(make(max_answers=5), CdxServerQuery("x"))

    _, asked = run(serving, reply, use)
    assert len(asked) == 5


def test_both_dialects_name_fields_filters_and_collapsing_their_way():
    query = CdxServerQuery(
        "example.org",
        match="host",
        since="2024",
        until="202406",
        filters=(CdxServerFilter("status", "200", literal=True), CdxServerFilter("mime", "text/.*", inverted=True)),
        fields=("url", "statuscode"),
        collapse="timestamp:8",
    )
    assert query.parameters(CdxDialect.WAYBACK) == [
        ("url", "example.org"), ("matchType", "host"), ("from", "2024"), ("to", "202406"),
        ("filter", "statuscode:200"), ("filter", "!mimetype:text/.*"),
        ("fl", "original,statuscode"), ("collapse", "timestamp:8"), ("output", "json"),
    ]  # fmt: skip
    assert query.parameters(CdxDialect.PYWB) == [
        ("url", "example.org"), ("matchType", "host"), ("from", "2024"), ("to", "202406"),
        ("filter", "=status:200"), ("filter", "!~mime:(?:text/.*)$"),
        ("fl", "url,status"), ("collapseTime", "8"), ("output", "json"),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="collapse"):
        CdxServerQuery("x", collapse="digest").parameters(CdxDialect.PYWB)


@pytest.mark.parametrize("wrong", [{"url": ""}, {"match": "fuzzy"}, {"since": "yesterday"}, {"limit": -1}])
def test_a_query_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ConfigError):
        CdxServerQuery(**{"url": "x", **wrong})
