# SPDX-License-Identifier: Apache-2.0
"""Who knows what watches: tricks of a payload against the watcher that no other test has. Those that have one are in the
table "What proves the trust" of tests/README.md."""

import unittest

from warder import *

need_root()

# Files come and go without end, from as many processes as there are.
FLOOD = "for i in 1 2 3 4; do (while :; do : > /workspace/f$i; rm -f /workspace/f$i; done) & done; "
MARK_RULE = """- rule: Marked
  desc: d
  condition: kind = exec and proc.args contains evil-mark
  output: marked
  priority: CRITICAL
  action: kill
"""


class RedTeam(TestCase):
    def test_a_flood_hides_no_exec(self):
        s = self.session("sh", "-c", FLOOD + "sleep 1; /bin/echo evil-mark; sleep 1; kill $(jobs -p)")
        self.assertEqual(s.out, b"evil-mark\n", s)
        self.assertEqual(len(s.kinds("exec", proc__args=["/bin/echo", "evil-mark"])), 1)
        self.assertContiguous(s.events)
        self.assertEqual(s.verify().code, 3 if s.kinds("gap") else 0)

    def test_padding_before_what_matters(self):
        """The judged word stands behind 100,000 blanks, where a display or a fixed buffer would have ended."""
        s = self.session("sh", "-c", "/bin/true \"$(printf '%100000s')\" evil-mark; sleep 60; echo survived",
                         options=("--rules", self.path("r.yaml", MARK_RULE)))
        self.assertCode(s, 137)
        self.assertEqual((s.result["reason"], s.result["rule"]), ("rule", "Marked"))
        self.assertNotIn(b"survived", s.out)

    def test_nobody_outruns_the_kill(self):
        """Processes that only make others, while one breaks a rule: none of them is left, and the record is whole."""
        s = self.session("sh", "-c", "f() { while :; do (f) & : > /workspace/f$$; done; }; f & f & "
                                     "sleep 0.2; unshare -m true; sleep 60; echo survived", options=("--pids", "200"))
        self.assertCode(s, 137)
        self.assertEqual(s.result["reason"], "rule")
        self.assertNotIn(b"survived", s.out)
        self.assertContiguous(s.events)
        self.assertIn(s.verify().code, (0, 3))

    def test_its_times_are_the_kernels(self):
        """A file is dated back by decades and the clock cannot be set: the record's times go on."""
        s = self.session("sh", "-c", "touch -d 1980-01-01 /workspace/old; date -s 1980-01-01 >/dev/null 2>&1; "
                                     "touch /workspace/new")
        times = [e["time"] for e in s.kinds("exec", "file.open", "file.attr")]
        self.assertTrue(times)
        self.assertTrue(all(s.result["started"][:4] <= t[:4] <= s.result["ended"][:4] for t in times), times)
        paths = [field(e, "file.path") for e in s.kinds("file.open")]
        self.assertLess(paths.index("/workspace/old"), paths.index("/workspace/new"))


if __name__ == "__main__":
    unittest.main()
