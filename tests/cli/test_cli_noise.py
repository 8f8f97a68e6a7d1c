"""What is masked can be seen and forgotten: ``list noise``, ``list hosts``, ``explain``, ``noise reset``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from recrawl.app.workspace.workspace import open_workspace
from recrawl.detect.comparison import PartComparison
from recrawl.detect.noise.archive_noise import NoisePartReport
from recrawl.detect.noise.learned_noise import NoiseEvidence, evidence
from recrawl.detect.noise.noise_keys import Difference, noise_key
from recrawl.model import Visits
from recrawl.store.store_values import LearnedFacts
from recrawl.transfer.archive_noise_learning import noise_words

KEY = noise_key(5, Difference.NUMBERS, -1)


@pytest.fixture
def workspace(run, tmp_path):
    """A workspace in which a part of one host is noise, and of one page another."""
    folder = tmp_path / "w"
    run("init", folder)
    with open_workspace(folder, {}).open_store() as store:
        pages = store.discover([f"http://a.example/{number}" for number in range(5)] + ["http://b.example/"], 0.0)
        [host, _] = store.hosts().id.tolist()
        other = noise_key(9, Difference.WORDS, 1)
        observations = [
            evidence(host, page, 60.0 * page, PartComparison(frozenset({KEY}), frozenset(), 20.0))
            for page in pages[:5].tolist()
        ]
        observations += [
            evidence(host, int(pages[0]), 60.0 * minute, PartComparison(frozenset({other}), frozenset(), 20.0))
            for minute in range(4)
        ]
        store.record(Visits.of(pages[:1], 1.0), learned_facts=LearnedFacts(noise=NoiseEvidence.concat(observations)))
    return folder


def test_what_is_masked_is_listed_with_its_evidence(run, workspace):
    rows = json.loads(run("list", "noise", "-w", workspace, "--json").stdout)
    told = [(row["host"], row["where"], row["differs_in"], row["position"], row["differed"]) for row in rows]
    assert told == [
        ("a.example", "all pages", "numbers", "last", "5 of 5"),
        ("a.example", "http://a.example/0", "words", "1st", "4 of 4"),
    ]
    assert [row["text"] for row in rows] == ["(no text: numbers, last)", "(no text: words, 1st)"]
    assert json.loads(run("list", "noise", "-w", workspace, "--host", "b.example", "--json").stdout) == []
    hosts = json.loads(run("list", "hosts", "-w", workspace, "--json").stdout)
    assert {row["host"]: row["masked"] for row in hosts} == {"a.example": 2, "b.example": 0}
    assert "2 parts" in run("explain", "http://a.example/0", "-w", workspace).stdout


def test_what_is_masked_can_be_forgotten(run, workspace):
    assert "2 masked parts reset" in run("noise", "reset", "a.example", "-w", workspace).stdout
    assert json.loads(run("list", "noise", "-w", workspace, "--json").stdout) == []
    with open_workspace(workspace, {}).open_store() as store:
        assert not len(store.noise(np.array([1, 2])))


def test_an_unknown_host_is_an_error(run, workspace):
    result = run("noise", "reset", "c.example", "-w", workspace)
    assert result.returncode != 0
    assert "no host" in result.stderr


def test_a_masked_part_without_text_is_named_by_its_place():
    """A sentence of ``assess`` and ``import`` never names an empty text."""
    part = NoisePartReport("", "numbers", 4, 5, 9, 9, key=KEY)
    [line] = noise_words({"a.example": [part]})
    assert "a part (no text: numbers, last) on 4 of 5 pages read" in line
