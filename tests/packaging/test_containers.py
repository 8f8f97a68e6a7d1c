"""Dockerfile and compose file, as far as they can be checked without building an image: commands in them are ours."""

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from recrawl.app.workspace.settings import declared
from recrawl.cli.commands import COMMAND_SPECS, load

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OTHER_VARIABLES = {"RECRAWL_WORKSPACE", "RECRAWL_TOKEN"}
"""Read by options, not by settings."""


def instructions():
    """Keyword and arguments of each instruction of the Dockerfile, in order."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def values(keyword):
    return [rest for word, rest in instructions() if word == keyword]


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def parse(arguments):
    """Take a command line apart as recrawl would, and do nothing."""
    verb = next((verb for verb in COMMAND_SPECS if verb.name == arguments[0]), None)
    assert verb is not None, f"{arguments[0]} is no verb"
    load(verb).make_context(verb.name, list(arguments[1:]))


def test_the_image_is_built_apart_from_what_runs():
    stages = values("FROM")
    assert len(stages) == 2
    assert stages[0].endswith(" AS build")
    assert len({stage.split()[0] for stage in stages}) == 1
    version = stages[1].removeprefix("python:").removesuffix("-slim")
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_what_is_copied_exists_and_is_not_ignored():
    let_in = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    copied = {name for rest in values("COPY") if "--from" not in rest for name in rest.split()[:-1]}
    assert copied == let_in
    assert all((ROOT / name).exists() for name in copied)
    assert {"pyproject.toml", "README.md", "LICENSE", "src"} <= copied, "building a wheel takes these"


def test_versions_are_pinned_and_extras_are_real():
    command = next(rest for rest in values("RUN") if "pip install" in rest)
    assert "--constraint /source/constraints.txt" in command
    extras = set(re.search(r"/source\[([\w,]+)\]", command)[1].split(","))
    assert extras <= set(PROJECT["optional-dependencies"])
    assert {"crawl", "postgres", "show"} <= extras


def test_shell_commands_are_understood(compose):
    scripts = [*values("RUN"), compose["services"]["setup"]["command"][0]]
    for script in scripts:
        checked = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), script


def test_it_runs_as_nobody_special_in_the_workspace():
    order = [word for word, _ in instructions()]
    user = values("USER")[0]
    made = next(rest for rest in values("RUN") if "useradd" in rest)
    assert made.index("useradd") < made.index(user)
    assert order.index("USER") < order.index("ENTRYPOINT")
    environment = dict(one.split("=", 1) for one in shlex.split(values("ENV")[0]))
    folder = environment["RECRAWL_WORKSPACE"]
    assert values("WORKDIR") == values("VOLUME") == [folder]
    assert f"--owner={user} --group={user} {folder}" in made
    assert environment["NUMBA_CACHE_DIR"].startswith(f"/home/{user}/")
    assert environment["PATH"].split(":")[0] in "".join(values("RUN"))


def test_the_commands_of_the_image_are_ours():
    assert json.loads(values("ENTRYPOINT")[0]) == ["recrawl"]
    assert json.loads(values("CMD")[0]) == ["--help"]
    check = json.loads(values("HEALTHCHECK")[0].partition("CMD ")[2])
    assert check[0] == "recrawl"
    parse(check[1:])


def test_services_depend_on_each_other_in_one_direction(compose):
    services = compose["services"]
    assert set(services) == {"store", "setup", "worker", "dashboard"}
    assert services["setup"]["depends_on"] == {"store": {"condition": "service_healthy"}}
    for name in ("worker", "dashboard"):
        assert services[name]["depends_on"] == {"setup": {"condition": "service_completed_successfully"}}
        assert services[name]["build"] == "."
    assert "healthcheck" in services["store"]
    assert "restart" not in services["setup"], "it ends"


def test_the_commands_of_services_are_ours(compose):
    for name in ("worker", "dashboard"):
        parse(compose["services"][name]["command"])
    script = compose["services"]["setup"]["command"][0]
    calls = re.findall(r"recrawl ([a-z][^;|&]*)", script)
    assert [call.split()[0] for call in calls] == ["init", "add"]
    for call in calls:
        parse(shlex.split(call))


def test_variables_are_settings(compose):
    known = {setting.variable for setting in declared()} | OTHER_VARIABLES
    used = {name for rest in values("ENV") for name in re.findall(r"RECRAWL_\w+", rest)}
    for service in compose["services"].values():
        used |= {name for name in service["environment"] if name.startswith("RECRAWL_")}
    assert used <= known
    assert {"RECRAWL_FETCH_CONTACT", "RECRAWL_STORE_LOCATION", "RECRAWL_TOKEN"} <= used


def test_nobody_has_a_password_by_default_and_the_store_is_within(compose):
    services = compose["services"]
    for service in services.values():
        for name, value in service["environment"].items():
            if "PASSWORD" in name or "TOKEN" in name or "CONTACT" in name:
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), name
    assert "ports" not in services["store"]
    assert all(port.startswith("127.0.0.1:") for port in services["dashboard"]["ports"])
    location = services["worker"]["environment"]["RECRAWL_STORE_LOCATION"]
    database = services["store"]["environment"]
    assert location == f"postgresql://{database['POSTGRES_USER']}@store/{database['POSTGRES_DB']}"


def test_the_archive_is_kept_and_seeds_are_only_read(compose):
    services = compose["services"]
    for name in ("setup", "worker", "dashboard"):
        assert "archive:/archive" in services[name]["volumes"]
    assert "./seeds.txt:/seeds.txt:ro" in services["setup"]["volumes"]
    named = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]} - {"./seeds.txt"}
    assert named == set(compose["volumes"])


@pytest.mark.parametrize(("name", "place"), [("dashboard", "8080/readyz"), ("worker", "9090/readyz")])
def test_the_checks_of_services_are_python(compose, name, place):
    *_, program = compose["services"][name]["healthcheck"]["test"]
    compile(program, "healthcheck", "exec")
    assert "$" not in program, "compose would replace it"
    assert f"http://127.0.0.1:{place}" in program
    if name == "worker":
        assert place.partition("/")[0] in compose["services"][name]["command"]
