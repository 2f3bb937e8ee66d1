# SPDX-License-Identifier: Apache-2.0
"""What rules do: deny and kill in the kernel, kill one process, freeze, ask. Each act is tried by a real program,
its effect looked for, and the record must say what was done, where, and for which rule."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import unittest

from warder import *

PY = PYTHON_IN_SANDBOX


def rule(name, condition, action, *more):
    return "- rule: %s\n  desc: d\n  output: o\n  priority: ALERT\n  condition: %s\n  action: %s\n%s" % (
        name, condition, action, "".join("  %s\n" % m for m in more))


class Actions(TestCase):
    def judged(self, rules, *command, options=(), **kw):
        path = self.path("r%d.yaml" % self.count, "".join(rules))
        return self.session(*command, options=["--no-default-rules", "--rules", path, *options], **kw)

    def alert(self, s, name):
        alerts = s.kinds("rule.alert", rule__name=name)
        self.assertTrue(alerts, s.events)
        return alerts[0]

    def enforced(self, s, name, how):
        a = self.alert(s, name)
        self.assertEqual(field(a, "rule.enforced"), how)
        trigger = [e for e in s.events if e["id"] == field(a, "rule.trigger")]
        self.assertEqual(len(trigger), 1, "the event of the act is in the record")
        return trigger[0]


    tier_found = None

    def tier(self):
        """This host's, as `rules explain` finds it: once, it takes seconds under emulation."""
        if not Actions.tier_found:
            done = self.warder("rules", "explain", "--json", self.path("t.yaml", rule("T", "kind = exec", "kill")))
            self.assertEqual(done.code, 0, done)
            Actions.tier_found = json.loads(done.out)["tier"]
        return Actions.tier_found

    def at_a_file(self):
        """What a kill in the kernel means for an act on a file."""
        return "prevented" if self.tier() == "full" else "killed-before-return"


class Kernel(Actions):
    def test_denied_by_network_and_port(self):
        s = self.judged([rule("No net", "kind in (net.connect, net.send) and net.dst.ip in (127.0.0.0/8) and not "
                                        "net.dst.port = 80", "deny")], PY, "-c", """
import socket
srv = [socket.create_server(("127.0.0.1", p)) for p in (80, 81)]
for p in (80, 81):
    try:
        socket.create_connection(("127.0.0.1", p))
        print(p, "in")
    except OSError as e:
        print(p, e.errno)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    u.sendto(b"x", ("127.0.0.1", 99))
except OSError as e:
    print("udp", e.errno)
srv[1].settimeout(0.1)
try:
    srv[1].accept()
    print("accepted")
except OSError:
    print("nobody")
""")
        self.assertEqual(s.out.decode().splitlines(), ["80 in", "81 1", "udp 1", "nobody"])
        self.assertCode(s, 0)
        e = self.enforced(s, "No net", "prevented")
        self.assertEqual((field(e, "net.dst.port"), e["outcome"], field(e, "enforce.verdict")), (81, "denied", "deny"))
        self.assertEqual({field(a, "rule.trigger_kind") for a in s.kinds("rule.alert")}, {"net.connect", "net.send"})
        self.assertIntact(s)

    def test_killed_before_the_call_returns(self):
        s = self.judged([rule("Secret", "kind = file.open and file.path startswith /tmp/secret and not file.path in "
                                        "(/tmp/secret/ok)", "kill", "scope: process")], "sh", "-c", """
mkdir /tmp/secret
(echo x > /tmp/secret/ok; echo exception)
(echo x > /tmp/secretary; echo never)
(echo x > /tmp/secre; echo near)
(cd /tmp; echo x > ./../tmp//secret/b; echo never)
""")
        self.assertEqual(s.out.decode().split(), ["exception", "near"])
        self.assertEqual(s.code, 137)  # of the last subshell
        e = self.enforced(s, "Secret", self.at_a_file())
        self.assertEqual(field(e, "file.path"), "/tmp/secretary")
        a = s.kinds("action")
        self.assertEqual([(field(x, "action.type"), field(x, "action.scope"), field(x, "action.by"),
                           field(x, "action.result")) for x in a], [("kill", "process", "kernel", "done")] * 2)

    def test_names_that_mean_another_path_are_left_to_user_space(self):
        """rename takes the caller's string: with dots in it, it is not what it says."""
        s = self.judged([rule("Del", "kind = file.delete and file.path startswith /tmp/secret/", "kill",
                              "scope: process")], PY, "-c", """
import os
os.makedirs("/tmp/secret/d"); open("/tmp/plain", "w"); open("/tmp/secret/x", "w")
os.unlink("/tmp/secret/d/../../plain")
print("harmless", flush=True)
os.unlink("/tmp/secret/x")
print("never")
""")
        self.assertEqual(s.out.decode().split(), ["harmless"])
        self.assertEqual(len(s.kinds("rule.alert")), 1)

    def test_the_sandbox_follows(self):
        s = self.judged([rule("Secret", "kind = file.open and file.path startswith /tmp/secret", "kill")],
                        "sh", "-c", "(sleep 30; echo never) & (echo x > /tmp/secret); sleep 30; echo never")
        self.assertCode(s, 137)
        self.assertEqual((s.result["reason"], s.result["rule"], s.out), ("rule", "Secret", b""))
        self.enforced(s, "Secret", self.at_a_file())

    def test_exec(self):
        s = self.judged([rule("Exec", "kind = exec and proc.exe startswith /tmp/", "kill", "scope: process")],
                        "sh", "-c", "cp /bin/echo /tmp/e; /tmp/e never; echo $?")
        self.assertEqual(s.out, b"137\n")
        self.enforced(s, "Exec", self.at_a_file())

    def test_escape_of_one_process(self):
        s = self.judged([rule("Unshare", "kind = escape and escape.type = unshare", "kill", "scope: process")],
                        "sh", "-c", "unshare -m echo never; echo $?")
        self.assertEqual(s.out, b"137\n")
        self.enforced(s, "Unshare", "killed-before-return")
        self.assertEqual(s.result["reason"], "exit")


