"""Maps the files of a repository to pages: the rule from a path to a URL.

1. Page-like files count: md, markdown, mdx, html, htm, rst, txt, php, erb (also in pairs, as ``.html.erb``).
2. Hidden files and folders, templates, includes, tests and drafts are no pages, nor are the usual files of a repository
   (README below the root counts as the index of its folder, CONTRIBUTING, LICENSE and the like do not count).
3. ``root`` restricts the repository to one folder; below it ``content/`` and ``_pages/`` (Hugo, Jekyll) are removed.
4. ``_posts/2024-05-06-name.md`` becomes ``2024/05/06/name`` (Jekyll); other collections lose their underscore.
5. The extension is removed, ``index``, ``_index`` and ``README`` stand for their folder, letters become lower case.
6. The rest is appended to ``base_url``, bytes percent-encoded, and ends in ``suffix``.

Sites differ; where the rule is wrong, the URL is wrong and the times are right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from recrawl.errors import ConfigError
from recrawl.urls import address

EXTENSIONS = frozenset({b"md", b"markdown", b"mdx", b"html", b"htm", b"rst", b"txt", b"php", b"erb"})
"""Of page-like files."""
_NOT_PAGES = frozenset(
    b"_includes _layouts _partials _templates _drafts _data _sass includes layouts partials templates theme themes"
    b" test tests spec node_modules vendor archetypes".split()
)
"""Folders that hold no pages."""
_NOT_PAGE = frozenset(
    b"contributing license licence copying code_of_conduct changelog security authors maintainers robots humans"
    b" requirements pull_request_template issue_template codeowners".split()
)
"""Files, without extension, that are no pages."""
_ROOTS = frozenset({b"content", b"_pages"})
_INDEX = frozenset({b"index", b"_index", b"readme"})
_POST = re.compile(rb"(\d{4})-(\d{1,2})-(\d{1,2})-(.+)", re.DOTALL)
_POSTS = frozenset({b"_posts", b"posts"})


@dataclass(frozen=True, slots=True)
class PathRule:
    """How paths of one repository become URLs."""

    base_url: str
    root: str = ""
    """Only files below this folder are pages."""
    suffix: str = "/"
    """What the URL of a page that is no folder ends in: ``/``, ``.html`` or nothing."""

    def __post_init__(self) -> None:
        found = address(self.base_url)
        if found is None:
            raise ConfigError(
                f"The base URL {self.base_url!r} is not an http or https URL.", "Write it like https://example.org/."
            )
        object.__setattr__(self, "base_url", found.url.rstrip("/") + "/")
        object.__setattr__(self, "root", self.root.strip("/"))

    def url(self, path: bytes) -> str | None:
        """The URL of the page that this file is a source of; ``None`` if it is of none.

        >>> rule = PathRule("https://a.example")
        >>> rule.url(b"content/News/index.md"), rule.url(b"_posts/2024-05-06-Hi.md"), rule.url(b"src/main.c")
        ('https://a.example/news/', 'https://a.example/2024/05/06/hi/', None)
        """
        if self.root:
            root = self.root.encode() + b"/"
            if not path.startswith(root):
                return None
            path = path[len(root) :]
        stem, page_like = _split(path.lower())
        *folders, name = stem.split(b"/")
        if (
            not page_like
            or not name
            or name in _NOT_PAGE
            or name.startswith(b".")
            or any(_hides(folder) for folder in folders)
        ):
            return None
        parts = _shown(folders, name)
        end = "/" if name in _INDEX else self.suffix
        return self.base_url + quote(b"/".join(parts), safe="/:@!$&'()*+,;=~") + (end if parts else "")


def _split(path: bytes) -> tuple[bytes, bool]:
    """The path without its page-like extensions, and whether it had one."""
    folder, slash, name = path.rpartition(b"/")
    parts = name.split(b".")
    count = len(parts)
    while len(parts) > 1 and parts[-1] in EXTENSIONS:
        parts.pop()
    return folder + slash + b".".join(parts), len(parts) < count


def _hides(folder: bytes) -> bool:
    return folder.startswith(b".") or folder in _NOT_PAGES


def _shown(folders: list[bytes], name: bytes) -> list[bytes]:
    """The path as visitors see it."""
    parts = folders[1:] if folders and folders[0] in _ROOTS else list(folders)
    dated = _POST.fullmatch(name) if parts and parts[-1] in _POSTS else None
    if dated:
        year, month, day, title = dated.groups()
        parts = [*(parts[:-1] if parts[-1] == b"_posts" else parts), year, month.zfill(2), day.zfill(2), title]
    elif name not in _INDEX:
        parts.append(name)
    return [part.removeprefix(b"_") or part for part in parts]
