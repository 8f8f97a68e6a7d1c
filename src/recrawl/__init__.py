"""recrawl: the web archive crawler that knows when to come back.

The names below are what programs and notebooks may rely on. They are loaded when first used: importing ``recrawl``
costs nothing.

>>> import recrawl
>>> recrawl.load.__module__
'recrawl.api.loaded_archive'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.api.loaded_archive import Archive, Comparison, Plan, PoissonDiagnosis, Quality, Rates, load
    from recrawl.api.runs import CaptureResult, CrawlResult, run_capture, run_crawl, run_simulation
    from recrawl.api.tables import Table
    from recrawl.app.provenance import Provenance
    from recrawl.errors import RecrawlError
    from recrawl.model import Histories

__version__ = "0.1.0"
__all__ = [
    "Archive",
    "CaptureResult",
    "Comparison",
    "CrawlResult",
    "Histories",
    "Plan",
    "PoissonDiagnosis",
    "Provenance",
    "Quality",
    "Rates",
    "RecrawlError",
    "Table",
    "__version__",
    "load",
    "run_capture",
    "run_crawl",
    "run_simulation",
]
_HOMES = {
    "recrawl.errors": ("RecrawlError",),
    "recrawl.model": ("Histories",),
    "recrawl.app.provenance": ("Provenance",),
    "recrawl.api.runs": ("CaptureResult", "CrawlResult", "run_capture", "run_crawl", "run_simulation"),
    "recrawl.api.tables": ("Table",),
    "recrawl.api.loaded_archive": ("Archive", "Comparison", "Plan", "PoissonDiagnosis", "Quality", "Rates", "load"),
}


def __getattr__(name: str) -> object:
    """A public name, from where it lives (PEP 562)."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return __all__
