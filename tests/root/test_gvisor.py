# SPDX-License-Identifier: Apache-2.0
"""A sandbox under gVisor: the same policy, told the same way, and nothing left behind. With each runsc that there is, and
what depends on it with each platform."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

import leftovers
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_agent
import test_egress
from gvisor import RUNSCS, GvisorCase, WithRunsc, each_runsc
from terminal import Terminal
from warder import *

need_root()

PY = PYTHON_IN_SANDBOX


def gvisor_processes():
    """Processes of gVisor on this host, by pid: runsc itself, and what it has become."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                name = f.read().split(b"\0")[0]
        except OSError:
            continue
        if name.startswith(b"runsc") or name == b"/runsc":
            found.add(pid)
    return found


class Ends(GvisorCase):
    """How it ended, told apart."""

    def test_exit_code_and_output(self):
        s = self.sh("echo out; echo err >&2; cat; exit 3", input=b"in")
        self.assertEqual((s.code, s.out, s.err), (3, b"out\nin", b"err\n"), s)
        self.assertEqual((s.result["reason"], s.result["backend"], s.result["signal"]), ("exit", "gvisor", 0))
        self.assertIntact(s)

    def test_codes_of_its_own_are_not_taken_for_others(self):
        """What gVisor itself ends with when something is wrong, as the payload's own code."""
        for code in (2, 128, 137, 159):
            with self.subTest(code=code):
                s = self.sh("exit %d" % code)
                self.assertEqual((s.code, s.result["reason"], s.result["signal"]), (code, "exit", 0), s)

    def test_signals(self):
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            with self.subTest(sig=sig):
                s = self.sh("kill -%d $$" % sig)
                self.assertEqual((s.code, s.result["reason"], s.result["signal"]), (128 + sig, "signal", sig), s)

    def test_commands_that_cannot_run(self):
        self.assertEqual(self.session("no-such-command").code, 127)
        self.assertEqual(self.session("/etc/passwd").code, 126)
        s = self.session(b"\xff\xfe")
        self.assertEqual(s.code, 125)
        self.assertIn(b"UTF-8", s.err)

    def test_timeout(self):
        s = self.session("sleep", "1000", options=["--timeout", "3s"])
        self.assertEqual(self.reason(s), (124, "timeout"), s)

    def test_memory(self):
        s = self.session(PY, "-c", "x = bytearray(400 << 20)", options=["--memory", "150M"])
        if "limit.memory" in s.result["degraded"]:
            self.skipTest("this host has no memory controller")
        self.assertEqual(self.reason(s), (137, "oom"), s)

    def test_processes(self):
        """The guest is refused, and goes on."""
        s = self.sh("i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; echo all", "--pids", "10")
        self.assertIn(b"fork", s.err.lower(), s)
        self.assertNotIn(b"all", s.out)
        self.assertEqual({(e["limit"]["type"], e["limit"]["effect"], e["vantage"]) for e in s.kinds("limit")},
                         {("pids", "refused", "guest")})
        s = self.sh("i=0; while [ $i -lt 8 ]; do sleep 0 & i=$((i+1)); done; wait; echo all", "--pids", "20")
        self.assertEqual((s.code, s.out), (0, b"all\n"), s)

    def test_a_signal_is_passed_on(self):
        proc, finish = self.start_session("sh", "-c", "trap 'echo got; exit 5' TERM; echo up; while :; do sleep 1; done")
        self.assertEqual(proc.stdout.readline(), b"up\n")
        proc.send_signal(signal.SIGTERM)
        s = finish()
        self.assertEqual((s.code, s.out), (5, b"got\n"), s)


