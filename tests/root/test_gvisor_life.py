# SPDX-License-Identifier: Apache-2.0
"""Whatever of a gVisor sandbox is killed, and whoever was waiting for it: the rest ends, the result says why, and
nothing is left (mounts, control groups, namespaces: run.py looks around the whole module)."""

import os
import random
import signal
import sys
import unittest

from gvisor import each_runsc
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_gvisor import GvisorCase
from warder import *

need_root()


def parts(top):
    """Processes below this warder by their part in it: {role: [pid]}."""
    found, parents = {}, {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open("/proc/%d/stat" % pid) as f:
                parents[pid] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    for pid in parents:
        at = pid
        while at in parents and at != top:
            at = parents[at]
        role = role_of(pid) if at == top else None
        if role:
            found.setdefault(role, []).append(pid)
    return found


def role_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            name = f.read().split(b"\0")[0]
        with open("/proc/%d/comm" % pid) as f:
            comm = f.read().strip()
        with open("/proc/%d/stat" % pid) as f:
            if f.read().rpartition(")")[2].split()[0] == "Z":
                return None
    except OSError:
        return None
    if comm == "warder-engine":
        return "engine"
    return {b"warder-init": "keeper", b"runsc-gofer": "gofer", b"runsc-sandbox": "sentry", b"": "stub"}.get(name, "other")


class Killed(GvisorCase):
    """SIGKILL for one process of each part, by chance which one of several."""

    def kill(self, role, *options):
        proc, finish = self.start_session("sh", "-c", "sleep 1000 & echo up; wait", options=options)
        self.assertEqual(proc.stdout.readline(), b"up\n")
        here = dict(parts(proc.pid), warder=[proc.pid])
        self.assertLessEqual({"keeper", "gofer", "sentry", "engine"}, set(here), here)
        if role == "stub" and role not in here:
            proc.kill()
            self.skipTest("this platform's stubs have names of their own: %s" % here)
        os.kill(random.choice(here[role]), signal.SIGKILL)
        s = finish()
        everything = [p for pids in here.values() for p in pids]
        wait_for("the end of all of it", lambda: not [p for p in everything if role_of(p)])
        self.assertCode(self.warder("run", "--quiet", "--", "true"), 0)  # sweeps what a dead warder left
        return s

    def test_warder(self):
        self.assertEqual(self.kill("warder").code, 137)

    def test_engine(self):
        self.assertEqual(self.kill("engine").code, 125)

    def test_keeper(self):
        self.assertEqual(self.reason(self.kill("keeper")), (137, "signal"))

    def test_gofer(self):
        self.assertEqual(self.reason(self.kill("gofer")), (137, "signal"))

    def test_sentry(self):
        self.assertEqual(self.reason(self.kill("sentry")), (137, "signal"))

    def test_stub(self):
        """With 20221219 it takes the sentry with it; later ones lose one process of the guest, which may wait for ever."""
        s = self.kill("stub", "--timeout", "30s")
        self.assertIn(self.reason(s), ((137, "signal"), (124, "timeout"), (137, "escape")), s.result)


load_tests = each_runsc(Killed)

if __name__ == "__main__":
    unittest.main()
