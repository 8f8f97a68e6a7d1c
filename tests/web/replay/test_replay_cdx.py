"""The CDX server API (conventions A1 to A5)."""

import json
from urllib.parse import quote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.formats.cdx.cdx_responses import read_answer
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.time import to_http_date
from recrawl.web.replay import cdx_server
from recrawl.web.replay.cdx_server import query_of, resume_key
from recrawl.web.replay.replay_port import moment_of

HOME = "http://site.example/"
KEY = "example,site)/"


def asked(server, query, way="archive/cdx"):
    answer = server.ask(f"{way}?{query}")
    assert answer.status == 200, answer.text
    return answer


def rows(server, query):
    return [line.split(" ") for line in asked(server, query).text.splitlines()]


def stamps(server, query):
    return [row[1][8:12] for row in rows(server, query)]


@pytest.mark.parametrize("way", ["archive/cdx", "cdx/search/cdx"])
def test_a_line_has_the_eleven_fields_of_an_index(server, way):
    first, *_, last = asked(server, f"url={HOME}", way).text.splitlines()
    key, timestamp, original, mime, status, digest, redirect, robots, length, offset, file = first.split(" ")
    assert (key, timestamp, original, mime, status) == (KEY, "20240101000000", HOME, "text/html", "200")
    assert len(digest) == 32
    assert (redirect, robots) == ("-", "-")
    assert int(length) > 0 < int(offset)
    assert file.endswith(".warc.gz")
    assert last.split(" ")[1] == "20240101050000"


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("url=site.example", 4),
        ("url=site.example&matchType=exact", 4),
        (f"urlkey={quote(KEY)}", 4),
        ("url=site.example/dir/*", 1),
        ("url=site.example/&matchType=prefix", 12),
        ("url=site.example/d&matchType=prefix", 1),
        ("url=site.example/anything&matchType=host", 12),
        ("url=*.site.example", 13),
        ("url=site.example&matchType=domain", 13),
        ("url=example&matchType=domain", 13),
        ("url=never.example/*", 0),
    ],
)
def test_which_pages_are_meant(server, query, count):
    assert len(rows(server, query)) == count


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("from=2024", ["0000", "0100", "0200", "0500"]),
        ("to=2023", []),
        ("from=2024010101&to=2024010102", ["0100", "0200"]),
        ("from=20240101010000&to=20240101010000", ["0100"]),
        ("from=20240101010001", ["0200", "0500"]),
    ],
)
def test_spans_are_padded_and_include_their_ends(server, span, expected):
    assert stamps(server, f"url={HOME}&{span}") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=2", ["0000", "0100"]),
        ("limit=-2", ["0200", "0500"]),
        ("limit=-1&from=2024&to=2024010102", ["0200"]),
        ("limit=2&offset=1", ["0100", "0200"]),
        ("sort=reverse", ["0500", "0200", "0100", "0000"]),
        ("sort=reverse&limit=1", ["0500"]),
        ("sort=closest&closest=20240101013100", ["0200", "0100", "0000", "0500"]),
        ("sort=closest&closest=2024010102&limit=2", ["0200", "0100"]),
        ("filter=statuscode:304", ["0100"]),
        ("filter=!statuscode:304&limit=2", ["0000", "0200"]),
        ("filter=status:3.4", ["0100"]),
        ("filter=statuscode:3", []),
        ("filter=~status:3", ["0100"]),
        ("filter==status:200", ["0000", "0200", "0500"]),
        ("filter=!=status:200", ["0100"]),
        ("filter=!~mime:warc/", ["0000", "0500"]),
        ("filter=mimetype:text/.*&filter=timestamp:.*05....$", ["0500"]),
        ("filter=original:.*site.*&filter=statuscode:200&offset=1&limit=1", ["0200"]),
        ("collapse=digest", ["0000", "0500"]),
        ("collapseToFirst=digest", ["0000", "0500"]),
        ("collapseToLast=digest", ["0200", "0500"]),
        ("collapse=timestamp:8", ["0000"]),
        ("collapse=digest&limit=-1", ["0500"]),
        ("collapse=digest&limit=1", ["0000"]),
        ("gzip=false&unknownWord=1", ["0000", "0100", "0200", "0500"]),
    ],
)
def test_sorting_cutting_sifting_and_collapsing(server, query, expected):
    assert stamps(server, f"url={HOME}&{query}") == expected


