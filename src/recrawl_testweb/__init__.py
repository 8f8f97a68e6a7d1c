"""A small web that really changes, served over HTTP on loopback, with the truth told afterwards."""

from recrawl_testweb.fault_injection import (
    FaultProfile,
    PageFaults,
    PageNoise,
    SitemapLie,
    ValidatorLie,
    ValidatorOffer,
)
from recrawl_testweb.recorded_sites import load_recorded, load_recorded_sources
from recrawl_testweb.request_log import RequestLog
from recrawl_testweb.virtual_web_server import TruthByUrl, VirtualWebServer, serve

__all__ = [
    "FaultProfile",
    "PageFaults",
    "PageNoise",
    "RequestLog",
    "SitemapLie",
    "TruthByUrl",
    "ValidatorLie",
    "ValidatorOffer",
    "VirtualWebServer",
    "load_recorded",
    "load_recorded_sources",
    "serve",
]
