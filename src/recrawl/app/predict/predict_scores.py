"""What a model says of pages of a workspace, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.predict.model_training import sights
from recrawl.app.predict.stored_models import StoredModel, load_model
from recrawl.app.rates.rates_table import in_words
from recrawl.errors import ConfigError, InputError
from recrawl.estimate.posterior.gamma_posterior import sum_of
from recrawl.predict.feature_extraction import first_sight, site_ids, when_found
from recrawl.predict.prior_model import contributions, is_seen
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import GammaBelief, IntArray
    from recrawl.predict.feature_table import FeatureTable
    from recrawl.store.base import PageTable, Store

_MIDDLE = 0.5
_INTERVAL = (0.05, 0.95)


def chosen_model(place: Workspace, store: PageTable, name: str, event: str) -> StoredModel:
    """The model of this name, which predicts this kind of event.

    Raises:
        InputError: there is none, or it does not.
    """
    kept = load_model(place.folder, name, store.urls)
    if event not in kept.model.predicted:
        known = ", ".join(kept.model.predicted)
        raise InputError(f"The model {name!r} does not predict {event!r}.", f"It predicts: {known}.")
    return kept


def expected(  # noqa: PLR0913, PLR0917 - where, which, and how many
    place: Workspace, store: Store, name: str, event: str, host: str | None, most: int | None
) -> tuple[dict[str, list[Any]], int]:
    """Columns of all pages, of a host if one is named, by falling rate; and how many there are.

    The rate is the middle of what is expected, as in the tables of ``recrawl rates``.
    """
    from recrawl.app.rates.belief_table import host_id

    kept = chosen_model(place, store, name, event)
    number = host_id(store, host)
    pages = store.pages()
    page = np.sort(pages.id if number is None else pages.id[pages.host == number])
    urls = store.urls(page)
    table = _sights(place, store, page, urls)
    belief = kept.model.prior(event, table, site_ids(urls))
    order = np.argsort(-belief.quantile(_MIDDLE), kind="stable")[:most]
    middle, low, high = (belief.take(order).quantile(q) for q in (_MIDDLE, *_INTERVAL))
    seen = is_seen(table)[order].tolist()
    return {
        "url": [urls[row] for row in order.tolist()],
        "per_day": (middle * DAY).tolist(),
        "low": (low * DAY).tolist(),
        "high": (high * DAY).tolist(),
        "shape": belief.a[order].tolist(),
        "in_words": [_words(*three) for three in zip(middle.tolist(), low.tolist(), high.tolist(), strict=True)],
        "known_by": ["its first copy" if looked else "its URL" for looked in seen],
    }, len(page)


@dataclass(frozen=True, slots=True)
class PredictionReasons:
    """What is expected of one page, and why."""

    url: str
    event: str
    belief: GammaBelief
    seen: bool
    known_site: bool
    rows: list[tuple[str, str, float]]
    """Feature, its value for this page, and its factor; those that matter most first."""

    def sentence(self) -> str:
        """What is expected."""
        middle, low, high = (float(self.belief.quantile(q)[0]) for q in (_MIDDLE, *_INTERVAL))
        by = "its URL and its first copy" if self.seen else "its URL alone"
        site = "a site the model knows" if self.known_site else "a site the model has not seen"
        what = {"changes": "change", "new-links": "get a new link"}.get(self.event)
        what = what or f"get a {self.event.removesuffix('s').replace('-', ' ')}"
        return f"Expected to {what} {_words(middle, low, high)}; from {by}, on {site}."

    def facts(self) -> dict[str, object]:
        """The same for programs; rates are per day."""
        middle, low, high = (float(self.belief.quantile(q)[0]) * DAY for q in (_MIDDLE, *_INTERVAL))
        features = [{"feature": name, "value": shown, "factor": factor} for name, shown, factor in self.rows]
        about = {"url": self.url, "event": self.event, "seen": self.seen, "known_site": self.known_site}
        return {
            **about,
            "median": middle,
            "low": low,
            "high": high,
            "features": features,
        }


def reasons(place: Workspace, store: Store, name: str, event: str, url: str) -> PredictionReasons:
    """Why the model says what it says of a page.

    Raises:
        ConfigError: it is no URL.
    """
    from recrawl.urls import address

    kept = chosen_model(place, store, name, event)
    found = address(url)
    if found is None:
        raise ConfigError(f"{url!r} is not a URL.", "Give it as http://host/path.")
    known = store.find(found.url)
    page = np.array([0 if known is None else known.id])
    table = _sights(place, store, page, [found.url]) if known is not None else first_sight(page, [found.url])
    seen = bool(is_seen(table)[0])
    others = kept.known.page[:: max(len(kept.known.page) // 200, 1)]
    urls = store.urls(others) if len(others) else []
    lent = _sights(place, store, others, urls) if len(others) else table
    table, lent = (table, lent.take(is_seen(lent))) if seen else (when_found(table), when_found(lent))
    site = int(site_ids([found.url])[0])
    parts = [one.seen if seen else one.found for one in kept.model.parts(event)]

    def ask(asked: FeatureTable) -> GammaBelief:
        return sum_of([one.prior(asked, np.full(len(asked), site)) for one in parts])

    factor = contributions(ask, table, lent) if len(lent) else np.ones(len(table.columns))
    order = np.argsort(-np.abs(np.log(factor)), kind="stable").tolist()
    rows = [(table.names[place_], _shown(table, place_, found.url), float(factor[place_])) for place_ in order]
    return PredictionReasons(found.url, event, ask(table), seen, site in kept.model.sites.tolist(), rows)


def _sights(place: Workspace, store: Store, page: IntArray, urls: list[str]) -> FeatureTable:
    """What was known of pages at first sight; those never visited by their URLs alone."""
    histories = store.histories(pages=page)
    first = np.full(len(page), -np.inf)
    first[np.searchsorted(page, histories.page)] = histories.first_visit
    return sights(place, store, page, np.nan_to_num(first, nan=-np.inf), urls)


def _words(middle: float, low: float, high: float) -> str:
    with np.errstate(divide="ignore"):
        every, shortest, longest = (float(np.divide(1.0, rate)) for rate in (middle, high, low))
    return in_words(every, shortest, longest)


def _shown(table: FeatureTable, place: int, url: str) -> str:
    """A feature of the page as people read it: names as they are written."""
    from recrawl.predict.static_features import online_features

    column, value = table.columns[place], float(table.values[0, place])
    if np.isnan(value):
        return "–"
    if not column.categorical:
        return f"{value:,.6g}"
    parts = online_features(url, "")
    if column.name == "top_level_domain":
        return parts.domain.rpartition(".")[2]
    return str(getattr(parts, column.name, "as it is"))
