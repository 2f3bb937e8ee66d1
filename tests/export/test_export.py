# SPDX-License-Identifier: Apache-2.0
"""`warder export` of a session that has ended: what its exit code and its words say, what is kept, and for how long."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from feed import Journal, read_json_lines  # noqa: E402
from test_http import Server  # noqa: E402
from warder import TestCase, helper  # noqa: E402

SESSION = "01JFTESTEXPRT0000000000001"


class Case(TestCase):
    def setUp(self):
        super().setUp()
        self.bad = set()
        self.answer = (400, {}, "bad \u009b31m\u202erecord\x1b[0m")

    def bundle(self, n, session=SESSION, **options):
        journal = Journal(self.path("lines"), session)
        journal.add(n)
        folder = self.path("bundle-" + session)
        os.mkdir(folder)
        subprocess.run([helper("bundle"), "make", folder, "session=" + session, "lines=" + journal.path,
                        *("%s=%s" % kv for kv in options.items())], check=True)
        return folder, journal.ids

    def hook(self):
        got = []

        def answer(request):
            ids = [r["id"] for r in json.loads(request.body)]
            if self.bad & set(ids):
                return self.answer
            got.extend(ids)
            return 204, {}, ""

        server = Server(answer)
        self.addCleanup(server.close)
        return "webhook:http://127.0.0.1:%d,name=hook" % server.port, got

    def dead_letters(self, sink="hook", session=SESSION):
        return read_json_lines(os.path.join(self.env["WARDER_STATE"], "cursors", "%s.%s.dlq.jsonl" % (session, sink)))


class Export(Case):
    def test_all_taken(self):
        folder, ids = self.bundle(100)
        sink, got = self.hook()
        done = self.warder("export", folder, sink)
        self.assertCode(done, 0)
        self.assertEqual(got, ids)
        self.assertEqual(done.out.decode(), "hook: 100 of 100 events\n")
        done = self.warder("export", folder, sink)  # nothing twice
        self.assertCode(done, 0)
        self.assertEqual(got, ids)
        done = self.warder("export", "-a", folder, sink)  # but when asked for
        self.assertCode(done, 0)
        self.assertEqual(got, ids * 2)

    def test_refused_for_good(self):
        folder, ids = self.bundle(100)
        self.bad = {ids[6], ids[70]}
        sink, got = self.hook()
        for options in ((), ("-a",)):
            with self.subTest(options):
                done = self.warder("export", *options, folder, sink)
                self.assertCode(done, 3)
                self.assertEqual(got, [i for i in ids if i not in self.bad])
                out = done.out.decode()
                self.assertIn("hook: 2 events refused for good: ", out)
                self.assertIn("/cursors/%s.hook.dlq.jsonl\n" % SESSION, out)
                self.assertEqual([d["record"]["id"] for d in self.dead_letters()], sorted(self.bad))
                for text in (out, str(self.dead_letters()), done.err.decode()):
                    self.assertNotRegex(text.replace("\n", ""), "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
                os.unlink(os.path.join(self.env["WARDER_STATE"], "cursors", SESSION + ".hook.dlq.jsonl"))
                got.clear()

    def test_a_sink_is_behind(self):
        folder, _ = self.bundle(10)
        self.answer, self.bad = (503, {}, "\u009b2J\u2066later\x1b]0;x\x07"), {SESSION + "-3"}
        done = self.warder("export", "--wait", "1s", folder, self.hook()[0])
        self.assertCode(done, 1)
        self.assertIn("later", done.out.decode())
        self.assertNotRegex(done.out.decode().replace("\n", ""), "[\x00-\x1f\x7f-\x9f\u2066]")

    def test_all_leaves_the_cursor_alone(self):
        folder, ids = self.bundle(50)
        sink, got = self.hook()
        self.assertCode(self.warder("export", "-a", folder, sink + ",required=yes"), 0)
        self.assertFalse([f for f in os.listdir(os.path.join(self.env["WARDER_STATE"], "cursors"))
                          if f.endswith(".cursor")])
        self.assertCode(self.warder("export", folder, sink), 0)
        self.assertEqual(got, ids * 2)


class Prune(Case):
    """Records go when the operator says so, and never before the sinks that must have them."""
    A, B, C = ("01JFTESTPRVNE000000000000%d" % i for i in (1, 2, 3))

    def setUp(self):
        super().setUp()
        self.sessions = os.path.join(self.env["WARDER_STATE"], "sessions")
        self.cursors = os.path.join(self.env["WARDER_STATE"], "cursors")
        os.makedirs(self.sessions)
        for session in (self.A, self.B, self.C):
            folder, _ = self.bundle(30, session=session)
            os.rename(folder, os.path.join(self.sessions, session))
            os.unlink(self.path("lines"))

    def there(self):
        return sorted(f for f in os.listdir(self.sessions) if f in (self.A, self.B, self.C))

    def kept(self, session):
        return sorted(f for f in os.listdir(self.cursors) if f.startswith(session))

    def prune(self, *options):
        done = self.warder("sessions", "prune", *options)
        self.assertCode(done, 0)
        return done.out.decode()

    def test_required_sinks(self):
        sink, _ = self.hook()
        dead = "webhook:http://127.0.0.1:1,name=dead,required=yes"
        self.assertCode(self.warder("export", self.A, sink + ",required=yes"), 0)
        self.assertCode(self.warder("export", "--wait", "300ms", self.B, sink + ",required=yes", dead), 1)
        self.assertCode(self.warder("export", self.C, sink), 0)  # not required: nobody said that it must be sent
        self.assertIn("would delete " + self.A, self.prune("--sent", "--dry-run"))
        self.assertEqual(self.there(), [self.A, self.B, self.C])
        out = self.prune("--sent")
        self.assertIn("1 session,", out)
        self.assertEqual((self.there(), self.kept(self.A)), ([self.B, self.C], []))
        out = self.prune("--older", "1ns")
        self.assertIn("keeping %s: sink 'dead' has not taken all of it" % self.B, out)
        self.assertIn("1 not sent yet", out)
        self.assertEqual((self.there(), self.kept(self.C)), ([self.B], []))
        self.assertEqual(len(self.kept(self.B)), 2)
        self.prune("--older", "1ns", "--unsent")
        self.assertEqual((self.there(), os.listdir(self.cursors)), ([], []))

    def test_damaged_cursor_counts_as_not_sent(self):
        sink, _ = self.hook()
        self.assertCode(self.warder("export", self.A, sink + ",required=yes"), 0)
        name, = self.kept(self.A)
        with open(os.path.join(self.cursors, name), "w") as f:
            f.write("nonsense")
        self.prune("--sent")
        self.prune("--max-bytes", "1")
        self.assertEqual(self.there(), [self.A])

    def test_cursors_of_sessions_that_are_gone(self):
        sink, _ = self.hook()
        folder, _ = self.bundle(5, session="01JFTESTE1SEWHERE000000001")
        self.assertCode(self.warder("export", folder, sink), 0)
        self.assertCode(self.warder("export", self.A, sink), 0)
        self.prune("--max-bytes", "1G")  # of today: it may still be sent somewhere
        self.assertEqual(len(os.listdir(self.cursors)), 2)
        for name in os.listdir(self.cursors):
            os.utime(os.path.join(self.cursors, name), (1, 1))
        self.assertIn("deleted 1 files", self.prune("--max-bytes", "1G"))
        self.assertEqual([f[:26] for f in os.listdir(self.cursors)], [self.A])
        self.assertEqual(self.there(), [self.A, self.B, self.C])

    def test_bad_use(self):
        self.assertCode(self.warder("sessions", "prune"), 125)
        self.assertEqual(self.there(), [self.A, self.B, self.C])


if __name__ == "__main__":
    unittest.main()
