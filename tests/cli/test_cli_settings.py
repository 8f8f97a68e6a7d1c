"""Settings: read back as written, resolved in the right order, and never misspelled in silence."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from recrawl.app.workspace.configuration import configure, parse_assignments, settings_text
from recrawl.app.workspace.settings import DURATION, POLICY_NAMES, FetchSettings, Settings, declared
from recrawl.app.workspace.workspace_wiring import policy_of
from recrawl.errors import ConfigError, ExitCode
from recrawl.fetch.request import checked_user_agent
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.policies.policy_registry import POLICIES

KEYS = [setting.key for setting in declared()]
BY_KEY = {setting.key: setting for setting in declared()}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "recrawl.yaml"


def origin(configuration, key):
    return configuration.origins[key].kind


def test_a_new_file_says_nothing_but_the_defaults(file):
    file.write_text(settings_text({}), encoding="utf-8")
    found = configure(file, {}, {})
    assert found.settings == Settings()
    assert {key: origin(found, key) for key in KEYS} == dict.fromkeys(KEYS, "default")


def test_a_new_file_shows_every_key_with_its_help():
    text = settings_text({})
    for setting in declared():
        assert f"  # {setting.help}\n  # {setting.name}: " in text


@pytest.mark.parametrize("key", KEYS)
def test_the_commented_default_is_valid_when_uncommented(file, key):
    setting = BY_KEY[key]
    file.write_text(
        settings_text({}).replace(f"  # {setting.help}\n  # {setting.name}: ", f"  {setting.name}: "), encoding="utf-8"
    )
    found = configure(file, {}, {})
    assert found.settings == Settings()
    assert origin(found, key) == "file"


@pytest.mark.parametrize("key", KEYS)
def test_flag_beats_environment_beats_file_beats_default(file, key):
    setting = BY_KEY[key]
    name = setting.kind.name
    choices = name.split(" | ")
    few = [choices[-1], choices[0], choices[-1]]
    written = {"duration": ["7s", "8s", "9s"], "text": ["a", "b", "c"], "share": ["0.7", "0.8", "0.9"]}.get(
        name, few if choices[1:] else ["7", "8", "9"]
    )
    if key == "schedule.max_interval":  # not below the shortest
        written = ["7d", "8d", "9d"]
    if key == "crawl.lease_time":  # not below half a minute
        written = ["40s", "50s", "60s"]
    if key == "crawl.scope":  # the last, custom, needs a pattern
        written = ["any", "page", "any"]
    if name in {"location", "locations"}:
        written = ["s3://a/", "s3://b/c/", "s3://d/"]
    if name.endswith(" | default"):  # parameters of policies
        two = {"probability": ["0.5", "0.25"], "durations": ["1d 2d", "1h 2h"], "whole numbers": ["3 2", "4"]}
        first, second = two.get(choices[0], ["7d", "8d"])
        written = [first, second, first]
    if key == "archive.keep_local":
        written = ["7s", "always", "9s"]
    in_file, in_environment, in_flag = written
    read = setting.kind.read
    environment, flags = {setting.variable: in_environment}, {key: in_flag}
    empty = file.with_name("empty.yaml")
    empty.touch()
    file.write_text(yaml.safe_dump({setting.section: {setting.name: in_file}}), encoding="utf-8")

    def found(*arguments):
        configuration = configure(*arguments)
        return configuration.value(setting), origin(configuration, key)

    assert found(empty, {}, {}) == (setting.default, "default")
    assert found(file, {}, {}) == (read(in_file), "file")
    assert found(file, environment, {}) == (read(in_environment), "environment")
    assert found(file, environment, flags) == (read(in_flag), "flag")
    assert found(empty, {}, flags) == (read(in_flag), "flag")


@given(st.floats(min_value=0.0, max_value=1e9, allow_subnormal=False).map(lambda x: round(x, 3)))
def test_a_duration_reads_back_as_written(seconds):
    written = DURATION.write(seconds)
    assert DURATION.read(yaml.safe_load(written)) == pytest.approx(seconds, rel=1e-11, abs=1e-9)


@given(st.text())
def test_a_text_reads_back_as_written(text):
    kind = BY_KEY["fetch.contact"].kind
    assert kind.read(yaml.safe_load(kind.write(text))) == text


def test_an_unknown_key_names_itself_the_file_and_the_nearest(file):
    file.write_text("fetch:\n  timout: 30s\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        configure(file, {}, {})
    assert "'fetch.timout'" in caught.value.what
    assert str(file) in caught.value.what
    assert "'fetch.timeout'" in caught.value.remedy
    assert caught.value.exit_code is ExitCode.BAD_CONFIG


def test_an_unknown_section_names_the_nearest(file):
    file.write_text("fecth: {}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"unknown section 'fecth'.*'fetch'"):
        configure(file, {}, {})


def test_an_unknown_flag_or_variable_is_an_error(file):
    file.touch()
    with pytest.raises(ConfigError, match=r"unknown setting 'politness.factor'.*'politeness.factor'"):
        configure(file, {}, {"politness.factor": "3"})
    with pytest.raises(ConfigError, match=r"RECRAWL_FETCH_TIMOUT.*RECRAWL_FETCH_TIMEOUT"):
        configure(file, {"RECRAWL_FETCH_TIMOUT": "3s"}, {})


def test_variables_of_others_are_left_alone(file):
    file.touch()
    assert (
        configure(file, {"RECRAWL_GOLDEN": "x", "FETCH_TIMEOUT": "y", "RECRAWL_WORKSPACE": "z"}, {}).settings
        == Settings()
    )


@pytest.mark.parametrize(
    ("key", "raw", "says"),
    [
        ("fetch.timeout", 30, "has no unit"),
        ("fetch.timeout", "soon", "not a duration"),
        ("fetch.timeout", True, "not a duration"),
        ("fetch.max_size", 1.5, "not a whole number"),
        ("fetch.max_size", "many", "not a number"),
        ("fetch.contact", 5, "not a text"),
        ("politeness.factor", -1, "negative"),
        ("politeness.factor", float("nan"), "not finite"),
        ("politeness.factor", True, "not a number"),
        ("politeness.factor", [1], "not a number"),
        ("schedule.objective", "beauty", "not one of"),
        ("schedule.budget", "lots", "not a number of visits"),
    ],
)
def test_a_wrong_value_names_the_key_and_its_origin(file, key, raw, says):
    section, _, name = key.partition(".")
    file.write_text(yaml.safe_dump({section: {name: raw}}), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        configure(file, {}, {})
    assert f"{key} (from file recrawl.yaml)" in caught.value.what
    assert says in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("low", "high"),
    [("schedule.min_interval", "schedule.max_interval"), ("politeness.min_delay", "politeness.max_delay")],
)
def test_bounds_that_exclude_each_other_are_refused_wherever_they_come_from(file, low, high):
    section, _, name = low.partition(".")
    file.write_text(yaml.safe_dump({section: {name: "10d"}}), encoding="utf-8")
    for environment, flags in (({}, {high: "1d"}), ({BY_KEY[high].variable: "1d"}, {})):
        with pytest.raises(ConfigError) as caught:
            configure(file, environment, flags)
        assert caught.value.what == f"{low} (10d) is longer than {high} (1d)."
        assert caught.value.remedy
    same = configure(file, {}, {high: "10d"})
    assert same.value(BY_KEY[low]) == same.value(BY_KEY[high])


def test_an_interval_of_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"schedule\.min_interval is 0"):
        configure(None, {}, {"schedule.min_interval": "0"})


@pytest.mark.parametrize("text", ["fetch: [1, 2]", "- a\n- b", "fetch: {timeout: 3s", "just words", "\x00"])
def test_a_file_of_another_shape_is_an_error_that_names_it(file, text):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"recrawl\.yaml"):
        configure(file, {}, {})


def test_a_flag_without_value_is_an_error():
    with pytest.raises(ConfigError, match="has no value"):
        parse_assignments(["fetch.timeout"])


def test_an_assignment_may_contain_equal_signs():
    assert parse_assignments(["store.location=postgresql://x/y?a=b"]) == {"store.location": "postgresql://x/y?a=b"}


def test_objectives_are_those_that_exist():
    assert set(BY_KEY["schedule.objective"].kind.name.split(" | ")) == set(OBJECTIVES)


def test_the_user_agent_names_a_contact():
    with pytest.raises(ConfigError, match=r"fetch\.contact"):
        FetchSettings().agent()
    for nobody in ("nonsense", "https://", "you@exämple.org"):
        with pytest.raises(ConfigError, match=rf"fetch\.contact is '{nobody}', which is not an address"):
            FetchSettings(contact=nobody).agent()
    for contact in ("me@example.org", "mailto:me@example.org", "https://example.org/bot"):
        agent = FetchSettings(contact=contact).agent()
        assert checked_user_agent(agent) == agent


def test_every_policy_that_needs_no_truth_can_be_chosen():
    """The names are written out, since importing the registry takes a second."""
    assert list(POLICY_NAMES) == list(POLICIES)
    for name in ("valued", *POLICY_NAMES):
        configuration = configure(None, {}, {"schedule.policy": name})
        policy = policy_of(configuration.settings.schedule)
        assert policy.name.startswith("valued" if name.startswith("valued") else name), (name, policy.name)


@pytest.mark.parametrize(
    ("text", "visits"), [("10000/day", 10_000), ("500/h", 12_000), ("2/s", 172_800), ("70 / week", 10), (250, 250)]
)
def test_a_budget_may_name_its_period(text, visits):
    assert configure(None, {}, {"schedule.budget": text}).settings.schedule.budget == pytest.approx(visits)


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("schedule.budget", "10/fortnight", "unknown period"),
        ("schedule.budget", "many/day", "not a number"),
        ("schedule.discovery_share", "1.5", "above 1"),
        ("crawl.concurrency", "0", "nothing would be requested"),
    ],
)
def test_what_is_no_budget_share_or_concurrency_is_said(key, text, words):
    with pytest.raises(ConfigError, match=words):
        configure(None, {}, {key: text})
