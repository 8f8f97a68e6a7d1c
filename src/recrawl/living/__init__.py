"""A small web that really changes, served over HTTP on loopback, with the truth told afterwards."""

from recrawl.living.quirks import Lie, MapLie, Noise, Offer, PageQuirks, Quirks
from recrawl.living.recorded import load_recorded, load_recorded_sources
from recrawl.living.requests import Requests
from recrawl.living.serve import serve
from recrawl.living.web import LivingWeb, TruthByUrl

__all__ = [
    "Lie",
    "LivingWeb",
    "MapLie",
    "Noise",
    "Offer",
    "PageQuirks",
    "Quirks",
    "Requests",
    "TruthByUrl",
    "load_recorded",
    "load_recorded_sources",
    "serve",
]
