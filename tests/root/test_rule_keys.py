# SPDX-License-Identifier: Apache-2.0
"""Keys that only our rules have, on real sandboxes: whom a rule is for, budgets, what is not in the baseline, and
the difference that other rules would have made."""

import json
import os
import unittest

from warder import *

RULE = """- rule: %s
  desc: d
  condition: %s
  output: o
  priority: NOTICE
%s
"""


def rule(name, condition, *keys):
    return RULE % (name, condition, "".join("  %s\n" % k for k in keys))


CONNECT = """
import socket, sys
for word in sys.argv[1:]:
    ip, port = word.split(":")
    with socket.create_server((ip, int(port))) as s, socket.create_connection((ip, int(port))) as c:
        a, _ = s.accept()
        c.sendall(bytes(60000))
        n = 0
        while n < 60000:
            n += len(a.recv(60000))
        a.close()
"""


@unittest.skipIf(os.geteuid() != 0, "needs root")
class RuleKeys(TestCase):
    def run_with(self, rules, *command, options=(), **kw):
        path = self.path("r%d.yaml" % self.count, "".join(rules))
        return self.session(*command, options=["--no-default-rules", "--rules", path, *options], **kw)

    def fired(self, s):
        return [field(a, "rule.name") for a in s.kinds("rule.alert")]


class For(RuleKeys):
    def test_whom_a_rule_is_for(self):
        """By backend, tier, tenant and policy; what it is not for it neither tells nor stops, in the kernel or out."""
        plan = json.loads(self.warder("run", "--dry-run", "--json", "--pids", "77", "--", "x").out)["policy"]
        other = json.loads(self.warder("run", "--dry-run", "--json", "--pids", "78", "--", "x").out)["policy"]
        self.assertNotEqual(plan, other)
        done = self.warder("rules", "explain", "--json", self.path("t.yaml", rule("T", "kind = exec")))
        tier = json.loads(done.out.splitlines()[0])["tier"]
        no_tier = {"full": "portable", "portable": "full"}[tier]
        made = "kind = file.mkdir and file.path = /tmp/bad"
        rows = [("ns", "{backend: ns}", True), ("gvisor", "{backend: gvisor}", False), ("tier", "{tier: %s}" % tier, True),
                ("no_tier", "{tier: %s}" % no_tier, False), ("acme", "{tenant: acme}", True),
                ("dev", "{tenant: [dev, ac*]}", True), ("others", "{tenant: other}", False),
                ("policy", "{policy: %s}" % plan[:12], True), ("no_policy", "{policy: %s}" % other[:12], False),
                ("all", "{backend: ns, tenant: acme, policy: %s}" % plan, True),
                ("one_wrong", "{backend: ns, tenant: other, policy: %s}" % plan, False)]
        rules = [rule(n, made, "for: " + f) for n, f, _ in rows]
        stops = [rule("K" + n, made, "action: kill", "for: " + f) for n, f, yes in rows if not yes]
        command = ("sh", "-c", "mkdir /tmp/bad; echo on")
        options = ["--tenant", "acme", "--pids", "77"]
        s = self.run_with(rules + stops, *command, options=options)
        self.assertEqual((s.code, s.out), (0, b"on\n"))
        self.assertEqual(field(s.kinds("session.start")[0], "run.policy"), plan)
        self.assertEqual(sorted(self.fired(s)), sorted(n for n, _, yes in rows if yes))
        s = self.run_with(stops, *command, options=["--tenant", "other", "--pids", "78"])
        self.assertEqual((s.code, s.result["reason"]), (137, "rule"))
        self.assertIn(s.result["rule"], ("Kothers", "Kno_policy"))


class Budgets(RuleKeys):
    def test_execs_bytes_and_hosts(self):
        """Each fires when its number is reached and not before, and begins from nothing in the next sandbox."""
        rules = [rule("execs", "kind = exec and outcome = success and proc.comm = true", "count: 5", "window: 1h"),
                 rule("bytes", "kind = net.close and net.bytes_out > 0", "count: 100K", "window: 1h", "sum: net.bytes_out"),
                 rule("hosts", "kind = net.connect and net.family = inet", "count: 3", "window: 1h", "distinct: net.dst.ip",
                      "by: proc.exe")]
        client = self.path("client.py", CONNECT)
        run = PYTHON_IN_SANDBOX + " /opt/client.py "
        for script, fired in ((4 * "/bin/true;" + run + "127.0.0.1:81 127.0.0.2:81", ["bytes"]),
                              (4 * "/bin/true;" + run + "127.0.0.1:81", []),
                              (5 * "/bin/true;" + run + "127.0.0.1:81 127.0.0.1:82 127.0.0.1:83", ["execs", "bytes"]),
                              (9 * "/bin/true;" + run + "127.0.0.1:81 127.0.0.2:81 127.0.0.3:81", ["execs", "bytes", "hosts"])):
            # Both ends of a connection are the sandbox's: only what one side sends counts.
            s = self.run_with(rules, "sh", "-c", script, options=["--ro", client + ":/opt/client.py"])
            self.assertCode(s, 0)
            self.assertEqual(sorted(self.fired(s)), sorted(fired), script)


class Baseline(RuleKeys):
    def test_destinations_programs_and_places(self):
        client = self.path("client.py", CONNECT)
        run = PYTHON_IN_SANDBOX + " /opt/client.py "
        options = ["--ro", client + ":/opt/client.py"]
        many = "mkdir -p d; i=0; while [ $i -lt 20 ]; do echo > d/$i; i=$((i+1)); done; "
        usual = self.run_with([], "sh", "-c", many + run + "127.0.0.1:81", options=options)
        self.assertCode(usual, 0)
        file = self.path("usual.baseline")
        self.assertCode(self.warder("rules", "baseline", "-o", file, usual.dir), 0)
        with open(file) as f:
            text = f.read()
        self.assertRegex(text, r"connect\t/usr/bin/python3[.0-9]*\t127\.0\.0\.1:81\n")
        self.assertRegex(text, r"open\t/usr/bin/\w+\t/workspace/d/\n")  # many files became the place
        new = rule("new", "kind in (exec, file.open, net.connect) and baseline.new = true and not outcome in (failure, denied)")
        options += ["--baseline", file]
        s = self.run_with([new], "sh", "-c", many + "echo > d/another; " + run + "127.0.0.1:81", options=options)
        self.assertCode(s, 0)
        self.assertEqual(self.fired(s), [])
        s = self.run_with([new], "sh", "-c", "echo > elsewhere; /bin/true; " + run + "127.0.0.1:82", options=options)
        self.assertCode(s, 0)
        self.assertEqual([(field(a, "rule.trigger_kind"), field(a, "file.path") or field(a, "net.dst.port")
                           or field(a, "proc.comm")) for a in s.kinds("rule.alert")],
                         [("file.open", "/workspace/elsewhere"), ("exec", "true"), ("net.connect", 82)])


if __name__ == "__main__":
    unittest.main()
