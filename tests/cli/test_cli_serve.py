"""``recrawl serve`` as a process: it says where it is, answers, and ends when it is told."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from recrawl.web.dashboard.access_control import TOKEN_FILE

pytestmark = pytest.mark.slow

URL = re.compile(r"is at (http://\S+)")


@pytest.fixture
def serving(tmp_path):
    """Starts ``recrawl serve`` and gives the process and the address that it prints."""
    processes = []

    def start(*options):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's environment
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "recrawl", "serve", "-w", "w", "--port", "0", *options],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        line = process.stdout.readline()
        assert URL.search(line), line + process.stderr.read()
        address, _, token = URL.search(line)[1].partition("?token=")
        assert len(token) >= 16
        return process, address, token

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=120)


def test_it_answers_and_ends_when_interrupted(run, serving, tmp_path):
    assert run("init", "w").returncode == 0
    assert run("add", "-w", "w", "http://a.example/").returncode == 0
    process, address, token = serving()
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{address}api/pages", timeout=120) as answer:
        assert [one["url"] for one in json.load(answer)["pages"]] == ["http://a.example/"]
    # What another process adds meanwhile is seen.
    assert run("add", "-w", "w", "http://b.example/").returncode == 0
    with urllib.request.urlopen(f"{address}api/pages", timeout=120) as answer:
        assert len(json.load(answer)["pages"]) == 2
    # Everybody here may look; whoever changes something shows the token, which is in the workspace.
    request = urllib.request.Request(f"{address}actions/settings/pause", b"", method="POST")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=120)
    kept = tmp_path / "w" / TOKEN_FILE
    assert (kept.read_text().strip(), kept.stat().st_mode & 0o777) == (token, 0o600)
    request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert json.load(answer)["said"] == "The crawl is paused."
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert "has stopped" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_as_quietly_when_it_has_only_said_where_it_is(run, serving, number):
    assert run("init", "w").returncode == 0
    process, *_ = serving()
    process.send_signal(number)
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert "has stopped" in said


def test_beyond_this_machine_it_asks_for_a_token(run, serving):
    assert run("init", "w").returncode == 0
    process, address, token = serving("--host", "0.0.0.0")
    port = re.search(r":(\d+)/", address)[1]
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/api/pages", timeout=120)
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/pages", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert json.load(answer)["pages"] == []
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0


@pytest.mark.parametrize("options", [(), ("--token", "a-token-for-reading-too")])
def test_every_printed_address_shows_a_page(run, serving, options):
    """A person opens what is printed: no address may lead to an error, whether reading needs the token or not."""
    assert run("init", "w").returncode == 0
    process, address, token = serving(*options)
    printed = [f"{address}?token={token}"]
    while not (line := process.stdout.readline()).startswith("Stop"):
        printed += re.findall(r"http://\S+", line)
    assert len(printed) == 2
    for one in printed:
        cookies = urllib.request.HTTPCookieProcessor()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        request = urllib.request.Request(one, headers={"Accept": "text/html"})
        with opener.open(request, timeout=120) as answer:
            assert answer.status == 200
            assert b"<h1>" in answer.read()


def test_what_cannot_be_served_is_said(run):
    assert run("init", "w").returncode == 0
    result = run("serve", "-w", "w", "--token", "short")
    assert (result.returncode, "at least" in result.stderr) == (4, True)
    result = run("serve", "-w", "w", "--host", "no-such-host.invalid")
    assert (result.returncode, "not an address of this machine" in result.stderr) == (4, True)
    result = run("serve", "-w", "nowhere")
    assert (result.returncode, "recrawl init" in result.stderr) == (4, True)


def test_no_address_is_told_before_all_ports_are_taken(run):
    assert run("init", "w").returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "-w", "w", "--port", str(port - 1))
    assert (result.returncode, result.stdout) == (1, "")
    assert f"port {port}" in result.stderr or f"port {port - 1}" in result.stderr
    result = run("serve", "-w", "w", "--port", "65535")
    assert (result.returncode, result.stdout) == (4, "")
    assert "Port 65536 for archived pages does not exist" in result.stderr
