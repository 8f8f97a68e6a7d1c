"""How the crawler carries out what access methods ask: it begins conversations and knows who reads what is not HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from recrawl.crawl.parse_pool import OverBudgetError, ParsePool
from recrawl.crawl.target import Target
from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.fetch.access import Question, Talk, in_this_process
from recrawl.fetch.access_methods import FEED, AccessMethods
from recrawl.fetch.request import Fetcher
from recrawl.model import Capture, Validators
from recrawl.urls import host_of

_NOBODY: Mapping[str, Fetcher] = MappingProxyType({})


class Access:
    """Access methods at work."""

    def __init__(
        self,
        methods: AccessMethods | None = None,
        elsewhere: Mapping[str, Fetcher] = _NOBODY,
        pool: ParsePool | None = None,
    ) -> None:
        """``elsewhere`` reads URLs of other schemes than http and https, by scheme; ``pool`` parses answers."""
        self._methods = methods or AccessMethods()
        self._elsewhere = elsewhere
        self._parse = in_this_process if pool is None else partial(_in_pool, pool)

    def begin(self, target: Target) -> Target:
        """The target with a conversation under way, if it has a method of its own; else as it is.

        Raises:
            ConfigError: the method is not there any more.
        """
        if target.source is None or target.talk is not None or target.source[0] == FEED:
            return target
        name, options = target.source
        validators = target.known.validators if target.known else Validators()
        question = Question(target.url, json.loads(options or "{}"), validators, decoded, self._parse)
        return replace(target, talk=Talk(self._methods.get(name), question))

    async def read_elsewhere(self, target: Target, now: float) -> Capture | None:
        """The answer to a request that is not for a web server; ``None`` if it is for one.

        Raises:
            ValueError: the method asks a host whose pauses nobody keeps here. It is to ask the host of its page.
        """
        if target.talk is None:
            return None
        request = target.talk.request
        scheme = request.url.partition(":")[0].lower()
        if scheme in ("http", "https"):
            if target.home is None and host_of(request.url) != host_of(target.url):
                msg = f"the access method of {target.url} asks another host: {request.url}"
                raise ValueError(msg)
            return None
        if scheme in self._elsewhere:
            return await self._elsewhere[scheme].fetch(request)
        return Capture(request.url, now, 0, error=f"Nobody here reads {scheme}: URLs.")


def _in_pool(pool: ParsePool, parser: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - what the parser gives
    """What a parser makes of an answer, within its budget.

    Raises:
        InputError: it cannot be read, or not within its budget.
    """
    try:
        return pool.call(parser, *arguments)
    except OverBudgetError as error:
        raise InputError(str(error)) from error
