"""What to know of a model before it is used: when, from what and how it was trained, and how well it foretold.

As JSON beside the model, for programs, and as a page of Markdown, for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from recrawl.errors import InputError
from recrawl.model.words import counted
from recrawl.time import format_duration, to_iso

FORMAT = 2
"""Of the files of a model; one of another number is not read."""


@dataclass(frozen=True, slots=True)
class Score:
    """How well priors foretold pages that were kept from training."""

    split: str
    """``pages``, ``later pages`` or ``sites``: what was kept from training."""
    pages: int
    first: Mapping[str, float]
    """Mean log loss of the first looks, nats, by prior: ``model``, ``all pages``, ``host``."""
    ten: Mapping[str, float]
    """The same of the first ten looks, each prior with the looks before."""
    alone: float
    """The same of the model alone, whatever the looks before found."""
    calibration: float
    """Changes the model expected at first looks, for each that was found."""
    coverage: float
    """Share of pages within the model's 90 % interval."""

    @property
    def gain(self) -> float:
        """Nats a first look by which the model foretells better than one prior for all pages."""
        return self.first["all pages"] - self.first["model"]


@dataclass(frozen=True, slots=True)
class ModelNote:
    """Everything about a model but the model."""

    name: str
    schema: str
    features: tuple[str, ...]
    events: tuple[str, ...]
    since: float
    """The first look that was learned from, seconds since the epoch."""
    until: float
    """The last one."""
    pages: int
    out_of: int
    """Pages that could have been learned from."""
    looked_into: int
    """Pages whose first copy could be read."""
    looks: int
    sites: int
    source: str
    """``workspace``, or the name of the data set."""
    seed: int
    versions: Mapping[str, str]
    """Of recrawl and the libraries it was trained with."""
    scores: tuple[Score, ...] = ()
    format: int = FORMAT

    @property
    def pages_in_words(self) -> str:
        """How many pages were learned from, and of how many they were chosen."""
        if self.pages == self.out_of:
            return counted(self.pages, "page")
        return f"{counted(self.pages, 'page')}, chosen at random among {self.out_of:,},"

    def to_json(self) -> str:
        """The content of ``model.json``."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ModelNote:
        """The note of a model.

        Raises:
            InputError: it is none, or of another format.
        """
        try:
            said = json.loads(text)
            if said["format"] != FORMAT:
                raise InputError(
                    f"The model has format {said['format']}, this version reads {FORMAT}.",
                    "Train it again with: recrawl predict train",
                )
            scores = tuple(Score(**{part.name: one[part.name] for part in fields(Score)}) for one in said["scores"])
            given = {part.name: said[part.name] for part in fields(cls) if part.name != "scores"}
            given |= {name: tuple(given[name]) for name in ("features", "events")}
            return cls(**given, scores=scores)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError("model.json does not describe a model.", "Train it again.") from error


def model_card(note: ModelNote) -> str:
    """A page of Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in note.versions.items())
    material = f"{note.pages_in_words} of {counted(note.sites, 'site')}, {counted(note.looks, 'look')}"
    lines = [
        f"# Model {note.name}",
        "",
        "What to believe of a page before its history tells: a Gamma prior for how often it changes, and for how often",
        "it gets new links. Pages that are only found are judged by their URLs, pages that were seen by what was on",
        "them, too.",
        "",
        "| | |",
        "|---|---|",
        f"| trained from | {note.source}: {material} |",
        f"| first copies read | {note.looked_into:,} |",
        f"| looks from | {to_iso(note.since)} |",
        f"| looks to | {to_iso(note.until)} ({format_duration(note.until - note.since)}) |",
        f"| foretells | {', '.join(note.events)} |",
        f"| features | {len(note.features)}, schema `{note.schema}` |",
        f"| seed | {note.seed} |",
        f"| made with | {versions} |",
        "",
        "## How well it foretells",
        "",
        *score_table(note.scores),
        "",
        "Log loss in nats, less is better: of the first look at each page kept from training, and of its first ten",
        "looks, each with what the looks before it taught; and by the model alone, which learns nothing from them.",
        "Calibration: changes expected for each that was found; 1 is right.",
        "",
        "## What it is not for",
        "",
        "It knows pages like those it was trained on. On sites of another kind it says little, and says so by wide",
        "intervals. It foretells how often, not when. Its features are:",
        "",
        ", ".join(f"`{name}`" for name in note.features) + ".",
        "",
    ]
    return "\n".join(lines)


def score_table(scores: tuple[Score, ...]) -> list[str]:
    """The scores as lines of a Markdown table."""
    if not scores:
        return ["Too few pages to keep some from training."]
    headings = ["kept", "pages", "first: model", "all pages", "host", "ten: model", "all pages", "host", "model alone"]
    headings += ["calibration", "in 90 %"]
    lines = [f"| {' | '.join(headings)} |", "|---|" + "--:|" * (len(headings) - 1)]
    for one in scores:
        numbers = [f"{part[name]:.3f}" for part in (one.first, one.ten) for name in ("model", "all pages", "host")]
        numbers += [f"{one.alone:.3f}", f"{one.calibration:.2f}"]
        cells = [one.split, f"{one.pages:,}", *numbers, f"{one.coverage:.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
