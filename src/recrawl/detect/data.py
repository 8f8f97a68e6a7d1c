"""Data in canonical form: two spellings of one content become one text, and what is noise in data is left out.

Data is not prose: a date or a long number in it is content. Noise is only what says when or for whom the answer
was made: a few names at the top of a JSON object, a line of its own in CSV.
"""

from __future__ import annotations

import json
import re

from recrawl.errors import InputError

ENVELOPE = frozenset(
    {
        "duration",
        "elapsed",
        "generated",
        "generated_at",
        "generatedat",
        "nonce",
        "now",
        "request",
        "request_id",
        "requestid",
        "retrieved",
        "server_time",
        "servertime",
        "timestamp",
        "took",
        "trace_id",
    }
)
"""Names of single values at the top of a JSON object that belong to the answer, not to the data. Lower-case."""

_MADE_AT = re.compile(
    r"\W*(?:generated|created|exported|retrieved|served|downloaded)\b.{0,40}?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*",
    re.IGNORECASE,
)


def canonical_json(text: str) -> str:
    r"""The same JSON with keys sorted, without spaces and without the envelope of the answer.

    Numbers compare as Python reads them, of a doubled key the last counts. Order in lists is content.

    >>> canonical_json('{"b": 1, "a": [1.50, "\u00e9"], "generated": "2026-11-15T09:14:07Z"}')
    '{"a":[1.5,"é"],"b":1}'
    """
    try:
        value = json.loads(text)
        if isinstance(value, dict):
            value = {name: held for name, held in value.items() if not _is_envelope(name, held)}
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})") from error


def _is_envelope(name: str, held: object) -> bool:
    return name.lower() in ENVELOPE and not isinstance(held, dict | list)


def canonical_lines(text: str) -> str:
    r"""The same lines without trailing space, other line ends, and lines that say when the file was made.

    >>> canonical_lines("a,b \r\n1,2\r\ngenerated 2026-11-15T09:14:07Z,\r\n")
    'a,b\n1,2'
    """
    return "\n".join(line.rstrip() for line in text.splitlines() if not _MADE_AT.fullmatch(line)).rstrip("\n")