class Deny(Actions):
    FILES = rule("Files", "kind = file.mkdir and file.path startswith /tmp/no", "deny")

    def test_what_cannot_be_denied_is_an_error_that_says_why(self):
        s = self.judged([self.FILES], "mkdir", "/tmp/no")
        if self.tier() == "full":  # there it can, and does
            self.assertCode(s, 1)
            self.assertEqual(self.enforced(s, "Files", "prevented")["outcome"], "denied")
            return
        self.assertCode(s, 125)
        self.assertRegex(s.err.decode(), r"r\d\.yaml:1: rule 'Files': 'action: deny' cannot be kept in the portable "
                                         r"tier: file\.mkdir: cannot be denied .*deny_fallback: kill")
        self.assertFalse(os.path.exists(s.dir) and os.listdir(s.dir))

    def test_the_unspecified_address_is_this_host(self):
        s = self.judged([rule("Loopback", "kind in (net.connect, net.send) and net.dst.ip in (127.0.0.1, ::1)", "deny")],
                        PY, "-c", """
import errno, socket
srv = socket.create_server(("0.0.0.0", 80))
def told(family, kind, act):
    try:
        act(socket.socket(family, kind))
        print("done")
    except OSError as e:
        print(errno.errorcode[e.errno])
for name in ("127.0.0.1", "0.0.0.0"):
    told(socket.AF_INET, socket.SOCK_STREAM, lambda s: s.connect((name, 80)))
    told(socket.AF_INET, socket.SOCK_DGRAM, lambda s: s.sendto(b"x", (name, 80)))
for name in ("::ffff:0.0.0.0", "::"):
    told(socket.AF_INET6, socket.SOCK_STREAM, lambda s: s.connect((name, 80)))
""")
        self.assertEqual(s.out.split(), [b"EPERM"] * 6, s)
        self.assertEqual({e["net"]["dst"]["ip"] for e in s.kinds("rule.alert")}, {"127.0.0.1", "::1"})

    def test_settled_for_a_kill(self):
        s = self.judged([self.FILES + "  deny_fallback: kill\n  scope: process\n"], "sh", "-c",
                        "(mkdir /tmp/no && echo never); echo on")
        # Where it can be denied it is, and mkdir only fails.
        self.assertEqual(s.out, b"on\n")
        self.enforced(s, "Files", self.at_a_file())

    def test_what_nobody_can_deny(self):
        s = self.judged([rule("D", "kind = net.connect and net.dst.ip exists and proc.comm = x", "deny")], "true")
        self.assertCode(s, 125)
        self.assertIn("net.connect: the kernel does not know 'proc.comm'", s.err.decode())


