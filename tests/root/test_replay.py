# SPDX-License-Identifier: Apache-2.0
"""A session shown to a person, and judged again."""

import json
import os
import pty
import subprocess
import time
import unittest

from warder import *

RULE = """
- rule: %s
  desc: d
  condition: %s
  output: o
  priority: NOTICE
"""


class Timeline(TestCase):
    def replay(self, s, *options):
        done = self.warder("replay", *options, s.dir)
        self.assertCode(done, 0)
        return done.out

    def test_a_line_an_event(self):
        s = self.session("sh", "-c", "echo hi > a; mv a b; rm b; true")
        self.assertCode(s, 0)
        lines = self.replay(s).decode().splitlines()
        self.assertEqual(len(lines), len(s.events))
        for text in ("session.start sh -c", "exec mv a b exe /usr/bin/mv", "file.rename /workspace/a to /workspace/b",
                     "file.delete /workspace/b", "session.stop exit code 0"):
            self.assertEqual(sum(text in line for line in lines), 1, text)
        times = [float(line.split()[0]) for line in lines]
        self.assertEqual(times[0], 0)
        # the child stands further in than its parent
        mv = [line for line in lines if "exec mv" in line][0]
        sh = [line for line in lines if "exec sh" in line][0]
        self.assertGreater(mv.index("mv"), sh.index("sh"))

    def test_filter_range_and_alerts(self):
        s = self.session("sh", "-c", "unshare -m true; true")
        self.assertCode(s, 137)
        out = self.replay(s, "--filter", "kind = exec").decode().splitlines()
        self.assertEqual(len(out), len(s.kinds("exec")))
        out = self.replay(s, "--alerts").decode()
        for kind in ("session.start", "escape unshare", "rule.alert critical", "action kill sandbox", "session.stop"):
            self.assertIn(kind, out)
        self.assertNotIn("exec sh", out)
        self.assertNotIn("session.start", self.replay(s, "--from", "1ms").decode())
        self.assertNotIn("session.stop", self.replay(s, "--to", "1ms").decode())

    def test_hostile_names_do_not_reach_the_terminal(self):
        """Clear the screen, set the title, overwrite the line, turn the direction, a bare CSI."""
        evil = b"\x1b[2J\x1b]0;owned\x07\r\b\xe2\x80\xae\x9b31m\xc2\x9b"
        s = self.session("python3", "-c", "import sys; open(sys.argv[1].encode(errors='surrogateescape'), 'w')",
                         os.fsdecode(b"/workspace/" + evil))
        self.assertCode(s, 0)
        out = self.replay(s)
        self.assertIn(b"file.open /workspace/\\x1b[2J\\x1b]0;owned\\x07\\x0d\\x08\\u{202e}\\x9b31m", out)
        for byte in out:
            self.assertTrue(byte == 10 or 32 <= byte < 127, byte)

    def test_on_a_terminal_in_its_own_time(self):
        s = self.session("sh", "-c", "sleep 1; true")
        for speed, slowest in (("1", None), ("100", 1.0)):
            main, side = pty.openpty()
            begin = time.monotonic()
            proc = subprocess.Popen([WARDER, "replay", "--speed", speed, s.dir], stdout=side, env=self.env)
            os.close(side)
            out = b""
            try:
                while chunk := os.read(main, 65536):
                    out += chunk
            except OSError:  # the other end has closed
                pass
            self.assertEqual(proc.wait(), 0)
            os.close(main)
            self.assertIn(b"\x1b[1mexec sleep 1", out)
            if slowest is None:
                self.assertGreaterEqual(time.monotonic() - begin, 1.0)

    def test_bad_words(self):
        s = self.session("true")
        for options, word in ((["--speed", "0"], "--speed"), (["--filter", "no.such = 1"], "--filter"),
                              (["--from", "x"], "--from")):
            done = self.warder("replay", *options, s.dir)
            self.assertCode(done, 125)
            self.assertOneLine(done, word)


class Again(TestCase):
    """Judged by other rules than at the time."""

    def test_the_same_rules_say_the_same(self):
        s = self.session("sh", "-c", "unshare -m true; true")
        done = self.warder("replay", "--default-rules", s.dir)
        self.assertCode(done, 0)
        self.assertIn(b" 0 added, 0 gone", done.out)

    def test_difference(self):
        old = self.path("old.yaml", RULE % ("Old", "evt.type = execve and proc.name = true"))
        new = self.path("new.yaml", RULE % ("New", "kind = file.open and file.path endswith /a"))
        s = self.session("sh", "-c", "/bin/true; echo > a; /bin/true", options=["--rules", old, "--no-default-rules"])
        self.assertEqual(len(s.kinds("rule.alert")), 2)
        done = self.warder("replay", "--rules", new, "--json", s.dir)
        self.assertCode(done, 1)
        rows = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual([(r["change"], r["rule"], r["kind"]) for r in rows],
                         [("removed", "Old", "exec"), ("added", "New", "file.open"), ("removed", "Old", "exec")])
        opened = s.kinds("file.open", file__path="/workspace/a")[0]
        self.assertEqual(rows[1]["seq"], opened["seq"])
        done = self.warder("replay", "--rules", old, "--rules", new, s.dir)
        self.assertCode(done, 1)
        self.assertIn(b"2 alerts as recorded, 1 added, 0 gone", done.out)

    def test_rules_that_count(self):
        rule = self.path("c.yaml", RULE % ("Many", "kind = exec and proc.name = true") + "  count: 3\n  window: 60s\n")
        s = self.session("sh", "-c", "/bin/true; /bin/true; /bin/true; /bin/true",
                         options=["--rules", rule, "--no-default-rules"])
        done = self.warder("replay", "--rules", rule, s.dir)
        self.assertCode(done, 0)
        self.assertGreaterEqual(len(s.kinds("rule.alert")), 1)

    def test_what_was_redacted_is_told(self):
        rule = self.path("t.yaml", RULE % ("Token", "kind = exec and proc.args contains hunter2hunter2"))
        s = self.session("true", "--password", "hunter2hunter2", options=["--rules", rule, "--no-default-rules"])
        self.assertEqual(len(s.kinds("rule.alert")), 1)
        done = self.warder("replay", "--rules", rule, s.dir)
        self.assertCode(done, 1)
        self.assertIn(b"0 alerts as recorded, 0 added, 1 gone", done.out)
        self.assertIn(b"something was redacted", done.out)

    def test_broken_rules(self):
        s = self.session("true")
        done = self.warder("replay", "--rules", self.path("b.yaml", RULE % ("X", "no.such = 1")), s.dir)
        self.assertCode(done, 125)
        self.assertIn(b"b.yaml:4:", done.err)


if __name__ == "__main__":
    unittest.main()
