# SPDX-License-Identifier: Apache-2.0
"""The host's key signs what is recorded, by the root part, and the engine cannot reach it."""

import json
import os
import shutil
import sys
import unittest

from warder import *

CHECKPOINT = 288


class Signing(TestCase):
    def setUp(self):
        super().setUp()
        self.state = self.env["WARDER_STATE"]

    def keys(self, *words):
        done = self.warder("keys", *words)
        self.assertCode(done, 0)
        return done.out.decode()

    def init(self):
        self.keys("init")
        return self.path("host.pub", self.keys("public"))

    def test_signed_when_the_host_has_a_key(self):
        s = self.session("true")
        self.assertIs(s.result["signed"], False)
        self.assertIn(b"not signed", s.verify().out)
        pub = self.init()
        s = self.session("sh", "-c", "echo x > a")
        self.assertCode(s, 0)
        self.assertIs(s.result["signed"], True)
        done = s.verify("--json", "--key", pub)
        self.assertCode(done, 0)
        rep = json.loads(done.out)
        self.assertTrue(rep["signed"] and rep["trusted"])
        self.assertEqual(rep["host_key"], json.loads(self.keys("show", "--json"))["public_key"])
        log = os.path.getsize(os.path.join(s.dir, "checkpoints.log"))
        self.assertEqual(rep["checkpoints"], 1 + (log - 1024) // CHECKPOINT)
        # a second verifier, made from FORMAT.md alone
        here = os.path.join(os.path.dirname(__file__), "..", "store", "verify.py")
        self.assertCode(cmd(sys.executable, here, "--key", pub, s.dir), 0)

    def test_another_host(self):
        self.init()
        s = self.session("true")
        self.keys("rotate")
        done = s.verify("--key", self.path("new.pub", self.keys("public")))
        self.assertCode(done, 1)
        self.assertIn(b"not trusted: signed by host key", done.out)
        self.assertIn(b"intact and sealed", done.out)
        told = json.loads(s.verify("--json", "--key", self.path("new.pub")).out)
        self.assertEqual((told["signed"], told["trusted"], told["code"]), (True, False, 1))
        self.assertGreater(told["records"], 3)
        # The keys that were before it, for records of their time: one file, of as many keys.
        both = self.path("all.pub", self.keys("public", "--all"))
        with open(both) as f:
            self.assertEqual(len(f.readlines()), 2)
        self.assertCode(s.verify("--key", both), 0)
        here = os.path.join(os.path.dirname(__file__), "..", "store", "verify.py")
        self.assertCode(cmd(sys.executable, here, "--key", both, s.dir), 0)
        self.assertCode(self.session("true").verify("--key", both), 0)
        done = s.verify("--key", self.path("bad.pub", self.keys("public", "--all") + "\nno key\n"))
        self.assertCode(done, 125)
        self.assertIn(b"line 4: no public key", done.err)

    def witnessed(self, where, verify, code):
        done = verify("--json", "--witness", where)
        self.assertCode(done, code)
        return json.loads(done.out)

    def test_witness(self):
        self.init()
        kept = self.path("kept.jsonl")
        other = self.session("true", options=["--witness", kept])
        self.assertCode(other, 0)
        s = self.session("sh", "-c", "touch a; sleep 0.4; touch b", options=["--witness", kept])
        self.assertCode(s, 0)
        told = self.witnessed(kept, s.verify, 0)
        self.assertEqual(told["witnessed"], told["records"])
        self.witnessed(kept, other.verify, 0)
        with open(kept) as f:
            lines = f.readlines()
        mine = [i for i, line in enumerate(lines) if json.loads(line)["session"] == s.result["session"]]
        self.assertGreater(len(mine), 2)
        # a witness that was torn or is late is still one
        self.witnessed(self.path("late.jsonl", "".join(lines[:mine[-1]]) + lines[mine[-1]][:50]), s.verify, 0)
        # one that saw something else, or nothing of it
        one = json.loads(lines[mine[-1]])
        for change in ({"head": "0" * 64}, {"seq": one["checkpoint"]["seq"] - 1}):
            wrong = dict(one, checkpoint=dict(one["checkpoint"], **change))
            path = self.path("wrong.jsonl", "".join(lines[:mine[-1]]) + json.dumps(wrong) + "\n")
            self.assertIn("the witness saw", self.witnessed(path, s.verify, 1)["text"])
        self.assertIn("knows nothing", self.witnessed(self.path("none.jsonl", lines[0]), s.verify, 1)["text"])
        self.assertCode(s.verify("--witness", self.path("no.jsonl", "hello\n")), 125)
        self.assertCode(s.verify("--witness", self.path("nowhere")), 125)

    def test_rolled_back(self):
        """What an unsealed record says of itself is true; that there was more only the witness knows."""
        self.init()
        kept = self.path("kept.jsonl")
        _, finish = self.start_session("sh", "-c", "touch a; sleep 1; touch b", options=["--witness", kept])
        bundle = self.path("s1/session")
        wait_for("a first checkpoint", lambda: os.path.exists(kept) and os.path.getsize(kept) > 1000)
        shutil.copytree(bundle, self.path("before"))
        self.assertCode(finish(), 0)
        self.assertCode(self.warder("verify", self.path("before")), 2)
        done = self.warder("verify", "--witness", kept, self.path("before"))
        self.assertCode(done, 1)
        self.assertIn(b"rolled back", done.out)
        self.assertCode(self.warder("verify", "--witness", kept, bundle), 0)

    def test_a_witness_needs_a_key(self):
        s = self.session("true", options=["--witness", self.path("kept")])
        self.assertCode(s, 125)
        self.assertIn(b"warder keys init", s.err)
        self.assertCode(self.warder("run", "--witness", self.path("kept"), "--sign", "never", "--", "true"), 125)
        self.init()
        self.assertCode(self.session("true", options=["--witness", self.path("kept")]), 0)
        s = self.session("true", options=["--sign", "never"])
        done = self.warder("verify", "--witness", self.path("kept"), s.dir)
        self.assertCode(done, 1)
        self.assertIn(b"is not signed", done.out)

    def test_never_and_always(self):
        s = self.session("true", options=["--sign", "always"])
        self.assertCode(s, 125)
        self.assertIn(b"warder keys init", s.err)
        pub = self.init()
        s = self.session("true", options=["--sign", "never"])
        self.assertCode(s, 0)
        self.assertCode(s.verify(), 0)
        self.assertCode(s.verify("--key", pub), 1)
        s = self.session("true", options=["--sign", "always"])
        self.assertCode(s.verify("--key", pub), 0)

    def test_damaged_key(self):
        self.init()
        with open(os.path.join(self.state, "keys", "host.seed"), "r+b") as f:
            f.write(b"XXXX")
        s = self.session("true")
        self.assertCode(s, 125)
        self.assertIn(b"host.seed is damaged", s.err)

    def test_tampering_with_a_signed_record(self):
        """Somebody who can write the bundle but has no key rewrites it whole: only the signature tells."""
        pub = self.init()
        a = self.session("sh", "-c", "echo a > a")
        b = self.session("sh", "-c", "echo b > b", options=["--sign", "never"])
        for name in os.listdir(b.dir):
            with open(os.path.join(b.dir, name), "rb") as f, open(os.path.join(a.dir, name), "wb") as g:
                g.write(f.read())
        self.assertCode(a.verify("--key", pub), 1)
        os.unlink(os.path.join(a.dir, "checkpoints.log"))
        self.assertCode(a.verify("--key", pub), 1)

    def test_engine_has_no_key(self):
        """Neither by a descriptor nor by permission."""
        self.init()
        proc, finish = self.start_session("sh", "-c", "echo ready; exec sleep 1000")
        self.assertEqual(proc.stdout.readline(), b"ready\n")  # what it had while it was set up it has no more
        engine = engine_of(proc.pid)
        for fd in os.listdir("/proc/%d/fd" % engine):
            try:
                self.assertNotIn(self.state + "/keys", os.readlink("/proc/%d/fd/%s" % (engine, fd)))
            except FileNotFoundError:
                pass
        self.assertEqual(os.stat(os.path.join(self.state, "keys", "host.seed")).st_mode & 0o777, 0o600)
        self.assertNotEqual(os.stat("/proc/%d" % engine).st_uid, os.getuid())
        proc.terminate()
        finish()

    def test_bad_words(self):
        for words in (["foo"], [], ["init", "show"], ["--nope"]):
            done = self.warder("keys", *words)
            self.assertCode(done, 125)
            self.assertOneLine(done)
        done = self.warder("keys", "show")
        self.assertCode(done, 125)
        self.assertOneLine(done, "warder keys init")
        self.init()
        done = self.warder("keys", "init")
        self.assertCode(done, 125)
        self.assertOneLine(done, "already")
        s = self.session("true")
        done = s.verify("--key", self.path("no.pub", "hello"))
        self.assertCode(done, 125)
        self.assertOneLine(done, "no.pub")


if __name__ == "__main__":
    unittest.main()
