"""TimeMaps: read, written, read again."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats import timemap
from recrawl.formats.columnar import capture_batches
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import (
    ArchiveUris,
    MapPage,
    TimeMap,
    TimeMapMemento,
    mementos_of,
    paged,
    read_timemap,
    read_timemap_file,
    to_batches,
    to_cdxj,
    to_json,
    to_link,
)

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "formats"
DATE = "Sat, 02 Feb 2013 10:00:00 GMT"
TIME = 1359799200.0

FORMS = {
    "link": lambda timemap: "".join(to_link(timemap)).encode(),
    "json": lambda timemap: to_json(timemap).encode(),
    "cdxj": lambda timemap: "".join(to_cdxj(timemap)).encode(),
}


def read(data: bytes | str, *, bad: int = 0) -> TimeMap:
    report = ReadReport()
    found = read_timemap(data.encode() if isinstance(data, str) else data, "x", report)
    assert report.bad == bad
    return found


def test_a_real_map():
    found = read((SAMPLES / "ipwb" / "5mementos.link").read_bytes())
    assert (len(found.mementos), found.original) == (5, "http://memento.us/")
    assert found.mementos[0] == TimeMapMemento(
        "http://localhost:2016/memento/20130202100000/memento.us/", "http://memento.us/", TIME
    )
    assert found.self_uri == "http://localhost:2016/timemap/link/memento.us"
    assert found.timegate == "http://localhost:2016/timegate/memento.us"
    assert found.pages == ()  # the CDXJ form of the same map is not a further page


@pytest.mark.big
@pytest.mark.parametrize("number", range(4))
def test_the_three_forms_of_real_maps_say_the_same(data_folder, number):
    folder = data_folder / "formats" / "timemap" / "derived"
    found = [read((folder / f"tm{number}.{form}").read_bytes()) for form in FORMS]
    lines = (folder / f"tm{number}.cdxj").read_bytes().splitlines()
    assert len(found[0].mementos) == sum(line[:1].isdigit() for line in lines) > 10
    assert found[0].mementos == found[1].mementos == found[2].mementos
    for form, listed in zip(FORMS, found, strict=True):
        assert read(FORMS[form](listed)) == listed


# -- round trips ----------------------------------------------------------------------------------

uris = st.text("abz019-._~:/?#[]@!$&'()*+,;=%é漢", max_size=30).map(lambda tail: "http://a.example/" + tail)
times = st.integers(631_152_000, 4_133_980_799).map(float)


@st.composite
def timemaps(draw):
    original = draw(uris)
    mementos = draw(st.lists(st.tuples(uris, times), max_size=8))
    first = [TimeMapMemento(uri, original, time) for uri, time in sorted(mementos, key=lambda one: one[1])]
    pages = draw(st.lists(st.builds(MapPage, uris, times, times), max_size=3, unique_by=lambda page: page.uri))
    self_uri = draw(uris.filter(lambda uri: uri not in {page.uri for page in pages}))
    return TimeMap(tuple(first), tuple(pages), original, draw(uris | st.just("")), self_uri)


@pytest.mark.parametrize("form", FORMS)
@given(timemap=timemaps())
def test_what_is_written_is_read_again(form, timemap):
    assert read(FORMS[form](timemap)) == timemap


@given(timemaps(), st.integers(1, 4))
def test_pages_hold_everything_once_and_can_be_followed(timemap, size):
    whole = TimeMap(timemap.mementos, (), timemap.original, timemap.timegate, "http://tm.example/1")
    pages = {page.self_uri: FORMS["link"](page) for page in paged(whole, lambda n: f"http://tm.example/{n}", size)}
    seen, waiting, collected = set(), ["http://tm.example/1"], []
    while waiting:
        uri = waiting.pop()
        if uri not in seen:
            seen.add(uri)
            page = read(pages[uri])
            assert len(page.mementos) <= size
            collected += page.mementos
            waiting += [further.uri for further in page.pages]
    assert seen == pages.keys()
    assert sorted(collected) == sorted(whole.mementos)


def test_a_page_says_from_when_until_when():
    mementos = tuple(TimeMapMemento(f"http://m.example/{n}", "http://a.example/", TIME + n) for n in range(4))
    first, second = paged(TimeMap(mementos, (), "http://a.example/", "", "http://t.example/"), str, 2)
    assert first.pages == (MapPage("2", TIME + 2, TIME + 3),)
    assert second.pages == (MapPage("http://t.example/", TIME, TIME + 1),)
    own = next(line for line in "".join(to_link(first)).splitlines() if 'rel="self"' in line)
    assert f'from="{DATE}"' in own
    assert 'until="Sat, 02 Feb 2013 10:00:01 GMT"' in own


def test_what_would_end_a_uri_is_written_in_percent():
    timemap = TimeMap((TimeMapMemento('http://m.example/a>b "c', "http://a.example/", TIME),), (), "http://a.example/")
    assert read(FORMS["link"](timemap)).mementos[0].uri == "http://m.example/a%3Eb%20%22c"


# -- link-format ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "link",
    [
        f'<http://m/1,2>;rel="memento";datetime="{DATE}"',
        f'<http://m/1,2> ; datetime="{DATE}" ; rel=memento',
        f'< http://m/1,2 >; REL="first  Memento last"; title="\\"a\\", <thing>; x"; datetime="{DATE}"; license=x;',
        f'<http://m/1,2>; rel="memento"\r\n\t; datetime="{DATE}",,',
    ],
)
def test_the_ways_to_write_a_link(link):
    found = read(f'<http://a/>; rel="original",\n{link}')
    assert found.mementos == (TimeMapMemento("http://m/1,2", "http://a/", TIME),)


def test_further_pages():
    found = read(
        '<http://a/>; rel="original",<http://t/1>; rel="self"; from="x",'
        f'<http://t/2>; rel="timemap"; type="application/link-format"; from="{DATE}",'
        '<http://t/3>; rel="timemap",<http://t/1>; rel="timemap",<http://t/3>; rel="timemap",'
        '<http://t/j>; rel="timemap"; type="application/json"'
    )
    assert [page.uri for page in found.pages] == ["http://t/2", "http://t/3"]
    assert found.pages[0].start == TIME


def test_the_original_may_come_last_or_be_within_the_mementos():
    memento = f'<http://m/20130202100000id_/http://a/x?y,z>; rel="memento"; datetime="{DATE}"'
    assert read(memento).mementos[0].original == "http://a/x?y,z"
    assert read(f'{memento}, <http://b/>; rel="original"').mementos[0].original == "http://b/"
    assert read(f'<http://m/1>; rel="memento"; datetime="{DATE}"', bad=1).mementos == ()


def test_a_bad_link_is_reported_at_its_byte_and_the_rest_goes_on():
    told = []
    good = f'<http://m/1>; rel="memento"; datetime="{DATE}"'
    bad = ['<http://é/>; rel="memento"; datetime="soon"', "garbage", '<http://m/3>; rel="memento']
    early = good.replace("2013", "1980")
    data = ",\n".join(
        ['\ufeff<http://a/>; rel="original"', bad[0], good, bad[1], good, early, good, bad[2], good]
    ).encode()
    report = ReadReport(on_bad=told.append)
    found = read_timemap(data, "map.link", report)
    assert report.skipped == {"dated before 1990": 1}
    assert len(found.mementos) == 4
    marks = [bad[0].encode(), bad[1].encode(), b'"memento,']
    assert sorted(error.position for error in told) == [
        data.index(marks[0]),
        pytest.approx(data.index(marks[1]), abs=2),
        pytest.approx(data.index(marks[2]), abs=2),
    ]
    with pytest.raises(InputError, match=r"map\.link"):
        read_timemap(data, "map.link", ReadReport(strict=True))


# -- JSON and CDXJ --------------------------------------------------------------------------------


def test_json_as_pywb_and_the_wayback_machine_write_it():
    row = {"urlkey": "a)/", "timestamp": "20130202100000", "url": "http://a/", "mime": "text/html"}
    memento = TimeMapMemento("", "http://a/", TIME)
    assert read(json.dumps(row)).mementos == (memento,)
    assert read(f"{json.dumps(row)}\n{json.dumps(row)}\n").mementos == (memento, memento)
    assert read(f"{json.dumps(row)}\n{{\n{json.dumps(row)}\n", bad=1).mementos == (memento, memento)
    table = [["urlkey", "timestamp", "original"], ["a)/", "20130202100000", "http://a/"], "x"]
    assert read(json.dumps(table), bad=1).mementos == (memento,)
    listed = {"original_uri": "http://a/", "mementos": [{"datetime": "2013-02-02T10:00:00Z", "uri": "http://m"}, 7]}
    assert read(json.dumps(listed), bad=1).mementos == (TimeMapMemento("http://m", "http://a/", TIME),)


def test_cdxj_lines():
    found = read('!meta {"original_uri": "http://a/"}\n\n20130202100000 {"uri": "http://m"}\nnonsense\n', bad=1)
    assert found.mementos == (TimeMapMemento("http://m", "http://a/", TIME),)


def test_cdxj_as_pywb_gives_it():
    row = '{"url": "http://a/", "mime": "text/html", "status": "200", "digest": "ABC"}'
    found = read(f"a)/ 20130202100000 {row}\na)/ 20130202100001 {{}}\na)/ 20130202100002 {{broken}}\n", bad=1)
    assert found.mementos == (TimeMapMemento("", "http://a/", TIME), TimeMapMemento("", "http://a/", TIME + 1))


def test_pages_are_found_in_every_form():
    index = [{"uri": "http://t/2", "from": DATE}]
    pages = {"prev": {"uri": "http://t/0"}, "next": {"uri": "http://t/2"}}
    assert read(json.dumps({"original_uri": "http://a/", "timemap_index": index})).pages[0].start == TIME
    assert [page.uri for page in read(json.dumps({"pages": pages})).pages] == ["http://t/0", "http://t/2"]
    assert [page.uri for page in read(f"!meta {json.dumps({'timemap_index': index})}\n").pages] == ["http://t/2"]
    linked = read('<http://t/1>; rel="self",<http://t/2>; rel="next",<http://t/0>; rel="prev timemap"')
    assert [page.uri for page in linked.pages] == ["http://t/2", "http://t/0"]


fragments = st.sampled_from(
    ["<http://a/>", "; rel=", '"memento"', '; datetime="', DATE, '"', ",", "\\", "!meta {", "}", " "]
)


# -- files of any length --------------------------------------------------------------------------


class Trickle(io.BytesIO):
    """A file that gives what it wants."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._at_most = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self._at_most if size is None or size < 0 else min(size, self._at_most))


