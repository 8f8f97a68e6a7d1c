"""Scores, expectations and reasons as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from recrawl.cli.predict_scores import Reasons
    from recrawl.predict.model_card import ModelNote, Score

_TELLING = 1.05
"""Factors nearer to 1 are not worth a line."""


def print_scores(scores: Sequence[Score]) -> None:
    """How well the model did beside other priors."""
    from recrawl.cli.tables import print_table

    if not scores:
        typer.echo("Too few pages to keep some from training: how well it foretells is not known.")
        return
    headings = (
        "kept from training",
        "pages",
        "model",
        "all pages",
        "host",
        "ten looks",
        "all pages",
        "host",
        "expected/found",
        "in 90 %",
    )
    rows = []
    for one in scores:
        numbers = [f"{part[name]:.3f}" for part in (one.first, one.ten) for name in ("model", "all pages", "host")]
        rows.append((one.split, f"{one.pages:,}", *numbers, f"{one.calibration:.2f}", f"{one.coverage:.0%}"))
    typer.echo("Log loss of first looks, then of the first ten, in nats; less is better:")
    print_table(headings, rows, right=headings[1:])


def score_facts(note: ModelNote) -> dict[str, object]:
    """A note for programs."""
    import json

    facts: dict[str, object] = json.loads(note.to_json())
    return facts


def print_expected(columns: Mapping[str, Sequence[Any]]) -> None:
    """Pages and how often they are expected to change."""
    from recrawl.cli.tables import print_table

    rows = list(zip(columns["url"], columns["in_words"], columns["known_by"], strict=True))
    print_table(("url", "expected", "known by"), rows)


def print_reasons(found: Reasons) -> None:
    """What is expected of a page, and why."""
    from recrawl.cli.tables import print_table

    typer.echo(found.sentence())
    telling = [
        (name, shown, f"× {factor:.2f}") for name, shown, factor in found.rows if max(factor, 1.0 / factor) >= _TELLING
    ]
    if telling:
        print_table(("feature", "of this page", "factor"), telling, right=("factor",))
    else:
        typer.echo("No single feature makes much of a difference.")
