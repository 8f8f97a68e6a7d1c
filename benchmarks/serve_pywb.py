"""pywb's own index server over a file of CDXJ, for comparison: ``python benchmarks/serve_pywb.py FILE``.

It prints the port it listens at, and ends when its standard input does.
"""

from __future__ import annotations

import sys

from recrawl.errors import require


def main() -> None:
    """Serve until standard input ends."""
    require("gevent.monkey", "replay").patch_all()
    gevent, pywsgi = require("gevent", "replay"), require("gevent.pywsgi", "replay")
    app = require("pywb.warcserver.warcserver", "replay").WarcServer(
        custom_config={"collections": {"bench": sys.argv[1]}, "collections_root": "_none_"}
    )
    server = pywsgi.WSGIServer(("127.0.0.1", 0), app, log=None)
    server.start()
    print(f"port {server.server_port}", flush=True)

    def until_told() -> None:
        gevent.get_hub().threadpool.apply(sys.stdin.read)
        server.stop(timeout=1)

    gevent.spawn(until_told).join()


if __name__ == "__main__":
    main()
