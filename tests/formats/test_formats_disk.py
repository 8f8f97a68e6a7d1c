"""A file is there complete or not at all."""

from __future__ import annotations

import errno
import os

import pytest

from recrawl.errors import DiskFullError, InputError
from recrawl.formats.atomic_files import FULL, complete_file


def test_the_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "a.cdxj"
    path.write_bytes(b"old")
    with complete_file(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", sorted(FULL))
def test_no_room_is_told_as_such(number, tmp_path):
    with pytest.raises(DiskFullError, match="disk is full"), complete_file(tmp_path / "a"):
        raise OSError(number, os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_what_else_goes_wrong_is_told_with_the_name(tmp_path):
    with (
        pytest.raises(InputError, match=r"a: it cannot be written \(Input/output error\)"),
        complete_file(tmp_path / "a"),
    ):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(InputError, match="cannot be written"), complete_file(tmp_path / "no" / "a"):
        pytest.fail("there is no folder to write into")
    with pytest.raises(InputError, match="cannot be written"), complete_file(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError])
def test_whatever_is_raised_leaves_nothing(raised, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def write():
        with complete_file(path) as stream:
            stream.write(b"new")
            raise raised

    with pytest.raises(raised):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
