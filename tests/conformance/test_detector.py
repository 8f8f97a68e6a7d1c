"""What every change detector promises (``recrawl.detect.detector``), run over every built-in one."""

import pytest

from recrawl.detect.detector import DETECTORS
from recrawl.testing import DetectorConformance


class TestEveryDetector(DetectorConformance):
    @pytest.fixture(autouse=True, params=list(DETECTORS))
    def chosen(self, request):
        self.name = request.param

    def make(self):
        return DETECTORS[self.name]
