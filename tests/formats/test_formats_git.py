"""Repositories of websites, made by git itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import ConfigError, InputError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.columnar.dataset import LoggedChange, read_dataset, schema
from recrawl.formats.git_history import (
    NOWHERE,
    GitRecording,
    PathRule,
    monotone,
    read_commits,
    read_git,
    write_recordings,
)
from recrawl.model import Outcome, Verdict

BASE = "https://a.example/"
START = 1_600_000_000


class Site:
    """A repository to which commits are made at given times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str | bytes, time: int = 0) -> str:
        who = {"NAME": "x", "EMAIL": "x@a.example", "DATE": f"{START + time} +0200"}
        environment = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        environment |= {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}  # noqa: TID251 - git is found there
        done = subprocess.run(["git", *words], cwd=self.folder, env=environment, check=True, capture_output=True)
        return done.stdout.decode()

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, time: int, *words: str, **files: str) -> None:
        """Commit files, given as name=text with ``__`` for a slash and a single ``_`` before the extension."""
        for name, text in files.items():
            stem, _, extension = name.replace("__", "/").rpartition("_")
            self.write(f"{stem}.{extension}", text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x", *words, time=time)

    def read(self, **options) -> GitRecording:
        return read_git(self.folder, PathRule(BASE), **options)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site")


def told(recording: GitRecording) -> dict[str, list[tuple[str, int]]]:
    """Per page, what happened when, seconds after the start."""
    log = recording.changes()
    found: dict[str, list[tuple[str, int]]] = {}
    for page, kind, time in zip(log.page.tolist(), log.kind.tolist(), log.time.tolist(), strict=True):
        found.setdefault(log.urls[page].removeprefix(BASE), []).append((LoggedChange(kind).name, int(time) - START))
    return found


def body(text: str) -> str:
    return "".join(f"line {n} of {text}\n" for n in range(30))


def test_a_page_is_added_changed_and_deleted(site):
    site.commit(10, index_md="one", about_html="a", main_c="no page")
    site.commit(20, index_md="two")
    site.commit(30, main_c="still no page")
    site.commit(40, "--allow-empty")
    (site.folder / "about.html").unlink()
    site.commit(50)
    site.commit(60, about_html="b")
    report = ReadReport()
    found = site.read(report=report)
    assert report.skipped == {"a change to a file that is no page": 2}
    assert told(found) == {"": [("ADD", 10), ("MOD", 20)], "about/": [("ADD", 10), ("DEL", 50), ("ADD", 60)]}
    assert len(found.shas) == 4  # the others touched no page
    assert found.site == "site"


def test_a_repository_without_commits_has_no_pages(site):
    found = site.read()
    assert (found.urls, len(found.page), len(found.changes())) == ((), 0, 0)
    assert found.tables()["pages"].num_rows == 0
    assert list(found.changes().batches()) == []
    report = ReadReport()
    read_git(site.folder, PathRule(BASE), report=report)
    assert report.skipped == {"a repository without commits": 1}


def test_what_is_no_repository_gets_its_sentence(tmp_path, site):
    (tmp_path / "plain").mkdir()
    with pytest.raises(InputError, match="as a repository"):
        read_git(tmp_path / "plain", PathRule(BASE))
    with pytest.raises(InputError, match="no such folder"):
        read_git(tmp_path / "missing", PathRule(BASE))
    site.commit(1, docs__index_md="x")
    with pytest.raises(InputError, match="within a repository"):
        read_git(site.folder / "docs", PathRule(BASE))
    for branch in ("no-such", "--output=x", "-x"):
        with pytest.raises(InputError, match="there is no branch"):
            site.read(branch=branch)


def test_without_git_there_is_a_remedy(site, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="Install git"):
        site.read()


def test_a_damaged_repository_gets_its_sentence(site):
    site.commit(1, a_md="1")
    site.commit(2, a_md="2")
    tree = site.git("rev-parse", "HEAD~1^{tree}").strip()
    loose = site.folder / ".git" / "objects" / tree[:2] / tree[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"")
    with pytest.raises(InputError, match="git cannot read its history"):
        site.read()


def test_a_clone_without_contents_can_be_read(site):
    site.commit(1, a_md=body("x"))
    (site.folder / "a.md").unlink()
    site.commit(2, b_md=body("x") + "more")
    for name in ("HEAD~1:a.md", "HEAD:b.md"):
        blob = site.git("rev-parse", name).strip()
        (site.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(InputError, match="similarity of 100"):
        site.read()
    assert told(site.read(similarity=100)) == {"a/": [("ADD", 1), ("DEL", 2)], "b/": [("ADD", 2)]}


def test_a_merge_is_one_commit_of_the_main_line(site):
    site.commit(10, index_md="one")
    site.git("checkout", "-q", "-b", "side")
    site.commit(20, new_md="draft")
    site.commit(30, new_md="better")
    site.git("checkout", "-q", "main")
    site.commit(40, index_md="two")
    site.git("merge", "-q", "--no-ff", "-m", "merge", "side", time=50)
    assert told(site.read()) == {"": [("ADD", 10), ("MOD", 40)], "new/": [("ADD", 50)]}
    assert told(site.read(branch="side")) == {"": [("ADD", 10)], "new/": [("ADD", 20), ("MOD", 30)]}


def test_a_move_to_another_url_is_a_deletion_and_an_addition(site):
    site.commit(10, old_md=body("x"))
    site.git("mv", "old.md", "new.md")
    site.commit(20)
    found = site.read()
    assert told(found) == {"old/": [("ADD", 10), ("DEL", 20)], "new/": [("ADD", 20)]}
    assert found.moved_to.tolist() == [1, NOWHERE]
    assert found.moved_from.tolist() == [NOWHERE, 0]


def test_a_move_that_keeps_the_url_counts_only_if_the_bytes_change(site):
    site.commit(10, page_md=body("x"))
    site.write("page/keep.c", "")
    site.git("mv", "page.md", "page/index.md")
    site.commit(20)
    site.git("mv", "page/index.md", "page.html")
    site.commit(30, page_html=body("x") + "more")
    site.commit(40, page_rst="second source")
    (site.folder / "page.html").unlink()
    site.commit(50)
    assert told(site.read()) == {"page/": [("ADD", 10), ("MOD", 30), ("MOD", 40), ("MOD", 50)]}


def test_a_restructuring_keeps_the_identity_of_pages(site):
    for n in range(12):
        site.write(f"old/{n}.md", body(f"page {n}"))
    site.commit(10)
    site.git("mv", "old", "new")
    site.commit(20)
    site.commit(30, new__3_md="other")
    found = site.read()
    assert len(found.urls) == 12
    assert told(found)["old/3/"] == [("ADD", 10), ("MOD", 30)]
    assert told(found)["old/4/"] == [("ADD", 10)]


def test_modes_links_and_submodules(site):
    site.commit(10, a_md="a")
    (site.folder / "a.md").chmod(0o755)
    (site.folder / "link.md").symlink_to("a.md")
    site.commit(20)
    (site.folder / "link.md").unlink()
    site.commit(30, link_md="now a file")
    head = site.git("rev-parse", "HEAD").strip()
    site.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub.md")
    site.git("commit", "-q", "-m", "x", time=40)
    assert told(site.read()) == {"a/": [("ADD", 10)], "link/": [("ADD", 30)]}


def test_odd_names(site):
    names = [
        b"sp ace.md",
        b"new\nline.md",
        b"t\tab.md",
        b"caf\xc3\xa9.md",
        b"latin\xe9.md",
        b'q"uote.md',
        b"\x01.md",
        b":a b.md",
    ]
    for name in names:
        (Path(os.fsdecode(os.fsencode(site.folder) + b"/" + name))).write_text("x")
    site.commit(10)
    site.commit(20, plain_md="x")
    found = site.read()
    ends = {"sp%20ace/", "new%0Aline/", "t%09ab/", "caf%C3%A9/", "latin%E9/", "q%22uote/", "%01/", ":a%20b/", "plain/"}
    assert {url.removeprefix(BASE) for url in found.urls} == ends
    assert found.tables()["pages"].num_rows == 9


def test_a_clock_that_goes_back_is_set_right(site):
    for at, time in enumerate([100, 200, 5_000, 300, 50, 400]):
        site.commit(time, a_md=str(at))
    found = site.read()
    assert (found.changes().time - START).tolist() == [100, 200, 200, 300, 300, 400]
    assert (found.said_time - START).tolist() == [100, 200, 5_000, 300, 50, 400]


def test_bulk_commits(site):
    for n in range(30):
        site.write(f"{n}.md", "a")
    site.commit(10)
    for n in range(6):
        site.write(f"{n}.md", "b")
    site.commit(20)  # 6 of 30: exactly a fifth
    for n in range(7):
        site.write(f"{n}.md", "c")
    site.commit(30)
    found = site.read()
    assert found.bulk().tolist() == [True, False, True]
    assert found.live.tolist() == [0, 30, 30]
    assert found.touched().tolist() == [30, 6, 7]
    pages = found.tables()["pages"].to_pylist()
    assert all(page["left_censored"] for page in pages)
    assert (pages[0]["n_changes"], pages[0]["n_changes_nobulk"]) == (2, 1)


def by_trees(site: Site) -> dict[str, list[tuple[str, int]]]:
    """What happened to each page, found by comparing whole trees: slow, and with no knowledge of moves."""
    rule, before, found = PathRule(BASE), {}, {}
    for line in site.git("log", "--first-parent", "--reverse", "--format=%H %ct").splitlines():
        sha, time = line.split()
        now: dict[str, list[str]] = {}
        for entry in site.git("ls-tree", "-r", "-z", sha).split("\0")[:-1]:
            (mode, _, blob), path = entry.partition("\t")[0].split(), entry.partition("\t")[2]
            url = rule.url(path.encode()) if mode.startswith("100") else None
            if url:
                now.setdefault(url, []).append(blob)
        for url in before.keys() | now.keys():
            old, new = sorted(before.get(url, [])), sorted(now.get(url, []))
            if old != new:
                kind = "MOD" if old and new else "ADD" if new else "DEL"
                found.setdefault(url.removeprefix(BASE), []).append((kind, int(time) - START))
        before = now
    return found


@pytest.mark.parametrize("seed", range(3))
def test_any_history_is_what_the_trees_say(site, seed):
    rng = np.random.default_rng(seed)
    names = [
        "a.md",
        "a.html",
        "a/index.md",
        "a/README.md",
        "b/c.md",
        "b/C.md",
        "_posts/2024-01-02-p.md",
        "x.c",
        "b.txt",
    ]
    for step in range(25):
        if step % 8 == 5:
            site.git("checkout", "-q", "-b", f"side{step}")
        for _ in range(int(rng.integers(0, 4))):
            path, other = (str(name) for name in rng.choice(names, 2, replace=False))
            file = site.folder / path
            if rng.random() < 0.6 or not file.exists():
                site.write(path, body(str(rng.integers(4))))
            elif rng.random() < 0.5:
                file.unlink()
            else:
                (site.folder / other).parent.mkdir(exist_ok=True)
                file.rename(site.folder / other)
        site.commit(10 * step)
        if step % 8 == 7:
            site.git("checkout", "-q", "main")
            site.git("merge", "-q", "--no-ff", "-m", "x", f"side{step - 2}", time=10 * step + 5)
    assert told(site.read()) == by_trees(site)


def test_a_huge_commit(site):
    lines = [
        b"blob\nmark :1\ndata 2\nhi\n",
        b"commit refs/heads/main\ncommitter x <x@a.example> 1600000000 +0000\ndata 1\nx\n",
    ]
    lines += [b"M 100644 :1 %d/%d.md\n" % (n % 100, n) for n in range(30_000)]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=site.folder, input=b"".join(lines), check=True)
    found = site.read(branch="main")
    assert (len(found.urls), len(found.shas)) == (30_000, 1)


def test_reading_may_stop_early(site):
    for n in range(5):
        site.commit(n, a_md=str(n))
    commits = read_commits(site.folder)
    assert next(commits).committed == START
    commits.close()  # the running git is ended with it


def test_the_tables_are_those_of_the_public_data_sets(site, tmp_path):
    site.commit(10, index_md="1", b__c_md="1")
    site.commit(20, index_md="2")
    (site.folder / "b/c.md").unlink()
    site.commit(30)
    found = site.read(site="ours")
    write_recordings(tmp_path / "out", [found])
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "commits.parquet",
        "events.parquet",
        "pages.parquet",
    ]
    (log,) = read_dataset(tmp_path / "out")
    expected = found.changes()
    assert (log.site, log.urls) == ("ours", expected.urls)
    for name in ("page", "time", "kind", "bulk"):
        np.testing.assert_array_equal(getattr(log, name), getattr(expected, name))
    page = found.tables()["pages"].to_pylist()[found.urls.index(f"{BASE}b/c/")]
    assert page == {
        "site": "ours", "page_id": found.urls.index(f"{BASE}b/c/"), "url": f"{BASE}b/c/", "path": "b/c.md",
        "first_seen": START + 10, "deleted_at": START + 30, "n_lives": 1, "left_censored": True, "n_changes": 0,
        "n_changes_nobulk": 0, "depth": 2, "moved_from": None, "moved_to": None,
    }  # fmt: skip


