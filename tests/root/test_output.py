# SPDX-License-Identifier: Apache-2.0
"""What a session wrote: counted, passed on, kept in the record, and shown again without harm."""

import hashlib
import json
import os
import subprocess
import sys
import unittest

from warder import *

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "store"))

import verify as independent  # noqa: E402  (needs the path above)

HOSTILE = r"printf 'a\033]52;c;cm0gLXJm\007b\033[31mred\033[6nc\033P+q\033\\d\033[?2004he\n'"


class Recorded(TestCase):
    def export(self, s, form, *options):
        done = self.warder("export", "--format", form, *options, s.dir)
        self.assertCode(done, 0)
        return done.out

    def test_counted_passed_on_and_kept(self):
        s = self.session("sh", "-c", "echo out; echo err >&2; head -c 300000 /dev/zero | tr '\\0' x; exit 3")
        self.assertCode(s, 3)
        self.assertEqual(s.out, b"out\n" + b"x" * 300000)
        self.assertIn(b"err\n", s.err)
        self.assertEqual((s.result["stdout_bytes"], s.result["stderr_bytes"]), (300004, 4))
        self.assertFalse(s.result["truncated"])
        text = self.export(s, "text")
        self.assertEqual(len(text), 300008)
        self.assertIn(b"err\n", text)
        self.assertEqual(text.count(b"x"), 300000)

    def test_bound_and_tampered(self):
        s = self.session("sh", "-c", "echo one; sleep 0.5; echo two")
        self.assertCode(s, 0)
        marks = [e["terminal"] for e in s.kinds("terminal")]
        self.assertGreaterEqual(len(marks), 2)
        self.assertEqual([m["first"] for m in marks], [1] + [m["last"] + 1 for m in marks[:-1]])
        self.assertEqual(sum(m["bytes"] for m in marks), 8)
        with open(os.path.join(s.dir, "manifest.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["terminal"]["records"], marks[-1]["last"])
        self.assertEqual(independent.verify(s.dir)["state"], 0)
        self.assertCode(self.warder("verify", s.dir), 0)
        path = os.path.join(s.dir, "tty.0001.seg")
        with open(path, "rb") as f:
            good = f.read()
        for bad in (good[:-1], good[:400] + bytes([good[400] ^ 1]) + good[401:], b""):
            with open(path, "wb") as f:
                f.write(bad)
            self.assertCode(self.warder("verify", s.dir), 1)
            self.assertEqual(independent.verify(s.dir)["state"], 1)
        os.unlink(path)
        self.assertCode(self.warder("verify", s.dir), 1)

    def test_the_first_and_the_last_half(self):
        s = self.session("sh", "-c", "seq 1 100000", options=["--output-limit", "20000"])
        self.assertCode(s, 0)
        whole = "".join("%d\n" % n for n in range(1, 100001)).encode()
        self.assertEqual(hashlib.sha256(s.out).digest(), hashlib.sha256(whole).digest())
        self.assertEqual(s.result["stdout_bytes"], len(whole))
        text = self.export(s, "text")
        self.assertTrue(text.startswith(whole[:10000]))
        self.assertLess(len(text), 21000)
        self.assertRegex(text[10000:10100], rb"\n\[\d+ bytes not recorded\]\n")
        self.assertCode(self.warder("verify", s.dir), 0)

    def test_not_recorded_still_counted(self):
        s = self.session("sh", "-c", "echo hello", options=["--record", "none"])
        self.assertCode(s, 0)
        self.assertEqual((s.out, s.result["stdout_bytes"]), (b"hello\n", 6))
        self.assertFalse(os.path.exists(os.path.join(s.dir, "tty.0001.seg")))
        self.assertEqual(self.export(s, "text"), b"")

    def test_a_kill_keeps_what_was_said(self):
        s = self.session("sh", "-c", "echo before; unshare -m true; echo after")
        self.assertCode(s, 137)
        self.assertTrue(self.export(s, "text").startswith(b"before\n"))
        marks = [json.loads(line) for line in self.export(s, "cast").splitlines()[1:]]
        self.assertTrue([m for m in marks if m[1] == "m"])

    def test_hostile_output_is_harmless_again(self):
        s = self.session("sh", "-c", HOSTILE)
        self.assertCode(s, 0)
        self.assertIn(b"\x1b]52", s.out)  # passed on as it came
        shown = self.warder("replay", "--tty", s.dir)
        self.assertCode(shown, 0)
        self.assertEqual(shown.out, b"ab\x1b[31mredcde\n\x1b[0m")
        self.assertEqual(self.export(s, "text"), b"abredcde\n")
        for form in ("cast", "cast3"):
            out = self.export(s, form)
            self.assertNotIn(b"]52", out)
            self.assertNotIn(b"[6n", out)

    def test_asciicast(self):
        """Against the documents of both versions: header, times, codes."""
        s = self.session("sh", "-c", "printf 'a\\377b\\n'; sleep 0.2; echo two; exit 4")
        self.assertCode(s, 4)
        v2 = [json.loads(line) for line in self.export(s, "cast").decode("utf-8").splitlines()]
        v3 = [json.loads(line) for line in self.export(s, "cast3").decode("utf-8").splitlines()]
        self.assertEqual((v2[0]["version"], v2[0]["width"], v2[0]["height"]), (2, 80, 24))
        self.assertEqual((v3[0]["version"], v3[0]["term"]), (3, {"cols": 80, "rows": 24}))
        self.assertGreater(v2[0]["timestamp"], 1700000000)
        for rows in (v2, v3):
            for t, code, data in rows[1:]:
                self.assertIsInstance(t, float)
                self.assertGreaterEqual(t, 0)
                self.assertIn(code, "oimrx")
                self.assertIsInstance(data, str)
            self.assertEqual("".join(d for _, c, d in rows[1:] if c == "o"), "a\ufffdb\r\ntwo\r\n")
        times = [row[0] for row in v2[1:]]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[-1] - times[0], 0.19)
        self.assertAlmostEqual(sum(row[0] for row in v3[1:]), times[-1], places=3)
        self.assertEqual(v3[-1][1:], ["x", "4"])
        self.assertNotIn("x", [row[1] for row in v2[1:]])


class Usage(TestCase):
    def test_wrong_words(self):
        for args in (("run", "--record", "everything", "--", "true"), ("run", "--output-limit", "2G", "--", "true"),
                     ("replay", "--tty", "--alerts", "x"), ("export", "--format", "cast4", "x")):
            self.assertCode(self.warder(*args), 125)


if __name__ == "__main__":
    unittest.main()
