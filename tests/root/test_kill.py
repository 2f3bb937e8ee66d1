# SPDX-License-Identifier: Apache-2.0
"""Rules that kill, limits that kill, and their harmless twins."""

import unittest

from warder import *

# Touches each page, in one process: the memory controller picks it.
BOMB = "x = b'x' * (512 << 20); print('survived')"

ESCAPES = {
    "unshare": ["unshare", "-m", "true"],
    "mount": ["mount", "-t", "tmpfs", "none", "/tmp"],
    "setns": ["nsenter", "-t", "1", "-u", "true"],
    "chroot": ["chroot", "/", "/bin/true"],
    "ptrace": [PYTHON_IN_SANDBOX, "-c",
               "import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0); import time; time.sleep(300)"],
}


class Rules(TestCase):
    def killed_by_rule(self, s, escape):
        self.assertCode(s, 137)
        r = s.result
        self.assertEqual(r["reason"], "rule")
        self.assertTrue(r["rule"])
        self.assertEqual(r["action"], "kill")
        escapes = s.kinds("escape", escape__type=escape)
        self.assertTrue(escapes, s.events)
        actions = s.kinds("action")
        self.assertTrue(actions, s.events)
        done = [a for a in actions if field(a, "rule.trigger") in [e["id"] for e in escapes]]
        self.assertTrue(done, actions)
        self.assertEqual(field(done[0], "action.type"), "kill")
        self.assertEqual(field(done[0], "rule.name"), r["rule"])
        self.assertGreater(field(done[0], "action.latency_ns"), 0)
        self.assertTrue(s.kinds("rule.alert", rule__name=r["rule"]), s.events)
        self.assertGreaterEqual(r["alerts"], 1)
        self.assertContiguous(s.events)
        self.assertIntact(s)

    def test_unshare_kills_the_sandbox(self):
        before = own_cgroups()
        s = self.session("unshare", "-m", "true")
        self.killed_by_rule(s, "unshare")
        self.assertEqual(own_cgroups() - before, set())

    def test_it_takes_the_whole_sandbox(self):
        """The offender's siblings die too: none of them says that it came through."""
        s = self.session("sh", "-c", "(sleep 5; echo survived) & unshare -m true; sleep 5; echo survived")
        self.killed_by_rule(s, "unshare")
        self.assertEqual(s.out, b"")

    def test_other_escapes(self):
        for escape, argv in ESCAPES.items():
            with self.subTest(escape):
                s = self.session("sh", "-c", '"$@"; sleep 300', "sh", *argv, options=["--timeout", "60s"])
                self.assertCode(s, 137)
                self.assertEqual(s.result["reason"], "rule")
                self.assertTrue(s.kinds("escape", escape__type=escape), s.events)

    def test_harmless_twins_stay_alive(self):
        for argv in (["unshare", "--help"], ["mount", "--version"], ["sh", "-c", "echo unshare mount setns"],
                     ["sh", "-c", "cat /proc/self/mounts /proc/self/status > /tmp/x && rm /tmp/x"]):
            with self.subTest(argv):
                s = self.session(*argv)
                self.assertCode(s, 0)
                self.assertEqual(s.result["reason"], "exit")
                self.assertEqual(s.kinds("escape", "rule.alert", "action"), [])

    def test_own_rule_kills(self):
        rules = self.path("own.yaml", """
- rule: nothing is true
  desc: a test
  condition: kind = exec and proc.exe endswith /true
  output: it ran (args=%proc.args)
  priority: CRITICAL
  action: kill
""")
        s = self.session("sh", "-c", "/bin/true; sleep 300", options=["--rules", rules, "--timeout", "60s"])
        self.assertCode(s, 137)
        self.assertEqual((s.result["reason"], s.result["rule"]), ("rule", "nothing is true"))

    def test_without_default_rules_nothing_kills(self):
        s = self.session("sh", "-c", "unshare -m true; exit 9", options=["--no-default-rules"])
        self.assertCode(s, 9)
        self.assertTrue(s.kinds("escape", escape__type="unshare"), s.events)
        self.assertEqual(s.kinds("action"), [])


class Limits(TestCase):
    def test_memory_bomb(self):
        s = self.session(PYTHON_IN_SANDBOX, "-c", BOMB, options=["--memory", "64M"])
        self.assertCode(s, 137)
        self.assertEqual(s.result["reason"], "oom")
        self.assertNotIn(b"survived", s.out)
        oom = s.kinds("oom")
        self.assertTrue(oom, s.events)
        self.assertEqual(field(oom[0], "limit.type"), "memory")
        self.assertEqual(field(oom[0], "limit.value"), 64 << 20)
        self.assertIntact(s)

    def test_within_the_limit(self):
        s = self.session(PYTHON_IN_SANDBOX, "-c", "x = b'x' * (16 << 20)", options=["--memory", "64M"])
        self.assertCode(s, 0)
        self.assertEqual(s.kinds("oom"), [])
        self.assertGreater(s.result["mem_peak"], 16 << 20)
        self.assertLessEqual(s.result["mem_peak"], 64 << 20)

    def test_processes(self):
        s = self.session("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 300 & done; wait",
                         options=["--pids", "8", "--timeout", "20s"])
        self.assertNotEqual(s.code, 0)
        self.assertLessEqual(s.result["pids_peak"], 8)
        self.assertTrue(s.kinds("limit", limit__type="pids"), s.events)


if __name__ == "__main__":
    unittest.main()
