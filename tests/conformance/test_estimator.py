"""What every estimator promises (``recrawl.estimate.estimator``), run over every built-in one."""

import pytest

from recrawl.estimate.estimators import ESTIMATORS
from recrawl.testing import EstimatorConformance


class TestEveryEstimator(EstimatorConformance):
    @pytest.fixture(autouse=True, params=list(ESTIMATORS))
    def chosen(self, request):
        self.name = request.param

    def make(self):
        return ESTIMATORS[self.name]