def test_collapsing_works_over_the_pieces_in_which_the_store_is_read(server, monkeypatch):
    monkeypatch.setattr(cdx_server, "_FIRST_PIECE", 1)
    monkeypatch.setattr(cdx_server, "_PIECE", 1)
    assert stamps(server, f"url={HOME}&collapse=digest") == ["0000", "0500"]
    assert stamps(server, f"url={HOME}&collapseToLast=digest&limit=1") == ["0200"]
    assert stamps(server, f"url={HOME}&filter=statuscode:200&offset=1&limit=1") == ["0200"]


def test_fields_are_given_under_the_names_they_are_asked_by(server):
    assert rows(server, f"url={HOME}&fl=timestamp,status&limit=1") == [["20240101000000", "200"]]
    table = json.loads(asked(server, f"url={HOME}&fields=url,mime&output=json&limit=1").text)
    assert table == [["url", "mime"], [HOME, "text/html"]]


def test_output_in_each_form(server):
    query = f"url={HOME}&limit=2"
    table = json.loads(asked(server, f"{query}&output=json").text)
    assert table[0][:5] == ["urlkey", "timestamp", "original", "mimetype", "statuscode"]
    assert table[2][3] == "warc/revisit"
    objects = [json.loads(line) for line in asked(server, f"{query}&output=ndjson").text.splitlines()]
    assert objects[0] | {"urlkey": KEY, "timestamp": "20240101000000", "url": HOME, "mime": "text/html"} == objects[0]
    assert objects[0]["status"] == "200"
    key, timestamp, fields = asked(server, f"{query}&output=cdxj").text.splitlines()[0].split(" ", 2)
    assert (key, timestamp, json.loads(fields)["url"]) == (KEY, "20240101000000", HOME)
    links = asked(server, f"{query}&output=link")
    assert links.header("content-type") == "application/link-format"
    assert f'<{server.base}archive/20240101000000/{HOME}>; rel="memento"; datetime="Mon, 01 Jan' in links.text
    assert asked(server, "url=never.example&output=json").text == "[]\n"


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("limit", [1, 3, 5, 20])
@pytest.mark.parametrize("more", ["", "&sort=reverse", "&filter=!statuscode:404", "&collapse=urlkey"])
def test_resuming_gives_the_whole_answer(server, output, limit, more):
    def part(key):
        query = f"url=*.site.example{more}&output={output}&showResumeKey=true&limit={limit}&fl=urlkey,timestamp"
        answer = asked(server, query + (f"&resumeKey={key}" if key else ""))
        if output == "json":
            table = json.loads(answer.text)[1:]
            return (table[:-2], table[-1][0]) if [] in table else (table, "")
        lines = answer.text.splitlines()
        found, resume = (lines[:-2], lines[-1]) if "" in lines else (lines, "")
        assert answer.header("x-recrawl-resume-key") == (resume or None)
        return [line.split(" ") for line in found], resume

    everything = rows(server, f"url=*.site.example{more}&fl=urlkey,timestamp")
    found, key = part("")
    while key:
        assert len(found) <= len(everything)
        following, key = part(key)
        found += [row for row in following if "collapse" not in more or row[0] != found[-1][0]]
    assert found == everything
    assert unquote_plus(resume_key("a)/", 1.5)) == "a)/ 1.500000"


def test_pages_of_an_answer(server, monkeypatch):
    monkeypatch.setattr("recrawl.web.replay.cdx_server.BLOCK_LINES", 3)
    query = "url=*.site.example&pageSize=2&fl=urlkey,timestamp"
    assert asked(server, f"{query}&showNumPages=true").text == "3\n"
    assert json.loads(asked(server, f"{query}&showNumPages=true&output=json").text)["pages"] == 3
    pieces = [rows(server, f"{query}&page={number}") for number in range(4)]
    assert [len(piece) for piece in pieces] == [6, 6, 1, 0]
    assert [row for piece in pieces for row in piece] == rows(server, "url=*.site.example&fl=urlkey,timestamp")


def test_revisits_are_resolved_to_where_their_bytes_lie(server):
    first, not_modified, *_ = rows(server, f"url={HOME}&resolveRevisits=true")
    assert first[-3:] == ["-", "-", "-"]
    assert not_modified[-3:] == first[8:11]


