# SPDX-License-Identifier: Apache-2.0
"""What gVisor's own processes never do once the guest runs: one of them is made to (inject), and the sandbox is killed."""

import contextlib
import os
import subprocess
import sys
import time
import unittest

from gvisor import GvisorCase, each_runsc, inject, part_of, parts_below, sink_of
from probes import remove_cgroup, v2_mount
from warder import *

need_root()

NR = {"mount": 165, "execve": 59, "socket": 41, "openat": 257, "clone": 56, "setresuid": 117, "close": 3, "getpid": 39}


# /tmp of a process, for it alone. Of what was mounted before it had namespaces of its own it can take nothing away.
TAKE_MOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
root = os.open("/proc/%s/root" % sys.argv[1], os.O_RDONLY)
done = libc.setns(os.open("/proc/%s/ns/mnt" % sys.argv[1], os.O_RDONLY), 0) or os.fchdir(root) or libc.umount2(b"tmp", 2)
print(done, os.strerror(ctypes.get_errno()))
"""


class Escape(GvisorCase):
    def start(self, act="while :; do sleep 1; done"):
        """A sandbox whose guest runs, and a process of each of its parts."""
        proc, finish = self.start_session("sh", "-c", "echo up; " + act, options=("--platform", self.runs_on()))
        self.assertEqual(proc.stdout.readline(), b"up\n")
        parts = {part: pids[0] for part, pids in parts_below(proc.pid).items()}
        self.assertLessEqual({"gofer", "sentry"}, set(parts))
        return proc, finish, parts

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
        proc, finish, parts = self.start()
        done = self.until_dead(proc, lambda: part_of(parts[part]) == part and
                               cmd(helper("inject"), *options, str(parts[part]), str(NR[call]), *map(str, args)))
        return self.told(finish(), part, type, done)

    def told(self, s, part, type, done=""):
        """It was killed by a rule for an escape of this part; the first one's event."""
        self.assertEqual(s.code, 137, "%s\n%s" % (done, s))
        self.assertEqual(s.result["reason"], "rule", done)
        told = [e for e in s.kinds("escape") if e["escape"]["type"] == type]
        self.assertTrue(told, "%s\n%s" % (done, s.kinds("escape")))
        self.assertEqual(told[0]["vantage"], "kernel")
        self.assertEqual(told[0]["proc"]["part"], part)
        return told[0]

    def test_a_call_of_no_part(self):
        self.provoke("gofer", "mount", 0, 0, 0, 0, 0, type="runtime_call")

    def test_a_program(self):
        self.provoke("gofer", "execve", "/bin/sh", 0, 0, type="runtime_exec")

    def test_a_socket_of_the_host(self):
        self.provoke("sentry", "socket", 2, 1, 0, type="runtime_net")

    def test_a_path(self):
        e = self.provoke("gofer", "openat", -100, "/etc/passwd", 0x20000, type="runtime_path")
        self.assertEqual(e["escape"]["detail"], "/etc/passwd")

    def test_a_process(self):
        self.provoke("gofer", "clone", 17, 0, 0, 0, 0, type="runtime_clone")

    def test_another_control_group(self):
        """Where its limits and its kill switch no longer reach it."""
        proc, finish, parts = self.start()
        others = [os.path.join(v2_mount(), "warder-test-%d-%d" % (os.getpid(), i)) for i in range(2)]
        for path in others:
            os.mkdir(path)
            self.addCleanup(remove_cgroup, path)

        def move():
            others.reverse()
            with contextlib.suppress(ProcessLookupError), open(others[0] + "/cgroup.procs", "w") as f:
                f.write(str(parts["gofer"]))
        self.until_dead(proc, move)
        self.told(finish(), "gofer", "cgroup_leave")

    def test_a_file_of_no_mount(self):
        """A mount is taken away under it: what it opens there then lies in none that was declared."""
        proc, finish, parts = self.start("while :; do n=$((n + 1)); : >/tmp/$n; done")
        done = self.until_dead(proc, lambda: cmd(sys.executable, "-c", TAKE_MOUNT, str(parts["gofer"])))
        self.told(finish(), "gofer", "runtime_file", done)

    def test_the_filter_of_a_part(self):
        """With its filter in force it is ended by that."""
        self.provoke("gofer", "socket", 2, 1, 0, type="seccomp_violation", options=("-q",))

    def test_a_sentry_that_falls_silent(self):
        """It closes the connection by which it tells what the guest does, and runs on."""
        proc, finish, parts = self.start()
        # that one alone: without its others it ends by itself
        self.assertEqual(inject(parts["sentry"], NR["close"], sink_of(parts["sentry"])), 0)
        s = finish()
        self.assertEqual(s.code, 137, s)
        told = s.kinds("escape", escape__type="guest_divergence")
        self.assertTrue(told, s.kinds("escape"))
        # on ptrace the next call of the guest shows to the host, and is not told
        says = ("runs on",) if self.platform == "systrap" else ("runs on", "did not tell")
        self.assertTrue(any(x in told[0]["escape"]["detail"] for x in says), told)

    def test_what_is_its_own_work(self):
        """The harmless twin: the same means, and a call that is no sign of anything."""
        proc, finish = self.start_session("sh", "-c", "echo up; read x; exit 4", options=("--platform", self.runs_on()),
                                          stdin=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"up\n")
        parts = parts_below(proc.pid)
        for part in ("gofer", "sentry"):
            pid, = parts[part]
            self.assertGreater(inject(pid, NR["getpid"]), 0)
        s = finish(b"\n")
        self.assertEqual(s.code, 4, s)
        self.assertEqual(s.kinds("escape"), [])
        self.assertEqual({e["proc"]["part"] for e in s.kinds("exit") if e["vantage"] == "kernel"}, {"gofer", "sentry"})


load_tests = each_runsc(every=(Escape,))

if __name__ == "__main__":
    unittest.main()
