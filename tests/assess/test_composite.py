"""Composite mementos: the states of embedded resources case by case, completeness and damage, with answers by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.app.assess.assess_facts import composite_words
from recrawl.assess.composite_coherence import (
    GONE,
    NO_CAPTURE,
    ChoiceRule,
    CoherenceState,
    Composites,
    ResourceCaptures,
    choose,
    importance,
    state_of,
    summary_json,
    summary_of,
    wanted_last_modified,
)
from recrawl.model.captures import EmbedKind
from recrawl.transfer.composite_reader import CompositeFindings

COHERENT = CoherenceState.PRIMA_FACIE_COHERENT
MAYBE = CoherenceState.POSSIBLY_COHERENT
DOUBTFUL = CoherenceState.POSSIBLY_VIOLATIVE
VIOLATIVE = CoherenceState.PRIMA_FACIE_VIOLATIVE
MISSING = CoherenceState.MISSING
NOT_KNOWN = CoherenceState.NOT_KNOWN
NEVER = math.nan
PAGE = 100.0
"""When the page was captured."""


def captures(*rows, offsets=None):
    """Captures of one resource: time, version, Last-Modified, and perhaps whether there are bytes."""
    time, version, modified, *shown = zip(*rows, strict=True)
    kept = shown[0] if shown else [one != GONE for one in version]
    return ResourceCaptures(
        np.array(offsets or [0, len(time)]),
        np.array(time, float),
        np.array(version),
        np.array([1 if one else 0 for one in version]),
        np.array(kept, bool),
        np.array(modified, float),
    )


def state(found, place, at=PAGE):
    return CoherenceState(int(state_of(found, np.array([0]), np.array([place]), np.array([at]))[0]))


@pytest.mark.parametrize(
    ("rows", "shown", "expected"),
    [
        # Ainsworth et al.: Last-Modified <= page <= capture.
        pytest.param([(110, 1, 90)], 0, COHERENT, id="right, modified before the page"),
        pytest.param([(110, 1, 100)], 0, COHERENT, id="right, modified in the second of the page"),
        pytest.param([(110, 1, 105)], 0, VIOLATIVE, id="right, modified after the page"),
        pytest.param([(110, 1, NEVER)], 0, DOUBTFUL, id="right, no Last-Modified"),
        pytest.param([(90, 1, 80)], 0, MAYBE, id="left"),
        pytest.param([(90, 1, NEVER)], 0, MAYBE, id="left, no Last-Modified"),
        pytest.param([(100.9, 1, NEVER)], 0, COHERENT, id="captured in the second of the page"),
        # Bracketed by content.
        pytest.param([(90, 1, NEVER), (110, 1, NEVER)], 0, COHERENT, id="equal content on both sides, left shown"),
        pytest.param([(90, 1, NEVER), (110, 1, NEVER)], 1, COHERENT, id="equal content on both sides, right shown"),
        pytest.param(
            [(50, 1, NEVER), (90, 1, NEVER), (110, 1, NEVER)], 0, COHERENT, id="equal content, an older copy shown"
        ),
        pytest.param([(90, 1, NEVER), (110, 2, NEVER)], 0, MAYBE, id="other content after, nobody knows since when"),
        pytest.param([(90, 1, NEVER), (110, 2, NEVER)], 1, DOUBTFUL, id="other content before, right shown"),
        pytest.param([(90, 1, NEVER), (110, 2, 95)], 0, VIOLATIVE, id="replaced before the page, says the next"),
        pytest.param([(90, 1, NEVER), (110, 2, 95)], 1, COHERENT, id="what replaced it before the page"),
        pytest.param([(90, 1, NEVER), (110, 2, 105)], 0, MAYBE, id="replaced after the page, says the next"),
        pytest.param([(90, 1, NEVER), (110, 2, 105)], 1, VIOLATIVE, id="what replaced it after the page"),
        pytest.param([(50, 1, NEVER), (90, 2, NEVER)], 0, VIOLATIVE, id="other content seen before the page"),
        pytest.param([(110, 1, NEVER), (120, 2, NEVER)], 1, VIOLATIVE, id="other content seen after the page"),
        pytest.param([(110, 1, 90), (120, 1, NEVER)], 1, COHERENT, id="same content as the next, which is dated"),
        # Without digests only Last-Modified tells.
        pytest.param([(90, 0, NEVER), (110, 0, 80)], 0, COHERENT, id="no digests, not modified since the left"),
        pytest.param([(90, 0, NEVER), (110, 0, 95)], 0, VIOLATIVE, id="no digests, modified between left and page"),
        pytest.param([(90, 0, NEVER), (110, 0, NEVER)], 0, MAYBE, id="no digests, no dates"),
        # Dates that prove nothing.
        pytest.param([(110, 1, 115)], 0, DOUBTFUL, id="modified after its own capture"),
        pytest.param([(90, 1, NEVER), (110, 2, 80)], 1, DOUBTFUL, id="said to be older than other content"),
        pytest.param([(90, 1, NEVER), (110, 2, 80)], 0, MAYBE, id="said to be older than what is shown"),
        # Gone is a version.
        pytest.param([(50, 1, NEVER), (90, GONE, NEVER)], 0, VIOLATIVE, id="gone before the page"),
        pytest.param([(90, 1, NEVER), (110, GONE, NEVER)], 0, MAYBE, id="gone after the page"),
        pytest.param([(90, GONE, NEVER), (110, 1, NEVER)], 1, DOUBTFUL, id="not there before the page"),
        pytest.param([(90, GONE, NEVER), (110, 1, 80)], 1, DOUBTFUL, id="said to be older than when it was not there"),
        pytest.param([(90, 1, NEVER)], NO_CAPTURE, MISSING, id="no copy"),
    ],
)
def test_each_pattern_has_its_state(rows, shown, expected):
    assert state(captures(*rows), shown) is expected


def test_digests_of_different_algorithms_say_nothing_about_each_other():
    rows = captures((50, 1, NEVER), (90, 2, NEVER))
    other = ResourceCaptures(rows.offsets, rows.time, rows.version, np.array([1, 2]), rows.showable, rows.last_modified)
    assert state(rows, 0) is VIOLATIVE
    assert state(other, 0) is MAYBE


@pytest.mark.parametrize(
    ("rows", "nearest", "coherent"),
    [
        # The right one is provably of the time of the page, the nearer left one provably not.
        ([(99, 1, NEVER), (150, 2, 99.5)], (0, VIOLATIVE), (1, COHERENT)),
        # The nearer right one was modified after the page; the left one may have been there.
        ([(50, 1, NEVER), (101, 2, 100.5)], (1, VIOLATIVE), (0, MAYBE)),
        # Neither is proved: the nearer one is more likely right, whatever its state is called.
        ([(50, 1, NEVER), (101, 2, NEVER)], (1, DOUBTFUL), (1, DOUBTFUL)),
        ([(99, 1, NEVER), (150, 2, NEVER)], (0, MAYBE), (0, MAYBE)),
        # Nothing is gained by going farther.
        ([(50, 1, NEVER), (101, 1, NEVER)], (1, COHERENT), (1, COHERENT)),
        ([(90, 1, NEVER), (110, 1, NEVER)], (0, COHERENT), (0, COHERENT)),
        # Copies without bytes are evidence, but are not shown.
        ([(50, 1, NEVER, True), (99, 1, NEVER, False), (101, 1, NEVER, False)], (0, COHERENT), (0, COHERENT)),
        ([(50, 1, NEVER, True), (99, GONE, NEVER, False)], (0, VIOLATIVE), (0, VIOLATIVE)),
        ([(99, GONE, NEVER)], (NO_CAPTURE, MISSING), (NO_CAPTURE, MISSING)),
    ],
)
def test_the_coherent_rule_takes_what_can_be_proved(rows, nearest, coherent):
    for rule, expected in ((ChoiceRule.NEAREST, nearest), (ChoiceRule.COHERENT, coherent)):
        found = choose(captures(*rows), np.array([0]), np.array([PAGE]), rule)
        assert (int(found.place[0]), CoherenceState(int(found.state[0]))) == expected


def test_where_the_truth_is_known_the_coherent_rule_is_nearer_to_it():
    """Two crawls of parts that change between them, with dates: the nearest copy is wrong for a quarter of them."""
    rng = np.random.default_rng(3)
    count = 3_000
    changed = rng.uniform(0, 200, count)  # each part once
    early, late, page = np.zeros(count), np.full(count, 200.0), rng.uniform(1, 199, count)
    table = ResourceCaptures(
        np.arange(0, 2 * count + 1, 2),
        np.column_stack([early, late]).ravel(),
        np.tile([1, 2], count),
        np.ones(2 * count, np.int64),
        np.ones(2 * count, bool),
        np.column_stack([np.full(count, np.nan), changed]).ravel(),
    )
    truth = np.where(changed <= page, 2, 1)
    right = {}
    for rule in ChoiceRule:
        found = choose(table, np.arange(count), page, rule)
        right[rule] = float((table.version[found.place] == truth).mean())
        proved, disproved = found.state == COHERENT, found.state == VIOLATIVE
        assert (table.version[found.place] == truth)[proved].all()
        assert not (table.version[found.place] == truth)[disproved].any()
    assert right[ChoiceRule.COHERENT] == 1.0
    assert right[ChoiceRule.NEAREST] == pytest.approx(0.75, abs=0.03)


def test_dates_are_read_only_where_they_decide():
    same = captures((90, 1, NEVER), (110, 1, NEVER))
    assert wanted_last_modified(same, np.array([0]), np.array([PAGE])).tolist() == []
    other = captures((90, 1, NEVER, True), (110, 2, NEVER, False), (120, 2, NEVER, True))
    assert wanted_last_modified(other, np.array([0]), np.array([PAGE])).tolist() == [1, 2]
    assert wanted_last_modified(other, np.array([0]), np.array([130.0])).tolist() == []


def test_many_resources_and_pages_at_once_are_as_one_by_one():
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 6, 200)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    total = int(counts.sum())
    time = np.concatenate([np.sort(rng.integers(0, 40, count)).astype(float) for count in counts])
    version = rng.choice([GONE, 0, 1, 2], total)
    modified = np.where(rng.random(total) < 0.5, np.nan, rng.integers(0, 40, total).astype(float))
    table = ResourceCaptures(offsets, time, version, np.where(version == 0, 0, 1), version != GONE, modified)
    row, at = rng.integers(0, 200, 250), rng.integers(0, 40, 250).astype(float)
    for rule in ChoiceRule:
        whole = choose(table, row, at, rule)
        for pair in range(250):
            first, last = offsets[row[pair]], offsets[row[pair] + 1]
            alone = ResourceCaptures(
                np.array([0, last - first]),
                *(one[first:last] for one in (time, version, table.method, table.showable, modified)),
            )
            found = choose(alone, np.array([0]), at[pair : pair + 1], rule)
            place = int(found.place[0])
            assert (place + first if place != NO_CAPTURE else NO_CAPTURE, found.state[0]) == (
                whole.place[pair],
                whole.state[pair],
            )


@given(st.data())
def test_the_coherent_rule_shows_what_is_proved_and_not_what_is_disproved(data):
    rows = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, 30), st.sampled_from([GONE, 0, 1, 2]), st.one_of(st.just(math.nan), st.integers(0, 30))
            ),
            min_size=1,
            max_size=6,
        )
    )
    found = captures(*sorted(rows, key=lambda one: one[0]))
    at = np.array([float(data.draw(st.integers(0, 30)))])
    coherent, nearest = (
        choose(found, np.array([0]), at, rule).state[0] for rule in (ChoiceRule.COHERENT, ChoiceRule.NEAREST)
    )
    assert (nearest == COHERENT) <= (coherent == COHERENT)
    assert (coherent == VIOLATIVE) <= (nearest == VIOLATIVE)
    assert (coherent == MISSING) == (nearest == MISSING)


def test_damage_by_hand():
    kinds = [EmbedKind.IMAGE, EmbedKind.MULTIMEDIA, EmbedKind.FRAME, EmbedKind.STYLESHEET, EmbedKind.SCRIPT]
    sizes = [(1024.0, 768.0), (512.0, 384.0), (NEVER, NEVER), (NEVER, NEVER), (NEVER, NEVER)]
    width, height = (np.array(side) for side in zip(*sizes, strict=True))
    found = importance(np.array(kinds), width, height, np.array([1.0, 1.0, 1.0, 0.5, 1.0]))
    # A frame of 300 × 150: 45,000 of 786,432 pixels, crosses the middles with 300/724 and 150/618.
    frame = 0.5 * 45_000 / 786_432 + 0.25 * (300 / 724 + 150 / 618)
    assert found == pytest.approx([0.3 * 1.0, 0.5 * (0.125 + 0.5), 0.3 * frame, 0.025, 0.05])
    one_side = importance(np.array([0, 0]), np.array([100.0, NEVER]), np.array([NEVER, 50.0]), np.ones(2))
    assert one_side[0] == pytest.approx(one_side[1])  # the other follows by 2 : 1
    assert importance(np.array([EmbedKind.IMAGE, EmbedKind.OTHER]), np.zeros(2), np.zeros(2), np.ones(2)).sum() == 0


def composites(*pages):
    """Captured pages: words, and states with importances of what they embed."""
    row = [number for number, (_, parts) in enumerate(pages) for _ in parts]
    state = [one[0] for _, parts in pages for one in parts]
    worth = [one[1] for _, parts in pages for one in parts]
    return Composites.of(
        np.arange(len(pages)),
        np.arange(len(pages), dtype=float),
        np.array([words for words, _ in pages]),
        np.zeros(len(pages), bool),
        np.array(row, np.int64),
        np.array(state, np.uint8),
        np.array(worth, float),
    )


def test_pages_are_counted():
    found = composites(
        (0, [(COHERENT, 0.3), (COHERENT, 0.3)]),
        (0, [(COHERENT, 0.3), (MISSING, 0.1)]),
        (1000, [(MAYBE, 0.2), (MISSING, 0.1)]),
        (0, [(MAYBE, 0.3), (COHERENT, 0.3)]),
        (0, [(DOUBTFUL, 0.3), (VIOLATIVE, 0.3)]),
        (0, [(MISSING, 0.3)]),
        (500, []),
    )
    assert found.state().tolist() == [COHERENT, COHERENT, MAYBE, MAYBE, VIOLATIVE, MISSING, COHERENT]
    assert found.completeness()[:6].tolist() == [1, 0.5, 0.5, 1, 1, 0]
    assert math.isnan(found.completeness()[6])
    assert found.damage() == pytest.approx([0, 0.25, 0.1 / 0.4, 0, 0, 1, 0])
    assert found.worst_first().tolist()[0] == 5
    said = summary_of(found)
    assert (said.pages, said.embedding) == (7, 6)
    assert (said.coherent, said.not_violative, said.violative, said.bare) == (2, 4, 1, 1)
    assert (said.complete, said.coherent_complete, said.not_violative_complete) == (3, 1, 2)
    assert said.completeness == pytest.approx((1 + 0.5 + 0.5 + 1 + 1 + 0) / 6)
    assert said.damage == pytest.approx((0 + 0.25 + 0.25 + 0 + 0 + 1) / 6)
    assert said.resources == {COHERENT: 4, MAYBE: 2, DOUBTFUL: 1, VIOLATIVE: 1, MISSING: 3, NOT_KNOWN: 0}
    assert summary_json(said)["coherentShare"] == pytest.approx(2 / 6)


def test_of_pages_without_any_archived_part_nothing_is_said():
    """A possibly violative page may have existed as shown, and so may one of which no part is archived."""
    nothing, doubtful = (0, [(MISSING, 0.3)]), (0, [(DOUBTFUL, 0.3)])
    words = " ".join(composite_words(CompositeFindings(composites(nothing, nothing, doubtful), [], 0, whole=True)))
    assert "0 of 3 pages (0.0%) are proved to have existed as shown" in words
    assert "0 of 3 pages (0.0%) are proved not to have existed" in words
    assert "Of 2 of 3 pages (66.7%) no page requisite is archived: whether they existed as shown is not known." in words
    assert "at most" not in words


def test_parts_elsewhere_are_archived_and_prove_nothing():
    found = composites(
        (0, [(COHERENT, 0.3), (NOT_KNOWN, 0.3)]),
        (0, [(NOT_KNOWN, 0.3), (MISSING, 0.1)]),
        (0, [(DOUBTFUL, 0.3), (NOT_KNOWN, 0.3)]),
        (0, [(VIOLATIVE, 0.3), (NOT_KNOWN, 0.3)]),
    )
    assert found.state().tolist() == [NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, VIOLATIVE]
    assert found.completeness().tolist() == [1, 0.5, 1, 1]
    assert found.damage() == pytest.approx([0, 0.25, 0, 0])
    said = summary_of(found)
    assert (said.coherent, said.not_violative, said.violative, said.complete) == (0, 2, 1, 3)


def test_what_is_not_known_is_null():
    told = summary_json(summary_of(composites((0, []))))
    assert (told["pages"], told["embedding"]) == (1, 0)
    assert told["coherentShare"] is told["completeness"] is told["damage"] is None


def test_a_page_of_which_not_all_was_looked_at_is_not_complete():
    found = Composites.of(*(np.array(one) for one in ([1], [0.0], [0], [True], [0], [0], [0.3])))
    assert not found.complete().any()
    assert summary_of(found).complete == 0
