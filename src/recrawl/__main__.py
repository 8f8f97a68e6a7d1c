"""``python -m recrawl``."""

from recrawl.cli.start import main

main()
