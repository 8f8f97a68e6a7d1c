"""Where there is no browser, the tests get one: Debian's package for root, which a stand-in for apt-get gives here."""

import os
from pathlib import Path

import pytest

APT_GET = """#!/bin/sh
echo "$@ $DEBIAN_FRONTEND" >> "{folder}/asked"
case "$1" in install) /bin/ln -s /bin/sh "{folder}/chromium" ;; esac
"""


@pytest.fixture
def asked(pytestconfig, tmp_path, monkeypatch):
    """What apt-get is asked for by root on a machine without a Chromium; and what went wrong."""
    ours = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    apt_get = tmp_path / "apt-get"
    apt_get.write_text(APT_GET.format(folder=tmp_path), "utf-8")
    apt_get.chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RECRAWL_CHROMIUM", raising=False)
    monkeypatch.delenv("DEBIAN_FRONTEND", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    wrong = ours.obtain_chromium()
    return (tmp_path / "asked").read_text("utf-8").splitlines(), wrong


def test_root_gets_the_package_of_debian(asked):
    update, install = asked[0]
    assert update.strip() == "update"
    assert install == "install -y --no-install-recommends chromium noninteractive"
    assert asked[1] == ""
