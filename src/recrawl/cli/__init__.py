"""The command line: a file a verb. Parse, wire, print. Two verbs have a folder each: ``experiments``, ``serving``."""
