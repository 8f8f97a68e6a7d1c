"""The statement about a capture as plain values, for JSON: in the store, in a WARC record, in a WACZ, on the screen.

Readers may rely on the fields of a version of the schema; fields are added without a new version, never taken away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from recrawl.assess.statement import LIKELY, Blur, Statement
from recrawl.model import IntArray

SCHEMA = "recrawl-capture-quality/1"

Names = Callable[[IntArray], Sequence[str]]
"""URLs of page ids, in the same order."""


def statement_json(said: Statement, names: Names, most: int | None = None) -> dict[str, Any]:
    """The statement with pages by URL, times in ISO 8601 UTC and ``None`` for what is not known.

    At most ``most`` pages are named in each list, all without it; the counts are always of all.
    """
    joint = said.joint if len(said.joint.inside) else None
    judged = said.pages == 0 or len(said.unknown) < said.pages  # else all is not known: no page was seen again
    return {
        "schema": SCHEMA,
        "pages": said.pages,
        "weight": said.weight,
        "pagesWithRate": said.rated,
        "from": iso(said.start),
        "until": iso(said.end),
        "blur": {
            "predicted": _blur(said.predicted_blur),
            "achieved": None if said.achieved_blur is None else _blur(said.achieved_blur),
        },
        "coherence": {
            "expected": _number(said.expected_coherence) if said.expected_of else None,
            "expectedOf": said.expected_of,
            "coherentOfThem": said.coherent_of_them,
            "expectedWeight": _number(said.expected_coherent_weight) if said.expected_of else None,
            "coherentWeight": said.coherent_weight if judged else None,
            "coherent": len(said.coherent) if judged else None,
            "changed": len(said.changed) if judged else None,
            "missing": len(said.missing) if judged else None,
            "unknown": len(said.unknown),
            "seenOnce": said.seen_once,
        },
        "validTogether": None
        if joint is None
        else {
            "from": iso(joint.start),
            "until": iso(joint.end),
            "pages": int(joint.inside.sum()),
            "allCoherentPages": joint.complete,
            "apart": list(names(said.apart()[:most])),
        },
        "hopeless": {
            "count": len(said.hopeless),
            "by": "strategy" if said.hopeless_named else f"chance below {LIKELY}",
            "pages": list(names(said.hopeless[:most])),
        },
        "changedPages": list(names(said.changed[:most])),
        "missingPages": list(names(said.missing[:most])),
    }


def outcome_counts(coherence: Mapping[str, Any]) -> dict[str, int | None]:
    """How many pages a stored statement calls coherent, changed and missing; ``None`` if no page was seen again.

    Statements that were stored before they said so have zeros in place of ``None``.

    >>> outcome_counts({"coherent": 0, "changed": 0, "missing": 0, "unknown": 7})
    {'coherent': None, 'changed': None, 'missing': None}
    """
    counts = {name: coherence[name] for name in ("coherent", "changed", "missing")}
    return dict.fromkeys(counts) if coherence["unknown"] and not any(counts.values()) else counts


def iso(when: float) -> str | None:
    """ISO 8601 in UTC with microseconds, so that an instant stays inside its interval; ``None`` for NaN.

    >>> iso(0.5), iso(float("nan"))
    ('1970-01-01T00:00:00.500000Z', None)
    """
    if math.isnan(when):
        return None
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _blur(blur: Blur) -> dict[str, float | None]:
    return {"total": _number(blur.total), "average": _number(blur.average)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
