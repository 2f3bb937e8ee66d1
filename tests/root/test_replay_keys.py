# SPDX-License-Identifier: Apache-2.0
"""`warder replay` at a terminal: driven by keys at a real pty, its screen read by another terminal emulator."""

import os
import re
import signal
import subprocess
import unittest

from terminal import Screen, Terminal
from warder import *

# Each step waits for a key, which comes when what it showed was seen: so it has a record and a time of its own.
SCRIPT = r"""
stty -echo
printf '\033[1;31mfirst words\033[0m\n'; read x; sleep 0.3
printf '\033]0;owned\007\033[6n'; unshare -m true; echo one; read x; sleep 0.3
printf '\033[2J\033[Hthe second screen\n'; read x; sleep 0.3
i=0; while [ $i -lt 40 ]; do echo "line number $i"; i=$((i + 1)); done; read x; sleep 0.3
unshare -m true; echo two; read x; echo last words
"""
SEEN = ("first words", "one\r\n", "second screen", "number 39", "two\r\n")
# The escapes are told, and nothing is killed.
RULES = ("- rule: Namespace tried\n  desc: d\n  output: o\n  priority: ALERT\n"
         "  condition: kind = escape and escape.type = unshare\n  action: alert\n")


class Keys(TestCase):
    def setUp(self):
        super().setUp()
        rules = self.path("r.yaml", RULES)
        # by the environment, whose values are not in the record: what is found was on the screen
        folder, argv = self.session_argv(["sh", "-c", 'eval "$SCRIPT"'], [
            "--tty", "--no-default-rules", "--rules", rules, "--env", "SCRIPT=" + SCRIPT])
        with Terminal(argv, 12, 60, self.env) as t:
            for text in SEEN:
                t.expect(text)
                t.type("\r")
            self.assertEqual(t.end(), 0, t.out)
        self.bundle = os.path.join(folder, "session")

    def play(self, *options, rows=24, cols=80, bundle=None):
        t = Terminal([WARDER, "replay", *options, bundle or self.bundle], rows, cols, {**self.env, "TERM": "xterm"})
        self.addCleanup(t.__exit__)
        return t, Screen(t, rows, cols)

    @staticmethod
    def at_end(rows):
        m = re.match(r"PAUSE .* (\S+) / (\S+) ", rows[-1])
        return m and m.group(1) == m.group(2)

    def ended(self, screen):
        """Played to the end, and standing there."""
        screen.until(self.at_end)

    def leave(self, t, code=0):
        t.type("q")
        self.assertEqual(t.end(), code)
        self.assertEqual(t.modes, t.before)
        self.assertTrue(t.out.endswith(b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"))
        # nothing of the session's own but text and colours
        self.assertNotIn(b"owned", t.out)
        self.assertNotIn(b"[6n", t.out)

    def test_screen_and_events_side_by_side(self):
        t, screen = self.play("--speed", "8")
        self.ended(screen)
        self.assertEqual(screen.rows[10], "last words")
        self.assertEqual(screen.rows[7], "line number 39")
        self.assertIn("!", screen.rows[14])
        self.assertTrue(any("rule.alert" in row for row in screen.rows[15:23]), screen.rows)
        self.assertIn("2 alerts", screen.rows[-1])
        self.assertIn("60x12", screen.rows[-1])
        self.leave(t)

    def test_there_and_back(self):
        t, screen = self.play("--speed", "20")
        self.ended(screen)
        t.type("\x1b[H")
        screen.until(lambda rows: rows[-1].startswith("PAUSE") and "0:00.000 /" in rows[-1])
        t.type(" ")
        self.ended(screen)
        t.type("g0:00.001\r")
        screen.until(lambda rows: "0:00.001 /" in rows[-1])
        self.assertIn("PAUSE", screen.rows[-1])
        t.type("/SECOND SCREEN\r")
        screen.until(lambda rows: rows[0] == "the second screen")
        self.assertNotIn("line number 1", screen.rows)
        at = screen.rows[-1]
        t.type("n")
        screen.until(lambda rows: rows[-1] != at and any("rule.alert" in r for r in rows[15:23]))
        self.assertIn("line number 39", screen.rows)
        t.type("N")
        screen.until(lambda rows: rows[0] == "first words")
        t.type("N")
        screen.until(lambda rows: "not found" in rows[-1])
        t.type("\x1b[F")
        screen.until(lambda rows: rows[10] == "last words")
        t.type("g50%\r")
        screen.until(lambda rows: not self.at_end(rows))
        t.type("/no such words\r")
        screen.until(lambda rows: "not found" in rows[-1])
        t.type("gnonsense\r")
        screen.until(lambda rows: "no time" in rows[-1])
        t.type("g9999\rr")
        screen.until(lambda rows: rows[10] == "last words")
        self.leave(t)

    def test_pause_speed_help(self):
        t, screen = self.play()
        t.type(" ")
        screen.until(lambda rows: "PAUSE 1 x" in rows[-1])
        t.type("++")
        screen.until(lambda rows: "PAUSE 4 x" in rows[-1])
        t.type("-")
        screen.until(lambda rows: "PAUSE 2 x" in rows[-1])
        t.type("?")
        screen.until(lambda rows: any("previous alert" in r for r in rows))
        t.type("x")
        screen.until(lambda rows: not any("previous alert" in r for r in rows))
        before = screen.rows[-1]
        t.type("." * 20)
        screen.until(lambda rows: rows[-1] != before)
        t.type("/abc\x1b")
        screen.until(lambda rows: "PAUSE" in rows[-1])
        self.leave(t)

    def test_another_size(self):
        t, screen = self.play("--speed", "20")
        self.ended(screen)
        screen.resize(40, 100)
        screen.until(lambda rows: "PAUSE" in rows[-1] and rows[10] == "last words" and "|" in rows[25])
        for rows, cols in ((2, 5), (1, 1), (600, 600), (24, 80)):
            screen.resize(rows, cols)
        screen.until(lambda rows: "PAUSE" in rows[-1] and rows[10] == "last words")
        self.leave(t)

    def test_with_the_rights_of_the_record(self):
        t, screen = self.play()
        screen.until(lambda rows: "/ 0:0" in rows[-1])
        with open("/proc/%d/status" % t.pid) as f:
            status = f.read()
        owner = os.stat(self.bundle).st_uid
        self.assertNotEqual(owner, 0)
        self.assertIn("Uid:\t%d\t%d\t%d\t%d" % ((owner,) * 4), status)
        self.assertIn("CapEff:\t0000000000000000", status)
        self.leave(t)

    def test_the_terminal_is_given_back(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            t, screen = self.play()
            screen.until(lambda rows: "/ 0:0" in rows[-1])
            os.kill(t.pid, sig)
            self.assertEqual(t.end(), 128 + sig)
            self.assertEqual(t.modes, t.before)
            self.assertTrue(t.out.endswith(b"\x1b[?25h\x1b[?1049l"))
        t, screen = self.play()
        screen.until(lambda rows: "/ 0:0" in rows[-1])
        t.type("\x03")
        self.assertEqual(t.end(), 0)
        self.assertEqual(t.modes, t.before)

    def test_only_what_was_asked_for(self):
        t, screen = self.play("--alerts", "--speed", "20")
        self.ended(screen)
        events = [r for r in screen.rows[15:23] if r]
        self.assertTrue(any("rule.alert" in r for r in events), screen.rows)
        self.assertFalse(any("exec" in r for r in events), screen.rows)
        self.leave(t)
        t, screen = self.play("--filter", "kind = exec and proc.name = unshare", "--speed", "20")
        self.ended(screen)
        self.assertEqual(len([r for r in screen.rows[15:23] if "exec unshare" in r]), 2)
        self.assertEqual(len([r for r in screen.rows[15:23] if r]), 2)
        self.leave(t)
        t, screen = self.play("--to", "1ms", "--speed", "20")
        self.ended(screen)
        self.assertIn("/ 0:00.001", screen.rows[-1])
        self.leave(t)

    def test_lines_for_who_has_no_keys(self):
        for kw in ({"stdin": subprocess.DEVNULL}, {"input": b""}):
            done = subprocess.run([WARDER, "replay", self.bundle], stdout=subprocess.PIPE, env=self.env,
                                  check=True, **kw)
            self.assertIn(b"exec unshare", done.stdout)
            self.assertNotIn(b"\x1b", done.stdout)
        with Terminal([WARDER, "replay", "--events", self.bundle], env={**self.env, "TERM": "xterm"}) as t:
            self.assertEqual(t.end(), 0)
            self.assertIn(b"exec unshare", t.out)
            self.assertNotIn(b"\x1b[?1049h", t.out)
        with Terminal([WARDER, "replay", "--speed", "100", self.bundle], env={**self.env, "TERM": "dumb"}) as t:
            self.assertEqual(t.end(), 0)
            self.assertNotIn(b"\x1b[?1049h", t.out)

    def test_a_record_without_output(self):
        s = self.session("true", options=["--record", "none"])
        self.assertCode(s, 0)
        t, screen = self.play("--speed", "20", bundle=s.dir)
        self.ended(screen)
        self.assertTrue(any("exec true" in r for r in screen.rows), screen.rows)
        self.leave(t)

    def test_a_damaged_record(self):
        """Told in the last line; no crash, and the terminal is given back."""
        for name in ("events.0001.seg", "tty.0001.seg"):
            path = os.path.join(self.bundle, name)
            with open(path, "r+b") as f:
                f.seek(0, 2)
                at = f.tell() // 2
                f.seek(at)
                byte = f.read(1)
                f.seek(at)
                f.write(bytes([byte[0] ^ 1]))
            t, screen = self.play("--speed", "20")
            screen.until(lambda rows: name in rows[-1] or name.encode() in t.out)
            if t.out.startswith(b"\x1b[?1049h"):
                t.type("q")
            self.assertIn(t.end(), (0, 125))
            self.assertEqual(t.modes, t.before)
            with open(path, "r+b") as f:
                f.seek(at)
                f.write(byte)


if __name__ == "__main__":
    unittest.main()
