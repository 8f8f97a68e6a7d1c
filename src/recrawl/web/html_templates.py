"""How pages are written: Jinja templates, the style sheet and the scripts, inside the page or beside it.

A report carries all it needs in one file, a dashboard links to files that browsers keep. Everything from an archive is
text to this package: templates escape it, and data is embedded as JSON that markup cannot break out of.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Protocol

import numpy as np

from recrawl.errors import require
from recrawl.time import format_duration

_MEDIA_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
_PACKED_FROM = 100_000
"""Characters of JSON from which a block is packed: pages of a large site have much in common."""
_HASH_DIGITS = 12


class PageAssets(Protocol):
    """How a page gets its scripts and style sheets, named by their place in the assets folder."""

    def script(self, name: str) -> str:
        """The markup that runs a script."""
        ...

    def style(self, name: str) -> str:
        """The markup that applies a style sheet."""
        ...


class InlineAssets:
    """Everything inside the page: it opens without a network, from anywhere."""

    @staticmethod
    def script(name: str) -> str:
        """The script itself."""
        text = asset(name)
        if "</script" in text.lower() or "<!--" in text:
            raise ValueError(f"{name} cannot stand inside a page")
        return f"<script>{text}</script>"

    @staticmethod
    def style(name: str) -> str:
        """The style sheet itself."""
        return f"<style>{asset(name)}</style>"

    @staticmethod
    def policy(scripts: Iterable[str]) -> str:
        """A Content-Security-Policy under which only these scripts run and nothing is fetched from anywhere."""
        digests = (hashlib.sha256(asset(name).encode()).digest() for name in scripts)
        allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
        return (
            f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
            "base-uri 'none'; form-action 'none'"
        )


class LinkedAssets:
    """Files beside the page, named with a hash of their content, so that browsers may keep them for ever."""

    def __init__(self, prefix: str = "/assets/") -> None:
        self._prefix = prefix

    def script(self, name: str) -> str:
        """A link to the script, run when the page is read."""
        return f'<script src="{self._prefix}{hashed(name)}" defer></script>'

    def style(self, name: str) -> str:
        """A link to the style sheet."""
        return f'<link rel="stylesheet" href="{self._prefix}{hashed(name)}">'

    @staticmethod
    def find(path: str) -> tuple[bytes, str] | None:
        """The content and media type of a file by its name with hash; ``None`` if there is no such file."""
        name = _by_hashed_name().get(path)
        return None if name is None else (asset(name).encode(), _MEDIA_TYPES[name.rpartition(".")[2]])


def hashed(name: str) -> str:
    """The name of an asset with a hash of its content in it: ``charts.0123456789ab.js``."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{hashlib.sha256(asset(name).encode()).hexdigest()[:_HASH_DIGITS]}.{ending}"


@cache
def _by_hashed_name() -> dict[str, str]:
    folder = resources.files("recrawl.web") / "assets"
    names = [one.name for one in folder.iterdir() if one.is_file()]
    names += [f"vendor/{one.name}" for one in (folder / "vendor").iterdir() if one.is_file()]
    return {hashed(name): name for name in names if name.rpartition(".")[2] in _MEDIA_TYPES}


@cache
def asset(name: str) -> str:
    """The text of a file of the assets folder."""
    return (resources.files("recrawl.web") / "assets" / name).read_text("utf-8")


def environment(assets: PageAssets) -> Any:  # noqa: ANN401 - a jinja2.Environment; the library may be missing
    """The Jinja environment: everything is escaped, and a name that is not there is an error."""
    jinja2: Any = require("jinja2", "show")
    markup = require("markupsafe", "show").Markup
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("recrawl.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        script=lambda name: markup(assets.script(name)),  # our own files
        style=lambda name: markup(assets.style(name)),
        data_block=lambda name, value: markup(data_block(name, value)),  # which no markup can leave
    )
    made.filters.update(duration=format_duration, when=when, count=count, number=number, share=share)
    return made


def data_block(name: str, value: object) -> str:
    """Data that scripts read by name: JSON, packed if there is much of it."""
    attribute = _attribute(name)
    text = json_text(value)
    if len(text) < _PACKED_FROM:
        return f'<script type="application/json" id="{attribute}">{text}</script>'
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return f'<script type="application/gzip+json" id="{attribute}">{packed}</script>'


def _attribute(name: str) -> str:
    return str(require("markupsafe", "show").escape(name))


def json_text(value: object) -> str:
    r"""JSON that may stand inside a script element, whatever is in it. What is no number becomes ``null``.

    >>> json_text({"title": "</script><b>", "blur": [1.5, float("nan")]})
    '{"title":"\\u003c/script\\u003e\\u003cb\\u003e","blur":[1.5,null]}'
    """
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.encode("utf-8", "backslashreplace").decode()


def plain(value: object) -> object:
    """The same of lists, numbers and texts only: arrays as lists, and ``None`` for what is no finite number."""
    match value:
        case np.ndarray():
            return _array(value)
        case np.generic():
            return plain(value.item())
        case dict():
            return {str(key): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case float() if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN
            return None
        case _:
            return value


def json_of(value: object) -> bytes:
    """Strict JSON of an answer: what is not finite is null, arrays are lists.

    >>> json_of({"a": float("nan"), "b": (1, 2.5)})
    b'{"a":null,"b":[1,2.5]}'
    """
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def _array(values: np.ndarray[Any, Any]) -> object:
    if values.dtype.kind != "f":
        return values.tolist()
    listed = values.astype(object)
    listed[~np.isfinite(values)] = None
    return listed.tolist()


def when(seconds: float) -> str:
    """A time to the minute, UTC.

    >>> when(0.0)
    '1970-01-01 00:00'
    """
    return "–" if seconds != seconds else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")  # noqa: PLR0124 - NaN


def count(value: int) -> str:
    """A whole number with commas.

    >>> count(12345)
    '12,345'
    """
    return f"{value:,}"


def number(value: float) -> str:
    """Three leading digits.

    >>> number(0.012345), number(float("nan"))
    ('0.0123', 'not known')
    """
    return "not known" if value != value else f"{value:.3g}"  # noqa: PLR0124 - NaN


def share(value: float) -> str:
    """A share of 1 in per cent.

    >>> share(0.1234), share(float("nan"))
    ('12.3%', 'not known')
    """
    return "not known" if value != value else f"{100 * value:.3g}%"  # noqa: PLR0124 - NaN
