"""The experiments of ``recrawl experiment``: one file per experiment or group, with its tables and plots."""
