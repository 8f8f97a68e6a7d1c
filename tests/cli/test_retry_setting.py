"""How soon failed pages are tried again, from the setting to the parts that wait."""

import numpy as np
import pytest

from recrawl.app.workspace.settings import FetchSettings, PolitenessSettings, Settings
from recrawl.app.workspace.workspace_wiring import crawl_settings_of
from recrawl.errors import ConfigError
from recrawl.model import Outcome
from recrawl.model.visits import NO_NAME
from recrawl.schedule.politeness.retry import Retry
from recrawl.time import DAY, HOUR, MINUTE


def waits(retry, failures, outcome, status=0):
    """Seconds until a page is tried again that failed so often in this way."""
    at = retry.at(np.array([failures]), np.array([0.0]), np.array([outcome]), np.array([status]))
    return float(at[0])


def parts(**politeness):
    return crawl_settings_of(
        Settings(fetch=FetchSettings(contact="me@example.org"), politeness=PolitenessSettings(**politeness))
    )


def test_by_default_the_usual_patience():
    made = parts()
    assert made.retry == Retry()
    assert made.politeness.trouble.first == MINUTE


def test_a_shorter_first_wait_holds_for_pages_and_hosts_and_still_doubles():
    made = parts(retry=2.0)
    assert [waits(made.retry, count, Outcome.UNREACHABLE) for count in (1, 2, 3)] == [2.0, 4.0, 8.0]
    assert waits(made.retry, 1, Outcome.SERVER_ERROR) == 2.0
    assert waits(made.retry, 1_000, Outcome.UNREACHABLE) == DAY
    assert made.politeness.trouble.wait(np.array([1, 2])).tolist() == [2.0, 4.0]


def test_what_somebody_has_to_mend_takes_as_long_as_before():
    made = parts(retry=2.0)
    assert waits(made.retry, 1, Outcome.REFUSED) == DAY
    assert waits(made.retry, 1, Outcome.UNREACHABLE, NO_NAME) == 6 * HOUR


def test_a_longer_wait_is_for_pages_not_for_hosts():
    made = parts(retry=2 * DAY)
    assert [waits(made.retry, count, Outcome.UNREACHABLE) for count in (1, 2)] == [2 * DAY, 2 * DAY]
    assert made.politeness.trouble.first == MINUTE


def test_without_any_wait_a_failing_page_would_be_asked_for_without_end():
    with pytest.raises(ConfigError, match="endlessly"):
        PolitenessSettings(retry=0.0)


def test_what_is_told_of_a_served_site_needs_one(run):
    for option in (["--data"], ["--evaluate", "ws"], ["--truth", "t.csv"]):
        result = run("demo", *option)
        assert (result.returncode, "Add --serve" in result.stderr) == (4, True)
