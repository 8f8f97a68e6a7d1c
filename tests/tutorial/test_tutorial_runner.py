"""The one who follows tutorials: what is run, what is waited for, and what is not let pass."""

import urllib.request

import pytest

PAGE = """
Save this:

```python title="say.py"
import sys
print("It took 3.5 s and", len(sys.argv), "words on 2026-11-16.")
```

```sh
export NAME=reader  # stays for the commands that follow
python say.py \\
    one two
```

1. In a list:

    ```console
    $ python say.py one
    It took 12 min and 7 words
    on 2024-01-01.
    $ cat <<END
    > hello $NAME
    > END
    hello reader
    ```

Only to look at:

```
recrawl would fail
```

```console
$ python -u -m http.server 8123 --bind 127.0.0.1 &
Serving HTTP on 127.0.0.1 port 8123 …
```

```sh
kill %1
```
"""


@pytest.fixture
def pages(tmp_path, monkeypatch, request):
    """A folder of pages instead of ours."""
    conftest = request.getfixturevalue("follow").__globals__
    monkeypatch.setitem(conftest, "PAGES", tmp_path)
    return tmp_path


def test_a_page_is_followed_in_one_shell(pages, follow):
    (pages / "page.md").write_text(PAGE, encoding="utf-8")
    reader = follow("page.md", ports=(8123,), instead={"one two": "one two three"})
    assert reader.until("say.py \\").out == "It took 3.5 s and 4 words on 2026-11-16.\n"
    assert reader.until("cat").out == "hello reader\n"
    started = reader.until("http.server")
    assert "8123" not in started.command
    port = started.command.split()[4]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/say.py", timeout=60) as answer:
        assert answer.status == 200
    assert [done.command.split()[0] for done in reader.rest()] == [
        "say.py",
        "export",
        "python",
        "python",
        "cat",
        "python",
        "kill",
    ]


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("```sh\nfalse\n```", "ended with 1"),
        ("```console\n$ echo one thing\nanother thing\n```", "shown on the page"),
        ("```console\n$ echo 3 pages and more\n5 pages\n```", "shown on the page"),
        ("```console\n$ echo 3 pages\n```", "shown on the page"),
        ("```console\n$ echo a 3 pages\n… b …\n```", "shown on the page"),
    ],
)
def test_what_differs_from_the_page_is_not_let_pass(pages, follow, block, complaint):
    (pages / "page.md").write_text(block, encoding="utf-8")
    with pytest.raises(AssertionError, match=complaint):
        follow("page.md").rest()


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("12 pages in 3.5 s", "1,234 pages in 7 min"),
        ("a ──── b", "a ── b"),
        ("first\n…\nlast", "first\nlast"),
        ("first\n…\nlast", "first\n1\n2\nlast"),
        ("at http://127.0.0.1:… now", "at http://127.0.0.1:99/x now"),
        ("gap of 0.000%.", "gap of 1.25%."),
    ],
)
def test_numbers_and_breaks_may_differ(pages, follow, shown, printed):
    (pages / "page.md").write_text(f"```console\n$ cat printed.txt\n{shown}\n```", encoding="utf-8")
    reader = follow("page.md")
    (reader.folder / "printed.txt").write_text(printed, encoding="utf-8")
    assert reader.rest()[0].out == printed


def test_what_is_made_smaller_must_be_on_the_page(pages, follow):
    (pages / "page.md").write_text("```sh\ntrue\n```", encoding="utf-8")
    with pytest.raises(AssertionError, match="does not say"):
        follow("page.md", instead={"--pages 10": "--pages 1"})
