"""Uses the public Python API as a typed program does. mypy reads it; nothing runs it."""

from collections.abc import Iterator, Sequence
from typing import Any, assert_type

import recrawl


def analyse() -> None:
    """Questions to an archive, with the types of their answers."""
    with recrawl.load("crawls/") as archive:
        assert_type(archive, recrawl.Archive)
        rates = archive.rates(by="host")
        assert_type(rates, recrawl.Rates)
        assert_type(len(rates), int)
        assert_type(rates["url"], Sequence[Any])
        assert_type(iter(rates), Iterator[dict[str, Any]])
        assert_type(rates.provenance, recrawl.Provenance | None)
        assert_type(archive.diagnose(), recrawl.PoissonDiagnosis)
        assert_type(archive.plan(), recrawl.Plan)
        assert_type(archive.compare(["uniform"]), recrawl.Comparison)
        assert_type(archive.assess(), recrawl.Quality)
        assert_type(archive.predict(), recrawl.Table)
        assert_type(archive.histories(), recrawl.Histories)


def wrong() -> None:
    """Mistakes that a type checker must report; mypy warns if one of these comments is not needed."""
    with recrawl.load("crawls/") as archive:
        archive.rates(by=3)  # type: ignore[arg-type]
        archive.rates(windw="90d")  # type: ignore[call-arg]
        archive.plan(budget=[1])  # type: ignore[arg-type]
        archive.rates().save(5)  # type: ignore[arg-type]
        archive.diagnose().rate  # type: ignore[attr-defined]  # noqa: B018 - only typed
    recrawl.lod("crawls/")  # type: ignore[operator]
