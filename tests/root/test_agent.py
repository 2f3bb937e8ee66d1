# SPDX-License-Identifier: Apache-2.0
"""`warder agent`: what it runs for others, who may ask, and that nothing is lost when it, a keeper or a client dies."""

import base64
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from warder import *

need_root()

# Connects to one address of this host are denied.
NO_LIGHTHOUSE = """
- rule: No lighthouse
  desc: it is not there
  condition: evt.type = connect and fd.sip = 127.0.0.9
  output: no
  action: deny
  priority: WARNING
"""


class AgentCase(TestCase):
    command = (WARDER,)  # which binary, and what it is started by

    def setUp(self):
        super().setUp()
        self.agent = None
        self.addCleanup(self.end_all)

    def start(self, config=None):
        if config is not None:
            os.makedirs(self.path("config"), exist_ok=True)
            self.path("config/agent.yaml", config)
        self.agent = subprocess.Popen([*self.command, "agent"], env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = []
        while not self.said or b"ready" not in self.said[-1]:
            line = self.agent.stderr.readline()
            if not line:
                raise AssertionError("the agent did not start: %r" % self.said)
            self.said.append(line)
        self.later = []
        self.reader = threading.Thread(target=lambda agent: self.later.append(agent.stderr.read()), args=(self.agent,),
                                       daemon=True)
        self.reader.start()  # what it says later must not block it

    def end_agent(self, sig=signal.SIGTERM):
        self.agent.send_signal(sig)
        self.agent.wait(30)
        self.reader.join(30)
        self.agent.stderr.close()

    def rest(self):
        """What it said since it was ready: for when it has ended."""
        return b"".join(self.later)

    def ours(self, *words, root=True):
        """(pid, argv) of this test's own processes of `warder agent WORD`, the root part or all."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    argv = f.read().decode("latin-1").split("\0")
                with open("/proc/%s/environ" % pid, "rb") as f:
                    ours = b"WARDER_RUN=" + self.env["WARDER_RUN"].encode() in f.read().split(b"\0")
                with open("/proc/%s/status" % pid) as f:
                    is_root = "\nUid:\t0\t" in f.read()
            except OSError:
                continue
            if ours and (is_root or not root) and argv[1:2] == ["agent"] and argv[2] in words:
                yield int(pid), argv

    def keepers(self):
        """Processes of this test's sandboxes by session: their root part."""
        found = {}
        for pid, argv in self.ours("keep"):
            found.setdefault(argv[3], []).append(pid)
        return found

    def end_all(self):
        if self.agent is None:
            return
        if self.agent.poll() is None:
            self.end_agent()
        for pids in self.keepers().values():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        # All of them: an engine or a packer that lives a moment longer still holds the lock of its control group.
        wait_for("the keepers' end", lambda: not list(self.ours("keep", "park", root=False)))
        self.warder("run", "--no-agent", "--quiet", "--", "true")  # sweeps

    def ps(self, **kw):
        done = self.warder("ps", "--json", **kw)
        self.assertCode(done, 0)
        return [json.loads(line) for line in done.out.splitlines()]

    def create(self, *options, **kw):
        done = self.warder("create", *options, **kw)
        self.assertCode(done, 0)
        return done.out.decode().strip()

    def bundle(self, session):
        return os.path.join(self.path("state"), "sessions", session)

    def wait_sealed(self, session):
        def is_sealed():
            try:
                with open(os.path.join(self.bundle(session), "manifest.json")) as f:
                    return json.load(f).get("state") == "sealed"
            except FileNotFoundError:
                return False
        wait_for("the seal of " + session, is_sealed)

    def events(self, session):
        done = self.warder("events", self.bundle(session))
        self.assertCode(done, 0)
        return [json.loads(line) for line in done.out.splitlines()]


class Life(AgentCase):
    def test_run_is_handed_over(self):
        self.start()
        result = self.path("r.json")
        done = self.warder("run", "--quiet", "--result", result, "--name", "x", "--", "sh", "-c",
                           "cat; echo out; echo err >&2; exit 3", input=b"typed\n")
        self.assertEqual((done.code, done.out, done.err), (3, b"typed\nout\n", b"err\n"))
        with open(result) as f:
            r = json.load(f)
        self.assertEqual((r["reason"], r["exit_code"], r["gaps"]), ("exit", 3, 0))
        self.assertCode(self.warder("verify", r["bundle"]), 0)
        self.assertEqual(self.ps(), [])

    def test_exit_codes_are_those_of_run(self):
        self.start()
        for argv, code in ((["true"], 0), (["/nothing"], 127), (["/etc/passwd"], 126), (["sh", "-c", "kill -9 $$"], 137)):
            with self.subTest(argv):
                self.assertEqual(self.warder("run", "--quiet", "--", *argv).code, code)
        self.assertCode(self.warder("run", "--quiet", "--timeout", "300ms", "--", "sleep", "100"), 124)
        self.assertCode(self.warder("run", "--nonsense", "--", "true"), 125)

    def test_a_hub_is_killed(self):
        """The sandbox goes on; who speaks to it is told so at once, and does not wait for somebody who is dead."""
        self.start("parked: 1\n")
        for _ in range(2):  # of a parked keeper, and of one that comes after
            session = self.create("--", "sh", "-c", "while :; do sleep 0.1; done")
            hub = [p for p in descendants(self.keepers()[session][0]) if comm_of(p) == "warder-hub"][0]
            waits = subprocess.Popen([WARDER, "exec", session, "sleep", "1000"], env=self.env, stdin=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
            self.addCleanup(self._end, waits)
            wait_for("it to run", lambda: has_argument(b"1000"))
            os.kill(hub, signal.SIGKILL)
            self.assertEqual(waits.wait(TIMEOUT), 125)
            done = self.warder("exec", session, "true")
            self.assertCode(done, 125)
            self.assertIn(b"its hub has died", done.err)
            self.assertCode(self.warder("rm", session), 0)
            self.wait_sealed(session)
            self.assertCode(self.warder("verify", self.bundle(session)), 0)

    def test_much_goes_through_both_ways(self):
        self.start()
        data = os.urandom(3 << 20)
        done = self.warder("run", "--quiet", "--", "cat", input=data)
        self.assertCode(done, 0)
        self.assertEqual(done.out, data)

    def test_signals_reach_the_command(self):
        self.start()
        p = subprocess.Popen([WARDER, "run", "--quiet", "--", "sh", "-c", "trap 'echo got; exit 9' TERM; echo up; "
                              "while :; do sleep 0.05; done"], env=self.env, stdout=subprocess.PIPE)
        self.addCleanup(self._end, p)
        self.assertEqual(p.stdout.readline(), b"up\n")
        p.send_signal(signal.SIGTERM)
        self.assertEqual((p.stdout.readline(), p.wait(60)), (b"got\n", 9))

    def test_a_client_that_dies_ends_its_sandbox(self):
        self.start()
        p = subprocess.Popen([WARDER, "run", "--quiet", "--", "sh", "-c", "echo up; sleep 1000"], env=self.env,
                             stdout=subprocess.PIPE)
        self.addCleanup(self._end, p)
        self.assertEqual(p.stdout.readline(), b"up\n")
        session = self.ps()[0]["session"]
        p.kill()
        p.wait()
        wait_for("its end", lambda: not self.ps())
        self.wait_sealed(session)
        stop = [e for e in self.events(session) if e["kind"] == "session.stop"]
        self.assertEqual(stop[0]["run"]["reason"], "hangup")

    def test_create_exec_logs_rm(self):
        self.start()
        session = self.create("--name", "box", "--memory", "64M", "--pids", "32")
        row = self.ps()[0]
        self.assertEqual((row["session"], row["name"], row["state"], row["memory"], row["pids"], row["tenant"], row["uid"]),
                         (session, "box", "running", 64 << 20, 32, "default", 0))
        self.assertCode(self.warder("exec", "box", "sh", "-c", "echo kept > f; echo one"), 0)
        done = self.warder("exec", "-e", "A=b", "--cwd", "/tmp", session[-6:], "--", "sh", "-c",
                           "cat; cat /workspace/f; echo $A $PWD $HOME >&2; id -u; exit 5", input=b"in ")
        self.assertEqual((done.code, done.out, done.err), (5, b"in kept\n1000\n", b"b /tmp /workspace\n"))
        for argv, code in ((["/nothing"], 127), (["/etc/passwd"], 126), (["sh", "-c", "kill -9 $$"], 137),
                           (["--cwd", "/nowhere", "box", "true"], 127)):
            self.assertCode(self.warder("exec", *(argv if argv[0].startswith("--") else ["box", "--", *argv])), code)
        done = wait_for("what was recorded", lambda: (lambda d: d if b"in kept" in d.out else None)(self.warder("logs", "box")))
        self.assertEqual((done.out, done.err), (b"one\nin kept\n1000\n", b"b /tmp /workspace\n"))
        done = self.warder("rm", "box")
        self.assertEqual((done.code, done.out.decode()), (0, session + "\n"))
        self.assertEqual(self.ps(), [])
        self.wait_sealed(session)
        self.assertCode(self.warder("verify", self.bundle(session)), 0)
        events = self.events(session)
        self.assertContiguous(events)
        self.assertEqual([e["run"]["reason"] for e in events if e["kind"] == "session.stop"], ["operator"])
        # All that was executed in it is in its record.
        execs = [e["proc"]["args"] for e in events if e["kind"] == "exec" and e["outcome"] == "success"]
        for args in (["sh", "-c", "echo kept > f; echo one"], ["sh", "-c", "kill -9 $$"]):
            self.assertIn(args, execs)
        # And who asked for it, as the kernel knows him.
        asked = [e for e in events if e["kind"] == "action" and e["action"]["type"] == "exec"]
        self.assertEqual(len(asked), 6)
        self.assertEqual({e["action"]["by"] for e in asked}, {"operator"})
        self.assertRegex(asked[0]["action"]["who"], "^uid 0, gid 0, pid [0-9]+, tenant any$")
        self.assertEqual(self.warder("logs", session).out, b"one\nin kept\n1000\n")

    def lines(self, *argv, code=0, **kw):
        done = self.warder(*argv, **kw)
        self.assertCode(done, code)
        self.assertEqual(done.err, b"")
        return [json.loads(line) for line in done.out.splitlines()]

    def test_as_json(self):
        self.start()
        self.create("--name", "box")
        rows = self.lines("exec", "--json", "box", "sh", "-c", r"cat; echo err >&2; printf 'a\303'; read x < /dev/null; "
                          r"printf '\244\n\377'; exit 3", input=b"in\n", code=3)
        self.assertEqual(rows[-1], {"type": "exit", "code": 3})
        told = {"stdout": b"", "stderr": b""}
        for row in rows[:-1]:
            data = row["data"].encode() if "encoding" not in row else base64.b64decode(row["data"])
            told[row["type"]] += data
        self.assertEqual(told, {"stdout": b"in\na\303\244\n\377", "stderr": b"err\n"})
        self.assertIn({"type": "stderr", "data": "err\n"}, rows)  # text is text
        rows = wait_for("what was recorded", lambda: (lambda r: r if len(r) > 2 else None)(self.lines("logs", "--json", "box")))
        self.assertEqual((rows[-1], {r["type"] for r in rows}), ({"type": "exit", "code": 0}, {"stdout", "stderr", "exit"}))
        self.assertIn("freeze: done", self.lines("pause", "--json", "box")[0]["message"])
        self.lines("resume", "--json", "box")
        row, = self.lines("freeze", "--json", "box")
        self.assertEqual(row["type"], "done")
        self.lines("thaw", "--json", "box")
        source = self.path("source", b"x" * 1000)
        self.assertEqual(self.lines("cp", "--json", source, "box:f"), [{"type": "done", "bytes": 1000, "code": 0}])
        self.assertEqual(self.lines("cp", "--json", "box:f", self.path("back")), [{"type": "done", "bytes": 1000, "code": 0}])
        with open(self.path("back"), "rb") as f:
            self.assertEqual(f.read(), b"x" * 1000)
        row, = [json.loads(line) for line in self.warder("cp", "--json", "box:nothing", self.path("no")).out.splitlines()]
        self.assertEqual((row["type"], row["code"]), ("error", 1))
        session = self.ps()[0]["session"]
        self.assertEqual(self.lines("rm", "--json", "box"), [{"type": "done", "message": session}])
        # Why not is one, too.
        for argv in (["exec", "--json", "box", "true"], ["logs", "--json", "nobody"]):
            rows = self.lines(*argv, code=125)
            self.assertEqual([r["type"] for r in rows], ["error", "exit"])
            self.assertEqual(rows[1]["code"], 125)
        for argv in (["rm", "--json", "box"], ["kill", "--json", "box"], ["pause", "--json", "box"]):
            row, = self.lines(*argv, code=125)
            self.assertEqual(row["type"], "error")
        for argv in (["exec", "--json", "--tty", "box", "sh"], ["cp", "--json", "box:f", "-"]):
            done = self.warder(*argv)
            self.assertCode(done, 125)
            self.assertOneLine(done, "--json")
        self.assertIn("version", self.lines("version", "--json")[0])

    def test_exec_is_under_the_same_law(self):
        self.start()
        self.create("--name", "box", "--pids", "16", "--no-default-rules")
        done = self.warder("exec", "box", PYTHON_IN_SANDBOX, "-c", r"""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None), errno.errorcode[ctypes.get_errno()])
print([l.split()[1] for l in open("/proc/self/status") if l.startswith(("CapEff", "NoNewPrivs", "Seccomp:"))])
print(sorted(int(f) for f in os.listdir("/proc/self/fd"))[:3], len(os.listdir("/proc/self/fd")))
try:
    open("/usr/x", "w")
except OSError as e:
    print(errno.errorcode[e.errno])
pids = []
try:
    for i in range(40):
        pid = os.fork()
        if not pid:
            os.pause() if hasattr(os, "pause") else __import__("signal").pause()
        pids.append(pid)
except OSError as e:
    print(errno.errorcode[e.errno], len(pids) < 16)
for p in pids:
    os.kill(p, 9)
""")
        self.assertCode(done, 0)
        lines = done.out.decode().splitlines()
        self.assertEqual(lines, ["-1 EPERM", "['0000000000000000', '1', '2']", "[0, 1, 2] 4", "EROFS", "EAGAIN True"])

    def test_a_rule_ends_what_exec_brings_in(self):
        self.start()
        session = self.create("--name", "box")
        done = self.warder("exec", "box", "unshare", "-m", "true")
        self.assertCode(done, 137)
        wait_for("its end", lambda: not self.ps())
        self.wait_sealed(session)
        self.assertEqual([e["run"]["reason"] for e in self.events(session) if e["kind"] == "session.stop"], ["rule"])

    def test_background_work_does_not_hold_exec(self):
        self.start()
        self.create("--name", "box")
        done = self.warder("exec", "box", "sh", "-c", "sleep 1000 & echo gone")
        self.assertEqual((done.code, done.out), (0, b"gone\n"))
        done = self.warder("exec", "box", "sh", "-c", "ps -e -o comm= | grep -c sleep")
        self.assertEqual(done.out, b"1\n")

    def test_many_execs_at_once(self):
        self.start()
        self.create("--name", "box")
        ps = [subprocess.Popen([WARDER, "exec", "box", "sh", "-c", "echo %d; cat" % i], env=self.env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(12)]
        for p in ps:
            self.addCleanup(self._end, p)
        for i, p in enumerate(ps):
            self.assertEqual(p.stdout.readline(), b"%d\n" % i)
        for i, p in enumerate(ps):
            out, _ = p.communicate(b"in %d" % i, 60)
            self.assertEqual((p.returncode, out), (0, b"in %d" % i))

    def test_pause_resume_kill(self):
        self.start()
        session = self.create("--name", "box", "--", "sh", "-c", "while :; do sleep 0.1; done")
        self.assertCode(self.warder("pause", "box"), 0)
        wait_for("frozen", lambda: self.ps()[0]["state"] == "frozen")
        self.assertCode(self.warder("resume", "box"), 0)
        wait_for("running", lambda: self.ps()[0]["state"] == "running")
        self.assertCode(self.warder("kill", "box"), 0)
        wait_for("its end", lambda: not self.ps())
        self.wait_sealed(session)
        acts = [e["action"] for e in self.events(session) if e["kind"] == "action"]
        self.assertEqual([a["type"] for a in acts], ["freeze", "thaw", "kill"])
        self.assertRegex(acts[0]["who"], r"^uid 0, pid [0-9]+, by the agent \(uid 0, ")  # the client, then its agent
        self.assertNotIn("by the agent", acts[2]["who"])  # root spoke to the session itself

    def test_life_and_idle_time(self):
        self.start()
        sessions = {}
        for reason, options in (("ttl", ["--ttl", "1s", "--", "sleep", "1000"]), ("idle", ["--idle", "500ms"])):
            sessions[reason] = self.create(*options)
        for reason, session in sessions.items():
            self.wait_sealed(session)
            stop = [e for e in self.events(session) if e["kind"] == "session.stop"][0]
            self.assertEqual(stop["run"]["reason"], reason)

    def test_logs_follow(self):
        self.start()
        self.create("--name", "box", "--", "sh", "-c", "echo first; read x; echo second")
        p = subprocess.Popen([WARDER, "logs", "-f", "box"], env=self.env, stdout=subprocess.PIPE)
        self.addCleanup(self._end, p)
        self.assertEqual(p.stdout.readline(), b"first\n")
        self.assertIn(self.warder("attach", "box", input=b"go\n").code, (0, 125))
        self.assertEqual((p.stdout.readline(), p.stdout.read(), p.wait(60)), (b"second\n", b"", 0))

    def test_create_that_fails(self):
        self.start()
        done = self.warder("create", "--", "/nothing")
        self.assertCode(done, 127)
        self.assertIn(b"not found", done.err)
        wait_for("its end", lambda: not self.ps())
        self.create("--name", "box")
        done = self.warder("create", "--name", "box")
        self.assertCode(done, 125)
        self.assertOneLine(done, "runs already")

    def test_bad_input(self):
        self.start()
        for argv, words in ((["exec", "box", "true"], "no running sandbox"), (["exec", "box"], "no command"),
                            (["exec"], "which sandbox"), (["attach", "abcd"], "no running sandbox"),
                            (["rm", "nobody"], "no running sandbox"), (["logs"], "which sandbox"),
                            (["ps", "x"], "no arguments"), (["create", "--tty"], "exec")):
            with self.subTest(argv):
                done = self.warder(*argv)
                self.assertCode(done, 125)
                self.assertOneLine(done, words)
        path = os.path.join(self.env["WARDER_RUN"], "control.sock")
        for packet in (b"", b"{", b"{}", b'{"op":"ps","op2":1}', b'{"op":"fly"}', b"\xff" * 65536, b'{"op":"exec","argv":[' +
                       b'"a",' * 5000, b'{"op":"ps"} '):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.settimeout(60)
            s.connect(path)
            s.send(packet)
            answer = s.recv(65536)
            self.assertTrue(answer == b"" or b'"error"' in answer or b'"exit":0' in answer, answer)
            s.close()
        self.assertEqual(self.ps(), [])  # it is there after all that
        done = self.warder("agent")
        self.assertCode(done, 125)
        self.assertOneLine(done, "runs already")

    def test_no_agent(self):
        for argv in (["ps"], ["create"], ["exec", "x", "true"], ["logs", "abcd"]):
            done = self.warder(*argv)
            self.assertCode(done, 125)
            self.assertOneLine(done, "no agent answers")
        self.assertEqual(self.warder("run", "--quiet", "--", "echo", "x").out, b"x\n")  # by itself


class Death(AgentCase):
    def test_the_agent_is_killed(self):
        self.start()
        box = self.create("--name", "box")
        self.assertEqual(self.warder("exec", "box", "sh", "-c", "echo kept > f").code, 0)
        p = subprocess.Popen([WARDER, "run", "--quiet", "--", "sh", "-c", "echo up; read x; echo $x; exit 6"], env=self.env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self._end, p)
        self.assertEqual(p.stdout.readline(), b"up\n")
        self.end_agent(signal.SIGKILL)
        # Nobody noticed.
        out, _ = p.communicate(b"on\n", 60)
        self.assertEqual((p.returncode, out), (6, b"on\n"))
        self.start()
        self.assertIn(b"found 1 sandbox", b"".join(self.said))
        self.assertEqual([r["session"] for r in self.ps()], [box])
        self.assertEqual(self.warder("exec", "box", "cat", "f").out, b"kept\n")
        self.assertCode(self.warder("rm", "box"), 0)
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)
        events = self.events(box)
        self.assertContiguous(events)
        self.assertFalse([e for e in events if e["kind"] == "gap"])
        self.assertEqual(len([e for e in events if e["kind"] == "exec" and e["outcome"] == "success"
                              and e["proc"]["args"] == ["cat", "f"]]), 1)

    def test_a_keeper_is_killed(self):
        self.start()
        box, other = self.create("--name", "box"), self.create("--name", "other")
        p = subprocess.Popen([WARDER, "exec", "box", "sh", "-c", "echo up; sleep 1000"], env=self.env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self._end, p)
        self.assertEqual(p.stdout.readline(), b"up\n")
        for pid in self.keepers()[box]:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(p.wait(60), 125)
        self.assertIn(b"died", p.stderr.read())
        wait_for("it to be swept", lambda: [r["session"] for r in self.ps()] == [other])
        wait_for("its control groups to go", lambda: not any(box in c for c in own_cgroups()))
        self.assertCode(self.warder("exec", "other", "true"), 0)
        # What was seen until then is accounted for.
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)

    def test_stopping_the_agent_leaves_what_runs(self):
        self.start()
        box = self.create("--name", "box")
        self.end_agent()
        self.assertEqual(self.agent.returncode, 0)
        self.start()
        self.assertEqual([r["session"] for r in self.ps()], [box])


class Rights(AgentCase):
    UID = 23456

    def other(self, *argv, **kw):
        return cmd("setpriv", "--reuid", str(self.UID), "--regid", str(self.UID), "--clear-groups", WARDER, *argv,
                   env=self.env, **kw)

    def setUp(self):
        super().setUp()
        # Others must be able to pass to the socket.
        run = tempfile.mkdtemp(prefix="warder-agent-", dir="/tmp")
        self.addCleanup(shutil.rmtree, run, ignore_errors=True)
        os.chmod(run, 0o711)
        self.env["WARDER_RUN"] = os.path.join(run, "run")

    def test_others_may_not(self):
        self.start()
        done = self.other("ps")
        self.assertCode(done, 125)
        self.assertOneLine(done, "may not speak")

    def test_a_tenant_has_its_own(self):
        self.start("tenants:\n  them: { groups: ['%s'], sandboxes: 2 }\npolicies: [default, strict]\n" % self.group())
        mine = self.create("--name", "box")
        done = self.other("create", "--name", "box2", "--policy", "strict")
        self.assertCode(done, 0)
        self.assertEqual([r["name"] for r in self.ps()], ["box", "box2"])
        done = self.other("ps", "--json")
        rows = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual([(r["name"], r["tenant"], r["uid"]) for r in rows], [("box2", "them", self.UID)])
        self.assertEqual(self.other("exec", "box2", "echo", "x").out, b"x\n")
        for argv in (["exec", "box", "true"], ["rm", "box"], ["logs", "box"], ["exec", mine, "true"]):
            done = self.other(*argv)
            self.assertCode(done, 125)
            self.assertOneLine(done, "no running sandbox")
        for options in (["--rw", "/etc"], ["--ro", "/root"], ["--result", "/tmp/x"], ["--session-dir", "/tmp/x"],
                        ["--secret", "a=/etc/shadow"], ["--no-default-rules"], ["--rules", "/etc/shadow"],
                        ["--tenant", "default"], ["--redact", "off"], ["--policy", "dev"], ["--policy", "/etc/passwd"],
                        ["--net", "host"], ["--workspace", "/etc"], ["--record", "none"], ["--sign", "never"],
                        ["--export", "file:/etc/x"], ["--dry-run-actions"], ["--hold-default", "approve"]):
            with self.subTest(options):
                done = self.other("run", *options, "--", "true")
                self.assertCode(done, 125)
                self.assertOneLine(done)
        self.assertCode(self.other("rm", "box2"), 0)
        self.assertEqual([r["name"] for r in self.ps()], ["box"])

    @staticmethod
    def group():
        """A group of this host that has no members: setpriv gives it by number."""
        import grp
        g = [g for g in grp.getgrall() if not g.gr_mem and g.gr_gid][0]
        Rights.UID = g.gr_gid
        return g.gr_name


class Quota(AgentCase):
    def test_number_and_sums(self):
        self.start("queue: 0\ntenants:\n  t: { sandboxes: 2, memory: 256M, cpu: 3, disk: 100M }\n")
        small = ["--tenant", "t", "--memory", "64M", "--disk", "16M", "--cpus", "1"]
        first = self.create(*small)
        for options, words in ((["--memory", "255M"], "memory"), (["--disk", "90M"], "disk"), (["--cpus", "2.5"], "cpu")):
            done = self.warder("create", *small, *options)
            self.assertCode(done, 125)
            self.assertOneLine(done, words, "tenant 't'", "in use")
        done = self.warder("create", *small, "--memory", "512M")
        self.assertCode(done, 125)
        self.assertOneLine(done, "never", "memory")
        self.create(*small)
        done = self.warder("run", *small, "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "sandboxes")
        self.assertCode(self.warder("run", "--quiet", "--tenant", "other", "--", "true"), 0)
        self.assertCode(self.warder("rm", first), 0)
        self.assertCode(self.warder("run", "--quiet", *small, "--", "true"), 0)

    def test_the_queue(self):
        self.start("queue: 2\nqueue_wait: 100s\nquota: { sandboxes: 1 }\n")
        first = self.create()
        waiting = []
        for i in range(2):
            waiting.append(subprocess.Popen([WARDER, "run", "--quiet", "--", "echo", str(i)], env=self.env,
                                            stdout=subprocess.PIPE))
            self.addCleanup(self._end, waiting[-1])
            wait_for("a place in the queue", lambda: self.tickets() == i + 1)
        done = self.warder("run", "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "2 wait already")
        # Another tenant does not wait with them.
        self.assertCode(self.warder("run", "--quiet", "--tenant", "other", "--", "true"), 0)
        self.assertCode(self.warder("rm", first), 0)
        for i, p in enumerate(waiting):
            self.assertEqual((p.wait(100), p.stdout.read()), (0, b"%d\n" % i))
        self.assertEqual(self.tickets(), 0)

    def test_who_leaves_the_queue(self):
        self.start("queue: 2\nqueue_wait: 500ms\nquota: { sandboxes: 1 }\n")
        self.create()
        done = self.warder("run", "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "no room", "sandboxes")
        self.assertEqual(self.tickets(), 0)

    def tickets(self):
        top = os.path.join(self.env["WARDER_RUN"], "keepers")
        return sum(len(os.listdir(os.path.join(top, n))) for n in os.listdir(top) if n.startswith(".queue-"))

    def test_a_bad_file(self):
        for text, place, words in (("group: [x]\n", ":1:9", "groups"), ("queue: many\n", ":1:8", "number"),
                                   ("queue: [1, 2]\n", ":1:9", "one value"),
                                   ("tenants: { a: { cpu: [1, 9] } }\n", ":1:23", "one value"),
                                   ("tenants: { a: { memory: x } }\n", ":1:25", "size")):
            os.makedirs(self.path("config"), exist_ok=True)
            path = self.path("config/agent.yaml", text)
            for argv in (["agent", "--check"], ["agent"]):
                done = self.warder(*argv)
                self.assertCode(done, 125)
                self.assertOneLine(done, path + place, words)


class Terminal(AgentCase):
    def at_terminal(self, *argv):
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(WARDER, [WARDER, *argv], dict(self.env, TERM="xterm"))
        self.addCleanup(os.close, fd)
        return pid, fd

    def read_until(self, fd, word):
        seen = b""

        def more():
            nonlocal seen
            if select.select([fd], [], [], 0.1)[0]:
                try:
                    seen += os.read(fd, 65536)
                except OSError:
                    return seen
            return word in seen
        wait_for(repr(word), more)
        return seen

    def ended(self, pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_exec_tty(self):
        self.start()
        self.create("--name", "box")
        pid, fd = self.at_terminal("exec", "--tty", "box", "sh")
        self.read_until(fd, b"$ ")
        os.write(fd, b"tty; echo $TERM; stty -a | head -1\n")
        self.assertIn(b"/dev/pts/", self.read_until(fd, b"rows"))
        os.write(fd, b"sleep 1000\n")
        self.read_until(fd, b"sleep 1000")
        wait_for("sleep", lambda: b"sleep" in self.warder("exec", "box", "ps", "-e", "-o", "comm=").out)
        os.write(fd, b"\x03")
        self.read_until(fd, b"$ ")
        os.write(fd, b"exit 7\n")
        self.assertEqual(self.ended(pid), 7)

    def test_attach_and_detach(self):
        self.start()
        pid, fd = self.at_terminal("run", "--quiet", "--tty", "--name", "shell", "--", "sh")
        self.read_until(fd, b"$ ")
        os.write(fd, b"x=remembered\n")
        self.read_until(fd, b"$ ")
        os.write(fd, b"\x10\x11")
        self.assertEqual(self.ended(pid), 0)
        session = self.ps()[0]["session"]
        pid, fd = self.at_terminal("attach", "shell")
        self.read_until(fd, b"$ ")
        os.write(fd, b"echo is $x\n")
        self.read_until(fd, b"is remembered")
        os.write(fd, b"exit 4\n")
        self.assertEqual(self.ended(pid), 4)
        self.wait_sealed(session)
        self.assertCode(self.warder("verify", self.bundle(session)), 0)

    def test_attach_shows_what_was(self):
        self.start()
        self.create("--name", "box", "--", "sh", "-c", "echo before; read x; echo got $x; read y")
        p = subprocess.Popen([WARDER, "attach", "box"], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self._end, p)
        self.assertEqual(p.stdout.readline(), b"before\n")
        p.stdin.write(b"it\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), b"got it\n")
        p.kill()
        p.wait()
        self.assertEqual(len(self.ps()), 1)  # it goes on without
        asked = wait_for("the event", lambda: [e for e in self.events(self.ps()[0]["session"]) if e["kind"] == "action" and e["action"]["type"] == "attach"])
        self.assertRegex(asked[0]["action"]["who"], "^uid 0, gid 0, pid %d, tenant any$" % p.pid)
        self.create("--name", "empty")
        done = self.warder("attach", "empty")
        self.assertCode(done, 125)
        self.assertOneLine(done, "warder exec")


if __name__ == "__main__":
    unittest.main()
