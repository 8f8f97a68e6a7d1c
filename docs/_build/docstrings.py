"""Make docstrings into Markdown: doctests become code blocks, Sphinx roles plain code."""  # noqa: INP001 - loaded by path

import re
from typing import Any

from griffe import Extension, Object

_DOCTEST = re.compile(r"^([ \t]*)>>> .*(?:\n(?![ \t]*$).*)*", re.MULTILINE)
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


class ReadableDocstrings(Extension):
    """Rewrites each docstring once, when griffe has read its object."""

    def on_object(self, *, obj: Object, **_rest: Any) -> None:  # noqa: ANN401 - the signature is griffe's
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = _DOCTEST.sub(lambda found: _fenced(found[0], found[1]), text)


def _fenced(block: str, indent: str) -> str:
    return f"{indent}```pycon\n{block}\n{indent}```"
