"""Every objective: its closed form at a known rate, its mean over a belief, and that it never falls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import GammaBelief
from recrawl.schedule.objectives import (
    ARCHIVE,
    OBJECTIVES,
    AgeObjective,
    BlendedObjective,
    BlurObjective,
    CapturedChanges,
    FreshnessObjective,
    HarmonicObjective,
)
from recrawl.schedule.price.known_rates import g, inverse_g

KNOWN = {
    "freshness": lambda rate, t: g(rate * t) / rate,
    "changes": lambda rate, t: g(rate * t),
    "harmonic": lambda rate, t: t + np.expm1(-rate * t) / rate,
    "age": lambda rate, t: t * t / 2 - g(rate * t) / rate**2,
    "blur": lambda rate, t: rate * t * t / 2,
    "links": lambda rate, t: rate * t * t / 2,
    "archive": lambda rate, t: 0.95 * g(rate * t) / rate + 0.05 * (t + np.expm1(-rate * t) / rate),
}

shapes = st.floats(0.1, 30.0)
scales = st.floats(1e-2, 1e3)


def test_every_objective_has_a_known_form_here():
    assert KNOWN.keys() == OBJECTIVES.keys()
    assert all(name == objective.name for name, objective in OBJECTIVES.items())


@pytest.mark.parametrize("name", OBJECTIVES)
@given(rate=st.floats(1e-3, 10.0), x=st.floats(1e-3, 200.0))
@settings(deadline=None)
def test_closed_form_at_a_known_rate(name, rate, x):
    t = x / rate
    value = OBJECTIVES[name].value(PointBelief(np.array([rate])), np.array([t]))[0]
    assert value == pytest.approx(float(KNOWN[name](rate, t)), rel=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
@given(a=shapes, b=scales, share=st.floats(1e-2, 1e2))
@settings(deadline=None, max_examples=50)
def test_value_is_the_mean_over_the_belief(name, a, b, share):
    belief = GammaBelief(np.array([a]), np.array([b]))
    t = share * b / a
    expected = belief.expect(lambda rate: KNOWN[name](rate, t))[0]
    assert OBJECTIVES[name].value(belief, np.array([t]))[0] == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize("name", OBJECTIVES)
@given(a=shapes, b=scales)
@settings(deadline=None, max_examples=50)
def test_never_falls_and_starts_at_nothing(name, a, b):
    t = np.concatenate([[0.0], np.geomspace(1e-6 * b, 1e6 * b, 200)])
    belief = GammaBelief(np.full(len(t), a), np.full(len(t), b))
    value = OBJECTIVES[name].value(belief, t)
    assert value[0] == 0
    assert (value >= 0).all()
    assert (np.diff(value) >= -1e-9 * value[1:]).all()


def test_gamma_forms_of_the_theory():
    a, b, t = 0.7, 12.0, 30.0
    r = 1 + t / b
    belief = GammaBelief(np.array([a]), np.array([b]))
    at = np.array([t])
    unchanged = b * (1 - r ** (1 - a)) / (a - 1)
    assert FreshnessObjective().value(belief, at)[0] == pytest.approx(unchanged - t * r**-a, rel=1e-12)
    assert CapturedChanges().value(belief, at)[0] == pytest.approx(1 - r**-a - a * (t / b) * r ** (-a - 1), rel=1e-12)
    assert HarmonicObjective().value(belief, at)[0] == pytest.approx(t - unchanged, rel=1e-12)
    first = GammaBelief(np.array([1.0]), np.array([b]))
    assert FreshnessObjective().value(first, at)[0] == pytest.approx(b * np.log(r) - t / r, rel=1e-12)
    assert BlurObjective().value(belief, at)[0] == pytest.approx(a / b * t * t / 2)
    squares = b * b * ((r ** (2 - a) - 1) / (2 - a) - (r ** (1 - a) - 1) / (1 - a))
    assert AgeObjective().value(belief, at)[0] == pytest.approx(t * t / 2 - squares, rel=1e-8)


def test_golden_index():
    known = PointBelief(np.array([0.1]))
    assert 2 * FreshnessObjective().value(known, np.array([10.0]))[0] == pytest.approx(5.284822353142, rel=1e-11)


def test_an_uncertain_page_is_worth_more_than_its_mean_rate_says():
    vague = GammaBelief(np.array([0.5]), np.array([0.05]))
    known = PointBelief(vague.mean())
    late = np.array([100.0])
    assert FreshnessObjective().value(vague, late)[0] > 10 * FreshnessObjective().value(known, late)[0]


def test_a_blend_is_linear():
    belief = GammaBelief(np.array([2.0]), np.array([5.0]))
    t = np.array([3.0])
    both = BlendedObjective("both", ((2.0, CapturedChanges()), (3.0, BlurObjective())))
    assert both.value(belief, t)[0] == pytest.approx(
        2 * CapturedChanges().value(belief, t)[0] + 3 * BlurObjective().value(belief, t)[0]
    )
    assert ARCHIVE.value(belief, t)[0] == pytest.approx(KNOWN_ARCHIVE(belief, t))


def KNOWN_ARCHIVE(belief, t):  # noqa: N802 - a constant in spirit
    return 0.95 * FreshnessObjective().value(belief, t)[0] + 0.05 * HarmonicObjective().value(belief, t)[0]


def test_golden_g_and_its_inverse():
    assert float(g(np.array(1.0))) == pytest.approx(0.264241117657115, rel=1e-14)
    y = np.array([1e-12, 1e-6, 0.1, 0.5, 0.9, 0.999999])
    x = [1.41421422904e-6, 1.41488066148e-3, 0.531811608390, 1.67834699002, 3.88972016987, 16.6884207908]
    np.testing.assert_allclose(inverse_g(y), x, rtol=3e-12)
    np.testing.assert_array_equal(inverse_g(np.array([0.0, 1.0, 7.0])), [0.0, np.inf, np.inf])


@given(st.floats(1e-6, 30.0))
def test_inverse_of_g(x):
    y = g(np.array([x]))
    lost = 2.0 * np.finfo(float).eps * float(y[0]) / (x * np.exp(-x))  # by rounding: g hardly rises in the end
    assert float(inverse_g(y)[0]) == pytest.approx(x, rel=1e-9, abs=lost)
