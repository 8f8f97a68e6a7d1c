"""Which bytes the tables of quality came from: SHA-256 of each table and of the data sets, and when a table was made.

They are kept in the folder ``results/hashes``, so that the page can be written where the data are
not available. A table that is not the one that was kept is noted again, with the day.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from kept import FOLDER
from quality import EXPERIMENTS
from quality import FOLDER as TABLES

SHOWN = 16
"""Digits of a hash that are shown."""
_DATA, _TABLES = "data", "tables"


def folder_of_hashes(results: Path = FOLDER) -> Path:
    """Where hashes are kept, apart from the results of runs."""
    return results / "hashes"


def hash_of(place: Path) -> str:
    """Of a file; or of a folder, over the names and hashes of the files in it that are no text for people."""
    if place.is_file():
        return hashlib.sha256(place.read_bytes()).hexdigest()
    whole = hashlib.sha256()
    for file in sorted(place.rglob("*")):
        if file.is_file() and file.suffix != ".md":
            whole.update(f"{hash_of(file)}  {file.relative_to(place).as_posix()}\n".encode())
    return whole.hexdigest()


def kept_hashes(kind: str, results: Path = FOLDER) -> dict[str, dict[str, str]]:
    """Hash and day of each table (``tables``) or data set (``data``), by name."""
    file = folder_of_hashes(results) / f"{kind}.json"
    found: dict[str, dict[str, str]] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def keep_hashes(data: Path, results: Path = FOLDER) -> None:
    """Note tables, and data sets where they are available, that are not those which were kept."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    names = {name for experiment in EXPERIMENTS for name in experiment.data}
    places = {
        _TABLES: {experiment.file: TABLES / experiment.file for experiment in EXPERIMENTS},
        _DATA: {name: data / name for name in sorted(names) if (data / name).exists()},
    }
    folder_of_hashes(results).mkdir(parents=True, exist_ok=True)
    for kind, found in places.items():
        kept = kept_hashes(kind, results)
        for name, place in found.items():
            digest = hash_of(place)
            if kept.get(name, {}).get("sha256") != digest:
                kept[name] = {"sha256": digest, "date": today}
        text = json.dumps(dict(sorted(kept.items())), indent=1)
        (folder_of_hashes(results) / f"{kind}.json").write_text(text + "\n", "utf-8")
