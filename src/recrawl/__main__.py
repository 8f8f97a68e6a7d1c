"""``python -m recrawl``."""

from recrawl.cli.main import main

main()
