"""Which archive files an export speaks of: where each lies, what it is called there, and whether it is at hand.

A store names a file by its last part if it lies in the workspace, by its whole path if it was imported, and by
whatever an index said if nobody ever had it here. Paths mean nothing elsewhere and last parts may come twice, so every
file gets one name for an export.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recrawl.crawl.archived_bytes import may_be_read
from recrawl.errors import InputError
from recrawl.formats.disk import has_file
from recrawl.formats.sniff import Format, sniff
from recrawl.formats.warc_repair import OPEN
from recrawl.formats.warc_stream import PLAIN, magic_of

_ENDINGS = (".warc.gz", ".warc.zst", ".warc.lz4", ".warc", ".arc.gz", ".arc")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~+=@-]+")
_DIGITS = 12


class Whereabouts(enum.StrEnum):
    """Where captures lie, in words."""

    HERE = "in WARC files at hand"
    OPEN = "in a WARC file that is still being written"
    ARC = "in ARC files"
    OTHER = "in files that are no WARC"
    UNREADABLE = "in files that cannot be read"
    UNNAMED = "in files that an index names and nobody imported"
    MISSING = "in files that are not here"
    NOWHERE = "in no file"


@dataclass(slots=True)
class ArchiveFile:
    """One file that captures lie in."""

    path: Path
    name: str
    """What an index calls it."""
    ours: bool = True
    """Whether it lies in the workspace, or somebody imported it by its own name."""
    captures: int = 0
    """How many were asked for."""
    _where: Whereabouts | None = field(default=None, repr=False)

    @property
    def where(self) -> Whereabouts:
        """Whether it is at hand. Looks at its first bytes, once."""
        if self._where is None:
            away = Whereabouts.UNNAMED if has_file(self.path) else Whereabouts.MISSING
            self._where = whereabouts(self.path) if self.ours else away
        return self._where


class ArchiveFiles:
    """The files of a workspace's captures, each with a name of its own. Grows with files, not with captures."""

    def __init__(self, warc_folder: Path, is_imported: Callable[[str], bool]) -> None:
        """Files outside the folder are at hand only if somebody imported them by their own name."""
        self._folder = warc_folder.resolve()
        self._is_imported = is_imported
        self._by_text: dict[str, ArchiveFile] = {}
        self._by_path: dict[Path, ArchiveFile] = {}
        self._names = FreeNames()
        self._nowhere = 0

    def name_of(self, file: str) -> str:
        """What an index calls the file of one more capture, given as the store names it; empty if it lies in none."""
        if not file:
            self._nowhere += 1
            return ""
        found = self._by_text.get(file) or self._find(file)
        found.captures += 1
        return found.name

    def add_workspace(self) -> None:
        """Take all WARC files of the workspace in, also those that no capture lies in."""
        for path in self._folder.glob("*.warc*"):
            if path.name.endswith((".warc", ".warc.gz")):
                self._find(path.name)

    def __iter__(self) -> Iterator[ArchiveFile]:
        """All files met so far, in the order of their paths."""
        return iter([self._by_path[path] for path in sorted(self._by_path)])

    def elsewhere(self) -> dict[Whereabouts, int]:
        """Captures that were asked for and do not lie in a WARC file at hand, by where they do."""
        counts = {Whereabouts.NOWHERE: self._nowhere}
        for file in self:
            if file.where is not Whereabouts.HERE:
                counts[file.where] = counts.get(file.where, 0) + file.captures
        return {where: count for where, count in counts.items() if count}

    def _find(self, text: str) -> ArchiveFile:
        """An absolute path is a file we read; any other name lies in the workspace, if it leads nowhere else."""
        given = Path(text)
        path = given if ".." in given.parts else (self._folder / given).resolve()
        if path not in self._by_path:
            name = plain_name(path) if given.is_absolute() else text
            ours = path.is_relative_to(self._folder) or may_be_read(self._folder, text, self._is_imported)
            self._by_path[path] = ArchiveFile(path, self._names.take(name, path), ours)
        return self._by_text.setdefault(text, self._by_path[path])


class FreeNames:
    """Names that come only once, also where upper and lower case are the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str, path: Path) -> str:
        """The wanted name, or, if a file at another path has it, that name with a digest of this path in it.

        >>> names = FreeNames()
        >>> names.take("a.warc.gz", Path("one/a.warc.gz")), names.take("A.warc.gz", Path("two/A.warc.gz"))
        ('a.warc.gz', 'A-6fce577f061f.warc.gz')
        """
        name, ending = wanted, _ending(wanted)
        digest = str(path).encode("utf-8", "surrogatepass")
        while name.lower() in self._taken:
            digest = hashlib.sha256(digest).digest()
            name = f"{_stem(wanted)}-{digest.hex()[:_DIGITS]}{ending}"
        self._taken.add(name.lower())
        return name


def plain_name(path: Path) -> str:
    """The last part of a path in characters that every index, package and file system takes.

    >>> plain_name(Path("/data/my crawl (2).warc.gz"))
    'my_crawl_2_.warc.gz'
    """
    return _UNSAFE.sub("_", path.name).lstrip(".-") or "archive"


def packed_name(path: Path) -> str:
    """The same, with the ending that packages want: ``.warc`` if nothing in the file is packed, else ``.warc.gz``.

    The file is :attr:`Whereabouts.HERE`.
    """
    with path.open("rb") as file:
        ending = ".warc" if magic_of(file) == PLAIN else ".warc.gz"
    return _stem(plain_name(path)) + ending


def whereabouts(path: Path) -> Whereabouts:
    """Whether a WARC file lies at a path."""
    if not has_file(path):
        is_open = has_file(path.with_name(path.name + OPEN))
        return Whereabouts.OPEN if is_open else Whereabouts.MISSING
    try:
        what = sniff(path)
    except InputError:
        return Whereabouts.UNREADABLE
    return {Format.WARC: Whereabouts.HERE, Format.ARC: Whereabouts.ARC}.get(what, Whereabouts.OTHER)


def _ending(name: str) -> str:
    return next((name[-len(ending) :] for ending in _ENDINGS if name.lower().endswith(ending)), "")


def _stem(name: str) -> str:
    return name.removesuffix(_ending(name))
