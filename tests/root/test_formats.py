# SPDX-License-Identifier: Apache-2.0
"""`warder export --format` and `format=` of a sink, with what a real session recorded."""

import json
import os
import unittest

from warder import *

import schema  # noqa: E402


class Formats(TestCase):
    def make(self, *options):
        return self.session("sh", "-c", "echo hi > a; mv a b; /bin/true; rm b; unshare -m true", options=options)

    def export(self, session, *options):
        done = self.warder("export", *options, session.dir)
        self.assertCode(done, 0)
        return done.out.decode().splitlines()

    def test_every_event_in_every_format(self):
        s = self.make()
        ids = [e["id"] for e in s.events]
        self.assertEqual([json.loads(x)["id"] for x in self.export(s, "--format", "json")], ids)
        own = schema.load(os.path.join(schema.ROOT, "tests", "export", "own_schemas.json"))
        for version, asked in (("1.8.0", "1.8"), ("1.5.0", "1.5"), ("1.3.0", "1.3"), ("1.1.0", "1.1")):
            docs = [json.loads(x) for x in self.export(s, "--format", "ocsf", "--ocsf-version", asked)]
            self.assertEqual([d["metadata"]["uid"] for d in docs], ids)
            for d in docs:
                known = own["ocsf"][version]
                rules = dict(known["classes"][str(d["class_uid"])], **{"$defs": known["objects"]})
                self.assertEqual(schema.validate(d, rules), [], d["metadata"]["event_code"])
        docs = [json.loads(x) for x in self.export(s, "--format", "ecs")]
        self.assertEqual([d["event"]["id"] for d in docs], ids)
        self.assertEqual([e for d in docs for e in schema.ecs_errors(d, own["ecs"])], [])
        for name, start in (("cef", "CEF:0|Warder|"), ("leef", "LEEF:2.0|Warder|")):
            lines = self.export(s, "--format", name)
            self.assertEqual(len(lines), len(ids))
            self.assertTrue(all(x.startswith(start) for x in lines))

    def test_filter_and_file(self):
        s = self.make()
        done = self.warder("export", "--format", "ecs", "--filter", "kind = exec", "-o", self.path("out"), s.dir)
        self.assertCode(done, 0)
        self.assertEqual((done.out, done.err), (b"", b""))
        with open(self.path("out")) as f:
            docs = [json.loads(line) for line in f]
        self.assertEqual([d["event"]["id"] for d in docs], [e["id"] for e in s.kinds("exec")])

    def test_a_sink_with_a_format(self):
        s = self.make("--export", "file:%s,format=ocsf" % self.path("ocsf"),
                      "--export", "file:%s,format=cef" % self.path("cef"),
                      "--export", "file:%s" % self.path("native"))
        with open(self.path("ocsf")) as f:
            self.assertEqual([json.loads(x)["metadata"]["uid"] for x in f], [e["id"] for e in s.events])
        with open(self.path("native")) as f:
            self.assertEqual([json.loads(x)["id"] for x in f], [e["id"] for e in s.events])
        with open(self.path("cef")) as f:
            self.assertTrue(all(x.startswith("CEF:0|") for x in f))

    def test_mistakes(self):
        s = self.make()
        for argv, word in ((["--format", "ocfs"], "ocsf"), (["--format", "xml"], "cast3"), (["--format", "cef", "--ocsf-version", "1.5"], "ocsf"),
                           (["--format", "ocsf", "--ocsf-version", "2"], "ocsf-2"), (["-o", "x"], "--format"),
                           (["--format", "ecs", "--filter", "proc.nmae = x"], "proc.nmae")):
            done = self.warder("export", *argv, s.dir)
            self.assertCode(done, 125)
            self.assertIn(word, done.err.decode(), argv)
        done = self.warder("export", "--format", "ecs", "-o", "/dev/full", s.dir)
        self.assertCode(done, 125)
        self.assertOneLine(done, "/dev/full")


if __name__ == "__main__":
    unittest.main()
