# SPDX-License-Identifier: Apache-2.0
"""An engine that was taken over (tests/helpers/takeover.c): it gains nothing, reaches nobody else's, and is told of."""

import ctypes
import glob
import os
import re
import signal
import socket
import subprocess
import sys
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1) > 0  # its version


class Takeover(AgentCase):
    def taken(self, act, options=(), files=(), **env):
        """A session whose engine does `act` while its payload runs."""
        folder, argv = self.session_argv(["sh", "-c", "echo ready; read line; /bin/true; exec sleep 300.79"], options)
        proc = subprocess.Popen([helper("takeover"), *argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                env=dict(self.env, WARDER_TAKEOVER=act, WARDER_TAKEOVER_FILES=":".join(files), **env))
        self.addCleanup(self._end, proc)
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        engine = engine_of(proc.pid)
        os.kill(engine, signal.SIGUSR1)
        proc.stdin.write(b"\n")
        proc.stdin.flush()
        return proc, engine, folder

    def came_of(self, proc, act):
        """What came of it: {what: errno}."""
        found = {}
        for line in proc.stderr:
            what, _, how = line.decode().rstrip("\n").rpartition(": ")
            if (what, how) == (act, "over"):
                return found
            found[what] = how
        self.fail("it ended before it was over: %r" % found)

    @unittest.skipUnless(LANDLOCK, "this kernel has no Landlock: sessions of one user are not kept from each other")
    def test_it_gains_and_reaches_nothing(self):
        """Of what it tries nothing is a reason to end it: it may read what it keeps itself."""
        self.assertCode(self.warder("keys", "init"), 0)
        other = self.session("true", options=["--tenant", "other"])
        self.assertCode(other, 0)
        record = sorted(glob.glob(os.path.join(other.dir, "events.*.seg")) + [os.path.join(other.dir, "manifest.json")])
        keys = [p for p in glob.glob(self.path("state/keys/**"), recursive=True) if os.path.isfile(p)]
        kill = [os.path.join(c, "cgroup.procs") for c in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                if os.path.exists(os.path.join(c, "cgroup.procs"))]
        self.assertTrue(len(record) == 2 and keys and kill)
        # its user could read it: all that stands in between is what the engine may open
        self.assertEqual(os.stat(record[0]).st_uid, os.stat(os.path.dirname(record[0])).st_uid)
        files = record + keys + kill + ["/etc/shadow", self.env["WARDER_STATE"]]
        proc, engine, _ = self.taken("quiet", files=files)
        found = self.came_of(proc, "quiet")
        for path in files:
            for how in ("read", "write"):
                self.assertIn(found["%s %s" % (how, path)], ("EACCES", "EPERM", "EISDIR") if how == "write" else
                              ("EACCES", "EPERM"), (how, path))
        for what in ("read above its record", "memory of the root part", "descriptors of the root part"):
            self.assertEqual(found[what], "EACCES", what)
        for what in ("setreuid", "setfsuid", "ambient capability", "dumpable", "fork", "socket"):
            self.assertEqual(found[what], "EPERM", what)
        self.assertEqual(found["limits of the root part"], "EPERM")
        for what in ("kill the root part", "kill process 1", "kill itself"):
            self.assertEqual(found[what], "EXDEV", what)
        self.assertTrue(is_alive(engine) and is_alive(proc.pid))
        proc.send_signal(signal.SIGINT)
        proc.wait(TIMEOUT)

    def test_it_launches_nothing(self):
        """With a sink it may dial; the agent knows whom it speaks with."""
        os.chmod(self.tmp, 0o755)  # the socket is there for all
        self.start("groups: []\n")
        proc, _, _ = self.taken("agent", options=["--no-agent", "--export", "file:" + self.path("out.jsonl")])
        found = self.came_of(proc, "agent")
        self.assertTrue(any(k.startswith("agent") and "uid" in k + v for k, v in found.items()), found)
        self.assertEqual(self.ps(), [])
        proc.send_signal(signal.SIGINT)
        proc.wait(TIMEOUT)

    def ended(self, act, *words):
        proc, engine, folder = self.taken(act)
        out, err = proc.communicate(timeout=TIMEOUT)
        self.assertEqual(proc.returncode, 125, err)
        for word in words:
            self.assertIn(word, err)
        self.assertNotIn(b"done\n", err)
        self.assertFalse(is_alive(engine))
        self.assertFalse(has_argument(b"300.79"))
        # what was committed is there, and nobody calls it complete
        self.assertCode(self.warder("verify", os.path.join(folder, "session")), 2)

    def test_calls_that_end_it(self):
        for act in ("execve", "ptrace", "kill", "setresuid", "unshare", "bpf", "process_vm_readv"):
            with self.subTest(act):
                self.ended(act, b"it made a system call that it never makes: it may have been taken over",
                           b"the record is not sealed")

    def test_requests_that_end_it(self):
        for act, what in (("unknown", rb"asks for what nobody may (4711)"), ("record", b"asks for what nobody may"),
                          ("sign", b"asks for what nobody may"), ("done", b"asks for what nobody may"),
                          ("short", b"what is no message"), ("no-process", b"what names no process")):
            with self.subTest(act):
                self.ended(act, what, b"the engine may have been taken over, and is killed with its sandbox")

    def test_a_hub_is_not_heard_any_more(self):
        """The sandbox goes on, and is still to be stopped; nobody can speak with it."""
        self.command = (helper("takeover"),)
        self.env["WARDER_TAKEOVER"] = "hub"
        self.start()
        done = self.warder("create", "--name", "box")  # its hub has answered nobody yet
        self.assertCode(done, 125)
        self.assertIn(b"the hub sent what is no request (4711): it may have been taken over, and is not heard any more", done.err)
        (box,) = [r["session"] for r in self.ps()]
        self.assertCode(self.warder("exec", "box", "true"), 125)
        self.assertEqual([r["session"] for r in self.ps()], [box])
        self.assertCode(self.warder("kill", "box"), 0)
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)

    def test_a_front_is_replaced(self):
        self.command = (helper("takeover"),)
        self.env["WARDER_TAKEOVER"] = "api"
        self.start()

        def front():
            return [p for p in children(self.agent.pid) if comm_of(p) == "warder-api"]
        first = wait_for("the front", front)[0]
        api = socket.socket(socket.AF_UNIX)
        self.addCleanup(api.close)
        api.connect(os.path.join(self.env["WARDER_RUN"], "api.sock"))
        api.sendall(b"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for("its end", lambda: not is_alive(first))
        wait_for("another one", lambda: front() and front()[0] != first)
        self.assertEqual(self.ps(), [])
        self.end_agent()
        self.assertIn(b"api: what it sent is no question: it may have been taken over, and is killed", self.rest())

    def test_the_shipped_one_has_no_such_door(self):
        with open(WARDER, "rb") as f:
            shipped = f.read()
        with open(helper("takeover"), "rb") as f:
            hooked = f.read()
        for word in (b"WARDER_TAKEOVER", b"__wrap_"):
            self.assertIsNone(re.search(word, shipped), word)
            self.assertIsNotNone(re.search(word, hooked), word)


if __name__ == "__main__":
    unittest.main()
