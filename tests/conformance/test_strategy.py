"""What every capture strategy must keep (the rules of recrawl.capture.strategy), run over every built-in one."""

import pytest

from recrawl.capture import OFFLINE, STRATEGIES, CaptureTerms
from recrawl.capture.strategies import built_in_traits
from recrawl.errors import ConfigError
from recrawl.testing import StrategyConformance

# The online ones also with guesses of the size that are far too low and far too high.
EXPECTED = {name: (None,) if name in OFFLINE or not name.startswith("sharc") else (None, 1, 100) for name in STRATEGIES}


class TestEveryStrategy(StrategyConformance):
    @pytest.fixture(autouse=True, params=[(name, pages) for name in STRATEGIES for pages in EXPECTED[name]], ids=str)
    def chosen(self, request):
        self.name, self.expected = request.param

    def make(self, terms):
        return STRATEGIES[self.name](CaptureTerms(delay=terms.delay, expected=self.expected))

    @property
    def traits(self):
        return built_in_traits(self.name)


@pytest.mark.parametrize(
    "terms",
    [{"delay": -1.0}, {"delay": float("nan")}, {"delay": 1.0, "expected": 0}, {"delay": 1.0, "threshold": 1.0}],
)
def test_terms_that_make_no_sense_are_refused(terms):
    with pytest.raises(ConfigError):
        CaptureTerms(**terms)