def streamed(data: bytes, size: int = 1 << 20) -> tuple[list[tuple[str, float]], list[tuple[str, int]]]:
    told: list[InputError] = []
    batches = read_timemap_file(Trickle(data, size), "x", ReadReport(on_bad=told.append))
    rows = [(row["url"], row["time"]) for batch in batches for row in batch.to_pylist()]
    return rows, sorted((error.what, error.position) for error in told)


def at_once(data: bytes) -> tuple[list[tuple[str, float]], list[tuple[str, int]]]:
    told: list[InputError] = []
    found = read_timemap(data, "x", ReadReport(on_bad=told.append))
    return [(one.original, one.time) for one in found.mementos], sorted((e.what, e.position) for e in told)


@pytest.mark.parametrize("form", FORMS)
@given(timemap=timemaps(), size=st.integers(3, 50))
def test_a_file_read_in_pieces_says_what_the_whole_says(form, timemap, size):
    data = FORMS[form](timemap)
    assert streamed(data, size) == at_once(data)
    assert streamed(gzip.compress(data)) == at_once(data)


@given(
    st.lists(fragments | st.just(f'<http://m/1>; rel="memento"; datetime="{DATE}",\n'), max_size=12), st.integers(3, 40)
)
def test_damage_is_told_alike_in_pieces_and_at_once(parts, size):
    data = ('<http://a/>; rel="original",\n' + "".join(parts)).encode()
    assert streamed(data, size)[0] == at_once(data)[0]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["link", "cdxj"])
