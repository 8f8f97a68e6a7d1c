"""The command line: parse, wire, print. A file a verb, and beside it what verbs and notebooks find and say.

Two verbs have a folder each: ``experiments``, ``serving``.
"""
