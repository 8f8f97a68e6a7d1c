"""The command line: one file per verb. Parse, wire, print."""
