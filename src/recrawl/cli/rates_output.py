"""Tables of rates as files: CSV for spreadsheets, Parquet for programs. The same content as JSON prints."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recrawl.errors import ConfigError, require
from recrawl.formats.disk import complete_file

ENDINGS = (".csv", ".parquet")
PICTURES = (".png", ".svg", ".pdf")


def check_ending(file: Path) -> None:
    """Refuse a file whose ending does not say what to write, before any work is done."""
    if file.suffix.lower() not in ENDINGS:
        raise ConfigError(f"What to write into {file} cannot be told from its name.", "End it in .csv or .parquet.")


def check_picture(file: Path) -> None:
    """The same for a picture."""
    if file.suffix.lower() not in PICTURES:
        raise ConfigError(
            f"What to draw into {file} cannot be told from its name.", f"End it in {', '.join(PICTURES)}."
        )


def write_columns(file: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a table, replacing the file only when complete. A number that is not finite becomes an empty cell."""
    if file.suffix.lower() == ".parquet":
        pa, parquet = require("pyarrow", "columns"), require("pyarrow.parquet", "columns")
        table = pa.table({name: pa.array([_cell(value) for value in values]) for name, values in columns.items()})
        with complete_file(file) as stream:
            parquet.write_table(table, stream)
        return
    with complete_file(file) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*([_cell(value) for value in values] for values in columns.values()), strict=True))
        text.flush()
        text.detach()


def _cell(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
