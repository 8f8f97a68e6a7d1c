"""Starts ``recrawl`` again and again without the seconds that importing takes: everything is loaded once, then forked.

Each line of standard input is an order in JSON, each line of standard output the answer:
``{"run": [arguments], "said": FILE}`` starts ``recrawl`` with these arguments and answers its process id;
``{"wait": pid}`` waits for its end and answers its exit code, negative for a signal.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import sys
from contextlib import redirect_stdout, suppress

PACKAGES = (
    "crawl",
    "fetch",
    "store",
    "detect",
    "schedule",
    "predict",
    "estimate",
    "capture",
    "formats",
    "transfer",
    "cli",
)
"""Packages whose modules commands import."""
LIBRARIES = (
    *("pycurl", "apsw", "psycopg", "selectolax", "isal.igzip", "rich.live", "rich.progress", "rich.table"),
    *("uvloop", "scipy.special", "pyarrow.parquet"),
)


def load_everything() -> None:
    """Import all that commands need, and run once what is slow the first time."""
    for name in (f"recrawl.{package}" for package in PACKAGES):
        module = importlib.import_module(name)
        for found in pkgutil.walk_packages(module.__path__, f"{name}."):
            if "migrations" not in found.name:
                importlib.import_module(found.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    warm_up()


def warm_up() -> None:
    """Do once what loads more than modules: classify a page, which runs compiled code, and read a command line."""
    from recrawl.cli.main import main
    from recrawl.detect import classify_change
    from recrawl.detect.change_criteria import ChangeCriteria
    from recrawl.model import Capture

    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    body = b"<html><body><p>" + b"some words and 12:34 o'clock " * 40 + b"</p></body></html>"
    classify_change(Capture("http://a.example/", 0.0, 200, head, body), None, ChangeCriteria(use_kernels=True))
    sys.argv = ["recrawl", "run", "--help"]
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        main()


def be_recrawl(arguments: list[str], said: str) -> None:
    """Become ``recrawl`` with these arguments; never returns."""
    code = 99
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = ["recrawl", *arguments]
        from recrawl.cli.entry import main

        main()
    except SystemExit as done:
        code = int(done.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def say(word: object) -> None:
    """Answer an order."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def serve() -> None:
    """Take orders until there are no more."""
    say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        if "run" in order:
            process = os.fork()
            if process == 0:
                be_recrawl(order["run"], order["said"])
            say(process)
        else:
            _, status = os.waitpid(order["wait"], 0)
            say(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    load_everything()
    serve()
