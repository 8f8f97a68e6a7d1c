"""How many connections are kept open, on systems that allow few and many."""

from __future__ import annotations

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource")

SCRIPT = """
import resource
from recrawl.fetch.http.http_fetcher import idle_connections, raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(idle_connections(2048), end=" ")
raise_limit()
print(idle_connections(2048), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "said"), [(256, 1024, "64 256 1024"), (1024, 1024, "256 256 1024"), (2, 400, "1 100 400")]
)
def test_a_share_of_what_may_be_open_is_kept_idle_and_the_limit_is_raised(soft, hard, said):
    # In a process of its own: a hard limit cannot be taken back. What is needed is loaded before.
    script = SCRIPT.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == said.split()
