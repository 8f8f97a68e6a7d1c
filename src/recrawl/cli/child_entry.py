"""``recrawl`` as a child of the dashboard: it exits with its parent, also if that was killed."""

from __future__ import annotations

from recrawl.cli.entry import main
from recrawl.web.parent_watch import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    main()