def test_memory_is_that_of_a_piece_however_long_the_map_is(form):
    line = {
        "link": f'<http://m/20130202100000/http://a/>; rel="memento"; datetime="{DATE}",\n',
        "cdxj": '20130202100000 {"uri": "http://m/20130202100000/http://a/"}\n',
    }[form].encode()
    head = {"link": b'<http://a/>; rel="original",\n', "cdxj": b'!meta {"original_uri": "http://a/"}\n'}[form]
    count = 100_000
    file = io.BytesIO(head + line * count)
    tracemalloc.start()
    rows = sum(batch.num_rows for batch in read_timemap_file(file, "x", ReadReport(strict=True)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == count
    assert peak < 24 << 20  # a piece and what is found in it, as objects


def test_json_that_is_too_long_gets_its_sentence(monkeypatch):
    monkeypatch.setattr(timemap, "MAX_JSON", 1 << 20)
    data = b'{"original_uri": "http://a/", "x": "' + b"x" * (2 << 20) + b'"}'
    with pytest.raises(InputError, match="link-format or as CDXJ"):
        streamed(data)


@pytest.mark.parametrize("data", [b"hello", b"\x00", b"HTTP/1.1 200"])
def test_what_is_no_map_gets_its_sentence(data):
    with pytest.raises(InputError, match="not a TimeMap"):
        read(data)


def test_nothing_is_a_map_of_nothing():
    assert read(b" \n") == TimeMap(())


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 100_000, b'{"mementos": {"list": 3}, "timemap_index": {}}', b"{}"]
)
def test_absurd_json_does_no_harm(data):
    assert read_timemap(data, "x", ReadReport()).mementos == ()


