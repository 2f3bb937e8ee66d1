# SPDX-License-Identifier: Apache-2.0
"""Whatever of a gVisor sandbox is killed, and whoever was waiting for it: the rest ends, the result says why, and
nothing is left (mounts, control groups, namespaces: run.py looks around the whole module)."""

import os
import random
import signal
import unittest

from gvisor import GvisorCase, each_runsc, part_of, parts_below
from warder import *

need_root()


class Killed(GvisorCase):
    """SIGKILL for one process of each part, by chance which one of several."""

    def kill(self, role, *options):
        proc, finish = self.start_session("sh", "-c", "sleep 1000 & echo up; wait", options=options)
        self.assertEqual(proc.stdout.readline(), b"up\n")
        here = dict(parts_below(proc.pid), warder=[proc.pid])
        self.assertLessEqual({"keeper", "gofer", "sentry", "engine"}, set(here), here)
        if role == "stub" and role not in here:
            proc.kill()
            self.skipTest("this platform's stubs have names of their own: %s" % here)
        os.kill(random.choice(here[role]), signal.SIGKILL)
        s = finish()
        everything = [p for pids in here.values() for p in pids]
        wait_for("the end of all of it", lambda: not [p for p in everything if part_of(p)])
        self.assertCode(self.warder("run", "--quiet", "--", "true"), 0)  # sweeps what a dead warder left
        return s

    def test_warder(self):
        self.assertEqual(self.kill("warder").code, 137)

    def test_engine(self):
        self.assertEqual(self.kill("engine").code, 125)

    def test_keeper(self):
        self.assertEqual(self.reason(self.kill("keeper")), (137, "signal"))

    def test_gofer(self):
        """The sentry ends its guest by SIGKILL then, and itself in order."""
        self.assertEqual(self.reason(self.kill("gofer")), (137, "signal"))

    def test_sentry(self):
        """Nobody of ours did it, and memory was not the reason."""
        s = self.kill("sentry")
        self.assertEqual(self.reason(s), (137, "signal"))
        self.assertEqual([e["escape"]["type"] for e in s.kinds("escape")], ["runtime_killed"])
        self.assertIn("gVisor killed by somebody else", [e["rule"]["name"] for e in s.kinds("rule.alert")])

    def test_stub(self):
        """With 20221219 it takes the sentry with it; later ones lose one process of the guest, which may wait for ever, or
        panic."""
        s = self.kill("stub", "--timeout", "30s")
        self.assertIn(self.reason(s), ((137, "signal"), (124, "timeout"), (137, "escape"), (137, "sentry")), s.result)


load_tests = each_runsc(Killed)

if __name__ == "__main__":
    unittest.main()
