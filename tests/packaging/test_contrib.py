"""The unit file and the alert rules: what they name is ours, and the tools they are for understand them."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from recrawl.app.workspace.settings import declared
from recrawl.cli.commands import COMMAND_SPECS, load
from recrawl.crawl.control.metrics import COUNTERS, HEALTH_GAUGES, STORE_GAUGES, WORKER_GAUGES
from recrawl.errors import ExitCode

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "contrib" / "systemd" / "recrawl@.service"
RULES = ROOT / "contrib" / "prometheus" / "recrawl-alerts.yml"
DOCS = ROOT / "docs" / "how-to" / "operate-a-crawl.md"


@pytest.fixture(scope="module")
def service():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    assert parser.sections() == ["Unit", "Service", "Install"]
    return parser["Service"]


def test_a_run_that_is_told_to_end_has_succeeded_and_one_that_fails_goes_on(service):
    assert [int(code) for code in service["SuccessExitStatus"].split()] == [ExitCode.INTERRUPTED]
    assert (service["Restart"], service["KillSignal"], service["KillMode"]) == ("on-failure", "SIGTERM", "mixed")
    assert ExitCode.BAD_CONFIG in [int(code) for code in service["RestartPreventExitStatus"].split()]
    assert "Type" in service
    assert "RemainAfterExit" not in service


def test_its_command_is_ours(service):
    program, verb, *options = shlex.split(service["ExecStart"])
    assert program.endswith("/recrawl")
    load(next(one for one in COMMAND_SPECS if one.name == verb)).make_context(verb, options)
    named = set(re.findall(r"RECRAWL_\w+", UNIT.read_text(encoding="utf-8")))
    assert named <= {setting.variable for setting in declared()}


def test_it_may_write_its_own_workspace_and_nothing_else(service):
    assert service["ProtectSystem"] == "strict"
    assert service["WorkingDirectory"] == "%S/" + service["StateDirectory"]
    assert service["WorkingDirectory"] in service["ExecStart"]
    hardening = (
        "NoNewPrivileges",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectHome",
        "RestrictSUIDSGID",
        "LockPersonality",
    )
    assert all(service[name] == "yes" for name in hardening)
    assert service["CapabilityBoundingSet"] == ""
    assert "MemoryDenyWriteExecute" not in service, "kernels are compiled while it runs"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_it(tmp_path):
    text = UNIT.read_text(encoding="utf-8").replace("/usr/local/bin/recrawl", sys.executable)
    copy = tmp_path / UNIT.name
    copy.write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copy)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    about_us = [line for line in said.stderr.splitlines() if "recrawl" in line]
    assert (said.returncode, about_us) == (0, []), said.stderr


def test_alerts_name_metrics_that_there_are():
    known = {f"recrawl_{name}" for name in (*WORKER_GAUGES, *HEALTH_GAUGES, *STORE_GAUGES)}
    known |= {f"recrawl_{name}_total" for name in (*COUNTERS, "visits", "responses", "robots_refusals", "events")}
    rules = [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        assert set(re.findall(r"recrawl_\w+", rule["expr"])) <= known, rule["alert"]
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["expr"].count("(") == rule["expr"].count(")")
        # What one worker tells for all is never joined with its instance: another one may tell it tomorrow.
        for name in STORE_GAUGES:
            assert not re.search(rf"recrawl_{name}\{{[^}}]*instance", rule["expr"])


def test_the_documentation_leads_to_both():
    page = DOCS.read_text(encoding="utf-8")
    assert str(UNIT.relative_to(ROOT)) in page
    assert str(RULES.relative_to(ROOT)) in page