class Explained(Actions):
    """What `rules explain` promises for this host is what happens here; for the other tier it can be asked."""
    RULES = rule("Dir", "kind = file.mkdir and file.path startswith /tmp/no", "kill", "scope: process") + rule(
        "Net", "kind = net.connect and net.dst.ip in (127.0.0.0/8)", "deny") + rule(
        "Late", "kind = file.mkdir and file.path endswith no", "kill", "scope: process") + rule(
        "Files", "kind = file.delete and file.path startswith /x", "deny", "enabled: true")

    def explain(self, *options):
        done = self.warder("rules", "explain", "--json", *options, self.path("e.yaml", self.RULES))
        self.assertEqual(done.code, 0, done)
        rows = [json.loads(line) for line in done.out.splitlines()]
        return {r["rule"]: r for r in rows}

    def test_both_tiers(self):
        full, portable = self.explain("--tier", "full"), self.explain("--tier", "portable")
        self.assertEqual(full["Dir"]["guarantee"], "prevented (file.mkdir), and the process killed")
        self.assertEqual(portable["Dir"]["guarantee"], "killed before the call returns to the program (file.mkdir)")
        self.assertEqual((portable["Dir"]["kinds"], portable["Dir"]["fields"]), (["file.mkdir"], ["kind", "file.path"]))
        for tier in (full, portable):
            self.assertEqual((tier["Net"]["where"], tier["Net"]["guarantee"]), ("kernel", "prevented (net.connect)"))
            self.assertRegex(tier["Late"]["guarantee"], "^killed after the act: the process, some milliseconds")
            self.assertRegex(tier["Late"]["cost"], r"^rank \d of 4")
        self.assertEqual(full["Files"]["guarantee"], "prevented (file.delete)")
        self.assertIn("a run with it fails in the portable tier: file.delete: cannot be denied",
                      portable["Files"]["guarantee"])
        here = self.warder("rules", "check", self.path("e.yaml"))
        self.assertEqual(here.code, 0 if self.tier() == "full" else 1, here)
        check = self.warder("rules", "check", "--tier", "portable", self.path("e.yaml"))
        self.assertEqual(check.code, 1)
        self.assertIn(b"rule 'Files': 'action: deny' cannot be kept in the portable tier", check.err)
        self.assertEqual(self.warder("rules", "check", "--tier", "full", self.path("e.yaml")).code, 0)
        bad = self.warder("rules", "explain", "--tier", "best", self.path("e.yaml"))
        self.assertNotEqual(bad.code, 0)

    def test_it_is_so_here(self):
        said = self.explain()
        s = self.judged([self.RULES.split("- rule: Files")[0]], "sh", "-c", "(mkdir /tmp/no && echo never); ls /tmp")
        how = field(self.alert(s, "Dir"), "rule.enforced")
        self.assertEqual(how, "prevented" if said["Dir"]["guarantee"].startswith("prevented") else "killed-before-return")
        self.assertEqual(s.out, b"" if how == "prevented" else b"no\n")

    def test_measured(self):
        if IN_VM:
            self.skipTest("an emulated machine's figures mean nothing")
        done = self.warder("doctor", "--measure", "--json")
        self.assertEqual(done.code, 0, done)
        m = json.loads(done.out)
        self.assertTrue(0 < m["kill_p50_ns"] <= m["kill_max_ns"])
        self.assertIn("%.2f ms after it (median on this host, worst %.2f ms)" % (
            m["kill_p50_ns"] / 1e6, m["kill_max_ns"] / 1e6), self.explain()["Late"]["guarantee"])


