"""Durations, dates and the clocks that do not look at the machine's time."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.clock import RealClock
from recrawl.errors import ConfigError
from recrawl.time import (
    AcceleratedClock,
    VirtualClock,
    format_duration,
    from_http_date,
    iso_second,
    parse_duration,
    seconds_and_millionths,
    to_http_date,
    to_iso,
    to_timestamp14,
)

DATES = st.integers(0, 4_102_444_800)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30),
        ("15min", 900),
        ("15m", 900),
        ("6h", 21_600),
        ("1.5d", 129_600),
        ("1w 2d", 777_600),
        (7, 7),
    ],
)
def test_durations_with_units(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "6", "h", "6 parsecs", "-1h", "6h and more"])
def test_what_is_not_a_duration_is_refused_with_a_remedy(text):
    with pytest.raises(ConfigError, match="Write a number and a unit"):
        parse_duration(text)


def test_unknown_and_endless_durations_have_words():
    assert format_duration(math.nan) == "–"
    assert format_duration(math.inf) == "never"
    assert format_duration(0.25) == "0.25 s"


@given(DATES)
def test_http_dates_come_back(when):
    assert from_http_date(to_http_date(float(when))) == when


@pytest.mark.parametrize("text", ["", "yesterday", "Sun, 99 Nov 1994 08:49:37 GMT", "0"])
def test_what_is_no_http_date_is_none(text):
    assert from_http_date(text) is None


@given(st.floats(-1e10, 1e10) | st.builds(float.__add__, DATES.map(float), st.sampled_from([0.9999995, 1.5e-6, 5e-7])))
def test_a_moment_is_written_as_datetime_rounds_it(when):
    second, millionths = seconds_and_millionths(when)
    written = datetime.fromtimestamp(when, UTC).isoformat(timespec="microseconds")
    assert f"{iso_second(second)}.{millionths:06}+00:00" == written


@given(DATES)
def test_iso_and_cdx_dates_agree(when):
    assert to_iso(float(when)).translate({ord(c): None for c in "-T:Z"}) == to_timestamp14(float(when))


async def _value(value: str) -> str:
    await asyncio.sleep(0.001)
    return value


def test_a_virtual_clock_lets_work_finish_before_it_moves():
    async def scene() -> None:
        clock = VirtualClock(10.0)
        tasks = [asyncio.create_task(_value(name)) for name in "ab"]
        assert await clock.wait(tasks, until=99.0) == set(tasks)
        assert clock.now() == 10.0
        assert await clock.wait([], until=99.0) == set()
        assert clock.now() == 99.0
        await clock.sleep_until(50.0)
        assert clock.now() == 99.0

    asyncio.run(scene())


def test_an_accelerated_clock_sleeps_on_its_base():
    async def scene() -> None:
        base = VirtualClock(1_000.0)
        fast = AcceleratedClock(base, factor=3_600.0, start=0.0)
        await fast.sleep_until(7_200.0)
        assert (base.now(), fast.now()) == (1_002.0, 7_200.0)
        await fast.wait([], until=10_800.0)
        assert base.now() == 1_003.0

    asyncio.run(scene())


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan])
def test_acceleration_must_be_positive(factor):
    with pytest.raises(ConfigError, match="not a positive number"):
        AcceleratedClock(VirtualClock(), factor, 0.0)


def test_the_real_clock_waits_for_the_first_task_or_the_time():
    async def scene() -> None:
        clock = RealClock()
        slow = asyncio.create_task(asyncio.sleep(60))
        quick = asyncio.create_task(asyncio.sleep(0.001))
        assert await clock.wait([slow, quick], until=math.inf) == {quick}
        assert await clock.wait([slow], until=clock.now() + 0.01) == set()
        before = clock.now()
        assert await clock.wait([], until=before + 0.01) == set()
        assert clock.now() >= before + 0.01
        slow.cancel()

    asyncio.run(scene())
