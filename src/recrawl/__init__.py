"""recrawl: the web archive crawler that knows when to come back.

The names below are what programs and notebooks may rely on. They are loaded when first used: importing ``recrawl``
costs nothing.

>>> import recrawl
>>> recrawl.load.__module__
'recrawl.notebook.archive'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.errors import RecrawlError
    from recrawl.model import Histories
    from recrawl.notebook.answers import Picture, Plan, Quality, Rates, Table
    from recrawl.notebook.archive import Archive, load

__version__ = "0.1.0"
__all__ = [
    "Archive",
    "Histories",
    "Picture",
    "Plan",
    "Quality",
    "Rates",
    "RecrawlError",
    "Table",
    "__version__",
    "load",
]
_HOMES = {
    "recrawl.errors": ("RecrawlError",),
    "recrawl.model": ("Histories",),
    "recrawl.notebook.answers": ("Picture", "Plan", "Quality", "Rates", "Table"),
    "recrawl.notebook.archive": ("Archive", "load"),
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
