# SPDX-License-Identifier: Apache-2.0
"""A session that was approved is the measure of the next one."""

import os
import unittest

from warder import *


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Baseline(TestCase):
    def test_only_what_is_new_alerts(self):
        usual = "cat /etc/hostname > seen; ls > list; true"
        s = self.session("sh", "-c", usual)
        self.assertCode(s, 0)
        self.assertFalse([e for e in s.events if "baseline" in e])
        file = self.path("usual.baseline")
        done = self.warder("rules", "baseline", "-o", file, s.dir)
        self.assertCode(done, 0)
        with open(file) as f:
            text = f.read()
        self.assertIn("exec\t/usr/bin/cat\n", text)
        self.assertRegex(text, r"open\t/usr/bin/\w+\t/workspace/seen\n")
        again = self.session("sh", "-c", usual, options=["--baseline", file])
        self.assertCode(again, 0)
        self.assertEqual([a for a in again.kinds("rule.alert")], [])
        self.assertEqual({e["baseline"]["new"] for e in again.kinds("exec", "file.open") if "baseline" in e}, {False})
        other = self.session("sh", "-c", usual + "; id > /tmp/x", options=["--baseline", file])
        self.assertEqual([(field(a, "rule.trigger_kind"), field(a, "file.path") or field(a, "proc.exe"))
                          for a in other.kinds("rule.alert")],
                         [("file.open", "/tmp/x"), ("exec", "/usr/bin/id")])

    def test_a_broken_file_is_refused_before_anything_runs(self):
        bad = self.path("bad.baseline", "exec\t/bin/x\nrun\t/bin/y\n")
        done = self.warder("run", "--baseline", bad, "--", "echo", "ran")
        self.assertCode(done, 125)
        self.assertOneLine(done, "bad.baseline:2:1: ")
        self.assertOneLine(self.warder("rules", "baseline"), "which sessions?")
