"""The value types that every package shares, as single values and as columns."""

from recrawl.model.arrays import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from recrawl.model.belief import Belief, GammaBelief, GridBelief
from recrawl.model.captures import Capture, CapturePlan
from recrawl.model.histories import Histories
from recrawl.model.noise_counts import NoiseCounts
from recrawl.model.visits import (
    ANSWERED,
    UNCOUNTED,
    UNMEASURED,
    VISIT_COLUMNS,
    ChangeKind,
    Outcome,
    Page,
    Pages,
    Validators,
    Verdict,
    Visit,
    Visits,
)

__all__ = [
    "ANSWERED",
    "UNCOUNTED",
    "UNMEASURED",
    "VISIT_COLUMNS",
    "AnyArray",
    "Belief",
    "BoolArray",
    "ByteArray",
    "Capture",
    "CapturePlan",
    "ChangeKind",
    "FloatArray",
    "GammaBelief",
    "GridBelief",
    "Histories",
    "IntArray",
    "NoiseCounts",
    "Outcome",
    "Page",
    "Pages",
    "Validators",
    "Verdict",
    "Visit",
    "Visits",
]
