"""A real server before an application, and a plain client."""

from __future__ import annotations

import http.client
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
import uvicorn


@contextmanager
def _served(app):
    """The port at which an application is served meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)


def _ask(port, path, method="GET", body=None, **headers):
    """The answer, its headers by lower-case name, and its text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named.setdefault("content-type", "application/x-www-form-urlencoded")
    connection.request(method, path, body=None if body is None else urlencode(body), headers=named)
    response = connection.getresponse()
    text = response.read().decode()
    found = {name.lower(): value for name, value in response.getheaders()}
    connection.close()
    return response.status, found, text


@pytest.fixture(scope="session")
def served():
    """``with served(app) as port``."""
    return _served


@pytest.fixture(scope="session")
def ask():
    """``ask(port, path)`` gives status, headers and text; keywords are headers."""
    return _ask
