"""The command line: one file per verb. Parse, wire, print. What ``recrawl experiment`` does is in ``experiments``."""
