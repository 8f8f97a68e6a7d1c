"""Access to the outside: one request in, one capture out, and what robots.txt allows.

A failed fetch is data: a :class:`recrawl.model.Capture` with status 0 and the reason in words. No exception
about the remote side leaves this room.
"""

from recrawl.fetch.http import HttpFetcher, Limits
from recrawl.fetch.request import Fetcher, Request
from recrawl.fetch.robots import RobotsCache, Rules

__all__ = ["Fetcher", "HttpFetcher", "Limits", "Request", "RobotsCache", "Rules"]
