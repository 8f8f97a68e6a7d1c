"""``python -m recrawl``."""

from recrawl.cli.entry import main

main()
