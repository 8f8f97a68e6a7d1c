"""Floors of quality on a recorded site: a prior from features must foretell pages it was not trained on.

They hold for these very bytes; with other data they mean nothing.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from recrawl.cli.predict_lessons import material
from recrawl.predict.prior_splits import judge_split, splits

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
PINNED = {
    "events.parquet": "50fb7330d69b1bd224f501420a12aebda5e2c5c19b70019e4d7925fbf99bc666",
    "pages.parquet": "e48462e1b8869b9e1b0bb0d4df6b8f9fb0722d16ad0c736d1f30d91a0fbe8c68",
}


@pytest.fixture(scope="module")
def lessons():
    return material(None, None, RECORDED).lessons


@pytest.mark.parametrize("name", PINNED)
def test_the_data_are_those_the_floors_were_set_on(name):
    assert hashlib.sha256((RECORDED / name).read_bytes()).hexdigest() == PINNED[name]


@pytest.mark.parametrize(("name", "first", "ten"), [("pages", 0.03, 0.02), ("later pages", 0.08, 0.005)])
def test_features_beat_one_prior_for_all_pages_and_one_for_the_host(lessons, name, first, ten):
    score = judge_split(lessons, name, splits(lessons, np.random.default_rng(1))[name], seed=1)
    for other in ("all pages", "host"):
        assert score.first["model"] < score.first[other] - first
        assert score.ten["model"] < score.ten[other] - ten
    assert score.coverage > 0.85


def test_no_site_is_left_out_of_one(lessons):
    assert "sites" not in splits(lessons, np.random.default_rng(1))