@given(st.binary(max_size=200) | st.lists(fragments, max_size=12).map(lambda parts: "".join(parts).encode()))
def test_any_bytes_end_in_a_map_or_a_sentence(data):
    told: list[InputError] = []
    report = ReadReport(on_bad=told.append)
    found, refused = TimeMap(()), "not a TimeMap"
    try:
        found = read_timemap(data, "x", report)
    except InputError as error:
        refused = str(error)
    assert all(one.original for one in found.mementos)
    assert "not a TimeMap" in refused
    assert report.bad == len(told)
    assert all(0 <= error.position <= len(data) for error in told)


# -- captures -------------------------------------------------------------------------------------


def test_mementos_are_captures():
    mementos = [TimeMapMemento("http://m", f"http://a/{n}", TIME + n) for n in range(5)]
    batches = list(to_batches(mementos, ReadReport(), rows=2))
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    assert all(batch.schema == capture_batches.schema() for batch in batches)
    assert batches[0].to_pylist()[1] == {
        "url": "http://a/1", "key": "", "time": TIME + 1, "kind": 0, "status": 0, "mime": "", "digest": "",
        "size": -1, "file": "", "offset": -1, "length": -1,
    }  # fmt: skip
    again = list(mementos_of(batches, lambda url, timestamp: f"http://arc/{timestamp}/{url}"))
    assert again[1] == TimeMapMemento("http://arc/20130202100001/http://a/1", "http://a/1", TIME + 1)
    assert list(to_batches([], ReadReport())) == []


def test_a_fetch_that_failed_is_no_memento():
    [batch] = to_batches(
        [TimeMapMemento("", "http://a/", TIME), TimeMapMemento("", "http://a/", TIME + 1)], ReadReport()
    )
    place = batch.schema.get_field_index("kind")
    kinds = pa.array([capture_batches.RecordKind.FAILED, capture_batches.RecordKind.REVISIT_IDENTICAL], pa.uint8())
    failed = batch.set_column(place, batch.schema.field(place), kinds)
    assert [one.time for one in mementos_of([failed], ArchiveUris("http://x/").memento)] == [TIME + 1]


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_map_of_captures_is_read_back_with_all_its_addresses(form):
    url = "http://a.org/?q=<1>&n=é"
    uris = ArchiveUris.below("https://archive.example.org/mine")
    whole = uris.map_of(url, to_batches([TimeMapMemento("", url, TIME + n) for n in range(3)], ReadReport()), form)
    found = read_timemap(FORMS[form](whole), "x", ReadReport(strict=True))
    if form == "link":  # what would end a URI early is escaped there
        url = url.replace("<", "%3C").replace(">", "%3E")
    assert (found.original, found.timegate) == (url, uris.timegate(url))
    assert found.self_uri == f"https://archive.example.org/mine/timemap/{form}/{url}"
    assert found.mementos[0] == TimeMapMemento(uris.memento(url, "20130202100000"), url, TIME)


def test_only_the_first_and_last_of_all_pages_are_so_called():
    uris = ArchiveUris.below("http://x/")
    whole = uris.map_of(
        "http://a/", to_batches([TimeMapMemento("", "http://a/", TIME + n) for n in range(6)], ReadReport()), "link"
    )
    parts = paged(whole, lambda number: f"http://x/{number}", size=2)
    for form in (to_link, to_cdxj):
        texts = ["".join(form(part)) for part in parts]
        assert ["first memento" in text for text in texts] == [True, False, False]
        assert ["last memento" in text for text in texts] == [False, False, True]


def test_cdxj_and_json_name_the_other_forms():
    uris = ArchiveUris.below("http://x/")
    others = uris.timemaps("http://a/")
    whole = uris.map_of("http://a/", to_batches([TimeMapMemento("", "http://a/", TIME)], ReadReport()), "cdxj")
    meta = next(line for line in to_cdxj(whole, others) if line.startswith("!meta"))
    assert json.loads(meta.removeprefix("!meta"))["timemap_uri"] == others
    assert others["cdxj_format"] == whole.self_uri


@pytest.mark.parametrize(
    "base", ["", "archive.org", "ftp://x/", "http://", "http://x/?a", "http://x/#a", "http://x/ y", "http://[x"]
)
def test_where_no_archive_can_be_is_refused(base):
    with pytest.raises(InputError, match="is not where an archive can be"):
        ArchiveUris.below(base)
