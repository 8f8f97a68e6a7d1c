"""Data in canonical form: two spellings of one content become one text, and noise in data is left out.

Data is not prose: a date or a long number in it is content. Noise is only what says when or for whom the response was
made: a few names at the top of a JSON object, a separate line in CSV.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np

from recrawl.detect.noise.noise_keys import hidden_rows
from recrawl.detect.text.shingles import SAMPLE, Shingles, smallest
from recrawl.detect.text.text_parts import PageParts, template_of
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


class DataUnits(NamedTuple):
    """Data in parts: rows, members or statements, each with the path at which it may be noise (0: never)."""

    path: Sequence[int]
    said: Sequence[str]
    has_templates: bool = False

    def parts(self) -> PageParts:
        """The numbers of the parts. O(length)."""
        content = [crc32(said.encode("utf-8", "surrogatepass")) for said in self.said]
        if not self.has_templates:
            return PageParts(self.path, [0] * len(content), content)
        return PageParts(self.path, [template_of(*one) for one in zip(self.path, self.said, strict=True)], content)

    def columns(self) -> None:
        """Not available: they are made of the parts."""

    def sample(self, parts: PageParts, mask: frozenset[int], *, use_kernels: bool = False) -> Shingles:  # noqa: ARG002
        """The smallest numbers of all parts outside the mask: how much of the data is in both versions. O(length)."""
        hidden = hidden_rows(parts, mask) if mask else [False] * len(parts.content)
        numbers = [content for content, is_hidden in zip(parts.content, hidden, strict=True) if not is_hidden]
        return smallest(np.array(numbers, np.uint32), SAMPLE)

    def saying(self, kept: Sequence[tuple[int, str]]) -> DataUnits:
        """The same kind of data with these parts."""
        return DataUnits([path for path, _ in kept], [said for _, said in kept], self.has_templates)


def canonical_json(text: str, *, list_order: bool = True) -> str:
    r"""The same JSON with keys sorted, without spaces and without the envelope of the answer.

    Numbers compare as Python reads them, of a doubled key the last counts. Order in lists is content, unless
    ``list_order`` says otherwise.

    >>> canonical_json('{"b": 1, "a": [1.50, "\u00e9"], "generated": "2026-11-15T09:14:07Z"}')
    '{"a":[1.5,"é"],"b":1}'
    >>> canonical_json('[3, {"b": [2, 1]}, 1]', list_order=False)
    '[1,3,{"b":[1,2]}]'

    Raises:
        InputError: it is not JSON.
    """
    try:
        value = json.loads(text)
        if isinstance(value, dict):
            value = {name: held for name, held in value.items() if not is_envelope(name, held)}
        return _written(value if list_order else _in_order(value))
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})") from error


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
"""Made once: ``json.dumps`` makes one for every call, and lists have a million values."""


def _written(value: object) -> str:
    return _ENCODER.encode(value)


def _in_order(value: object) -> object:
    """The same value with every list sorted, by how its values are written."""
    if isinstance(value, dict):
        return {name: _in_order(held) for name, held in value.items()}
    return sorted(map(_in_order, value), key=_written) if isinstance(value, list) else value


def is_envelope(name: str, held: object) -> bool:
    """Whether a member at the top of a JSON object describes the response, not the data."""
    return name.lower() in ENVELOPE and not isinstance(held, dict | list)


def canonical_lines(text: str) -> str:
    r"""The same lines without trailing space, other line ends, and lines that say when the file was made.

    >>> canonical_lines("a,b \r\n1,2\r\ngenerated 2026-11-15T09:14:07Z,\r\n")
    'a,b\n1,2'
    """
    return "\n".join(line.rstrip() for line in text.splitlines() if not _MADE_AT.fullmatch(line)).rstrip("\n")


def canonical_table(text: str, *, row_order: bool = True) -> str:
    r"""CSV in canonical lines; without ``row_order`` those below the first, which names the columns, are sorted.

    >>> canonical_table("name,n\nb,2\na,1\n", row_order=False)
    'name,n\na,1\nb,2'
    """
    lines = canonical_lines(text)
    if row_order or "\n" not in lines:
        return lines
    head, _, rows = lines.partition("\n")
    return "\n".join([head, *sorted(rows.split("\n"))])


def canonical_xml(text: str) -> str:
    """XML in canonical lines, one element or text a line, so that a difference is as long as what differs.

    The order of attributes is content: XML has no cheaper form that ignores it.

    >>> canonical_xml("<a><b>1</b><b>2</b></a>").split()
    ['<a>', '<b>1</b>', '<b>2</b>', '</a>']
    """
    return canonical_lines(text.replace("><", ">\n<"))


def json_units(form: str) -> DataUnits:
    """Members of JSON in canonical form, and the values of lists among them, as parts.

    Single values beside lists or objects belong to the answer as often as to the data (``"took": 3``), so each has a
    path: it can be learned to be noise. All else is data.

    >>> json_units('{"hits":[1,2],"took":3}').said
    ['hits 1', 'hits 2', 'took 3']
    """
    value = json.loads(form)
    if not isinstance(value, dict):
        values = value if isinstance(value, list) else [value]
        return DataUnits([0] * len(values), [_written(held) for held in values])
    told: list[tuple[int, str]] = []
    is_envelope = any(isinstance(held, dict | list) and held for held in value.values())
    for name, held in value.items():
        if isinstance(held, list):
            told += [(0, f"{name} {_written(one)}") for one in held]
        elif isinstance(held, dict):
            told += [(0, f"{name}.{inner} {_written(one)}") for inner, one in held.items()]
        else:
            told.append((crc32(f"{{{name}".encode("utf-8", "surrogatepass")) * is_envelope, f"{name} {_written(held)}"))
    return DataUnits([path for path, _ in told], [said for _, said in told])


def line_units(form: str) -> DataUnits:
    """Lines as parts that are never noise: rows, statements."""
    lines = form.split("\n")
    return DataUnits([0] * len(lines), lines)


def xml_units(form: str) -> DataUnits:
    """Elements as parts, each at a path named after its tag: ``<lastBuildDate>`` can be learned to be noise."""
    lines = form.split("\n")
    tags = (
        crc32(line.lstrip()[:64].partition(">")[0].partition(" ")[0].encode("utf-8", "surrogatepass")) for line in lines
    )
    return DataUnits(list(tags), lines, has_templates=True)
