# SPDX-License-Identifier: Apache-2.0
"""What a gVisor guest does as the host's kernel saw it, beside what the guest's own kernel told: a call that was not told is
an escape and is killed for; and nothing that programs do in earnest looks like one."""

import os
import subprocess
import unittest

from gvisor import RUNSCS, each_runsc, sink_of
from warder import *

need_root()
need("runsc")

NR_DUP, NR_DUP3 = 32, 292

BENIGN = r"""
set -e
mkdir -p pkg/a pkg/b
i=0; while [ $i -lt 300 ]; do echo "x = $i" > pkg/a/m$i.py; i=$((i+1)); done
tar cf pkg.tar pkg
tar xf pkg.tar -C pkg/b
python3 -m compileall -q pkg/b
python3 - <<'P'
import os, shutil, signal, subprocess, tempfile, threading, zipfile
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
P
"""


class Mirror(TestCase):
    runsc = platform = None

    def setUp(self):
        super().setUp()
        self.runsc = self.runsc or RUNSCS[0]
        self.platform = self.platform or self.runsc.platforms[0]
        self.env["WARDER_RUNSC"] = self.runsc.path
        self.options = ("--backend", "gvisor", "--platform", self.platform)

    def sentry(self, pid):
        found = []

        def look(pid):
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                    for child in map(int, f.read().split()):
                        with open("/proc/%d/cmdline" % child, "rb") as words:
                            if words.read().startswith(b"runsc-sandbox\0"):
                                found.append(child)
                                continue
                        look(child)
        look(pid)
        self.assertEqual(len(found), 1)
        return found[0]

    def test_a_sentry_that_keeps_something_back(self):
        """Its messages go elsewhere, its connection stays open."""
        if self.platform != "ptrace":
            self.skipTest("on %s the guest's calls do not show to the host" % self.platform)
        inject = helper("inject")
        proc, finish = self.start_session(
            "sh", "-c", "echo up; read x; while :; do echo y > /workspace/hidden; sleep 1; done", options=self.options,
            stdin=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"up\n")
        pid = self.sentry(proc.pid)
        sink = sink_of(pid)
        pipe = [fd for fd in os.listdir("/proc/%d/fd" % pid)
                if os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("pipe:")][0]
        self.assertIsNotNone(sink)
        self.assertIn(b"result", cmd(inject, str(pid), str(NR_DUP), sink).out)
        self.assertIn(b"result", cmd(inject, str(pid), str(NR_DUP3), pipe, sink, "0").out)
        s = finish(b"go\n")
        self.assertEqual(s.code, 137, s)
        self.assertEqual(s.result["reason"], "rule", s.result)
        told = [e for e in s.kinds("escape", escape__type="guest_divergence") if "/workspace/hidden" in e["escape"]["detail"]]
        self.assertTrue(told, s.kinds("escape"))
        self.assertEqual(told[0]["vantage"], "kernel")

    def test_what_cannot_be_seen_is_said(self):
        s = self.session("true", options=self.options)
        self.assertEqual(s.code, 0, s)
        self.assertEqual("gvisor.mirror" in s.result["degraded"], self.platform != "ptrace")

    def test_benign_work(self):
        s = self.session("sh", "-c", BENIGN, options=self.options)
        self.assertEqual(s.code, 0, s)
        self.assertEqual(s.kinds("escape"), [])
        self.assertEqual([e["rule"]["name"] for e in s.kinds("rule.alert")], [])


load_tests = each_runsc(every=(Mirror,))

if __name__ == "__main__":
    unittest.main()
