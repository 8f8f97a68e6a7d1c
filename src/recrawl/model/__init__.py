"""The vocabulary: the nouns every room shares, as values and columns."""

from recrawl.model.arrays import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from recrawl.model.belief import Belief, GammaBelief
from recrawl.model.captures import Capture
from recrawl.model.grid_belief import GridBelief
from recrawl.model.histories import Histories
from recrawl.model.noise_counts import NoiseCounts
from recrawl.model.pages import Page, Pages, Validators
from recrawl.model.plans import CapturePlan
from recrawl.model.visits import (
    ANSWERED,
    UNCOUNTED,
    UNMEASURED,
    VISIT_COLUMNS,
    ChangeKind,
    Outcome,
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
