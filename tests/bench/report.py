#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a long session: 50,000 events and 20,000 records of its terminal. Its size (target: under 2 MB) and
how long a browser takes from opening the file until its first view can be used: player, lanes, events, filter, search,
tree (under 1 s). Tables of other tabs follow, or are made when they are looked at."""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

from browser import Browser  # noqa: E402

EVENTS, FRAMES = 50000, 20000
BASE = 36_000_000_000_000
ID = "01M8ND7YSQX6WVZ8CE7KEPXND5"


def events():
    """Much as an agent's session is: programs that open, write and connect; the same again and again, never quite."""
    rng = random.Random(7)
    for seq in range(1, EVENTS + 1):
        pid = 1000 + seq // 25
        proc = {"pid": pid, "nspid": pid - 990, "ppid": 1000, "comm": "node", "exe": "/usr/bin/node",
                "args": ["node", "build.js", "--step", str(seq // 25)], "start": BASE + seq // 25 * 10 ** 9}
        e = {"v": 1, "id": "%s:%d" % (ID, seq), "seq": seq, "session": ID, "sandbox": "bench", "host": "h",
             "time": "2026-11-30T05:%02d:%02d.%06d000Z" % (seq // 3000, seq // 50 % 60, rng.randrange(10 ** 6)),
             "mono": BASE + seq * 20_000_000}
        path = "/workspace/src/%03d/module-%04x.js" % (rng.randrange(200), rng.randrange(65536))
        if seq == 1:
            e.update(kind="session.start", run={"backend": "ns", "command": ["node", "agent.js"], "tier": "full"})
        elif seq % 25 == 0:
            e.update(kind="exec", proc=proc, outcome="success")
        elif seq % 60 == 1:
            e.update(kind="net.connect", proc=proc, outcome="success", net={"proto": "tcp", "cookie": seq, "dst": {
                "ip": "93.184.%d.%d" % (rng.randrange(256), rng.randrange(256)), "port": 443, "name": "registry.example.com"}})
        elif seq % 3:
            e.update(kind="file.open", proc=proc, outcome="success", file={"path": path, "flags": ["O_WRONLY", "O_CREAT"]})
        else:
            e.update(kind="file.write", proc=proc, file={"path": path, "bytes": rng.randrange(10 ** 5)})
        yield json.dumps(e)


def frames():
    rng = random.Random(8)
    yield "%d r 0 120 40" % BASE
    for i in range(1, FRAMES):
        text = "\x1b[3%dm[%5d]\x1b[0m compiled module-%04x.js in %d ms\r\n" % (i % 8, i, rng.randrange(65536), rng.randrange(900))
        yield "%d o 0 %s" % (BASE + i * 50_000_000, text.encode().hex())


def once(path):
    """Milliseconds from opening to ready, by the page's own clock."""
    with Browser() as b:
        b.open("/dev/null")
        b.open(path)
        for _ in range(600):
            ms = b.run("const m = performance.getEntriesByName('ready'); return m.length ? m[0].startTime : null")
            if ms is not None:
                return ms
    raise RuntimeError("the page was not ready within a minute")


def measure(build, runs=5):
    """(bytes, median ms)."""
    with tempfile.TemporaryDirectory(prefix="warder-report-") as folder:
        names = [os.path.join(folder, n) for n in ("events", "frames", "page.html")]
        for name, lines in zip(names, (events(), frames())):
            with open(name, "w") as f:
                f.writelines(line + "\n" for line in lines)
        with open(names[2], "wb") as f:
            subprocess.run([os.path.join(build, "tests/helpers/report_page"), names[0], names[1]], stdout=f, check=True)
        return os.path.getsize(names[2]), statistics.median(once(names[2]) for _ in range(runs))


if __name__ == "__main__":
    size, ms = measure(os.environ.get("WARDER_BUILD") or os.path.join(ROOT, "build"))
    print("%.2f MB, ready in %.0f ms" % (size / 1e6, ms))
