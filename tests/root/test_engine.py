# SPDX-License-Identifier: Apache-2.0
"""The two processes behind a session: what the engine may not do, and what happens when one of them dies."""

import os
import signal
import subprocess
import time
import unittest

from warder import *


def status(pid):
    with open("/proc/%d/status" % pid) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


class Engine(TestCase):
    def setUp(self):
        super().setUp()
        need_root()

    def running(self, seconds):
        proc, finish = self.start_session("sh", "-c", "echo ready; exec sleep " + seconds)
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        return proc, finish, engine_of(proc.pid)

    def until_read(self):
        """The same, but its command ends when it is given a line."""
        proc, finish = self.start_session("sh", "-c", "echo ready; read line", stdin=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        return finish, engine_of(proc.pid)

    def test_it_has_no_privilege(self):
        finish, engine = self.until_read()
        st = status(engine)
        self.assertEqual(len(set(st["Uid"].split())), 1)
        self.assertNotIn("0", st["Uid"].split())
        self.assertNotIn("0", st["Gid"].split())
        self.assertEqual(st["Groups"].strip(), "")
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(st[name], 16), 0, name)
        self.assertEqual(st["NoNewPrivs"], "1")
        self.assertCode(finish(b"\n"), 0)

    def test_it_holds_only_what_it_works_with(self):
        finish, engine = self.until_read()
        links = [os.readlink("/proc/%d/fd/%s" % (engine, fd)) for fd in os.listdir("/proc/%d/fd" % engine)]
        for link in links:
            for never in ("bpf-map", "bpf-prog", "bpf_link", "memfd:", "pidfd"):
                self.assertNotIn(never, link, links)
        self.assertTrue(any(link.endswith("cgroup.kill") for link in links), links)
        self.assertCode(finish(b"\n"), 0)

    def test_without_engine_nothing_goes_on(self):
        """What cannot be recorded or stopped any more is stopped."""
        proc, finish, engine = self.running("300.75")
        os.kill(engine, signal.SIGKILL)
        s = finish()
        self.assertCode(s, 125)
        self.assertIn(b"engine died", s.err)
        self.assertFalse(has_argument(b"300.75"))
        self.assertEqual(s.result["reason"], "internal")
        # what was committed before is there, and it is not called complete
        self.assertEqual(s.verify().code, 2)
        self.assertEqual(s.events[0]["kind"], "session.start")

    def test_without_both_whoever_follows_is_told(self):
        proc, finish, engine = self.running("300.77")
        follow = subprocess.Popen([WARDER, "events", "--follow", self.path("s1/session")], env=self.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self._end, follow)
        self.assertIn(b'"kind":"session.start"', follow.stdout.readline())
        os.kill(engine, signal.SIGSTOP)  # it does not live to seal
        proc.kill()
        os.kill(engine, signal.SIGKILL)
        finish()
        out, err = follow.communicate(timeout=TIMEOUT)
        self.assertEqual(follow.returncode, 125)
        self.assertRegex(err, rb"its writer has gone and left no seal; what is there ends at record \d+\n")
        wait_for("the sandbox to end", lambda: not has_argument(b"300.77"))
        self.assertCode(self.session("true"), 0)

    def test_without_root_part_the_record_is_closed(self):
        proc, finish, engine = self.running("300.76")
        proc.kill()
        s = finish()
        wait_for("the engine to end", lambda: not is_alive(engine))
        wait_for("the sandbox to end", lambda: not has_argument(b"300.76"))
        self.assertEqual(s.verify().code, 0)
        self.assertEqual(s.events[-1]["kind"], "session.stop")
        self.assertEqual(s.events[-1]["run"]["reason"], "internal")
        self.assertEqual(len(s.kinds("audit.stop")), 1)
        self.assertCode(self.session("true"), 0)  # the next one sweeps the dead one's control groups

    def test_an_idle_session_costs_nothing(self):
        """No ticking: a sandbox that sleeps leaves the engine asleep, too."""
        proc, finish, engine = self.running("3")
        time.sleep(1)

        def ticks():
            st = status(engine)
            return int(st["voluntary_ctxt_switches"]) + int(st["nonvoluntary_ctxt_switches"])
        before = ticks()
        time.sleep(1.5)
        self.assertLess(ticks() - before, 5)
        self.assertCode(finish(), 0)


if __name__ == "__main__":
    unittest.main()