class View(GvisorCase):
    """What the payload can see and do."""

    def test_who_it_is_and_where(self):
        s = self.sh("id -u; pwd; uname -n; grep Cap /proc/self/status; grep NoNewPrivs /proc/self/status; echo $HOME",
                    "--name", "box")
        self.assertEqual(s.code, 0, s)
        out = s.out.decode().split("\n")
        self.assertEqual(out[:3], ["1000", "/workspace", "box"])
        for line in out[3:]:
            if line.startswith("Cap"):
                self.assertEqual(int(line.split()[1], 16), 0, s)

    def test_it_is_gvisor(self):
        s = self.session("dmesg")
        self.assertIn(b"gVisor", s.out, s)

    def test_the_root_is_an_allow_list_and_read_only(self):
        s = self.session(PY, "-c", """
import os
for p in ("/root", "/home", "/etc/shadow", "/dev/vda", "/work", "/bundle", "/state", "/runsc", "/tree", "/sink"):
    assert not os.path.exists(p), p
for p in ("/x", "/usr/x", "/etc/x", "/run/../usr/bin/x"):
    try:
        open(p, "w"); raise SystemExit("could write " + p)
    except OSError: pass
for p in ("/workspace/x", "/tmp/x", "/var/tmp/x", "/run/x", "/dev/shm/x"):
    open(p, "w").write("x")
print(open("/etc/passwd").read().count("sandbox:x:1000"))
""")
        self.assertEqual((s.code, s.out), (0, b"1\n"), s)

    def test_sizes(self):
        s = self.sh("dd if=/dev/zero of=x bs=64k count=200 2>&1 | grep -o 'No space left'", "--disk", "2M")
        self.assertEqual(s.out, b"No space left\n", s)

    def test_programs_run_from_workspace_and_tmp_only(self):
        s = self.sh("for d in /workspace /tmp /run; do cp /bin/true $d/t; $d/t && echo $d; done 2>/dev/null; true")
        self.assertEqual(s.out, b"/workspace\n/tmp\n", s)

    def test_environment_and_directory(self):
        s = self.sh("echo $A; pwd", "--env", "A=b c", "--cwd", "/tmp")
        self.assertEqual(s.out, b"b c\n/tmp\n", s)

    def test_a_secret(self):
        secret = self.path("secret", "pass-word-1234")
        os.chmod(secret, 0o600)
        s = self.session(PY, "-c", """
import os
st = os.stat("/run/secrets/k")
print(open("/run/secrets/k").read().upper(), oct(st.st_mode), st.st_uid, "pass" in str(os.environ))
try: open("/run/secrets/x", "w")
except OSError: print("refused")
""", options=["--secret", "k=" + secret])
        self.assertEqual(s.out, b"PASS-WORD-1234 0o100400 1000 False\nrefused\n", s)

    def test_a_secret_ends(self):
        secret = self.path("secret", "pass-word-1234")
        os.chmod(secret, 0o600)
        s = self.sh("while [ -e /run/secrets/k ]; do cat /run/secrets/k >/dev/null; sleep 1; done; echo gone",
                    "--secret", "k=%s,ttl=3s" % secret)
        self.assertEqual((s.code, s.out), (0, b"gone\n"), s)

    def test_the_host_sees_private_ids(self):
        """Not one of gVisor's processes has an id, or a right, of the host's."""
        proc, finish = self.start_session("sh", "-c", "echo up; sleep 1000")
        self.assertEqual(proc.stdout.readline(), b"up\n")
        seen, here = {}, os.readlink("/proc/self/ns/user")
        for pid in self.sandboxed(proc.pid):
            with open("/proc/%d/status" % pid) as f:
                status = dict(line.split(":", 1) for line in f.read().splitlines())
            seen[pid] = int(status["Uid"].split()[0]), os.readlink("/proc/%d/ns/user" % pid)
        self.assertGreaterEqual(len(seen), 4, seen)  # keeper, gofer, sentry, stubs
        for uid, ns in seen.values():
            self.assertGreaterEqual(uid, 0x50000000, seen)
            self.assertNotEqual(ns, here, seen)
        proc.kill()

    @staticmethod
    def sandboxed(top):
        """What descends from this warder and is in a control group of a sandbox."""
        table, found = leftovers.proc_table(), []
        for pid, (_, _, groups) in table.items():
            at = pid
            while at in table and at != top:
                at = table[at][0]
            if at == top and any(g and g != "warder" for g in groups):
                found.append(pid)
        return found


