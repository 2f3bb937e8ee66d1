# SPDX-License-Identifier: Apache-2.0
"""What a gVisor guest does as the host's kernel saw it, beside what the guest's own kernel told: a call that was not told is
an escape and is killed for; and nothing that programs do in earnest looks like one."""

import os
import subprocess
import unittest

from gvisor import GvisorCase, each_runsc, fds_of, inject, parts_below, sink_of
from warder import *

need_root()

NR_DUP, NR_DUP3 = 32, 292

BENIGN = r"""
set -e
mkdir -p pkg/a pkg/b
i=0; while [ $i -lt 300 ]; do echo "x = $i" > pkg/a/m$i.py; i=$((i+1)); done
tar cf pkg.tar pkg
tar xf pkg.tar -C pkg/b
python3 -m compileall -q pkg/b
python3 - <<'P'
import os, shutil, signal, socket, subprocess, tempfile, threading, zipfile
def many(n):
    for i in range(15):
        p = "t%d-%d" % (n, i)
        with open(p, "w") as f: f.write("x")
        os.rename(p, p + "x"); os.chmod(p + "x", 0o600); os.unlink(p + "x")
threads = [threading.Thread(target=many, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
# signals that arrive at the end of calls
signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for i in range(60):
    with open("/workspace/sig", "w") as f: f.write("x")
    os.unlink("/workspace/sig")
signal.setitimer(signal.ITIMER_REAL, 0)
with zipfile.ZipFile("w.whl", "w") as z:
    for name in os.listdir("pkg/a")[:20]: z.write("pkg/a/" + name)
with tempfile.TemporaryDirectory() as d:
    zipfile.ZipFile("w.whl").extractall(d)
for i in range(5):
    subprocess.run(["sh", "-c", "cat pkg/a/m1.py > /dev/null; exit 0"], check=True)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 5000))
P
"""


class Mirror(GvisorCase):
    def setUp(self):
        super().setUp()
        self.runs_on()

    def test_a_sentry_that_keeps_something_back(self):
        """Its messages go elsewhere, its connection stays open."""
        if self.platform != "ptrace":
            self.skipTest("on %s the guest's calls do not show to the host" % self.platform)
        proc, finish = self.start_session(
            "sh", "-c", "echo up; read x; while :; do echo y > /workspace/hidden; sleep 1; done", stdin=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"up\n")
        pid, = parts_below(proc.pid)["sentry"]
        sink = sink_of(pid)
        pipe = [fd for fd, to in fds_of(pid).items() if to.startswith("pipe:")][0]
        self.assertGreaterEqual(inject(pid, NR_DUP, sink), 0)
        self.assertEqual(inject(pid, NR_DUP3, pipe, sink, 0), sink)
        s = finish(b"go\n")
        self.assertEqual(s.code, 137, s)
        self.assertEqual(s.result["reason"], "rule", s.result)
        told = [e for e in s.kinds("escape", escape__type="guest_divergence") if "/workspace/hidden" in e["escape"]["detail"]]
        self.assertTrue(told, s.kinds("escape"))
        self.assertEqual(told[0]["vantage"], "kernel")

    def test_what_cannot_be_seen_is_said(self):
        s = self.session("true")
        self.assertEqual(s.code, 0, s)
        self.assertEqual("gvisor.mirror" in s.result["degraded"], self.platform != "ptrace")

    def test_benign_work(self):
        s = self.sh(BENIGN)
        self.assertEqual(s.code, 0, s)
        # Both views were there to be held against each other: what the guest told, and what the host's kernel saw.
        self.assertEqual(len(s.kinds("file.open", vantage="guest", file__path="/workspace/sig")), 60)
        deleted = [(e["vantage"], e["file"].get("path")) for e in s.kinds("file.delete", outcome="success")]
        # Of some no name is known (bpf/mirror.bpf.c); none is left out.
        self.assertEqual(len([path for _, path in deleted if not path or path.startswith("/workspace/")]), 120, deleted)
        self.assertIn(("kernel", "/workspace/sig"), deleted)
        self.assertEqual([e["net"]["dst"]["port"] for e in s.kinds("net.send", vantage="kernel")],
                         [5000] if self.platform == "ptrace" else [])
        self.assertEqual(s.kinds("escape"), [])
        self.assertEqual([e["rule"]["name"] for e in s.kinds("rule.alert")], [])


load_tests = each_runsc(every=(Mirror,))

if __name__ == "__main__":
    unittest.main()