class UserSpace(Actions):
    CONDITION = "kind = file.mkdir and file.path endswith /bad"

    def test_one_process(self):
        s = self.judged([rule("P", self.CONDITION, "kill", "scope: process")], "sh", "-c",
                        PY + " -c 'import os, time; os.mkdir(\"/tmp/bad\"); time.sleep(60)'; echo $?")
        self.assertEqual(s.out, b"137\n")
        self.enforced(s, "P", "killed-after")
        a = s.kinds("action")
        self.assertEqual([(field(x, "action.scope"), field(x, "action.by"), field(x, "action.result")) for x in a],
                         [("process", "agent", "done")])
        self.assertGreater(field(a[0], "action.latency_ns"), 0)

    def test_dry_run_of_a_rule_and_of_all(self):
        dry = rule("K", self.CONDITION, "kill", "dry_run: true") + rule(
            "D", "kind = net.connect and net.dst.ip exists", "deny", "dry_run: true") + rule(
            "O", "kind = file.mkdir and file.path = /tmp/bad", "kill", "dry_run: true")
        script = "mkdir /tmp/bad; " + PY + " -c 'import socket; socket.socket().connect_ex((\"127.0.0.1\", 1))'; echo on"
        for rules, options in ((dry, ()), (dry.replace("dry_run: true", "scope: sandbox"), ["--dry-run-actions"])):
            s = self.judged([rules], "sh", "-c", script, options=options)
            self.assertEqual((s.code, s.out), (0, b"on\n"))
            for name, would in (("K", "kill"), ("D", "be denied"), ("O", "kill")):
                self.enforced(s, name, "dry-run: would " + would)
            self.assertEqual(s.kinds("action"), [])


class Guarded(Actions):
    def test_what_is_never_ended(self):
        """By the part that has the right to, whoever asks it and for whatever."""
        with open("/proc/self/mounts") as f:
            v2 = [line.split()[1] for line in f if line.split()[2] == "cgroup2"][0]
        done = cmd(helper("kill_guard"), v2)
        self.assertCode(done, 0)
        rows = [json.loads(line) for line in done.out.splitlines()]
        foreign, gone = -errno.EXDEV, -errno.ESRCH
        self.assertEqual([(r["what"], r["answer"], r["lives"]) for r in rows], [
            ("nobody", foreign, False), ("all", -errno.EINVAL, False), ("pid 1", foreign, True),
            ("ourselves", foreign, True), ("our parent", foreign, True), ("a process of the host", foreign, True),
            ("the sandbox's init", foreign, True), ("another sandbox's", foreign, True),
            ("a number used again", gone, True), ("ourselves inside", foreign, True), ("one that left", 0, False)])

    def test_a_rule_on_the_act_of_the_sandboxs_first_process(self):
        """The whole sandbox goes, and nothing that only looks like it: a process of the host with the same name."""
        twin = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(twin.wait)
        self.addCleanup(twin.kill)
        s = self.judged([rule("All", "kind = exec and proc.comm = sleep", "kill")], "sleep", "1000")
        self.assertCode(s, 137)
        self.assertEqual(field(s.kinds("action")[0], "action.result"), "done")
        self.assertIsNone(twin.poll())


class Told(Actions):
    def test_fields_of_the_output(self):
        """As Falco's json_output has them: by the name in the output, as numbers where they are, null where absent."""
        text = rule("F", "evt.type in (mkdir, mkdirat) and fd.name = /tmp/bad", "alert").replace(
            "output: o", "output: made by %proc.name = %fd.name (%proc.pid %k8s.ns.name %proc.aname[1] %proc.name)")
        s = self.judged([text], "mkdir", "/tmp/bad")
        a = self.alert(s, "F")
        fields = a["rule"]["output_fields"]
        self.assertEqual(list(fields), ["proc.name", "fd.name", "proc.pid", "k8s.ns.name", "proc.aname[1]"])
        self.assertEqual([fields["proc.name"], fields["fd.name"], fields["k8s.ns.name"]], ["mkdir", "/tmp/bad", None])
        self.assertIs(type(fields["proc.pid"]), int)
        # They are in the record as they are: what reads it again has them, too.
        again = self.warder("events", s.dir, "--filter", "kind = rule.alert")
        self.assertEqual(json.loads(again.out.splitlines()[0])["rule"]["output_fields"], fields)
        same = self.warder("replay", "--rules", self.path("r0.yaml"), s.dir)
        self.assertEqual(same.code, 0, same)
        self.assertIntact(s)


