r"""Memento damage: how much the resources that are missing hurt a page (Brunelle et al., JCDL 2014).

    D = actual damage / potential damage

Potential damage is the sum of the importance of all embedded resources, actual damage that of the missing ones. With
the weights that the authors' tool (memento-damage) publishes, the importance of a resource is

    image        .30 · b
    multimedia   .50 · b        b = ½ · share of the viewport + ¼ if it crosses the vertical middle of the viewport
    frame        .30 · b            + ¼ if it crosses the horizontal middle
    stylesheet   .05 · s        s = ½ if its rules apply to the page + ½ for the layout
    script       .05
    text         .10 · words / 1,000, never missing where the page is there

Assumptions, since nothing is rendered here:
 1. The viewport has 1,024 × 768 pixels, the tool's default.
 2. Sizes are those that the page states (attributes, inline styles). Where it states none, they are those that CSS
    gives to a replaced element without a size, 300 × 150 pixels, and 300 × 54 for sound. If one side is stated, the
    other follows by the ratio 2 : 1.
 3. Where an element stands is not known. The term for crossing a middle is multiplied with the probability that an
    element of this size, placed anywhere in the viewport with equal probability, crosses it: w / (W − w), at most 1.
 4. Whether the rules of a missing style sheet apply cannot be known: they are taken to apply if the sheet is for
    screens and the page has classes or ids for it to name. The layout term, which the tool measures on a screenshot,
    counts in full for sheets for screens. A sheet that is not for screens weighs nothing.
 5. Fonts and captions weigh nothing: the published algorithm does not have them.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import AnyArray, FloatArray
from recrawl.model.embeds import VIEWPORT, EmbedKind

DEFAULT_SIZE = (300.0, 150.0)
"""CSS pixels of an element that states no size (assumption 2)."""
WEIGHTS = {
    EmbedKind.IMAGE: 0.30,
    EmbedKind.STYLESHEET: 0.05,
    EmbedKind.SCRIPT: 0.05,
    EmbedKind.MULTIMEDIA: 0.50,
    EmbedKind.FRAME: 0.30,
    EmbedKind.OTHER: 0.0,
}
TEXT_WEIGHT = 0.10
WORDS_PER_IMAGE = 1000.0
_SIZE, _CENTRALITY = 0.5, 0.5


def importance(kind: AnyArray, width: FloatArray, height: FloatArray, applies: FloatArray) -> FloatArray:
    """What each embedded resource is worth, by :class:`~recrawl.model.embeds.EmbedKind`; NaN for sizes unknown. O(n).

    ``applies`` is the factor s of a style sheet, as :class:`~recrawl.model.embeds.Embed` has it.

    >>> importance(np.array([0, 1, 2]), np.array([512.0, np.nan, np.nan]), np.array([384.0, np.nan, np.nan]),
    ...            np.array([1.0, 0.5, 1.0])).round(4).tolist()
    [0.1875, 0.025, 0.05]
    """
    kinds = np.asarray(kind, np.int64)
    weight = np.array([WEIGHTS[one] for one in EmbedKind])[kinds]
    worth = np.ones(len(kinds))
    sheet = kinds == EmbedKind.STYLESHEET
    worth[sheet] = applies[sheet]
    sized = np.isin(kinds, (EmbedKind.IMAGE, EmbedKind.MULTIMEDIA, EmbedKind.FRAME))
    worth[sized] = _block(*_sizes(width[sized], height[sized]))
    return weight * worth


def _sizes(width: FloatArray, height: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sizes with what is not stated filled in, none larger than the viewport (assumption 2)."""
    ratio = DEFAULT_SIZE[0] / DEFAULT_SIZE[1]
    wide = np.where(np.isnan(width), np.where(np.isnan(height), DEFAULT_SIZE[0], height * ratio), width)
    high = np.where(np.isnan(height), np.where(np.isnan(width), DEFAULT_SIZE[1], width / ratio), height)
    return np.clip(wide, 0.0, VIEWPORT[0]), np.clip(high, 0.0, VIEWPORT[1])


def _block(width: FloatArray, height: FloatArray) -> FloatArray:
    """The term b: size, and expected centrality (assumption 3)."""
    share = width * height / (VIEWPORT[0] * VIEWPORT[1])
    across, down = (_crosses(size, whole) for size, whole in ((width, VIEWPORT[0]), (height, VIEWPORT[1])))
    return _SIZE * share + _CENTRALITY / 2 * (across + down)


def _crosses(size: FloatArray, whole: float) -> FloatArray:
    """Probability that a stretch of this size, anywhere in the whole, covers its middle."""
    return np.minimum(1.0, size / np.maximum(whole - size, whole / 2))
