# SPDX-License-Identifier: Apache-2.0
"""Other rules for a sandbox that runs: no event unjudged, none judged twice, and what is broken changes nothing."""

import os
import signal
import subprocess
import time
import unittest

from warder import *

RULE = """- rule: %s
  desc: d
  condition: kind = exec and proc.comm = tiny
  output: "%%proc.exe"
  priority: NOTICE
"""
COUNTING = """- rule: Many
  desc: d
  condition: kind = exec and proc.comm = tiny
  count: 10
  window: 1h
  output: o
  priority: NOTICE
"""


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Reload(TestCase):
    def begin(self, rules, *command, options=(), stdin=False):
        """A session that waits for the file `go` in its workspace."""
        self.work = self.path("work")
        os.mkdir(self.work)
        self.rules = self.path("rules.yaml", rules)
        return self.start_session(*command, options=["--no-default-rules", "--rules", self.rules, "--workspace",
                                                     self.work, "--ro", helper("tiny") + ":/opt/tiny", *options],
                                  stdin=subprocess.PIPE if stdin else subprocess.DEVNULL)

    def journal(self):
        done = self.warder("events", self.path("s1/session"))
        return done.out.decode()

    def seen(self, text, n=1):
        wait_for("%d times '%s' in the record" % (n, text), lambda: self.journal().count(text) >= n)

    def replace(self, text):
        """As editors do it."""
        os.rename(self.path("rules.new", text), self.rules)

    def touch(self, name):
        open(os.path.join(self.work, name), "w").close()

    def test_under_load_each_event_is_judged_once(self):
        """Programs start all the time while the rules change, by replacement, in place and by SIGHUP."""
        proc, finish = self.begin(RULE % "v0" + COUNTING, "sh", "-c",
                                  "touch up; while [ ! -e stop ]; do /opt/tiny; done")
        wait_for("the payload", lambda: os.path.exists(os.path.join(self.work, "up")))
        for i in range(1, 7):
            text = RULE % ("v%d" % i) + COUNTING
            if i % 2:
                self.replace(text)
            else:
                with open(self.rules, "w") as f:
                    f.write(text)
            if i % 3 == 0:
                proc.send_signal(signal.SIGHUP)
            self.seen('"name":"v%d"' % i)
        self.touch("stop")
        s = finish()
        self.assertCode(s, 0)
        self.assertEqual(s.result["gaps"], 0)
        execs = s.kinds("exec", proc__comm="tiny")
        self.assertGreater(len(execs), 20)
        versions = {}
        alerts = s.kinds("rule.alert")
        for a in alerts:
            if field(a, "rule.name") != "Many":
                versions.setdefault(field(a, "rule.trigger"), []).append(a)
        order = []
        for e in execs:
            judged = versions.pop(e["id"], [])
            self.assertEqual(len(judged), 1, (e, judged))
            order.append(int(field(judged[0], "rule.name")[1:]))
        self.assertEqual(versions, {})
        self.assertEqual(order, sorted(order))
        self.assertEqual(set(order), set(range(7)))
        # One set, one hash; the one that is in force is what the last change said.
        sets = {field(a, "rule.set"): field(a, "rule.name") for a in alerts if field(a, "rule.name") != "Many"}
        self.assertEqual(sorted(sets.values()), ["v%d" % i for i in range(7)])
        changes = s.kinds("audit.rules", outcome="success")
        self.assertEqual([sets[field(c, "rule.set")] for c in changes if field(c, "rule.set")][-1], "v6")
        # The counting rule was the same all the time: not one was missed, none counted twice.
        self.assertEqual(len([a for a in alerts if field(a, "rule.name") == "Many"]), len(execs) // 10)
        self.assertIntact(s)

    def test_a_broken_file_changes_nothing_and_is_told(self):
        proc, finish = self.begin(RULE % "old", "sh", "-c",
                                  "touch up; while [ ! -e go ]; do sleep 0.05; done; /opt/tiny")
        wait_for("the payload", lambda: os.path.exists(os.path.join(self.work, "up")))
        self.replace(RULE % "new" + "- rule: second\n  desc: d\n  condition: kind = exek\n"
                                    "  output: o\n  priority: INFO\n")
        self.seen('"outcome":"failure"')
        self.touch("go")
        s = finish()
        self.assertCode(s, 0)
        told = s.kinds("audit.rules", outcome="failure")
        self.assertEqual(len(told), 1, told)  # once, not with each look
        message = field(told[0], "audit.message")
        self.assertIn("rules.yaml:8:21: ", message)
        self.assertIn("exek", message)
        self.assertEqual(field(told[0], "rule.set"), field(s.kinds("session.start")[0], "rule.set"))
        self.assertEqual([field(a, "rule.name") for a in s.kinds("rule.alert")], ["old"])
        self.assertIn(b"rules.yaml:8:21: ", s.err)

    def test_whatever_comes_in_place_of_the_file_changes_nothing(self):
        """Each is told with the name, and what is judged is judged by the set that was loaded, also in between."""
        def fifo(path):
            os.mkfifo(path)
            # Somebody holds it open: who reads it would wait for ever.
            self.writer = os.open(path, os.O_RDWR)
            self.addCleanup(os.close, self.writer)

        def huge(path):
            with open(path, "w") as f:
                f.truncate(1 << 40)

        def half(path):
            self.path("rules.new", (RULE % "half")[:40])
        things = [(fifo, "no regular file"), (lambda p: os.mkdir(p), "no *.yaml is in it"),
                  (lambda p: os.symlink(os.path.basename(self.rules), p), "Too many levels of symbolic links"),
                  (lambda p: os.symlink("/dev/zero", p), "no regular file"), (huge, "File too large"), (half, "rules.yaml:"),
                  (lambda p: (self.path("rules.new", RULE % "foreign"), os.chmod(p, 0o666)), "can be written by everybody (mode 0666): chmod o-w"),
                  (lambda p: self.path("rules.new", b"\x7fELF\0\1\2\3" * 100), "rules.yaml:1:1: "),
                  (lambda p: None, "No such file")]
        proc, finish = self.begin(RULE % "old", "sh", "-c", "touch up; while read x; do /opt/tiny; done", stdin=True)
        wait_for("the payload", lambda: os.path.exists(os.path.join(self.work, "up")))
        for n, (make, says) in enumerate(things, 1):
            made = self.path("rules.new")
            make(made)
            if os.path.isdir(self.rules) and not os.path.islink(self.rules):
                os.rmdir(self.rules)
            elif os.path.lexists(self.rules) and (not os.path.lexists(made) or os.path.isdir(made)):
                os.unlink(self.rules)
            if os.path.lexists(made):
                os.rename(made, self.rules)
            self.seen(says)
            proc.stdin.write(b"\n")
            proc.stdin.flush()
            self.seen('"name":"old"', n)
        self.replace(RULE % "new")
        self.seen("rules changed (file changed)")
        proc.stdin.write(b"\n")
        proc.stdin.flush()
        s = finish()
        self.assertCode(s, 0)
        self.assertEqual([field(a, "rule.name") for a in s.kinds("rule.alert")], ["old"] * len(things) + ["new"])
        self.assertEqual(len({field(a, "rule.set") for a in s.kinds("rule.alert", rule__name="old")}), 1)
        self.assertEqual({e["outcome"] for e in s.kinds("audit.rules")[:-1]} - {"success"}, {"failure"})
        self.assertEqual(s.kinds("audit.rules")[-1]["outcome"], "success")
        self.assertIntact(s)

    def test_a_storm_of_sighups(self):
        """With thousands of acts at full speed: none unjudged, none judged twice, each alert by a set that has a name."""
        code = """
import os, time
open("up", "w").close()
for r in range(6):
    while not os.path.exists("round%d" % r):
        time.sleep(0.005)
    for n in range(3000):
        os.mkdir("/tmp/d%d" % n)
    for n in range(3000):
        os.rmdir("/tmp/d%d" % n)
    open("done%d" % r, "w").close()
"""
        rule = RULE.replace("kind = exec and proc.comm = tiny", "kind = file.mkdir and file.path startswith /tmp/d")
        proc, finish = self.begin(rule % "v0", PYTHON_IN_SANDBOX, "-c", code, options=["--on-pressure", "stop"])
        wait_for("the payload", lambda: os.path.exists(os.path.join(self.work, "up")))
        for i in range(6):
            if i:
                self.replace(rule % ("v%d" % i))
            if i == 5:  # the last round is judged by the last set, the first one by the first
                proc.send_signal(signal.SIGHUP)
                last = self.warder("rules", "check", self.rules).out.split()[-1].decode()
                wait_for("the last set", lambda: any(last in e for e in self.journal().splitlines() if "audit.rules" in e))
            self.touch("round%d" % i)
            while not os.path.exists(os.path.join(self.work, "done%d" % i)):
                self.assertIsNone(proc.poll())
                proc.send_signal(signal.SIGHUP)
                time.sleep(0.002)
            if i == 0:
                self.seen('"name":"v0"', 3000)
        s = finish()
        self.assertCode(s, 0)
        self.assertEqual(s.result["gaps"], 0)
        acts = [e["id"] for e in s.kinds("file.mkdir") if field(e, "file.path", "").startswith("/tmp/d")]
        self.assertEqual(len(acts), 6 * 3000)
        alerts = s.kinds("rule.alert")
        self.assertEqual([field(a, "rule.trigger") for a in alerts], acts)
        names = [int(field(a, "rule.name")[1:]) for a in alerts]
        self.assertEqual(names, sorted(names))
        self.assertEqual((names[:3000], names[-3000:]), ([0] * 3000, [5] * 3000))
        sets = {(field(a, "rule.set"), field(a, "rule.name")) for a in alerts}
        self.assertEqual(len(sets), len({n for _, n in sets}))
        self.assertEqual({e["outcome"] for e in s.kinds("audit.rules")}, {"success"})
        self.assertIntact(s)

    def test_rules_that_the_sandbox_can_write_are_not_read_again(self):
        self.work = self.path("work")
        os.mkdir(self.work)
        rules = os.path.join(self.work, "rules.yaml")
        with open(rules, "w") as f:
            f.write(RULE % "mine")
        proc, finish = self.start_session(
            "sh", "-c", "echo '- list: x' > rules.yaml; touch up; while [ ! -e go ]; do sleep 0.05; done; /opt/tiny",
            options=["--no-default-rules", "--rules", rules, "--workspace", self.work, "--ro",
                     helper("tiny") + ":/opt/tiny"])
        wait_for("the payload", lambda: os.path.exists(os.path.join(self.work, "up")))
        proc.send_signal(signal.SIGHUP)
        self.seen("lies where the sandbox can write")
        self.touch("go")
        s = finish()
        self.assertEqual([field(a, "rule.name") for a in s.kinds("rule.alert")], ["mine"])
        self.assertEqual([e["outcome"] for e in s.kinds("audit.rules")], ["failure"])

    def test_an_operator_can_ask(self):
        proc, finish = self.begin(RULE % "mine", "sh", "-c", "touch up; while [ ! -e go ]; do sleep 0.05; done")
        wait_for("the payload", lambda: os.path.exists(os.path.join(self.work, "up")))
        session = os.listdir(self.path("run/sessions"))[0]
        self.assertCode(self.warder("rules", "reload", session), 0)
        self.seen("rules changed (operator)")
        self.touch("go")
        self.assertCode(finish(), 0)

    def test_a_sighup_without_rule_files_is_the_payloads(self):
        proc, finish = self.start_session("sh", "-c", "trap 'echo got it; exit 3' HUP; echo up; "
                                                      "while :; do sleep 0.05; done", bufsize=0)
        self.assertEqual(proc.stdout.read(3), b"up\n")
        proc.send_signal(signal.SIGHUP)
        s = finish()
        self.assertCode(s, 3)
        self.assertEqual(s.out, b"got it\n")