def test_the_bytes_of_revisits_are_not_looked_for_without_end(server, monkeypatch):
    query = f"url={HOME}&resolveRevisits=true"
    asked_for = []
    monkeypatch.setattr(cdx_server, "original_among", _counted(cdx_server.original_among, asked_for))
    assert len(rows(server, query)) == 4
    assert len(asked_for) == 1  # both revisits repeat one record
    monkeypatch.setattr(cdx_server, "MOST_LOOKED_AT", 2)
    answer = server.ask(f"archive/cdx?{query}")
    assert (answer.status, "fewer lines" in answer.text) == (400, True)


def _counted(work, calls):
    def counted(*arguments):
        calls.append(arguments)
        return work(*arguments)

    return counted


@pytest.mark.parametrize(
    "query",
    [
        "",
        f"url={HOME}{'&filter=!=status:1' * 21}",
        f"url={HOME}{'&collapse=status' * 21}",
        "url=",
        "url=ftp://x/",
        f"url={HOME}&limit=many",
        f"url={HOME}&from=yesterday",
        f"url={HOME}&from=20240230",
        f"url={HOME}&to=123456789012345",
        f"url={HOME}&filter=nothing",
        f"url={HOME}&filter=color:red",
        f"url={HOME}&filter=status:(",
        f"url={HOME}&filter=status:{'a' * 600}",
        f"url={HOME}&collapse=color",
        f"url={HOME}&collapse=timestamp:x",
        f"url={HOME}&fl=color",
        f"url={HOME}&output=xml",
        f"url={HOME}&sort=sideways",
        f"url={HOME}&sort=closest",
        f"url={HOME}*&sort=closest&closest=2024",
        f"url={HOME}&matchType=fuzzy",
        f"url={HOME}&resumeKey=nonsense",
        f"url={HOME}&page=-1",
        f"url={HOME}&showNumPages=maybe",
    ],
)
def test_a_query_that_makes_no_sense_is_refused_with_a_sentence(server, query):
    answer = server.ask(f"archive/cdx?{query}")
    assert answer.status == 400
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert len(answer.text) > 20


def test_a_pattern_cannot_keep_the_server_busy(server):
    """It would take longer than the universe lasts if it were tried by going back."""
    pattern = quote("(a|aa)+$")
    assert rows(server, f"url={quote(HOME + 'a' * 2000)}&filter=original:{pattern}") == []
    assert rows(server, f"url={HOME}&filter=digest:{quote('([A-Z0-9]+)+!')}") == []


@pytest.mark.parametrize("output", ["text", "json", "ndjson", "cdxj"])
def test_our_own_importer_reads_what_we_answer(server, output):
    answer = asked(server, f"url=*.site.example&output={output}")
    import io

    [batch] = (
        list(read_answer(io.BytesIO(answer.body), "answer", ReadReport(strict=True)))
        if output != "cdxj"
        else _cdxj(answer)
    )
    assert batch.num_rows == 13
    assert set(batch.column("url").to_pylist()) >= {HOME, "http://sub.site.example/"}
    assert batch.column("kind").to_pylist().count(1) + batch.column("kind").to_pylist().count(2) == 2


def _cdxj(answer):
    import io

    from recrawl.formats.cdx.cdxj import read_cdxj

    return list(read_cdxj(io.BytesIO(answer.body), "answer", ReadReport(strict=True)))


LINES = f"""{KEY}new 20230101000000 {HOME}new text/html 200 {"A" * 32} - - 10 20 other.warc.gz
{KEY}new 20230102000000 {HOME}new text/html 200 {"B" * 32} - - 10 30 other.warc.gz
"""


@pytest.fixture
def fresh(make_server):
    return make_server(filled=False)


def test_lines_that_are_sent_are_found_judged_and_forgotten(fresh):
    answer = fresh.send("archive", LINES)
    assert (answer.status, answer.text) == (200, "Added 2 records\n")
    assert [row[1] for row in rows(fresh, f"url={HOME}new")] == ["20230101000000", "20230102000000"]
    with fresh.stores.one() as store:
        page = store.find(f"{HOME}new")
        assert store.visits().verdict.tolist() == [0, 2]
        assert store.capture_ends(page.id).count == 2
    bare = fresh.ask(f"archive/20230101000000id_/{HOME}new")
    assert bare.status == 404
    assert "not in this workspace" in bare.text
    again = fresh.send("archive/delete", LINES.splitlines()[0] + "\n")
    assert (again.status, again.text) == (200, "Deleted 1 records\n")
    assert [row[1] for row in rows(fresh, f"url={HOME}new")] == ["20230102000000"]


