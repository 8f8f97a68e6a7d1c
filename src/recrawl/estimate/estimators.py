"""Every estimator by its name: what settings, tables and the ``--estimator`` option choose from."""

from __future__ import annotations

from recrawl.estimate.estimator import Estimator
from recrawl.estimate.operational_posterior import OperationalPosterior
from recrawl.estimate.point_estimators import POINT_ESTIMATORS
from recrawl.estimate.posterior import GammaPosterior, Posterior

_ALL: tuple[Estimator, ...] = (OperationalPosterior(), Posterior(), GammaPosterior(), *POINT_ESTIMATORS)

ESTIMATORS: dict[str, Estimator] = {estimator.name: estimator for estimator in _ALL}
"""By name, the default first."""

DEFAULT = "operational"
