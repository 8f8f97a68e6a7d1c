"""pywb and warcio judge a capture of a site on several hosts: everything that its pages show is there."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SHEET, PICTURE = "text/css", "image/png"


@pytest.fixture
def shop():
    """A shop whose style sheet, script, font and pictures lie on two other hosts; its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            name, _, port = self.headers["Host"].partition(":")
            cdn, img = f"http://cdn.localhost:{port}", f"http://img.localhost:{port}"
            head = f"<link rel=stylesheet href={cdn}/shop.css><script src={cdn}/shop.js></script>"
            body = f"<h1>{self.path}</h1><a href=/b>b</a><img src={img}/a.png><img src=/logo.png>"
            page = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
            answers = {
                "shop.localhost/": ("text/html", page),
                "shop.localhost/b": ("text/html", page),
                "shop.localhost/logo.png": (PICTURE, "logo"),
                "cdn.localhost/shop.css": (
                    SHEET,
                    f"body{{background:url({img}/back.png)}}@font-face{{src:url(/f.woff2)}}",
                ),
                "cdn.localhost/shop.js": ("text/javascript", "1"),
                "cdn.localhost/f.woff2": ("font/woff2", "font"),
                "img.localhost/a.png": (PICTURE, "a"),
                "img.localhost/back.png": (PICTURE, "back"),
            }
            kind, body = answers.get(name + self.path, ("text/plain", ""))
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://shop.localhost:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_pywb_shows_pages_with_all_that_they_embed(recrawl, tmp_path, shop, tool, pywb):
    place = tmp_path / "ws"
    local = ("--set", "fetch.contact=me@example.org", "--set", "fetch.allow_networks=127.0.0.0/8 ::1")
    recrawl("init", place, *local)
    recrawl("capture", shop, "-w", place, "--delay", "5ms")
    [file] = (place / "warc").glob("*.warc.gz")
    assert tool("warcio", "check", "-v", file).returncode == 0
    base, port = pywb(place / "warc"), shop.rsplit(":", 1)[1].rstrip("/")
    for page in ("", "b"):
        with urllib.request.urlopen(f"{base}/mp_/{shop}{page}") as answer:
            html = answer.read().decode()
        shown = re.findall(rf"/(https?://[a-z.]+):{port}(/[a-z.]+)", html)
        names = {host.split("//")[1] + path for host, path in shown}
        assert {"cdn.localhost/shop.css", "cdn.localhost/shop.js", "img.localhost/a.png"} <= names
    for name in (
        "cdn.localhost/shop.css",
        "cdn.localhost/f.woff2",
        "img.localhost/back.png",
        "shop.localhost/logo.png",
    ):
        host, _, path = name.partition("/")
        with urllib.request.urlopen(f"{base}/id_/http://{host}:{port}/{path}") as answer:
            assert answer.status == 200
            assert answer.read()
    recrawl("export", tmp_path / "shop.wacz", "-w", place)
    with zipfile.ZipFile(tmp_path / "shop.wacz") as package:
        composites = json.loads(package.read("quality/composites.json"))["composites"]
        capture = json.loads(package.read("captures/capture-1.json"))
    assert (capture["pagesFound"], capture["pageRequisites"], capture["hosts"]) == (8, 6, 3)
    assert capture["quality"]["coherence"]["coherent"] == 8
    assert composites["completeness"] == 1.0
    assert tool("wacz", "validate", "-f", tmp_path / "shop.wacz").returncode == 0
