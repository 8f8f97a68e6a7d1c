"""A small web that really changes, served over HTTP on loopback, with the truth told afterwards."""

from recrawl.living.quirks import Lie, MapLie, Noise, Offer, PageQuirks, Quirks
from recrawl.living.requests import Requests
from recrawl.living.web import LivingWeb, Truth

__all__ = ["Lie", "LivingWeb", "MapLie", "Noise", "Offer", "PageQuirks", "Quirks", "Requests", "Truth"]
