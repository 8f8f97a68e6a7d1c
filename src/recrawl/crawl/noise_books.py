"""Evidence on noise, between the columns of the store and those of its book."""

from __future__ import annotations

from dataclasses import fields

from recrawl.detect.learned_noise import NoiseBook
from recrawl.store.values import NoiseCounts


def noise_book(counts: NoiseCounts) -> NoiseBook:
    """What the store counted, as a book. Nothing is copied."""
    return NoiseBook(*(getattr(counts, column.name) for column in fields(NoiseBook)))


def noise_counts(book: NoiseBook) -> NoiseCounts:
    """What a book says, as the store counts it. Nothing is copied."""
    return NoiseCounts(*(getattr(book, column.name) for column in fields(NoiseBook)))