class Workspaces(GvisorCase):
    def test_what_it_left_is_told(self):
        s = self.sh("echo new > a; mkdir d; echo x > d/b")
        self.assertEqual(s.code, 0, s)
        self.assertEqual(sorted(e["file"]["path"] for e in s.kinds("workspace.change")),
                         ["/workspace/a", "/workspace/d", "/workspace/d/b"])

    def test_of_the_operator(self):
        ws = idmapped(self, "ws")
        os.chmod(ws, 0o755)
        with open(os.path.join(ws, "old"), "w") as f:
            f.write("1")
        s = self.sh("cat old; echo 2 > old; echo n > new; test -O new && echo mine", "--workspace", ws)
        if s.code == 125 and b"id-mapped" in s.err:
            self.skipTest("the file system of %s has no id-mapped mounts on this kernel" % self.tmp)
        self.assertEqual((s.code, s.out), (0, b"1mine\n"), s)
        self.assertEqual({n: os.stat(os.path.join(ws, n)).st_uid for n in os.listdir(ws)}, {"old": 0, "new": 0})
        self.assertEqual({e["file"]["path"]: e["file"]["change"] for e in s.kinds("workspace.change")},
                         {"/workspace/old": "changed", "/workspace/new": "created"})

    def test_read_only_binds(self):
        d = self.path("ro")
        os.mkdir(d)
        with open(os.path.join(d, "f"), "w") as f:
            f.write("text")
        s = self.sh("cat /in/f; touch /in/g || echo refused", "--ro", d + ":/in")
        self.assertEqual(s.out, b"textrefused\n", s)


class Terminals(GvisorCase):
    def start(self, *command, rows=33, cols=99):
        folder, argv = self.session_argv(command, ["--tty"])
        t = Terminal(argv, rows, cols, {**self.env, "TERM": "xterm"})
        self.addCleanup(t.__exit__)
        return t

    def test_a_terminal_and_its_size(self):
        t = self.start(PY, "-c", "import os; print(os.isatty(0), os.isatty(2), os.get_terminal_size())")
        self.assertEqual(t.end(), 0, t.out)
        self.assertIn(b"True True os.terminal_size(columns=99, lines=33)", t.out)

    def test_interrupt(self):
        t = self.start("sh", "-c", "trap 'echo GOT; exit 7' INT; echo ready; while :; do sleep 1; done")
        t.expect(b"ready")
        t.type(b"\x03")
        self.assertEqual(t.end(), 7, t.out)
        self.assertIn(b"GOT", t.out)


class Network(GvisorCase):
    """The same way out as that of namespaces, against real servers on addresses of the test's own."""

    def setUp(self):
        super().setUp()
        need("ip", "nsenter")
        self.net = test_egress.Internet()
        self.net.__enter__()
        self.addCleanup(self.net.__exit__)
        self.net.listen(test_egress.WEB, 80, test_egress.web)

    def go(self, net, *words, options=()):
        dns = ["--net-dns", test_egress.RESOLVER] if net != "none" and net != "host" else []
        s = self.session(PY, "-c", test_egress.CLIENT, *words, netns=self.net.host,
                         options=["--no-default-rules", "--net", net, *dns, *options])
        self.assertEqual(s.code, 0, s)
        return s, [json.loads(line) for line in s.out.splitlines()]

    def test_none(self):
        _, said = self.go("none", "get," + test_egress.WEB, "look,good.example", "serve,8080")
        self.assertRegex(said[0], "nreachable|refused|not permitted|No route")
        self.assertIn("gaierror", said[1])
        self.assertEqual(said[2], "own")

    def test_allow(self):
        s, said = self.go("allow=good.example", "get,good.example", "look,other.example", "get," + test_egress.WEB,
                          "get," + test_egress.OTHER)
        self.assertEqual(said[0], "web")
        self.assertIn("gaierror", said[1])
        for i in (2, 3):
            self.assertRegex(said[i], "nreachable|refused|not permitted|No route")
        self.assertEqual([(field(e, "net.dst.name"), e["outcome"]) for e in s.kinds("net.connect", vantage="runtime")],
                         [("good.example", "success")])

    def test_open(self):
        _, said = self.go("open", "get,good.example", "get," + test_egress.WEB, "get,10.1.2.3", "get,169.254.169.254")
        self.assertEqual(said[:2], ["web", "web"])
        for i in (2, 3):
            self.assertNotEqual(said[i], "web")

    def test_host(self):
        _, said = self.go("host", "get," + test_egress.WEB)
        self.assertEqual(said, ["web"])


