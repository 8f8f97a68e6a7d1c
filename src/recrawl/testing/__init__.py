"""Conformance suites for authors of plug-ins, one class for each seam.

Subclass a suite in a test file and override its factory. pytest then runs every rule of the seam:

    from recrawl.testing import PolicyConformance

    class TestMine(PolicyConformance):
        def make(self):
            return MyPolicy()

The suites import neither pytest nor any other test library. Recrawl runs them over all its own implementations.
"""

from recrawl.testing.access_conformance import AccessConformance
from recrawl.testing.detector_conformance import DetectorConformance
from recrawl.testing.estimator_conformance import EstimatorConformance
from recrawl.testing.fetcher_conformance import FetcherConformance
from recrawl.testing.policy_conformance import PolicyConformance
from recrawl.testing.store_conformance import StoreConformance
from recrawl.testing.strategy_conformance import StrategyConformance

__all__ = [
    "AccessConformance",
    "DetectorConformance",
    "EstimatorConformance",
    "FetcherConformance",
    "PolicyConformance",
    "StoreConformance",
    "StrategyConformance",
]
