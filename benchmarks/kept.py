"""Results as they are kept in ``benchmarks/results``: a file of JSON for each run, with when and on what it ran."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from figures import Figure
from targets import AIMS, Aim

FOLDER = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found."""

    run: str
    command: str
    """As it can be typed at the root of the repository."""
    quick: bool
    """Whether sizes were small: then it says that the command works, and nothing of the aim."""
    date: str
    load: float | None
    """Load average of the machine when it started; none where nobody noted it."""
    cores: int
    seconds: float | None
    """How long it took; none where nobody noted it."""
    figures: tuple[Figure, ...]
    remark: str = ""
    """What else a reader must know, such as that an earlier printout was copied."""

    @classmethod
    def read(cls, file: Path) -> Result:
        """A result out of its file."""
        value = json.loads(file.read_text("utf-8"))
        return cls(**{**value, "figures": tuple(Figure.read(one) for one in value["figures"])})

    def keep(self, folder: Path = FOLDER) -> None:
        """Write the file of this run."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / f"{self.run}.json").write_text(text + "\n", "utf-8")

    def figure(self, name: str) -> Figure | None:
        """One of the figures."""
        return next((one for one in self.figures if one.name == name), None)


def kept_results(folder: Path = FOLDER) -> dict[str, Result]:
    """All that is kept, by run."""
    return {file.stem: Result.read(file) for file in sorted(folder.glob("*.json"))}


def reached(aim: Aim, figure: Figure) -> bool:
    """Whether a figure is what it is to be."""
    value = figure.measured
    if aim.of_ratio:
        if not figure.baseline:
            return False
        value /= figure.baseline
    return value >= aim.limit if aim.at_least else value <= aim.limit


def all_aims() -> list[Aim]:
    """Every aim, in the order of the page."""
    return [aim for group in AIMS.values() for aim in group]
