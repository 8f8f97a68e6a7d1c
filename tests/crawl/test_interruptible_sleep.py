"""A sleep that ends by itself, by somebody else, or because the sleeper is cancelled."""

import asyncio

import pytest

from recrawl.crawl.worker.event_loop import InterruptibleSleep


async def _soon():
    await asyncio.sleep(0)
    return "rested"


def test_a_sleep_gives_what_it_waited_for():
    assert asyncio.run(InterruptibleSleep().through(_soon())) == "rested"


def test_a_sleep_that_is_ended_gives_nothing_and_can_be_slept_again():
    async def run():
        sleep = InterruptibleSleep()
        sleep.end()
        for _ in range(2):
            sleeper = asyncio.create_task(sleep.through(asyncio.sleep(600)))
            await asyncio.sleep(0)
            sleep.end()
            assert await asyncio.wait_for(sleeper, 120) is None
        assert await sleep.through(_soon()) == "rested"

    asyncio.run(run())


@pytest.mark.parametrize("order", [("end", "cancel"), ("cancel", "end"), ("cancel",)])
def test_a_sleeper_that_is_cancelled_does_not_wake_up_as_if_it_had_only_been_woken(order):
    async def run():
        sleep = InterruptibleSleep()
        sleeper = asyncio.create_task(sleep.through(asyncio.sleep(600)))
        await asyncio.sleep(0)
        for act in order:
            {"end": sleep.end, "cancel": sleeper.cancel}[act]()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(sleeper, 120)

    asyncio.run(run())