def test_pages_that_lines_name_are_visited_only_if_that_is_asked_for(fresh, server):
    """Whoever sends lines does not order visits; pages that were known before stay as they were."""
    with fresh.stores.one() as store:
        store.discover([f"{HOME}ours"], 1_000.0)
        before = store.backlog(2e9).due
    also = LINES + f"{KEY}ours 20230101000000 {HOME}ours text/html 200 {'A' * 32} - - 10 20 other.warc.gz\n"
    assert fresh.send("archive", also).text == "Added 3 records\n"
    with fresh.stores.one() as store:
        assert store.backlog(2e9).due == before == 1
        assert store.find(f"{HOME}new").importance == 0.0
        assert store.find(f"{HOME}ours").importance == 1.0
    assert fresh.send("archive?schedule=maybe", also).status == 400
    assert fresh.send("archive?schedule=true", also).text == "Added 3 records\n"
    with fresh.stores.one() as store:
        assert store.backlog(2e9).due == 2
        assert store.find(f"{HOME}new").importance == 1.0


@pytest.mark.parametrize("place", ["other.warc.gz", "-", "{file}"], ids=["missing file", "no file", "another record"])
def test_a_capture_without_bytes_is_never_provably_valid(make_server, place):
    """Not at its own second, not between two lines that agree, and not if it names the record of another page."""
    archive = make_server()
    [file] = [one.name for one in archive.place.warc.glob("*.warc.gz")]
    offset = next(row[-2] for row in rows(archive, f"url={HOME}") if row[4] == "200")
    where = f"{offset} {place.format(file=file)}"
    lines = "".join(
        f"{KEY}planted 2023010{day}000000 {HOME}planted text/html 200 {'A' * 32} - - 10 {where}\n" for day in (1, 3)
    )
    assert archive.send("archive", lines).text == "Added 2 records\n"
    for at in ("20230101000000", "20230102000000", "20230103000000"):
        answer = archive.ask(f"api/memento?url={HOME}planted&at={at}")
        assert answer.status == 200, answer.text
        said = json.loads(answer.text)
        assert said["provably_valid"] is False
        assert said["expected_changes"] == 0.0  # what the lines say is still of use
        date = to_http_date(moment_of(at))
        gate = archive.ask(f"archive/{HOME}planted", Accept_Datetime=date)
        assert (gate.status, gate.header("x-recrawl-provably-valid")) == (302, "no")
        memento = archive.ask(f"archive/{at[:8]}000000id_/{HOME}planted")
        assert memento.status in {302, 404}
        assert memento.header("x-recrawl-provably-valid") != "yes"
    ours = archive.ask(f"archive/{HOME}", Accept_Datetime="Mon, 01 Jan 2024 00:30:00 GMT")
    assert ours.header("x-recrawl-provably-valid") == "yes"


def test_one_bad_line_spoils_all_unless_it_may_be_passed_over(fresh):
    bad = LINES + "this is no line\n"
    refused = fresh.send("archive", bad)
    assert refused.status == 400
    assert "fields" in refused.text
    assert rows(fresh, f"url={HOME}new") == []
    taken = fresh.send("archive?badLines=skip", bad)
    assert taken.text == "Added 2 records\nSkipped 1 bad lines\n"
    assert len(rows(fresh, f"url={HOME}new")) == 2
    assert fresh.send("archive", "").status == 400


def test_what_we_answer_can_be_sent_to_another_archive(server, fresh):
    lines = asked(server, "url=*.site.example&output=cdxj").body
    assert fresh.send("archive", lines).text == "Added 13 records\n"
    query = "url=*.site.example&fl=urlkey,timestamp,original,digest,filename,offset"
    assert rows(fresh, query) == rows(server, query)


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=30), st.floats(-1e9, 1e10))
def test_resume_keys_survive_their_way(key, time):
    key = "".join(sign for sign in key if not sign.isspace()) or "x"
    found = query_of([("url", HOME), ("resumeKey", resume_key(key, time))]).keys.beyond
    assert found == (key, float(f"{time:.6f}"))
