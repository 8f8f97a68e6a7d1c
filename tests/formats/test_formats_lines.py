"""Lines in blocks: places, gzip of all sorts, odd bytes, lines without end."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.cdx.line_blocks import clean, read_blocks
from recrawl.formats.columnar.capture_batches import ReadReport


def blocks_of(data: bytes, report: ReadReport | None = None, **options):
    return list(read_blocks(io.BytesIO(data), "x.cdx", report or ReadReport(strict=True), **options))


def lines_of(data: bytes, report: ReadReport | None = None, **options) -> list[bytes]:
    return [line for block in blocks_of(data, report, **options) for line in block.raw.split(b"\n")[:-1]]


some_lines = st.lists(
    st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"").replace(b"\x1f", b"")), max_size=30
)


@given(some_lines, st.integers(1, 40))
def test_all_lines_come_with_their_places_whatever_the_block(lines, size):
    data = b"".join(line + b"\n" for line in lines)
    if data.startswith(b"\xef\xbb\xbf"):
        return
    blocks = blocks_of(data, size=size)
    assert b"".join(block.raw for block in blocks) == data
    for block in blocks:
        for number, line in enumerate(block.raw.split(b"\n")[:-1]):
            place = block.place(number)
            assert data[place : place + len(line) + 1] == line + b"\n"
        assert block.text.count(b"\n") == block.raw.count(b"\n")
        block.text.decode()


@given(some_lines, st.integers(1, 4), st.integers(1, 64))
def test_gzip_in_one_or_many_members_is_the_same_text(lines, members, size):
    data = b"".join(line + b"\n" for line in lines)
    step = len(data) // members + 1
    packed = b"".join(gzip.compress(data[begin : begin + step]) for begin in range(0, max(len(data), 1), step))
    expected = data.removeprefix(b"\xef\xbb\xbf")
    assert b"".join(block.raw for block in blocks_of(packed, size=size)) == expected


def test_the_last_line_needs_no_end():
    assert lines_of(b"a\nb") == [b"a", b"b"]


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    (block,) = blocks_of(b"\xef\xbb\xbfa\nb\n")
    assert block.text == b"a\nb\n"
    assert block.place(1) == 5


def test_bytes_that_are_not_utf8_are_written_as_in_a_url():
    (block,) = blocks_of(b"caf\xe9 \xc3\xa9\r\nx\n")
    assert block.text == "caf%E9 é\nx\n".encode()
    assert block.place(1) == 9


@pytest.mark.parametrize("size", [64, 4096, 1 << 22])
def test_a_gzip_file_that_breaks_off_gives_what_was_before(size):
    data = b"".join(b"line %d\n" % number for number in range(2_000))
    packed = gzip.compress(data[:9_000]) + gzip.compress(data[9_000:])
    told: list[InputError] = []
    report = ReadReport(on_bad=told.append)
    found = lines_of(packed[:-20], report, size=size)
    assert found[:-1] == data.split(b"\n")[: len(found) - 1]
    assert len(found) > 1_000
    assert (report.bad, told[0].position) == (1, len(packed) - 20)
    assert "break off" in str(told[0])


def test_damaged_gzip_is_reported_and_the_text_before_it_kept():
    first = gzip.compress(b"a\nb\n")
    report = ReadReport()
    assert lines_of(first + gzip.compress(b"c\nd\n" * 1_000)[:12] + b"\xff" * 50, report)[:2] == [b"a", b"b"]
    assert report.bad == 1


def test_padding_between_gzip_members_is_passed_over():
    packed = gzip.compress(b"a\n") + b"\0" * 100 + gzip.compress(b"b\n") + b"\0" * 512
    assert lines_of(packed, size=64) == [b"a", b"b"]


def test_a_gzip_bomb_is_never_held_as_a_whole():
    packer = zlib.compressobj(wbits=31)
    packed = (
        b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(64)) + packer.compress(b"\nx\n") + packer.flush()
    )
    report = ReadReport()
    blocks = blocks_of(packed, report)
    assert [block.raw for block in blocks] == [b"x\n"]
    assert report.bad == 1


@pytest.mark.parametrize("size", [16, 100, 1 << 22])
def test_a_line_that_is_too_long_is_reported_and_the_others_come(size):
    data = b"a\n" + b"x" * 500 + b"\nb\n" + b"y" * 300
    told: list[InputError] = []
    found = lines_of(data + b"\nc\n", ReadReport(on_bad=told.append), size=size, longest=200)
    assert found == [b"a", b"b", b"c"]
    assert [error.position for error in told] == [2, 505]


@given(st.binary(max_size=200), st.integers(1, 50))
def test_no_bytes_can_stop_it(data, size):
    report = ReadReport()
    blocks = blocks_of(data, report, size=size, longest=60)
    assert all(block.raw.endswith(b"\n") for block in blocks)


@given(st.binary(max_size=100), st.integers(0, 80), st.integers(1, 50))
def test_no_broken_gzip_can_stop_it(data, cut, size):
    packed = bytearray(gzip.compress(data))
    packed[min(cut, len(packed) - 1)] ^= 0xFF
    told: list[InputError] = []
    text = b"".join(block.text for block in blocks_of(bytes(packed), ReadReport(on_bad=told.append), size=size))
    assert told or text.rstrip(b"\n") in (clean(data).rstrip(b"\n"), clean(bytes(packed)).rstrip(b"\n"))
