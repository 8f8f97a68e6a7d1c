"""The token of a workspace: a file that only its owner can read, made when ``recrawl serve`` first needs it.

It stays from one start to the next, so that programs on this machine can read it there. Whoever deletes the file gets
another token at the next start.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from recrawl.formats.disk import unfinished_file

TOKEN_FILE = "serve.token"  # noqa: S105 - the name of a file
_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{16,200}")
_LONGEST = 1_000
_TRIES = 5


def stored_token(folder: Path) -> str:
    """The token in the workspace; a new one if there is none that nobody else could have read or put there.

    Where the folder cannot be written, a token that is kept nowhere.
    """
    path = folder / TOKEN_FILE
    for _ in range(_TRIES):
        if (found := _read(path)) is not None:
            return found
        made = secrets.token_urlsafe(24)
        try:
            _replace(path, made)
        except FileExistsError:
            continue  # another process was quicker: its token holds
        except OSError:
            return made
        return made
    return secrets.token_urlsafe(24)


def _read(path: Path) -> str | None:
    """The token in a file of ours that nobody else can read or write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        others = about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        is_ours = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
        if not stat.S_ISREG(about.st_mode) or (os.name == "posix" and others) or not is_ours:
            return None
        text = file.read(_LONGEST).decode("ascii", "replace").strip()
    return text if _TOKEN.fullmatch(text) else None


def _replace(path: Path, token: str) -> None:
    """Write a token into a new file. One that cannot be trusted is removed first; what another process made is not.

    Raises:
        FileExistsError: another process made one meanwhile.
    """
    with unfinished_file(path) as part:
        part.chmod(0o600)  # before anything is in it
        part.write_bytes(f"{token}\n".encode())
        if path.is_symlink() or (path.exists() and _read(path) is None):
            path.unlink()
        try:
            os.link(part, path)  # unlike a rename, this fails if the name is taken
        except FileExistsError:
            raise
        except OSError:  # a file system without such links
            part.replace(path)
