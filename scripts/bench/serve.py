"""Load test of the HTTP service in the serving guide.

`python -m scripts.bench.serve FOLDER` starts uvicorn in a folder with the guide's `serve.py`, `mine.csv` and
`runs/mine`. As many clients as workers send requests one after the other, every other of which is a mistake.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pandas as pd

PORT = 8765
LOOK_BACK = 168


def requests(table: pd.DataFrame) -> list[tuple[str, str, bytes]]:
    """Name, content type and body of each kind of request; valid ones alternate with mistakes."""
    rows = table.tail(LOOK_BACK + 5)
    csv, records = rows.to_csv(index=False).encode(), rows.to_json(orient="records").encode()
    empty = rows.assign(**dict.fromkeys(rows.columns[1:], np.nan))
    return [
        ("JSON", "application/json", records),
        ("a missing column", "text/csv", rows.iloc[:, :-1].to_csv(index=False).encode()),
        ("CSV", "text/csv", csv),
        ("no values", "text/csv", empty.to_csv(index=False).encode()),
        ("JSON", "application/json", records),
        ("too large", "text/csv", csv * 200),
        ("CSV", "text/csv", csv),
        ("broken JSON", "application/json", records[:-100]),
    ]


def memory(pid: int) -> float:
    """Resident memory of a process and its children in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024 + sum(memory(int(child)) for child in children)


def wait_until_healthy() -> float:
    """Seconds until the service answers."""
    started = time.perf_counter()
    while True:
        try:
            send("GET", "/health")
            return time.perf_counter() - started
        except ConnectionRefusedError:
            time.sleep(0.05)


def send(method: str, path: str, kind: str = "", body: bytes = b"") -> int:
    """Status of one request on a connection of its own."""
    connection = HTTPConnection("127.0.0.1", PORT)
    connection.request(method, path, body, {"Content-Type": kind} if kind else {})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def client(kinds: list[tuple[str, str, bytes]], stop: float) -> dict[tuple[str, int], list[float]]:
    """Send requests until `time.perf_counter()` reaches `stop`: milliseconds by kind and status."""
    taken: dict[tuple[str, int], list[float]] = {}
    for name, kind, body in itertools.cycle(kinds):
        sent = time.perf_counter()
        if sent > stop:
            return taken
        status = send("POST", "/forecast", kind, body)
        taken.setdefault((name, status), []).append(1000 * (time.perf_counter() - sent))
    raise AssertionError("a cycle has no end")


def main() -> int:
    """Print the rate, latencies and statuses, and the server's memory at the start and the end."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.serve", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    kinds = requests(pd.read_csv(options.folder / "mine.csv"))
    command = [sys.executable, "-m", "uvicorn", "serve:app", "--port", str(PORT), "--log-level", "error"]
    command += ["--workers", str(options.workers)]
    taken: dict[tuple[str, int], list[float]] = {}
    with subprocess.Popen(command, cwd=options.folder) as server:
        try:
            print(f"answers after {wait_until_healthy():.1f} s")
            for _, kind, body in kinds * 10 * options.workers:
                send("POST", "/forecast", kind, body)
            before, started = memory(server.pid), time.perf_counter()
            with ThreadPoolExecutor(options.workers) as pool:
                stop = started + options.seconds
                for one in pool.map(lambda _: client(kinds, stop), range(options.workers)):
                    for key, times in one.items():
                        taken.setdefault(key, []).extend(times)
            seconds, after = time.perf_counter() - started, memory(server.pid)
        finally:
            server.terminate()
    for (name, status), times in taken.items():
        middle, slow = np.percentile(times, [50, 99])
        print(f"{name}: status {status}, {len(times)} requests, p50 {middle:.1f} ms, p99 {slow:.1f} ms")
    statuses = Counter[int]()
    for (_, status), times in taken.items():
        statuses[status] += len(times)
    print(f"{statuses.total() / seconds:.1f} requests/s, statuses {dict(sorted(statuses.items()))}")
    print(f"server memory {before:.0f} MiB at the start, {after:.0f} MiB at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