class Live(Actions):
    """Spoken to while it runs. The last line it wrote says how far the payload came: to its second step only when
    it is told to and can, so that nothing hangs on who is faster."""
    SCRIPT = "echo 1; mkdir /tmp/bad; read go; echo 2"

    def begin(self, action, *options, script=None):
        rules = self.path("r.yaml", rule("Ask", "kind = file.mkdir and file.path = /tmp/bad", action))
        return self.start(rules, script or self.SCRIPT, *options)

    def start(self, rules, script, *options):
        folder, argv = self.session_argv(["sh", "-c", script], ["--no-default-rules", "--rules", rules, *options])
        self.folder = folder
        self.err = open(self.path("err%d" % self.count), "w+b")
        self.out = open(self.path("out%d" % self.count), "w+b")
        self.addCleanup(self.err.close)
        self.addCleanup(self.out.close)
        p = subprocess.Popen([a for a in argv if a != "--quiet"], env=self.env, stdin=subprocess.PIPE,
                             stdout=self.out, stderr=self.err)
        self.addCleanup(p.stdin.close)
        self.addCleanup(lambda: p.poll() is None and (p.send_signal(signal.SIGTERM), p.wait()))
        return p

    def end(self, p):
        code = p.wait(60 * SLOW)
        return Session(Done_(code), self.folder), code

    def said(self, pattern):
        def look():
            self.err.seek(0)
            return re.search(pattern, self.err.read().decode())
        return wait_for(pattern, look)

    def go(self, p):
        p.stdin.write(b"\n")
        p.stdin.flush()

    def step(self):
        self.out.seek(0)
        lines = self.out.read().decode().split("\n")
        return lines[-2] if len(lines) > 1 else ""

    def stands(self, step):
        """What it wrote comes by another way than what warder says of it, and later on a busy machine."""
        wait_for("step", self.step)
        self.assertEqual(self.step(), step)