def test_a_folder_that_cannot_be_written_gets_its_sentence(site, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_recordings(tmp_path / "file", [site.read()])


def test_changes_are_visits_at_the_moment_of_change(site):
    site.commit(10, a_md="1", b_md="1")
    site.commit(20, a_md="2")
    (site.folder / "b.md").unlink()
    site.commit(30)
    log = site.read().changes()
    (batch,) = log.batches()
    assert batch.schema == schema()
    assert batch.column("url").to_pylist() == [f"{BASE}a/", f"{BASE}a/", f"{BASE}b/", f"{BASE}b/"]
    visits = log.visits(until=START + 50.0)
    assert visits.page.tolist() == [0, 0, 0, 1, 1, 1]
    assert (visits.time - START).tolist() == [10, 20, 50, 10, 30, 50]
    unknown, unchanged, changed = Verdict
    assert visits.verdict.tolist() == [unknown, changed, unchanged, unknown, changed, unchanged]
    assert visits.outcome.tolist()[-2:] == [Outcome.GONE, Outcome.GONE], "deleted pages are gone to the end of the log"
    histories = log.histories(until=START + 50.0)
    assert histories.changes().tolist() == [1, 1]
    assert histories.observed().tolist() == [40.0, 40.0]


def test_bulk_edits_can_be_left_out_of_the_visits(site):
    for text in "ab":
        for n in range(6):
            site.write(f"{n}.md", text)
        site.commit(10 if text == "a" else 20)
    site.commit(30, **{"0_md": "own"})
    log = site.read().changes()
    assert log.histories().changes().tolist() == [2, 1, 1, 1, 1, 1]
    assert log.histories(bulk=False).changes().tolist() == [1, 0, 0, 0, 0, 0]


# -- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "url"),
    [
        (b"index.html", ""),
        (b"README.md", ""),
        (b"content/_index.md", ""),
        (b"_pages/About.md", "about/"),
        (b"News/2024/Item.html.erb", "news/2024/item/"),
        (b"blog/_posts/2024-5-06-My-Post.markdown", "blog/2024/05/06/my-post/"),
        (b"content/posts/2024-05-06-x.md", "posts/2024/05/06/x/"),
        (b"_people/ada.md", "people/ada/"),
        (b"release-1.2.txt", "release-1.2/"),
        (b"a.b/c.md", "a.b/c/"),
        (b"md", None),
        (b"a.md/b", None),
        (b".github/PULL.md", None),
        (b"_layouts/x.html", None),
        (b"docs/tests/x.md", None),
        (b"CONTRIBUTING.md", None),
        (b"robots.txt", None),
        (b"image.png", None),
    ],
)
def test_paths_become_urls(path, url):
    assert PathRule(BASE).url(path) == (None if url is None else BASE + url)


def test_options_of_the_rule():
    assert PathRule("https://A.example/en", root="/site/en/", suffix=".html").url(b"site/en/X/y.md") == (
        "https://a.example/en/x/y.html"
    )
    assert PathRule(BASE, root="site").url(b"sitemap/x.md") is None
    assert PathRule(BASE, suffix=".html").url(b"x/index.md") == f"{BASE}x/"
    with pytest.raises(ConfigError, match="base URL"):
        PathRule("a.example")


@given(st.binary(max_size=60).filter(lambda path: b"\0" not in path))
def test_any_path_is_a_url_or_none(path):
    url = PathRule(BASE).url(path)
    assert url is None or (url.startswith(BASE) and url.isascii() and url.isprintable())


@given(st.lists(st.integers(0, 20), max_size=30))
def test_monotone_times_change_as_few_as_possible(times):
    given_times = np.array(times, np.int64)
    found = monotone(given_times)
    assert bool((np.diff(found) >= 0).all())
    longest = [0] * 21  # the longest non-decreasing run that ends at or below each value, by dynamic programming
    for time in times:
        longest[time] = max(longest[: time + 1]) + 1
    assert int((found == given_times).sum()) >= max(longest, default=0)
    assert set(found.tolist()) <= set(times)
