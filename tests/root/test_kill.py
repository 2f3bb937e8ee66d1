# SPDX-License-Identifier: Apache-2.0
"""Rules that kill, limits that kill, and their harmless twins."""

import os
import unittest

from warder import *

# Touches each page, in one process: the memory controller picks it.
BOMB = "x = b'x' * (512 << 20); print('survived')"



def call(code):
    """A system call as a program makes it, by libc."""
    return [PYTHON_IN_SANDBOX, "-c", "import ctypes, os; libc = ctypes.CDLL(None); " + code]


# What no honest program does without privilege: it ends the sandbox.
KILLED = {
    "unshare": ["unshare", "-m", "true"],
    "mount": ["mount", "-t", "tmpfs", "none", "/tmp"],
    "umount": call("libc.umount2(b'/tmp', 2)"),
    "setns": call("libc.setns(os.open('/proc/self/ns/uts', 0), 0)"),
    "pivot_root": call("libc.syscall(155, b'/', b'/')"),
    "mount_api": call("libc.syscall(430, b'tmpfs', 0)"),
    "bpf": call("libc.syscall(321, 0, 0, 0)"),
    "module": call("libc.syscall(176, b'x', 0)"),
    "open_by_handle_at": call("libc.open_by_handle_at(3, bytes(16), 0)"),
    "reboot": call("libc.reboot(0)"),
}
# What a debugger, a browser or a run-time library may try: it is reported, and denied.
REPORTED = {
    "chroot": ["chroot", "/", "/bin/true"],
    "ptrace": call("libc.ptrace(16, 1, 0, 0)"),
    "process_vm": call("libc.process_vm_readv(1, 0, 0, 0, 0, 0)"),
    "keyctl": call("libc.syscall(250, 0, -3, 0, 0, 0)"),
    "io_uring": call("libc.syscall(425, 1, bytes(120))"),
    "perf_event_open": call("libc.syscall(298, bytes(128), 0, -1, -1, 0)"),
    "userfaultfd": call("libc.syscall(323, 0)"),
}


class Rules(TestCase):
    def test_kill_before_the_start_was_told(self):
        """The kill may come before init could say that the payload runs: it is a kill all the same."""
        rules = self.path("rules.yaml", "- rule: No true\n  desc: d\n  condition: kind = exec and proc.name = true\n"
                                        "  output: o\n  priority: ALERT\n  action: kill\n")
        for _ in range(15):
            s = self.session("true", options=["--no-default-rules", "--rules", rules])
            self.assertCode(s, 137)
            self.assertEqual((s.result["reason"], s.result["rule"], s.result["error"]), ("rule", "No true", None))
            self.assertEqual(s.kinds("session.stop")[0]["run"]["reason"], "rule")

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
        s = self.session("unshare", "-m", "true")
        self.killed_by_rule(s, "unshare")
        self.assertEqual([c for c in own_cgroups() if s.result["session"] in c], [])

    def test_it_takes_the_whole_sandbox(self):
        """The offender's siblings die too: none of them says that it came through."""
        s = self.session("sh", "-c", "(sleep 5; echo survived) & unshare -m true; sleep 5; echo survived")
        self.killed_by_rule(s, "unshare")
        self.assertEqual(s.out, b"")

    def numbers_are_of_x86(self):
        if os.uname().machine != "x86_64":
            self.skipTest("the system call numbers are x86-64's")

    def test_what_kills(self):
        self.numbers_are_of_x86()
        for escape, argv in KILLED.items():
            with self.subTest(escape):
                s = self.session("sh", "-c", '"$@"; exec sleep 300', "sh", *argv, options=["--timeout", "60s"])
                self.killed_by_rule(s, escape)

    def test_what_is_reported(self):
        self.numbers_are_of_x86()
        for escape, argv in REPORTED.items():
            with self.subTest(escape):
                s = self.session("sh", "-c", '"$@"; exit 9', "sh", *argv)
                self.assertCode(s, 9)
                seen = s.kinds("escape", escape__type=escape)
                self.assertTrue(seen, s.events)
                self.assertEqual({e["outcome"] for e in seen} - {"denied", "failure"}, set())
                self.assertTrue(s.kinds("rule.alert", rule__trigger=seen[0]["id"]), s.events)
                self.assertEqual(s.kinds("action"), [])

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

    def test_killed_at_its_first_exec(self):
        """Before init could say that the command runs: still a kill by rule, not a failed start."""
        rules = self.path("first.yaml", """
- rule: not even started
  desc: a test
  condition: kind = exec and proc.comm = sleep
  output: it ran
  priority: CRITICAL
  action: kill
""")
        for _ in range(8):
            s = self.session("sleep", "300", options=["--rules", rules, "--timeout", "60s"])
            self.assertCode(s, 137)
            self.assertEqual((s.result["reason"], s.result["error"], s.err), ("rule", None, b""))
            self.assertIntact(s)

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

    def test_it_takes_all_of_it(self):
        """Half a sandbox is of no use to anyone: who did not ask for the memory ends, too."""
        s = self.session("sh", "-c", "sleep 1000 & '%s' -c \"%s\"; echo still here" % (PYTHON_IN_SANDBOX, BOMB),
                         options=["--memory", "64M"])
        self.assertCode(s, 137)
        self.assertEqual(s.result["reason"], "oom")
        self.assertNotIn(b"still here", s.out)

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