class Stopped(Live):
    """A sandbox that stands still."""

    def test_approved(self):
        p = self.begin("hold")
        name = self.said(r"rule 'Ask' asks: warder approve (\S+), or warder deny").group(1)
        status = self.warder("status")
        self.assertIn("STOPPED by rule 'Ask': warder approve %s" % name, status.out.decode())
        self.go(p)
        self.stands("1")
        bad = self.warder("approve", name[:-1] + "9")
        self.assertNotEqual(bad.code, 0)
        self.assertEqual(self.warder("thaw", name.split("-")[0]).code, 125)
        yes = self.warder("approve", name)
        self.assertEqual(yes.code, 0, yes)
        s, code = self.end(p)
        self.assertEqual((code, self.step()), (0, "2"))
        self.enforced(s, "Ask", "held")
        asked = s.kinds("action")
        self.assertEqual([(field(a, "action.type"), field(a, "action.id"), field(a, "action.result")) for a in asked],
                         [("hold", name, "done")])
        answer = s.kinds("approval")
        self.assertEqual(len(answer), 1)
        self.assertEqual((field(answer[0], "action.result"), field(answer[0], "action.by"), field(answer[0], "rule.name")),
                         ("approved; done", "operator", "Ask"))
        self.assertEqual([e["kind"] for e in s.events if e["id"] == field(answer[0], "rule.trigger")], ["file.mkdir"])
        self.assertRegex(field(answer[0], "action.who"), r"^uid 0, .*pid \d+$")
        self.assertIntact(s)

    def test_denied(self):
        p = self.begin("hold")
        name = self.said(r"warder deny (\S+)").group(1)
        self.go(p)
        self.assertEqual(self.warder("deny", name.lower()).code, 0)
        late = self.warder("approve", name)
        self.assertNotEqual(late.code, 0)
        self.assertRegex(late.err.decode(), "answered already: denied by uid 0|has ended or is just ending|no running session")
        s, code = self.end(p)
        self.assertNotEqual(self.warder("approve", name).code, 0)
        self.assertEqual((code, self.step(), s.result["reason"], s.result["rule"]), (137, "1", "rule", "Ask"))
        self.assertEqual(field(s.kinds("approval")[0], "action.result"), "denied; done")

    def test_nobody_answers(self):
        for answer, code, step in (("deny", 137, "1"), ("approve", 0, "2")):
            p = self.begin("hold", "--hold-timeout", "300ms", "--hold-default", answer)
            self.said("asks")
            if answer == "approve":
                self.go(p)
            s, got = self.end(p)
            self.assertEqual((got, self.step()), (code, step))
            a = s.kinds("approval")[0]
            self.assertEqual(field(a, "action.result").split(";")[0],
                             "timeout: by default " + ("denied" if answer == "deny" else "approved"))
            self.assertEqual((field(a, "action.by"), field(a, "action.who")), ("timeout", None))
            if answer == "deny":
                self.said("rule 'Ask' stopped it, and nobody came in time")

    def test_frozen_and_thawed(self):
        p = self.begin("freeze")
        session = self.said(r"frozen: warder thaw or warder kill (\S+)").group(1)
        self.go(p)
        self.stands("1")
        wait_for("the status", lambda: b"FROZEN by rule Ask: warder thaw or kill; killed at 2" in self.warder("status").out)
        told, = json.loads(self.warder("status", "--json").out)["sessions"]
        self.assertEqual((told["frozen"]["rule"], told["questions"]), ("Ask", []))
        self.assertEqual(self.warder("thaw", session).code, 0)
        wait_for("the status", lambda: b"FROZEN" not in self.warder("status").out)
        s, code = self.end(p)
        self.assertEqual((code, self.step()), (0, "2"))
        self.enforced(s, "Ask", "frozen")
        self.assertEqual([(field(a, "action.type"), field(a, "action.by")) for a in s.kinds("action")],
                         [("freeze", "agent"), ("thaw", "operator")])

    def test_frozen_and_forgotten(self):
        s, code = self.end(self.begin("freeze", "--freeze-timeout", "300ms"))
        self.assertEqual((code, self.step(), s.result["reason"], s.result["rule"]), (137, "1", "rule", "Ask"))
        self.assertIntact(s)

    def test_frozen_by_an_operator_and_forgotten(self):
        p = self.begin("alert", "--freeze-timeout", "300ms", script="echo 1; sleep 100")
        wait_for("step", self.step)
        session = os.listdir(os.path.join(self.env["WARDER_RUN"], "sessions"))[0]
        self.assertEqual(self.warder("freeze", session).code, 0)
        s, code = self.end(p)
        self.assertEqual((code, s.result["reason"]), (137, "freeze_timeout"))
        self.assertEqual([(field(a, "action.type"), field(a, "action.by")) for a in s.kinds("action")],
                         [("freeze", "operator"), ("kill", "timeout")])
        self.assertRegex(field(s.kinds("action")[1], "action.result"), "^timeout: ")

    def test_two_answers_at_once(self):
        p = self.begin("hold")
        name = self.said(r"warder approve (\S+),").group(1)
        both = [subprocess.Popen([WARDER, "approve", name], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(2)]
        told = [(b.communicate(), b.returncode) for b in both]
        self.go(p)
        s, code = self.end(p)
        self.assertEqual((code, self.step()), (0, "2"))
        self.assertEqual(sorted(c for _, c in told), [0, 125])
        self.assertIn(b"it was answered already: approved by uid 0", [e for (_, e), c in told if c][0])
        self.assertEqual(len(s.kinds("approval")), 1)

    def test_frozen_and_interrupted(self):
        p = self.begin("freeze")
        self.said("frozen")
        self.go(p)
        p.send_signal(signal.SIGINT)
        s, code = self.end(p)
        self.assertEqual((code, self.step(), s.result["reason"]), (137, "1", "signal"))

    def test_stopped_at_its_first_act(self):
        """Before the sandbox's init could say that the payload runs, on many a machine."""
        first = self.path("first.yaml", rule("First", "kind = exec and proc.comm = sh", "hold"))
        for verb, code, steps in (("approve", 0, ["2"]), ("deny", 137, ["", "1"])):
            p = self.start(first, self.SCRIPT)
            name = self.said(r"warder deny (\S+)").group(1)
            self.go(p)
            self.assertEqual(self.warder(verb, name).code, 0)
            s, got = self.end(p)
            self.assertEqual(got, code)
            self.assertIn(self.step(), steps)
            self.assertIntact(s)

    def test_by_an_operator(self):
        p = self.begin("alert", script="echo 1; sleep 100")
        wait_for("step", self.step)
        session = os.listdir(os.path.join(self.env["WARDER_RUN"], "sessions"))[0]
        for verb in ("freeze", "thaw", "kill"):
            done = self.warder(verb, session[-6:])
            self.assertEqual(done.code, 0, done)
        s, code = self.end(p)
        self.assertEqual((code, s.result["reason"]), (137, "operator"))
        self.assertEqual([field(a, "action.type") for a in s.kinds("action")], ["freeze", "thaw", "kill"])

    def test_nobody_else_may(self):
        p = self.begin("hold", "--hold-timeout", "20s")
        self.said("asks")
        session = os.listdir(os.path.join(self.env["WARDER_RUN"], "sessions"))[0]
        folder = os.path.join(self.env["WARDER_RUN"], "sessions", session)
        os.chmod(self.tmp, 0o755)
        st = os.stat(os.path.join(folder, "control.sock"))
        self.assertEqual(st.st_mode & 0o777, 0o600)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                # Even for who holds the directory open already.
                fd = os.open(folder, os.O_RDONLY)
                os.setgroups([])
                os.setresgid(12345, 12345, 12345)
                os.setresuid(12345, 12345, 12345)
                c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                c.connect("/proc/self/fd/%d/control.sock" % fd)
            except PermissionError:
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        p.send_signal(signal.SIGTERM)
        p.wait()


class Reloaded(Live):
    """Other rules while it runs: the kernel's part changes with them, or neither does."""
    LOOP = PY + """ -uc '
import socket, time
for i in range(3000):
    print(*[socket.socket().connect_ex(("127.0.0.1", p)) for p in (81, 82)])
    time.sleep(0.02)
'"""

    def deny(self, what):
        text = rule("Net", "kind = net.connect and net.dst.ip exists and " + what, "deny")
        with open(self.path("r.new"), "w") as f:
            f.write(text)
        os.rename(self.path("r.new"), self.path("r.yaml"))

    def test_another_port(self):
        self.deny("net.dst.port = 81")
        p = self.start(self.path("r.yaml"), self.LOOP)
        wait_for("the first port denied", lambda: self.step() == "1 111")
        self.deny("net.dst.port = 82")
        wait_for("the second port denied", lambda: self.step() == "111 1")
        self.deny("proc.comm = x")  # nobody can keep that
        self.said(r"rules not changed .*the kernel does not know 'proc\.comm'")
        self.assertEqual(self.step(), "111 1")
        p.send_signal(signal.SIGTERM)
        s, _ = self.end(p)
        # Between the kernel's change and user space's the old rule sees what nobody denies any more.
        self.assertEqual({(field(a, "net.dst.port"), field(a, "rule.enforced")) for a in s.kinds("rule.alert")}
                         - {(81, "failed-anyway")}, {(81, "prevented"), (82, "prevented")})


class Done_:
    """Of a session that was waited for by hand."""

    def __init__(self, code):
        self.argv, self.code, self.out, self.err = ["warder"], code, b"", b""


if __name__ == "__main__":
    unittest.main()
