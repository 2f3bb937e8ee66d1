# SPDX-License-Identifier: Apache-2.0
"""Policies: each that comes with warder does what its comment says, and a mistake in one is named with its place."""

import json
import os
import unittest

from warder import *

need_root()

SHIPPED = ["compute", "default", "dev", "strict"]
SPIN = "while :; do :; done"


class Policy(TestCase):
    def plan(self, policy, *options):
        done = self.warder("run", "--policy", policy, *options, "--dry-run", "--json", "--", "true")
        self.assertCode(done, 0)
        return json.loads(done.out)

    def test_list_show_check(self):
        done = self.warder("policy", "list", "--json")
        self.assertCode(done, 0)
        rows = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual([(r["policy"], r["path"], r["shadowed"]) for r in rows], [(p, None, False) for p in SHIPPED])
        for row in rows:
            text = self.warder("policy", "show", row["policy"]).out.decode()
            self.assertIn("# %s: %s\n" % (row["policy"], row["about"]), text)
            self.assertIn("# Gives up: ", text)
            with open(os.path.join(SRC, "runtime", "policies", row["policy"] + ".yaml")) as f:
                self.assertEqual(f.read(), text)
            # What is shown is a start for a file of one's own: it says the same.
            copy = self.path("copy.yaml", text)
            self.assertEqual(self.plan(copy)["policy"], self.plan(row["policy"])["policy"])
        done = self.warder("policy", "check", *SHIPPED)
        self.assertEqual((done.code, done.out.decode().splitlines()), (0, [p + ": ok" for p in SHIPPED]))

    def test_default_is_no_policy(self):
        done = self.warder("run", "--dry-run", "--json", "--", "true")
        self.assertEqual(self.plan("default"), json.loads(done.out))

    def test_options_override(self):
        self.assertEqual(self.plan("strict")["limits"]["memory"], 256 << 20)
        plan = self.plan("strict", "--memory", "64M")
        self.assertEqual((plan["limits"]["memory"], plan["limits"]["pids"]), (64 << 20, 64))

    def test_names(self):
        os.makedirs(self.path("config/policies"))
        for name in ("own", "strict"):
            self.path("config/policies/%s.yaml" % name, "limits: { pids: 77 }\n")
        self.assertEqual(self.plan("own")["limits"]["pids"], 77)
        self.assertEqual(self.plan("strict")["limits"]["pids"], 64)  # a shipped one is what it says
        self.assertEqual(self.plan(self.path("config/policies/strict.yaml"))["limits"]["pids"], 77)
        done = self.warder("run", "--policy", "strct", "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "no policy", "did you mean 'strict'?")

    def test_list_has_own_ones(self):
        os.makedirs(self.path("config/policies"))
        self.path("config/policies/own.yaml", "# own: for\x1b]0;x\x07 the build\nlimits: { pids: 77 }\n")
        strict = self.path("config/policies/strict.yaml", "limits: { pids: 77 }\n")
        for other in ("config/policies/notes.txt", "config/policies/.own.yaml", "config/policies/a b.yaml"):
            self.path(other, "x\n")
        rows = [json.loads(line) for line in self.warder("policy", "list", "--json").out.splitlines()]
        self.assertEqual([r["policy"] for r in rows], SHIPPED + ["own", "strict"])
        self.assertTrue(rows[-2]["about"].startswith("for"))
        self.assertEqual((rows[-1]["path"], rows[-1]["shadowed"]), (strict, True))
        lines = self.warder("policy", "list").out.decode().splitlines()
        self.assertNotIn("\x1b", "".join(lines))
        self.assertRegex(lines[-2], r"^own +for.* the build \(.*own.yaml\)$")
        self.assertIn("not used", lines[-1])

    def test_files_it_names_are_looked_at(self):
        key = self.path("s.key", "SECRETMARK-q7Zk2Lm9")
        os.chmod(key, 0o644)
        gone = self.path("gone")
        cases = [("secrets: [token=%s]" % gone, ":1:11", "No such file"),
                 ("secrets: [token=%s]" % key, ":1:11", "alone"),
                 ("redact: { rules: [%s] }" % gone, ":1:19", "No such file"),
                 ("redact: { escrow: %s }" % gone, ":1:19", "No such file"),
                 ("redact: { value_files: [%s] }" % gone, ":1:25", "No such file")]
        for text, place, words in cases:
            path = self.path("p.yaml", text + "\n")
            with self.subTest(text):
                done = self.warder("policy", "check", path)
                self.assertCode(done, 1)
                self.assertOneLine(done, path + place, words)
        os.chmod(key, 0o600)
        both = "secrets: [token=%s]\n" % key
        self.assertCode(self.warder("policy", "check", self.path("p.yaml", both)), 0)
        done = self.warder("policy", "check", self.path("p.yaml", both + "redact: { rules: ['off'] }\n"))
        self.assertCode(done, 1)
        self.assertOneLine(done, "p.yaml", "--secret")

    def test_mistakes_have_a_place(self):
        self.path("rules.yaml", "- rule: x\n  condition: nothing = 1\n")
        cases = [
            ("network: { mode: none }\nlimits:\n  memroy: 1G\n", ":3:11", "did you mean 'limits.memory'?"),
            ("limits:\n  memory: much\n", ":2:11", "much"), ("network: { mode: all }\n", ":1:18", "all"),
            ("limits: { pids: 7, pids: 8 }\n", ":1:20", "duplicate"), ("limits: [\n", "", ":"),
            ("limits: { pids: [10, 7000] }\n", ":1:18", "one value, not a list"),
            ("network: { mode: [none, host] }\n", ":1:19", "one value, not a list"),
            ("redact: { escrow: [a, b] }\n", ":1:20", "one value, not a list"),
            ("network: none\n", ":1:10", "holds keys"), ("limits: 5\n", ":1:9", "holds keys"),
            ("secrets: { token: f }\n", ":1:19", "holds no keys"),
            ("limits: { memory: 0 }\n", ":", "there must be one"),
            ("network: { mode: none, allow: [a.example] }\n", "", "not 'allow'"),
        ]
        for text, place, words in cases:
            path = self.path("p.yaml", text)
            with self.subTest(text):
                done = self.warder("policy", "check", path)
                self.assertCode(done, 1)
                self.assertOneLine(done, place and path + place, words)
                row = json.loads(self.warder("policy", "check", path, "--json").out)
                self.assertEqual((row["policy"], row["ok"]), (path, False))
                self.assertIn(words.lower(), row["error"].lower())
        done = self.warder("policy", "check", self.path("r.yaml", "rules: { files: [rules.yaml] }\n"))
        self.assertCode(done, 1)
        self.assertIn(b"rules.yaml:", done.err)
        for argv in (["policy"], ["policy", "show"], ["policy", "show", "a", "b"], ["policy", "check"], ["policy", "x"]):
            self.assertCode(self.warder(*argv), 125)

    def test_strict_ends_what_grows(self):
        s = self.session("sh", "-c", "head -c 2M /dev/zero", options=["--policy", "strict"])
        self.assertEqual((s.code, s.result["reason"], len(s.out)), (137, "output_limit", 1 << 20))
        s = self.session("sh", "-c", SPIN, options=["--policy", "strict", "--timeout", "1s"])
        self.assertEqual((s.code, s.result["reason"]), (124, "timeout"))
        plan = self.plan("strict")
        self.assertEqual((plan["limits"]["timeout_ns"], plan["limits"]["cpu_milli"]), (60 * 10**9, 1000))
        self.assertEqual(plan["layers"]["net"], "none")
        # In one minute nobody waits here for the rest: how the record ends is in test_loss, by the same two words.
        text = self.warder("policy", "show", "strict").out.decode()
        self.assertIn("on_pressure: kill", text)
        self.assertIn("when_full: kill", text)

    def test_strict_is_enough_for_small_work(self):
        s = self.session("sh", "-c", "seq 1000 | sort -r | tail -1; ls /usr/bin | wc -l | tr -d 0-9",
                         options=["--policy", "strict"])
        self.assertEqual((s.code, s.out), (0, b"1\n\n"))
        self.assertIntact(s)

    def test_dev_keeps_texts_and_is_open(self):
        os.mkdir(self.path("w"))
        self.path("w/a.txt", "before\n")
        s = self.session("sh", "-c", "echo after > a.txt", options=["--policy", "dev", "--workspace", self.path("w")])
        self.assertCode(s, 0)
        change = [e for e in s.kinds("workspace.change") if e["file"]["path"] == "/workspace/a.txt"]
        self.assertEqual(len(change), 1)
        self.assertIn(b"before\n", self.blobs(s))
        self.assertIn(b"after\n", self.blobs(s))
        plan = self.plan("dev")
        self.assertEqual((plan["layers"]["net"], plan["limits"]["memory"]), ("open", 4 << 30))

    def blobs(self, s):
        folder = os.path.join(s.dir, "blobs")
        return [open(os.path.join(folder, n), "rb").read() for n in os.listdir(folder)]

    def test_compute_has_no_network_and_waits(self):
        plan = self.plan("compute")
        self.assertEqual((plan["layers"]["net"], plan["limits"]["cpu_milli"], plan["limits"]["memory"]),
                         ("none", 0, 16 << 30))
        s = self.session(PYTHON_IN_SANDBOX, "-c", "import os\nfor i in range(20000): os.close(os.open('/workspace/x', "
                         "os.O_RDWR | os.O_CREAT))", options=["--policy", "compute", "--bulk-ring", "64K"])
        self.assertCode(s, 0)
        self.assertEqual(s.result["gaps"], 0)
        self.assertIntact(s)


if __name__ == "__main__":
    unittest.main()
