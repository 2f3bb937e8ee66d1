# SPDX-License-Identifier: Apache-2.0
"""Keepers that an agent makes ahead: each keeps one sandbox, and none outlives its use or its agent."""

import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase
from warder import *

need_root()


class Parked(AgentCase):
    def keepers(self):
        """Those that were parked before have no session on their command line."""
        found = super().keepers()
        for pid, _ in self.ours("park"):
            found.setdefault("parked", []).append(pid)
        return found

    def parked(self):
        """Process ids of those that wait."""
        try:
            return sorted(int(n) for n in os.listdir(os.path.join(self.env["WARDER_RUN"], "parked")) if n.isdigit())
        except FileNotFoundError:
            return []

    def one(self, other_than=None):
        return wait_for("a parked one", lambda: [p for p in self.parked() if p != other_than] or None, 120)[0]

    def keeper_of(self, session):
        return json.loads([line for line in self.warder("ps", "--json").out.splitlines()
                           if session.encode() in line][0])["run"]["pid"]

    def test_each_keeps_one(self):
        self.start("parked: 1\n")
        first = self.one()
        box = self.create("--name", "box")
        self.assertEqual(self.keeper_of(box), first)
        second = self.one(first)  # made anew
        done = self.warder("run", "--quiet", "--", "sh", "-c", "cat; pwd; exit 3", input=b"in ")
        self.assertEqual((done.code, done.out), (3, b"in /workspace\n"))
        wait_for("its end", lambda: not is_alive(second))
        self.assertTrue(is_alive(first))
        self.assertEqual(self.warder("exec", "box", "echo", "x").out, b"x\n")
        self.assertCode(self.warder("rm", "box"), 0)
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)
        events = self.events(box)
        self.assertContiguous(events)
        self.assertIn(["echo", "x"], [e["proc"]["args"] for e in events if e["kind"] == "exec" and e["outcome"] == "success"])
        self.assertFalse([e for e in events if e["kind"] == "gap" or e.get("degraded")])
        self.assertFalse(is_alive(first))

    def test_rules_kill_as_before(self):
        self.start("parked: 1\n")
        first = self.one()
        box = self.create("--name", "box")
        self.assertEqual(self.keeper_of(box), first)
        self.assertCode(self.warder("exec", "box", "unshare", "-m", "true"), 137)
        self.wait_sealed(box)
        self.assertEqual([e["run"]["reason"] for e in self.events(box) if e["kind"] == "session.stop"], ["rule"])

    def test_other_probes_are_loaded_anew(self):
        self.start("parked: 1\n")
        first = self.one()
        box = self.create("--name", "box", "--watch", "/etc/passwd")
        self.assertEqual(self.keeper_of(box), first)
        self.assertCode(self.warder("exec", "box", "cat", "/etc/passwd"), 0)
        self.assertCode(self.warder("rm", "box"), 0)
        self.wait_sealed(box)
        self.assertTrue([e for e in self.events(box) if e["kind"] == "file.open" and e["file"]["path"] == "/etc/passwd"])

    def test_they_end_with_the_agent(self):
        self.start("parked: 2\n")
        wait_for("both", lambda: len(self.parked()) == 2, 120)
        waiting = self.parked()
        self.end_agent(signal.SIGKILL)
        wait_for("their end", lambda: not any(map(is_alive, waiting)))
        self.assertEqual(self.parked(), [])
        self.start("parked: 1\n")
        taken = self.one()
        box = self.create("--name", "box")
        self.end_agent()  # those that are in use go on
        self.assertTrue(is_alive(taken))
        self.start("parked: 0\n")
        self.assertEqual([r["session"] for r in self.ps()], [box])
        self.assertEqual(self.parked(), [])

    def test_one_that_died_is_replaced(self):
        self.start("parked: 1\n")
        first = self.one()
        os.kill(first, signal.SIGKILL)
        self.assertEqual(self.warder("run", "--quiet", "--", "echo", "x").out, b"x\n")  # its socket is dead
        second = self.one(first)
        self.agent.send_signal(signal.SIGHUP)
        wait_for("a new one", lambda: not is_alive(second) and self.one(second), 120)


if __name__ == "__main__":
    unittest.main()
