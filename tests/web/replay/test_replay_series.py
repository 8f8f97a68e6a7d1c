"""Captures of a page, few and read at once or many and asked for in pieces: the same answers."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureColumns
from recrawl.web.replay import mementos
from recrawl.web.replay.replay_port import RefusalError

URL = "http://series.example/"
moments = st.one_of(st.floats(0, 40), st.integers(0, 40).map(float), st.just(math.inf))
times = st.dictionaries(st.integers(0, 160).map(lambda number: number / 4), st.sampled_from([200, -7]), max_size=12)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with open_store(tmp_path_factory.mktemp("series") / "recrawl.db", create=True) as opened:
        yield opened


def fill(store, number, found):
    """A page of its own with captures at these times; those without an answer are no captures."""
    url = f"{URL}{number}"
    [page] = store.discover([url], 0.0).tolist()
    count = len(found)
    store.add_captures(
        CaptureColumns(
            np.full(count, page),
            np.array(list(found)),
            np.array(list(found.values()), np.int64),
            ["text/html"] * count,
            [b"d" * 20] * count,
            np.full(count, 10),
            ["elsewhere.warc.gz"] * count,
            np.arange(count),
            np.full(count, 5),
        )
    )
    return url


def answers(store, url, at):
    def told(ask, *more):
        try:
            return ask(store, url, at, *more)
        except RefusalError as error:
            return error.status

    named = [] if math.isinf(at) else [told(mementos.named)]
    return [told(mementos.nearest), *named]


numbers = iter(range(1_000_000))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=times, at=moments)
def test_read_at_once_or_in_pieces_the_answers_are_the_same(store, found, at, monkeypatch):
    url = fill(store, next(numbers), found)
    at_once = answers(store, url, at)
    with monkeypatch.context() as patch:
        patch.setattr(mementos, "_FEW", 0)
        assert answers(store, url, at) == at_once
    answered = [time for time, status in found.items() if status > 0]
    assert (at_once[0] == 404) == (not answered)
    if answered:
        assert (at_once[0].first, at_once[0].last) == (min(answered), max(answered))
