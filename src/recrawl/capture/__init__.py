"""Capture strategies: the order of visits and revisits of a site that makes its capture sharp and coherent."""

from recrawl.capture.strategies import EXPECTING, OFFLINE, REVISITING, STRATEGIES, THRESHOLDED
from recrawl.capture.strategy import CaptureTerms, Strategy, StrategyTraits

__all__ = [
    "EXPECTING",
    "OFFLINE",
    "REVISITING",
    "STRATEGIES",
    "THRESHOLDED",
    "CaptureTerms",
    "Strategy",
    "StrategyTraits",
]
