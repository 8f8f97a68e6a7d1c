"""The store: hosts, pages, visits, links, captures, schedule and policy state, in SQLite or PostgreSQL."""

from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.store.store_values import (
    CaptureColumns,
    CaptureRecord,
    ClaimColumns,
    FoundPages,
    HostRows,
    ImportMark,
    LeasedPages,
    LinkRows,
    SiteCapture,
    SiteLog,
    SiteProgress,
    SiteStep,
    StoreCounts,
)

__all__ = [
    "CaptureColumns",
    "CaptureRecord",
    "ClaimColumns",
    "FoundPages",
    "HostRows",
    "ImportMark",
    "LeasedPages",
    "LinkRows",
    "SiteCapture",
    "SiteLog",
    "SiteProgress",
    "SiteStep",
    "Store",
    "StoreCounts",
    "open_store",
]