class Life(GvisorCase):
    def test_a_killed_warder_leaves_nothing(self):
        before, mounts = gvisor_processes(), set(leftovers.mounts())
        proc, _ = self.start_session("sh", "-c", "echo up; sleep 1000")
        self.assertEqual(proc.stdout.readline(), b"up\n")
        wait_for("gVisor's processes", lambda: gvisor_processes() - before)
        proc.kill()
        proc.wait()
        wait_for("gVisor's end", lambda: not gvisor_processes() - before)
        done = self.warder("run", "--quiet", "--", "true")  # sweeps the control group
        self.assertCode(done, 0)
        self.assertEqual(set(leftovers.mounts()) - mounts, set())

    def test_many_at_once(self):
        n, got, slots = 20, {}, threading.Semaphore(6)

        def one(i, folder, argv):
            with slots:
                got[i] = cmd(*argv, env=self.env)
        made = [(i, *self.session_argv(["sh", "-c", "echo %d; exit %d" % (i, i)], ["--no-default-rules"])) for i in range(n)]
        threads = [threading.Thread(target=one, args=m) for m in made]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        got = [got[i] for i in range(n)]
        self.assertEqual([(s.code, s.out) for s in got], [(i, b"%d\n" % i) for i in range(n)])

    def test_platforms(self):
        """Each that this runsc has, by its own list; others are refused before anything runs."""
        listed = cmd(self.env["WARDER_RUNSC"], "help", "platforms")
        for name in ("ptrace", "systrap", "kvm"):
            s = self.session("sh", "-c", "echo in; exit 4", options=["--platform", name])
            if name != "kvm" and name.encode() in listed.out + listed.err:
                self.assertEqual((s.code, s.out), (4, b"in\n"), s)
            else:
                self.assertEqual(s.code, 125, s)
                self.assertIn(name.encode(), s.err)

    def test_doctor(self):
        done = self.warder("doctor", "--json")
        rows = {r["name"]: r for r in json.loads(done.out)["features"]}
        self.assertTrue(rows["gvisor"]["ok"], rows)
        self.assertTrue(rows["gvisor.ptrace"]["ok"] or rows["gvisor.systrap"]["ok"], rows)

    def test_absent(self):
        self.env["WARDER_RUNSC"] = "/nonexistent/runsc"
        s = self.session("true")
        self.assertEqual(s.code, 125, s)
        self.assertIn(b"/nonexistent/runsc", s.err)

    def test_a_runsc_that_hangs_or_lies(self):
        """Whatever stands in its place: a clear error in time, and nothing left."""
        for name, body, word in (("not", "exit 0", b"not a runsc"), ("fails", "echo boom >&2; exit 1", b"not a runsc")):
            with self.subTest(name=name):
                path = self.path(name, "#!/bin/sh\n%s\n" % body)
                os.chmod(path, 0o755)
                self.env["WARDER_RUNSC"] = path
                s = self.session("true")
                self.assertEqual(s.code, 125, s)
                self.assertIn(word, s.err, s)

    def test_one_that_others_can_change_is_not_run(self):
        path = self.path("runsc")
        shutil.copy(RUNSCS[0].path, path)
        os.chmod(path, 0o777)
        self.env["WARDER_RUNSC"] = path
        s = self.session("true")
        self.assertEqual(s.code, 125, s)
        self.assertIn(b"runsc", s.err)


