# SPDX-License-Identifier: Apache-2.0
"""No memory while a sandbox is made, watched and recorded, and while its record is read: every process of ours says so
or does without, none crashes, and nothing is left. What is left of control groups, mounts and processes is compared by
the runner."""

import os
import unittest

from oom import ALL, Orders, each_failure
from warder import *

need_root()


class Oom(TestCase):
    def setUp(self):
        super().setUp()
        os.chmod(self.tmp, 0o755)
        self.orders = Orders(self.path("orders"), 0o666)  # the engine's user counts, too

    def test_run(self):
        """A sandbox that could not be made or watched was not there; one that ran has a record, or its loss is told."""
        argv = [WARDER, "run", "--quiet", "--result", self.path("r.json"), "--", "sh", "-c", "echo ran; true"]
        env = self.orders.env(self.env)
        self.orders.give(0)
        good = cmd(*argv, env=env)
        self.assertEqual((good.code, good.out), (0, b"ran\n"), good)
        total, by_itself = (self.orders.read()[k] for k in ("n", "crashes"))  # the self-test's 32-bit call, which faults
        step = 1 if ALL else max(1, total // 30)
        for nth in range(1 if ALL else step, total + 1, step):
            with self.subTest(nth=nth):
                self.orders.give(nth)
                done = cmd(*argv, env=env)
                seen = self.orders.read()
                words = "allocation %d of %d: %s" % (nth, total, done)
                self.assertLessEqual(seen["crashes"], by_itself, words)
                self.assertIn(done.code, (0, 125), words)
                self.assertTrue(done.code == 0 or done.err, words)
                if done.code == 0:
                    self.assertEqual(done.out, b"ran\n", words)

    def test_reading(self):
        s = self.session("sh", "-c", "echo ran; ls / > /dev/null; true")
        self.assertCode(s, 0)
        for argv in (["replay", "--events", s.dir], ["export", s.dir, "--format", "ecs"], ["events", s.dir],
                     ["report", s.dir, "-o", self.path("r.html")]):
            # 127: the dynamic linker's own end, when it has no room for a library that is loaded late.
            each_failure(self, [WARDER, *argv], self.orders, self.env, bad_codes=(1, 125, 127))


if __name__ == "__main__":
    unittest.main()
