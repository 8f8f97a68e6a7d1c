"""The store: hosts, pages, visits, links, captures, schedule and policy state, in SQLite or PostgreSQL."""

from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.store.site_values import FoundPages, SiteCapture, SiteLog, SiteProgress, SiteStep
from recrawl.store.values import CaptureRecord, Captures, Claims, Hosts, ImportMark, Leased, Links, StoreCounts

__all__ = [
    "CaptureRecord",
    "Captures",
    "Claims",
    "FoundPages",
    "Hosts",
    "ImportMark",
    "Leased",
    "Links",
    "SiteCapture",
    "SiteLog",
    "SiteProgress",
    "SiteStep",
    "Store",
    "StoreCounts",
    "open_store",
]
