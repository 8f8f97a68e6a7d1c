"""A model of priors: it knows pages better that were looked at, and comes back from its own file alone."""

import io
import sys

import numpy as np
import pytest

from recrawl.errors import InputError, MissingExtraError
from recrawl.estimate.posterior.gamma_posterior import fit_prior
from recrawl.model import GammaBelief, Histories, Verdict, Visits
from recrawl.predict.feature_extraction import ObservationCounts, first_sight, observation_counts, site_ids
from recrawl.predict.page_versions import PageVersions
from recrawl.predict.prior_model import (
    CHANGES,
    LINK_EVENTS,
    NEW_LINKS,
    event_counts,
    model_bytes,
    read_model,
    train_model,
)
from recrawl.predict.prior_scores import coverage, evaluate_prior
from recrawl.time import DAY


def population(pages, seed, observations=12):
    """Pages of two sites: lists change often, and long ones more often; seen at irregular moments."""
    rng = np.random.default_rng(seed)
    kind, size = rng.integers(0, 3, pages), rng.uniform(1.0, 4.0, pages)
    urls = [f"http://{'ab'[n % 2]}.example/{('list', 'item', 'about')[k]}/{n}" for n, k in enumerate(kind.tolist())]
    rate = np.array([1 / 10, 1 / 60, 1 / 400])[kind] * 3.0 ** (size - 2.5) * rng.gamma(3.0, 1 / 3, pages) / DAY
    gaps = rng.uniform(2.0, 20.0, (pages, observations)) * DAY
    changed = rng.random((pages, observations)) < -np.expm1(-rate[:, None] * gaps)
    time = np.concatenate([np.zeros((pages, 1)), np.cumsum(gaps, axis=1)], axis=1)
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict = np.concatenate([np.full((pages, 1), Verdict.UNKNOWN), verdict], axis=1)
    histories = Histories.from_visits(
        Visits.of(np.repeat(np.arange(pages), observations + 1), time.ravel(), verdict=verdict.ravel())
    )
    versions = PageVersions.of(
        np.arange(pages), np.zeros(pages), {"content_size": 10.0**size, "images": rng.integers(0, 9, pages)}
    )
    return first_sight(np.arange(pages), urls, versions), site_ids(urls), histories, urls


@pytest.fixture(scope="module")
def trained():
    table, site, histories, _ = population(360, 1)
    links = event_counts(np.arange(len(histories)), histories.changes() * 2.0, histories.observed())
    outward = event_counts(np.arange(len(histories)), histories.changes() * 0.1, histories.observed())
    of_links = dict(zip(LINK_EVENTS.values(), (links, outward), strict=True))
    return train_model(table, {CHANGES: observation_counts(histories), **of_links}, site, seed=1)


def test_features_beat_the_prior_of_all_and_a_look_at_the_page_beats_its_url(trained):
    table, site, histories, urls = population(800, 2)
    everywhere = fit_prior(histories).take(np.zeros(len(table), np.int64))
    only_found = first_sight(table.page, urls)
    seen, found = trained.prior(CHANGES, table, site), trained.prior(CHANGES, only_found, site)
    losses = [evaluate_prior(prior, histories) for prior in (seen, found, everywhere)]
    assert losses[0].first < losses[1].first < losses[2].first
    assert losses[0].ten < losses[2].ten
    assert losses[0].calibration == pytest.approx(1.0, abs=0.2)
    assert abs(losses[0].surprise) < 4
    assert coverage(seen, observation_counts(histories)) > 0.85


def test_rates_of_links_are_a_matter_of_their_own(trained):
    table, site, _, _ = population(100, 3)
    changes, links = (trained.prior(event, table, site).mean() for event in (CHANGES, NEW_LINKS))
    assert np.corrcoef(np.log(changes), np.log(links))[0, 1] > 0.8
    assert np.median(links / changes) > 1.3
    parts = [trained.prior(event, table, site).mean() for event in LINK_EVENTS.values()]
    assert links == pytest.approx(sum(parts))
    assert np.median(parts[0] / parts[1]) > 5
    assert trained.predicted == (CHANGES, *LINK_EVENTS.values(), NEW_LINKS)


def test_who_knows_less_of_pages_does_not_lift_them_beside_others(trained):
    """Of pages that nobody can tell apart the mean of all is said, which lies far above what is usual."""
    table, site, _, urls = population(600, 5)
    elsewhere = np.full(len(site), 1)
    asked = {"known": (table, site), "found": (first_sight(table.page, urls), site), "strange": (table, elsewhere)}
    said = {name: np.log(trained.prior(CHANGES, *one).mean()).mean() for name, one in asked.items()}
    even = {name: said[name] + np.log(trained.level(CHANGES, *one)).mean() for name, one in asked.items()}
    assert even["known"] == said["known"]
    apart, evenly = (max(one.values()) - min(one.values()) for one in (said, even))
    assert evenly < 0.3
    assert apart > 2 * evenly


