"""How much a text says for its length: a feature that paper 004 names without giving its formula.

Paper 004 (§5.2) has "a non-linear function applied on a ratio of the vocabulary size to the document size". We take
Herdan's C: with V distinct words among N,

    C = ln V / ln N = 1 + ln(V/N) / ln N.

The bare ratio V/N falls with length in every natural text; C hardly does (natural texts lie near 0.8 to 0.95), while
repeated phrases and stuffed keywords push it down.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import log

import numpy as np

from recrawl.model import FloatArray

_WORD = re.compile(r"\w+")


def text_quality(text: str) -> float:
    """Herdan's C of a text, in [0, 1]: 0 without words or with one word repeated, 1 if no word comes twice.

    >>> text_quality("to be or not to be") < text_quality("whether it is nobler in the mind")
    True
    >>> text_quality(""), text_quality("buy buy buy"), text_quality("home")
    (0.0, 0.0, 1.0)
    """
    words = _WORD.findall(text.casefold())
    if len(words) <= 1:
        return float(len(words))
    return log(len(set(words))) / log(len(words))


def text_qualities(texts: Sequence[str]) -> FloatArray:
    """The quality of each text. O(characters), one text at a time in Python."""
    return np.fromiter(map(text_quality, texts), np.float64, len(texts))
