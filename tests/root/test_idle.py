# SPDX-License-Identifier: Apache-2.0
"""What the host pays while nothing happens, and who goes first when much does."""

import json
import os
import subprocess
import tempfile
import unittest

from probes import remove_cgroup, v2_mount
from warder import children, cmd, helper, need_root


def hooks_on_calls(pid):
    """Links of a process, and of its children, that each system call of the host runs through."""
    found = 0
    for p in [pid, *children(pid)]:
        for fd in os.listdir("/proc/%d/fdinfo" % p):
            with open("/proc/%d/fdinfo/%s" % (p, fd)) as f:
                found += "tp_name:\tsys_exit\n" in f.read()
    return found


class Watcher:
    def __init__(self, *argv):
        self.proc = subprocess.Popen([helper("watcher"), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        line = self.proc.stdout.readline()
        if line != "ready\n":
            raise AssertionError("watcher: %r" % line)
        return self.proc.pid

    def __exit__(self, *_):
        self.proc.communicate()


class Idle(unittest.TestCase):
    def setUp(self):
        need_root()
        self.cgroup = "%s/warder-idle-%d" % (v2_mount(), os.getpid())
        os.mkdir(self.cgroup)
        self.addCleanup(remove_cgroup, self.cgroup)

    def test_no_sandbox_no_hook_on_system_calls(self):
        with Watcher("--latency", "1") as pid:
            self.assertEqual(hooks_on_calls(pid), 0)

    def test_hook_while_a_sandbox_is_alive(self):
        families = subprocess.run([helper("probe_dump"), "--families"], stdout=subprocess.PIPE, text=True).stdout
        if "tp_btf/sys_exit" not in families:
            self.skipTest("the full tier has no hook that each system call runs through")
        with Watcher("--latency", "1", self.cgroup) as pid:
            self.assertEqual(hooks_on_calls(pid), 1)

    def test_what_wakes_the_reader(self):
        """While it looks every 2 ms: what must be acted on, and much; asleep: any record, and nothing else."""
        with tempfile.TemporaryDirectory() as tmp:
            done = cmd(helper("wakes"), cwd=tmp)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(json.loads(done.out), {
            "nap_open": False, "nap_escape": True, "nap_much": True, "nap_nothing": False, "deep_nothing": False,
            "deep_open": True, "deep_escape": True})


class Priority(unittest.TestCase):
    def test_engine_goes_before_the_sandbox(self):
        """Its draining and judging thread; the root part has nothing to hurry for."""
        need_root()
        with tempfile.TemporaryDirectory() as tmp:
            os.chmod(tmp, 0o755)
            os.mkdir(tmp + "/bundle")
            with Watcher(tmp + "/bundle") as pid:
                engine, = children(pid)
                self.assertLess(os.getpriority(os.PRIO_PROCESS, engine), os.getpriority(os.PRIO_PROCESS, pid))