def test_pages_of_which_there_is_no_copy_do_not_lower_those_that_were_only_found():
    """Beside a slow site with copies there may be a fast one without: known from an index, for instance."""
    fast = np.arange(240) % 2 == 0
    urls = [f"http://a.example/news/{n}" if is_fast else f"http://b.example/docs/{n}" for n, is_fast in enumerate(fast)]
    page, site = np.arange(240), site_ids(urls)
    count = ObservationCounts(np.where(fast, 30.0, 1.0), np.full(240, 100 * DAY))
    versions = PageVersions.of(np.flatnonzero(~fast), np.zeros(120), {"content_size": np.full(120, 1000.0)})
    model = train_model(first_sight(page, urls, versions), {CHANGES: count}, site)
    slow = page[~fast], [urls[row] for row in np.flatnonzero(~fast)]
    seen, found = first_sight(*slow, versions), first_sight(*slow)
    even = [
        np.log(model.prior(CHANGES, one, site[~fast]).mean() * model.level(CHANGES, one, site[~fast])).mean()
        for one in (seen, found)
    ]
    assert even[0] == pytest.approx(even[1], abs=0.3)


def test_it_comes_back_from_its_file(trained):
    table, site, _, _ = population(50, 4)
    content = model_bytes(trained)
    again = read_model(content)
    assert model_bytes(again) == content
    for event in trained.predicted:
        one, two = trained.prior(event, table, site), again.prior(event, table, site)
        np.testing.assert_array_equal(one.a, two.a)
        np.testing.assert_array_equal(one.b, two.b)
    with pytest.raises(InputError, match="other features"):
        again.prior(CHANGES, table.only(table.names[:-1]), site)


def pickled():
    file = io.BytesIO()
    np.savez(file, **{"changes/found/schema": np.array([{"run": "me"}], dtype=object)})
    return file.getvalue()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", pickled(), b"\x80\x04K\x01."])
def test_no_other_file_is_opened(content):
    with pytest.raises(InputError, match="no model of recrawl"):
        read_model(content)


def test_a_model_with_a_few_wrong_bytes_is_told(trained):
    """Whatever the packing makes of them: wrong sums, wrong lengths, codes that do not exist."""
    content = model_bytes(trained)
    rng = np.random.default_rng(1)
    told = 0
    for _ in range(60):
        wrong = bytearray(content)
        for place in rng.integers(0, len(content), 3).tolist():
            wrong[place] ^= 0x55
        try:
            read_model(bytes(wrong))
        except InputError:
            told += 1
    assert told > 50, "few bytes of the packing mean nothing"


def test_a_model_cut_short_is_told(trained):
    content = model_bytes(trained)
    with pytest.raises(InputError, match="damaged"):
        read_model(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("column", "harm"),
    [
        ("threshold", lambda old: old[:1]),
        ("unknown_left", lambda old: old[:1]),
        ("names", lambda old: old[:1]),
        ("left", lambda old: old[:1]),
        ("column", lambda old: old + 1_000),
        ("right", lambda old: old.astype(np.int64)),
        ("value", lambda old: old.astype(str)),
        ("goes_left", lambda old: old[:, :8]),
        ("head", lambda old: old * np.nan),
    ],
)
def test_a_model_whose_trees_reach_beyond_their_columns_is_refused(trained, column, harm):
    """What walks the trees is compiled, and looks at no bounds: it would read whatever lies there."""
    with np.load(io.BytesIO(model_bytes(trained))) as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= {name: harm(old) for name, old in arrays.items() if name.endswith(f"known_site/{column}")}
    content = io.BytesIO()
    np.savez(content, **arrays)
    with pytest.raises(InputError, match="damaged"):
        read_model(content.getvalue())


def test_the_same_seed_makes_the_same_model():
    table, site, histories, _ = population(120, 5)
    counts = {CHANGES: observation_counts(histories)}
    assert model_bytes(train_model(table, counts, site, seed=3)) == model_bytes(
        train_model(table, counts, site, seed=3)
    )


def test_training_without_its_library_names_the_install_command(monkeypatch):
    table, site, histories, _ = population(60, 5)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recrawl\[predict\]'"):
        train_model(table, {CHANGES: observation_counts(histories)}, site)


def test_a_prior_that_is_wrong_is_surprised():
    _, _, histories, _ = population(200, 6)
    wrong = GammaBelief(np.full(200, 5.0), np.full(200, 5.0 * 9000 * DAY))
    told = evaluate_prior(wrong, histories)
    assert told.calibration < 0.2
    assert told.surprise > 10
    nothing = evaluate_prior(wrong.take(slice(0)), histories.take(slice(0)))
    assert nothing.observations == 0
    assert np.isnan(nothing.first)
