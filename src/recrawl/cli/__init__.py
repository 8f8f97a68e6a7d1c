"""The command line: one module per command. Each parses options, calls ``app`` or ``web``, and prints."""
