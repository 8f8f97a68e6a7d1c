"""Clients that never say what they want do not keep others from an answer."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from recrawl.web import servers
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.dashboard_app import DashboardSite, make_app
from recrawl.web.dashboard.routes import View
from recrawl.web.servers import _server

HALVES = (b"", b"GET /api/thing HT", b"GET /api/thing HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")


@contextmanager
def serving(app):
    """The port at which an application is served as ``recrawl serve`` does it."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        server = _server(app)
        assert isinstance(server, uvicorn.Server)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)


@pytest.fixture
def port():
    over = threading.Event()
    view = View("/thing", "/api/thing", "Thing", "A thing.", lambda _: {"there": True})
    slow = View("/slow", "/api/slow", "Slow", "A slow thing.", lambda _: {"waited": over.wait(120)})
    with serving(make_app(DashboardSite("test", [view, slow], guard=AccessGuard(), clock=lambda: 0.0))) as found:
        yield found
        over.set()


def connected(port, begin=b""):
    one = socket.create_connection(("127.0.0.1", port), timeout=60)
    one.sendall(begin)
    return one


def is_closed(one):
    """Whether the server closes it, sooner or later."""
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def test_many_that_never_finish_make_room_for_who_does(port, ask):
    slow = [connected(port, HALVES[number % 3]) for number in range(3 * servers.MOST)]
    for _ in range(5):
        assert ask(port, "/api/thing")[0] == 200
    assert all(is_closed(one) for one in slow[: servers.MOST])  # the oldest went first
    for one in slow:
        one.close()


def test_one_that_says_nothing_is_closed_after_a_while(port, ask, monkeypatch):
    monkeypatch.setattr(servers, "HEAD_WITHIN", 0.05)
    for half in HALVES:
        with connected(port, half) as one:
            assert is_closed(one)
    with connected(port, b"GET /api/thing HTTP/1.1\r\nHost: localhost\r\n\r\n") as one:
        assert one.recv(65_536).startswith(b"HTTP/1.1 200")
        one.sendall(HALVES[1])
        while one.recv(65_536):
            pass  # the rest of the answer, and then the end
    assert ask(port, "/api/thing")[0] == 200


def test_one_that_is_answered_is_left_alone(port, monkeypatch):
    monkeypatch.setattr(servers, "HEAD_WITHIN", 0.02)
    monkeypatch.setattr(servers, "MOST", 4)
    with connected(port, b"GET /api/slow HTTP/1.1\r\nHost: localhost\r\n\r\n") as patient:
        others = []
        for _ in range(40):
            others.append(connected(port))
            time.sleep(0.01)
        assert all(is_closed(one) for one in others[:30])
        patient.settimeout(0.2)
        with pytest.raises(TimeoutError):  # nothing came, and it was not closed
            patient.recv(1)
        for one in others:
            one.close()
