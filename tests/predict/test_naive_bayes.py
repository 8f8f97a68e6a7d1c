"""Naive Bayes, worked out by hand and against scikit-learn's normal law."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from recrawl.predict.static_features import Feature, FeatureGroup, table_of
from recrawl_lab.learners.class_learners import learn_bayes

NAME = Feature("name", FeatureGroup.SP, categorical=True)
SIZE = Feature("size", FeatureGroup.SP)


def test_shares_of_names_follow_laplace():
    table = table_of(np.arange(6), 0.0, [(NAME, [5, 5, 5, 9, 9, 5])])
    model = learn_bayes(table, np.array([0, 0, 0, 0, 1, 1]), 2)
    found = model.chances(table.take(slice(2, 4)))
    # 5: 4/6 · (3+1)/(4+2) against 2/6 · (1+1)/(2+2); 9: 4/6 · 2/6 against 2/6 · 2/4
    np.testing.assert_allclose(found, [[8 / 11, 3 / 11], [4 / 7, 3 / 7]])


def test_what_is_unknown_or_was_never_met_leaves_the_prior():
    table = table_of(np.arange(5), 0.0, [(NAME, [5, 5, 9, 9, 9]), (SIZE, [1.0, 2.0, 7.0, 8.0, np.nan])])
    model = learn_bayes(table, np.array([0, 0, 1, 1, 1]), 2)
    odd = table_of(np.arange(2), 0.0, [(NAME, [np.nan, 77]), (SIZE, [np.nan, np.nan])])
    np.testing.assert_allclose(model.chances(odd), [[0.4, 0.6]] * 2)


@given(st.integers(0, 1000))
def test_numbers_are_as_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    label = np.concatenate([np.arange(3), rng.integers(0, 3, 60)])
    size = (rng.normal(label, 1.0 + label)).astype(np.float32)
    table = table_of(np.arange(len(label)), 0.0, [(SIZE, size)])
    theirs = GaussianNB(var_smoothing=0.0).fit(size[:, None].astype(float), label)
    few = np.bincount(label).min() < 5  # their spread may be narrower than the least of ours
    if not few:
        expected = theirs.predict_proba(size[:, None].astype(float))
        np.testing.assert_allclose(learn_bayes(table, label, 3).chances(table), expected, atol=1e-6)


def test_a_class_of_equal_pages_is_not_sure_of_itself():
    size = np.array([4.0, 4.0, 1.0, 2.0, 3.0, 5.0, 6.0, 4.2])
    table = table_of(np.arange(8), 0.0, [(SIZE, size)])
    model = learn_bayes(table, np.array([0, 0, 1, 1, 1, 1, 1, 1]), 2)
    assert np.argmax(model.chances(table.take(slice(0, 1)))) == 0
    assert model.chances(table.take(slice(7, 8)))[0, 1] > 0.05


def test_flags_are_names_and_nothing_is_lost_where_all_pages_agree():
    flag, same = Feature("flag", FeatureGroup.SP), Feature("same", FeatureGroup.SP)
    table = table_of(np.arange(4), 0.0, [(flag, [0, 0, 1, 1]), (same, [3.0] * 4)])
    model = learn_bayes(table, np.array([0, 0, 1, 1]), 2)
    np.testing.assert_allclose(model.chances(table.take(slice(0, 1))), [[0.75, 0.25]])