class Hostile(GvisorCase):
    """A sentry in the hands of somebody (tests/helpers/fake_runsc.c): bounded, told apart, and nobody is harmed.
    By tests/helpers/sbx: nobody waits for what such a sentry would tell of its guest."""

    def setUp(self):
        super().setUp()
        path = self.path("runsc")
        shutil.copy(helper("fake_runsc"), path)
        os.chmod(path, 0o755)
        self.env["WARDER_RUNSC"] = path

    def sbx(self, mode):
        self.count += 1
        done = cmd(helper("sbx"), "--backend", "gvisor", "--session", "fake-%d-%d" % (os.getpid(), self.count), "--", mode,
                   env=self.env)
        done.json = json.loads(done.err.splitlines()[-1])
        return done

    def test_the_fake_itself(self):
        done = self.sbx("good")
        self.assertEqual((done.code, done.json["died"]), (7, False), done)

    def test_answers_that_are_none(self):
        for mode in ("garbage", "flood", "close", "refuse"):
            with self.subTest(mode=mode):
                done = self.sbx(mode)
                self.assertEqual(done.code, 125, done)
                self.assertLess(len(done.err), 2000)
                self.assertTrue(all(32 <= b < 127 for b in done.json["text"].encode()), done)

    def test_no_answer(self):
        self.assertEqual(self.sbx("silent").code, 125)

    def test_an_end_that_nobody_explains(self):
        done = self.sbx("lie")
        self.assertEqual((done.code, done.json["died"], done.json["death_code"]), (137, True, 9), done)

    def test_killed_by_its_own_filter(self):
        done = self.sbx("dies")
        self.assertEqual((done.code, done.json["died"], done.json["death_signal"]), (137, True, signal.SIGSYS), done)


class Agent(WithRunsc, test_agent.AgentCase):
    """Further commands: started by the launcher, who tells of them, since gVisor does not."""

    def test_create_exec_rm(self):
        self.start()
        session = self.create("--backend", "gvisor", "--name", "box")
        self.assertCode(self.warder("exec", "box", "sh", "-c", "echo kept > f"), 0)
        done = self.warder("exec", "-e", "A=b", "--cwd", "/tmp", "box", "--", "sh", "-c",
                           "cat; cat /workspace/f; echo $A $PWD >&2; id -u; exit 5", input=b"in ")
        self.assertEqual((done.code, done.out, done.err), (5, b"in kept\n1000\n", b"b /tmp\n"))
        for argv, code in ((["/nothing"], 127), (["/etc/passwd"], 126), (["sh", "-c", "kill -9 $$"], 137)):
            self.assertCode(self.warder("exec", "box", "--", *argv), code)
        self.assertCode(self.warder("rm", "box"), 0)
        self.wait_sealed(session)
        self.assertCode(self.warder("verify", self.bundle(session)), 0)
        execs = [e["proc"]["args"] for e in self.events(session) if e["kind"] == "exec" and e["vantage"] == "runtime"]
        for args in (["sh", "-c", "echo kept > f"], ["sh", "-c", "kill -9 $$"]):
            self.assertIn(args, execs)
        self.assertNotIn(["/nothing"], execs)

    def test_pause_resume_kill(self):
        self.start()
        session = self.create("--backend", "gvisor", "--name", "box", "--", "sh", "-c", "while :; do sleep 1; done")
        self.assertCode(self.warder("pause", "box"), 0)
        wait_for("frozen", lambda: self.ps()[0]["state"] == "frozen")
        self.assertCode(self.warder("resume", "box"), 0)
        wait_for("running", lambda: self.ps()[0]["state"] == "running")
        self.assertCode(self.warder("exec", "box", "true"), 0)
        self.assertCode(self.warder("kill", "box"), 0)
        wait_for("its end", lambda: not self.ps())
        self.wait_sealed(session)


load_tests = each_runsc(Workspaces, Terminals, Network, Life, Agent, every=(Ends, View))

if __name__ == "__main__":
    unittest.main()
