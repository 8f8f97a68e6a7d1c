"""In which order to visit the pages of a site, and to visit them again, so that the capture is sharp and coherent."""

from recrawl.capture.strategies import EXPECTING, OFFLINE, REVISITING, STRATEGIES, THRESHOLDED
from recrawl.capture.strategy import Strategy, Terms

__all__ = ["EXPECTING", "OFFLINE", "REVISITING", "STRATEGIES", "THRESHOLDED", "Strategy", "Terms"]
