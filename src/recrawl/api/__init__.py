"""The public Python API: load an archive and ask what the commands answer; simulate, crawl and capture.

The commands call the same functions of :mod:`recrawl.app`, so the results are equal. The public names are those that
``import recrawl`` offers; all others may change from version to version.
"""
