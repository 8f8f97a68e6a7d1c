"""Libraries for object storage beside each other: obstore, which recrawl uses, and s3fs.

    uv run python benchmarks/object_storage.py

s3fs gets an environment of its own, since its dependencies and those of the server exclude each other. Each library
works in a process of its own against one S3 API server on loopback (moto), whose time does not count.
Figures are CPU seconds of that process, and its memory above that of an interpreter that imported nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

BLOCK = 256 << 10
PART = 8 << 20


def cpu() -> float:
    """CPU seconds of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory() -> float:
    """Peak memory of this process in MB."""
    # ru_maxrss would be that of the parent, if it had more when it started this process
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def measure(library: str, endpoint: str, file: Path, reads: int) -> dict[str, float]:
    """Import a library, upload a file, and read ranges of it."""
    before, size = memory(), file.stat().st_size
    start = cpu()
    if library == "obstore":
        import obstore
        from obstore.store import S3Store

        client = S3Store("archive", endpoint=endpoint, client_options={"allow_http": True})

        def upload() -> None:
            obstore.put(client, "o", file, use_multipart=True, chunk_size=PART, max_concurrency=2)

        def read(at: int) -> int:
            return len(obstore.get_range(client, "o", start=at, end=at + BLOCK))
    else:
        import s3fs

        files = s3fs.S3FileSystem(
            endpoint_url=endpoint,
            key="testing",
            secret="testing",
            default_block_size=PART,
            skip_instance_cache=True,
        )

        def upload() -> None:
            files.put_file(str(file), "archive/s", chunksize=PART, max_concurrency=2)

        def read(at: int) -> int:
            return len(files.cat_file("archive/s", start=at, end=at + BLOCK))

    imported, imported_memory = cpu(), memory()
    upload()
    uploaded = cpu()
    for number in range(reads):
        assert read(number * 7_919 % (size - BLOCK)) == BLOCK
    return {
        "import_cpu_s": imported - start,
        "import_memory_mb": imported_memory - before,
        "upload_cpu_ms_per_mb": (uploaded - imported) * 1e9 / size,
        "read_cpu_ms": (cpu() - uploaded) * 1e3 / reads,
        "peak_memory_mb": memory() - before,
    }


def main() -> None:
    """Start the server, measure each library, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=40, help="size of the uploaded file")
    parser.add_argument("--reads", type=int, default=100, help="ranges of 256 KiB that are read")
    parser.add_argument("--library", help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    if options.library:
        sys.stdout.write(json.dumps(measure(options.library, options.endpoint, options.file, options.reads)))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
    server = subprocess.Popen([sys.executable, "-c", code, str(port)], stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,  # noqa: TID251 - a child's
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
    }
    found = {}
    try:
        while True:
            try:
                request = urllib.request.Request(f"{endpoint}/archive", data=b"", method="PUT")
                urllib.request.urlopen(request, timeout=60).close()
                break
            except ConnectionError:
                time.sleep(0.1)
            except urllib.error.URLError as error:
                if not isinstance(error.reason, ConnectionError):
                    raise
                time.sleep(0.1)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "big"
            file.write_bytes(os.urandom(options.megabytes * 1_000_000))
            for library in ("obstore", "s3fs"):
                python = (
                    [sys.executable]
                    if library == "obstore"
                    else ["uv", "run", "--no-project", "--with", "s3fs", "python"]
                )
                command = [*python, __file__, "--library", library, "--endpoint", endpoint, "--file", str(file)]
                done = subprocess.run(
                    [*command, "--reads", str(options.reads)], env=environment, check=True, capture_output=True
                )
                found[library] = json.loads(done.stdout)
    finally:
        server.kill()
        server.wait()
    for name in next(iter(found.values())):
        print(f"{name:24}" + "".join(f"{library}: {figures[name]:10.3f}   " for library, figures in found.items()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
