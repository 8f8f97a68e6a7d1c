"""In which order to visit the pages of a site, and to visit them again, so that the capture is sharp and coherent."""

from recrawl.capture.strategies import OFFLINE, REVISITING, STRATEGIES
from recrawl.capture.strategy import Strategy, Terms

__all__ = ["OFFLINE", "REVISITING", "STRATEGIES", "Strategy", "Terms"]
