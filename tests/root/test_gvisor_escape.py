# SPDX-License-Identifier: Apache-2.0
"""What gVisor's own processes never do once the guest runs: one of them is made to (inject), and the sandbox is killed."""

import os
import time
import unittest

from gvisor import RUNSCS, each_runsc, sink_of
from warder import *

need_root()
need("runsc")

NR = {"mount": 165, "execve": 59, "socket": 41, "openat": 257, "clone": 56, "setresuid": 117, "close": 3}


def part_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().split(b"\0")[0].decode()
    except OSError:
        return ""


class Escape(TestCase):
    runsc = platform = None

    def setUp(self):
        super().setUp()
        self.runsc = self.runsc or RUNSCS[0]
        self.platform = self.platform or self.runsc.platforms[0]
        self.env["WARDER_RUNSC"] = self.runsc.path
        self.inject = helper("inject")

    def start(self):
        """A sandbox whose guest runs; (finish, pids of its processes by their first word)."""
        proc, finish = self.start_session("sh", "-c", "echo up; while :; do sleep 1; done",
                                          options=("--backend", "gvisor", "--platform", self.platform))
        self.assertEqual(proc.stdout.readline(), b"up\n")
        tree = {}

        def look(pid):
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                    for child in map(int, f.read().split()):
                        tree.setdefault(part_of(child), child)
                        look(child)
        look(proc.pid)
        self.assertIn("runsc-gofer", tree)
        self.assertIn("runsc-sandbox", tree)
        return proc, finish, tree

    def until_dead(self, proc, act):
        """Again and again: what is done before the host's kernel knows that the guest runs is set-up, and is not told."""
        said = []

        def once():
            if proc.poll() is None:
                said.append(act())
                time.sleep(0.1)
            return proc.poll() is not None
        wait_for("the sandbox's end", once, 90)
        return "\n".join(map(str, said[-3:]))

    def provoke(self, part, call, *args, type, options=()):
        proc, finish, tree = self.start()
        done = self.until_dead(proc, lambda: part_of(tree[part]) == part and
                               cmd(self.inject, *options, str(tree[part]), str(NR[call]), *map(str, args)))
        s = finish()
        self.assertEqual(s.code, 137, "%s\n%s" % (done, s))
        self.assertEqual(s.result["reason"], "rule", done)
        told = [e for e in s.kinds("escape") if e["escape"]["type"] == type]
        self.assertTrue(told, "%s\n%s" % (done, s.kinds("escape")))
        self.assertEqual(told[0]["vantage"], "kernel")
        self.assertEqual(told[0]["proc"]["part"], part.replace("runsc-", "").replace("sandbox", "sentry"))
        return told[0]

    def test_a_call_of_no_part(self):
        self.provoke("runsc-gofer", "mount", 0, 0, 0, 0, 0, type="runtime_call")

    def test_a_program(self):
        self.provoke("runsc-gofer", "execve", "/bin/sh", 0, 0, type="runtime_exec")

    def test_a_socket_of_the_host(self):
        self.provoke("runsc-sandbox", "socket", 2, 1, 0, type="runtime_net")

    def test_a_path(self):
        e = self.provoke("runsc-gofer", "openat", -100, "/etc/passwd", 0x20000, type="runtime_path")
        self.assertEqual(e["escape"]["detail"], "/etc/passwd")

    def test_a_process(self):
        self.provoke("runsc-gofer", "clone", 17, 0, 0, 0, 0, type="runtime_clone")

    def test_the_filter_of_a_part(self):
        """With its filter in force it is ended by that."""
        self.provoke("runsc-gofer", "socket", 2, 1, 0, type="seccomp_violation", options=("-q",))

    def test_a_sentry_that_falls_silent(self):
        """It closes the connection by which it tells what the guest does, and runs on."""
        proc, finish, tree = self.start()
        pid = tree["runsc-sandbox"]
        sink = sink_of(pid)
        self.assertIsNotNone(sink)
        # that one alone: without its others it ends by itself
        self.assertIn(b"result 0", cmd(self.inject, str(pid), str(NR["close"]), sink).out)
        s = finish()
        self.assertEqual(s.code, 137, s)
        told = s.kinds("escape", escape__type="guest_divergence")
        self.assertTrue(told, s.kinds("escape"))
        # on ptrace the next call of the guest shows to the host, and is not told
        says = ("runs on",) if self.platform == "systrap" else ("runs on", "did not tell")
        self.assertTrue(any(x in told[0]["escape"]["detail"] for x in says), told)

    def test_what_is_its_own_work(self):
        """The harmless twin: the same means, and a call that is no sign of anything."""
        proc, finish = self.start_session("sh", "-c", "echo up; sleep 5; exit 4", options=("--backend", "gvisor", "--platform", self.platform))
        self.assertEqual(proc.stdout.readline(), b"up\n")
        s = finish()
        self.assertEqual(s.code, 4, s)
        self.assertEqual(s.kinds("escape"), [])
        self.assertEqual({e["proc"]["part"] for e in s.kinds("exit") if e["vantage"] == "kernel"}, {"gofer", "sentry"})


load_tests = each_runsc(every=(Escape,))

if __name__ == "__main__":
    unittest.main()
