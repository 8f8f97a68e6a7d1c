"""Bytes are read only from files of the workspace and from those that somebody imported; packages are up to date."""

import json
import zipfile
from io import BytesIO

import numpy as np
import pytest

from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.store.store_values import FoundPages
from recrawl.time import VirtualClock
from recrawl.transfer.archive_import import Importer
from recrawl.transfer.import_sources import ImportSources
from recrawl.web.dashboard.workspace_dashboard import WorkspaceDashboard
from recrawl.web.replay.workspace_archive import WaczPackage

URL = "http://private.example/"
SECRET = b"<p>the combination of the safe is 31415"
MADE = 1_704_067_200.0
AT = "20240101000000"


def import_(place, *paths):
    with place.open_store() as store:
        importer = Importer(store, VirtualClock(MADE))
        for path in paths:
            assert sum(
                one.accepted for one in ImportSources(store, importer, VirtualClock(MADE), place.warc).bring(path)
            )
        importer.judge()


@pytest.fixture
def private(tmp_path):
    """A WARC file that nobody meant to show, and an index from elsewhere that names it."""
    writer = WarcWriter(tmp_path / "private", VirtualClock(MADE), durable=False)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    places = [writer.write(Capture(URL, MADE + day, 200, head, SECRET + b"%d" % day)) for day in (0, 86_400)]
    writer.close()
    warc = tmp_path / "private" / places[0].file
    index = tmp_path / "index.cdxj"
    lines = [
        f"example,private)/ {AT[:6]}{1 + day:02}000000 "
        + json.dumps({"url": URL, "mime": "text/html", "status": "200", "digest": place.ref.payload_digest[5:],
                      "length": str(place.length), "offset": str(place.offset), "filename": str(warc)})
        for day, place in enumerate(places)
    ]  # fmt: skip
    index.write_text("\n".join(lines) + "\n")
    return warc, index


def told_of(server):
    """Everything that serving tells of the page."""
    told = [server.ask(f"archive/{AT}{modifier}/{URL}").body for modifier in ("", "id_", "if_")]
    with server.place.open_store() as store:
        [page] = store.discover([URL], MADE).tolist()
    answers = WorkspaceDashboard(server.place, server.stores, VirtualClock(MADE + 1e6).now)
    told.append(json.dumps(answers.explanation(page, None, changed=False)).encode())
    package = server.ask("archive.wacz")
    if package.status == 200:
        with zipfile.ZipFile(BytesIO(package.body)) as parts:
            told += [parts.read(name) for name in parts.namelist()]
            told.append("\n".join(parts.namelist()).encode())
    return told


def test_an_index_from_elsewhere_opens_no_file_that_nobody_imported(make_server, private):
    warc, index = private
    server = make_server(filled=False)
    import_(server.place, index)
    assert server.ask(f"archive/cdx?url={URL}").text.count(warc.name) == 2
    assert server.ask(f"archive/{AT}id_/{URL}").status == 404
    for told in told_of(server):
        assert b"31415" not in told
        assert warc.name.encode() not in told or b"filename" in told
    import_(server.place, warc)
    assert server.ask(f"archive/{AT}id_/{URL}").body == SECRET + b"0"
    names = told_of(server)[-1].decode()
    assert f"archive/{warc.name}" in names


def test_a_capture_is_shown_while_its_file_is_written_and_once_it_is_closed(make_server, private):
    warc, index = private
    server = make_server(filled=False)
    index.write_text(index.read_text().replace(str(warc), "crawl.warc.gz"))
    import_(server.place, index)
    still_open = server.place.warc / "crawl.warc.gz.open"
    still_open.write_bytes(warc.read_bytes())
    assert server.ask(f"archive/{AT}id_/{URL}").body == SECRET + b"0"
    still_open.rename(still_open.with_suffix(""))
    assert server.ask(f"archive/{AT}id_/{URL}").body == SECRET + b"0"


@pytest.mark.parametrize("name", ["../../private/x.warc.gz", "sub/../../../x.warc.gz"])
def test_no_name_leads_out_of_the_archive_folder(make_server, private, name):
    warc, index = private
    server = make_server(filled=False)
    target = (server.place.warc / name).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(warc.read_bytes())
    index.write_text(index.read_text().replace(str(warc), name))
    import_(server.place, index)
    assert server.ask(f"archive/{AT}id_/{URL}").status == 404


def test_a_package_is_made_anew_when_anything_in_it_changes(make_server, private):
    warc, _ = private
    place = make_server().place
    package = WaczPackage(place, VirtualClock(MADE))

    def made():
        file = package()
        with zipfile.ZipFile(file) as parts:
            return file.stat().st_mtime_ns, set(parts.namelist())

    first, names = made()
    (place.warc / "crawl.warc.gz.open").write_bytes(b"grows while a crawl is at work, and is not packed")
    assert made() == (first, names)
    with place.open_store() as store:
        none = np.empty(0, np.int64)
        nothing = FoundPages(none, none, np.empty(0), np.empty(0))
        number = store.begin_site_capture(URL, "{}", delay=0.0, now=MADE, known=nothing)
        store.finish_site_capture(number, json.dumps({"quality": {}}), MADE + 1)
    second, stated = made()
    assert second != first
    assert stated - names == {f"captures/capture-{number}.json"}
    import_(place, warc)
    third, more = made()
    assert third != second
    assert more - stated == {f"archive/{warc.name}"}
