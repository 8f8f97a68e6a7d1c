"""What the grand table decides, on a table made up for it."""

import pytest

from recrawl.assess.prediction_scores import MeanInterval
from recrawl_lab.experiments.policies_table import beside_the_reference, cases, in_short, own_measures


class Table:
    """Freshness, recall and age of three policies on two collections; differences are sure to ±.01."""

    budgets = (0.03, 1.0)
    as_printed = True

    def __init__(self, **scores):
        self.scores = {
            "uniform": {"freshness": 0.80, "recall": 0.30, "age": 4.0},
            "nutch": {"freshness": 0.85, "recall": 0.50, "age": 3.0},
            "valued-archive": {"freshness": 0.90, "recall": 0.45, "age": 2.0},
            "valued-changes": {"freshness": 0.70, "recall": 0.55, "age": 5.0},
            "valued-age": {"freshness": 0.86, "recall": 0.40, "age": 3.5},
        } | scores
        self.policies = list(self.scores)
        self.fields = {"til": range(500), "tiny": range(20)}

    def ratio(self, field, policy, budget, metric):
        if budget == 1.0:
            return 0.95
        if metric == "age" and field == "tiny":
            return float("nan")
        return self.scores[policy][metric] + (0.004 if field == "tiny" and policy == "nutch" else 0.0)

    def difference(self, field, policy, than, budget, metric):
        mean = self.ratio(field, policy, budget, metric) - self.ratio(field, than, budget, metric)
        return MeanInterval(mean, mean - 0.01, mean + 0.01)

    def median_staleness(self, policy, than, budget):
        return 0.5 if than else 0.66


def test_cases_are_those_with_a_choice_and_a_measure_and_count_in_favour_of_ours():
    found = {(case.ours, case.field): case for case in cases(Table())}
    assert set(found) == {
        ("valued-archive", "til"),
        ("valued-archive", "tiny"),
        ("valued-changes", "til"),
        ("valued-changes", "tiny"),
        ("valued-age", "til"),
    }
    assert {case.budget for case in found.values()} == {0.03}
    assert {case.rival for case in found.values()} == {"nutch"}
    better, worse = found["valued-archive", "til"], found["valued-age", "til"]
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert better.gain.mean == pytest.approx(0.05)
    assert worse.gain.mean == pytest.approx(-0.5)
    assert worse.gain.low < worse.gain.mean < worse.gain.high < 0


def test_a_difference_that_may_be_chance_is_level():
    level = Table(**{"valued-archive": {"freshness": 0.845, "recall": 0.4, "age": 2.0}})
    assert {case.verdict for case in cases(level) if case.ours == "valued-archive"} == {"level"}


def test_what_is_worse_is_listed():
    text = own_measures(Table())
    assert "| valued-archive | freshness | 2 | 0 | 0 | 2 | 0 | 0 |" in text
    assert "| valued-age | age | 0 | 0 | 1 | 0 | 0 | 1 |" in text
    assert "| valued-age | til | 0.03 | 3.5000 | 3.0000 nutch | -0.5000 (-0.5100 to -0.4900) |" in text
    good = Table(**{"valued-age": {"freshness": 0.8, "recall": 0.4, "age": 1.0}})
    assert "In no case is ours worse" in own_measures(good)


def test_in_short_names_who_is_left_worse_off():
    assert "| 0.03 | 0.500 | 0.660 | none | 2 of 2 | 2 of 2 |" in in_short(Table())
    poor = Table(
        **{
            "valued-archive": {"freshness": 0.79, "recall": 0.4, "age": 1.0},
            "valued-changes": {"freshness": 0.7, "recall": 0.502, "age": 5.0},
        }
    )
    # collections of few pages are not held against it
    assert "| 0.03 | 0.500 | 0.660 | til | 1 of 2, not tiny | 1 of 2, not tiny |" in in_short(poor)


def test_ours_with_other_objectives_count_among_all_but_not_among_those_of_others():
    table = Table(**{"valued-archive": {"freshness": 0.9, "recall": 0.9, "age": 2.0}})
    assert "| 0.03 | 0.500 | 0.660 | none | 2 of 2 | 0 of 2, not til, tiny |" in in_short(table)
    assert "| valued-changes | recall | 2 | 0 | 0 | 0 | 0 | 2 |" in own_measures(table)
    assert "Worse than ours with another objective" in own_measures(table)


def test_nobody_is_measured_against_an_oracle():
    oracle = {"gold": {"freshness": 1.0, "recall": 1.0, "age": 0.0}}
    assert own_measures(Table(**oracle)) == own_measures(Table())
    assert in_short(Table(**oracle)) == in_short(Table())


def test_printed_figures_stand_beside_their_own():
    assert "| til | 0.9932 | 0.8000 | 0.9970 | 0.9971 | 0.9000 | -0.0971 |" in beside_the_reference(Table())
    assert f"staleness is {0.1 / 0.003:.3f} of that of the best named" in beside_the_reference(Table())
    other_rules = Table()
    other_rules.as_printed = False
    assert beside_the_reference(other_rules) == ""
