# SPDX-License-Identifier: Apache-2.0
"""`warder export` of a session that has ended: what its exit code and its words say, what is kept."""

import os
import sys
import subprocess
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from feed import Journal, read_json_lines  # noqa: E402
from test_http import Server  # noqa: E402
from warder import TestCase, helper  # noqa: E402

SESSION = "01JFTESTEXPRT0000000000001"


class Export(TestCase):
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
            import json
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


if __name__ == "__main__":
    unittest.main()
