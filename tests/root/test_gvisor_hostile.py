# SPDX-License-Identifier: Apache-2.0
"""A sentry in the hands of its guest, as far as it speaks with us of what the guest does (tests/helpers/fake_runsc.c
connects to the sink and lies): counted, bounded, told, and others of the agent go on. What it answers when it is asked
is in test_gvisor.py (Hostile)."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_agent
from warder import *

need_root()

STRANGERS_MAX = 64  # runtime/gvisor/sink.h


class Fake:
    def use_fake(self):
        path = self.path("runsc")
        shutil.copy(helper("fake_runsc"), path)
        os.chmod(path, 0o755)
        self.env["WARDER_RUNSC"] = path


class Sink(TestCase, Fake):
    def setUp(self):
        super().setUp()
        self.use_fake()

    def fake(self, mode):
        return self.session(mode, options=["--backend", "gvisor", "--no-default-rules"])

    def escapes(self, s):
        return [(e["escape"]["type"], e["escape"]["detail"]) for e in s.kinds("escape")]

    def runs(self, s):
        """It came to its end as it said; the record is whole, and of this session alone."""
        self.assertEqual((s.code, s.result["reason"]), (7, "exit"), s)
        self.assertEqual({e["session"] for e in s.events}, {s.result["session"]})
        self.assertContiguous(s.events)

    def test_the_fake_itself(self):
        s = self.fake("good")
        self.runs(s)
        self.assertEqual((self.escapes(s), s.kinds("gap")), ([], []))
        self.assertEqual([e["exit"]["code"] for e in s.kinds("exit", vantage="guest")], [7])

    def test_no_handshake_and_another_version(self):
        for mode in ("nohello", "badhello"):
            with self.subTest(mode=mode):
                s = self.fake(mode)
                self.assertEqual((s.code, s.result["reason"]), (125, "internal"), s)
                self.assertIn(("setup", "the sentry's connection was not what it should be"), self.escapes(s))

    def test_closing_early(self):
        """Before it has told of the start: however short the guest is, it did not run unseen."""
        s = self.fake("early")
        self.assertEqual((s.code, s.result["reason"]), (125, "internal"), s)
        self.assertRegex(s.err, b"t(old|ells) nothing of its guest")

    def test_a_thousand_connections(self):
        s = self.fake("crowd")
        self.runs(s)
        self.assertEqual(set(self.escapes(s)), {("setup", "somebody else connected as this sandbox's sentry")})
        self.assertLessEqual(len(self.escapes(s)), STRANGERS_MAX)
        self.assertEqual([e["exit"]["code"] for e in s.kinds("exit", vantage="guest")], [7])

    def test_wrong_lengths_and_deep_nesting(self):
        for mode, bad in (("lengths", 4), ("nested", 2)):
            with self.subTest(mode=mode):
                s = self.fake(mode)
                self.runs(s)
                self.assertEqual(self.escapes(s), [("guest_divergence", "the sentry sent a message that is none")])
                self.assertEqual(sum(e["gap"]["count"] for e in s.kinds("gap")), bad)
                self.assertEqual({e["gap"]["reason"] for e in s.kinds("gap")}, {"guest"})

    def test_of_another_container(self):
        """Whose events these are is known by the connection, whatever they claim."""
        s = self.fake("stranger")
        self.runs(s)
        self.assertEqual([e["proc"]["args"] for e in s.kinds("exec", vantage="guest")], [["good"], ["sh"]])

    def test_a_flood(self):
        s = self.fake("swamp")
        self.runs(s)
        lost = sum(e["gap"]["count"] for e in s.kinds("gap"))
        self.assertEqual(len(s.kinds("exec", vantage="guest")) + lost, 20001)

    def test_default_rules_kill(self):
        """What such a sentry does is an attempt like any other."""
        s = self.session("lengths", options=["--backend", "gvisor"])
        self.assertIn("Guest and host disagree", [e["rule"]["name"] for e in s.kinds("rule.alert")])


class Beside(test_agent.AgentCase, Fake):
    def test_the_agents_others_go_on(self):
        self.use_fake()
        self.start()
        self.create("--name", "box", "--", "sh", "-c", "while :; do sleep 1; done")
        for mode in ("nested", "swamp"):
            # Without rules: it comes to the end that the fake tells, whatever it lied about.
            self.assertCode(self.warder("run", "--quiet", "--no-default-rules", "--backend", "gvisor", "--", mode), 7)
            done = self.warder("exec", "box", "--", "echo", mode)
            self.assertEqual((done.code, done.out), (0, mode.encode() + b"\n"))
        self.assertEqual([r["name"] for r in self.ps()], ["box"])
        self.assertCode(self.warder("kill", "box"), 0)


if __name__ == "__main__":
    unittest.main()
