"""Transfers leave nothing open behind them."""

from __future__ import annotations

import select
from types import SimpleNamespace

import pycurl
import pytest

from recrawl.fetch.transfers import Transfers


class Unwilling(SimpleNamespace):
    """libcurl, but for a multi that does not close."""

    class CurlMulti:
        def setopt(self, *_option: object) -> None:
            pass

        def close(self) -> None:
            raise pycurl.error(3, "not now")

    def __getattr__(self, name: str) -> object:
        return getattr(pycurl, name)


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="this system has no epoll")
def test_what_watches_sockets_is_closed_also_if_libcurl_is_not():
    transfers = Transfers(Unwilling(), 8)
    watching = transfers._epoll
    with pytest.raises(pycurl.error, match="not now"):
        transfers.close()
    assert watching.closed
    with pytest.raises(pycurl.error, match="not now"):
        transfers.close()
    assert watching.closed, "closing twice is harmless"
