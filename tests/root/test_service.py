# SPDX-License-Identifier: Apache-2.0
"""The agent as a service: what its supervisor is told, the unit and the capabilities it leaves, another binary in its
place, and what goes on while nobody is there."""

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase, NO_LIGHTHOUSE

need_root()

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../userspace/package/warder-agent.service.in")
EXPOSURE = 86  # tenths, of systemd-analyze(1): the unit says why it is not less
# As often as there is a line: one connect that is denied, one program.
ASK = """import socket, subprocess, sys
for line in sys.stdin:
    s = socket.socket()
    try:
        s.connect(("127.0.0.9", 9))
        said = 0
    except OSError as e:
        said = e.errno
    subprocess.run(["/bin/true", line.strip()])
    print(said, flush=True)
"""


def unit_value(name):
    with open(UNIT) as f:
        return re.search(r"^%s=(.*)$" % name, f.read(), re.M).group(1)


class Notify(AgentCase):
    def setUp(self):
        super().setUp()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.sock.close)
        self.sock.bind(self.path("notify"))
        self.env["NOTIFY_SOCKET"] = self.path("notify")

    def told(self):
        self.assertTrue(select.select([self.sock], [], [], TIMEOUT)[0], "nothing was told")
        return self.sock.recv(4096).decode()

    def test_ready_alive_stopping(self):
        self.env["WATCHDOG_USEC"] = "200000"
        self.start()
        words = [self.told()]
        while words[-1] != "READY=1":
            words.append(self.told())
        self.assertLessEqual(set(words), {"WATCHDOG=1", "READY=1"})
        self.assertEqual([self.told() for _ in range(3)], ["WATCHDOG=1"] * 3)
        self.assertCode(self.warder("create", "--name", "box"), 0)
        for pid, argv in self.ours("keep", "park", root=False):  # who is not the agent has no word in it
            with open("/proc/%d/environ" % pid, "rb") as f:
                seen = f.read()
            self.assertNotIn(b"NOTIFY_SOCKET=", seen, argv)
            self.assertNotIn(b"WATCHDOG_USEC=", seen, argv)
        while select.select([self.sock], [], [], 0)[0]:  # nobody read what came meanwhile: its queue is short
            self.sock.recv(4096)
        self.end_agent()
        words = [self.told()]
        while words[-1] != "STOPPING=1":
            words.append(self.told())
        self.assertEqual(set(words[:-1]) - {"WATCHDOG=1"}, set())

    def test_one_that_hangs(self):
        """It stops telling; who is killed for that, as a watchdog does, is found again by the next."""
        self.env["WATCHDOG_USEC"] = "200000"
        self.start()
        box = self.create("--name", "box")
        self.agent.send_signal(signal.SIGSTOP)
        wait_for("it to stand still", lambda: state_of(self.agent.pid) == "T")
        while select.select([self.sock], [], [], 0)[0]:
            self.sock.recv(4096)
        self.assertFalse(select.select([self.sock], [], [], 1)[0])
        self.end_agent(signal.SIGKILL)
        self.start()
        self.assertEqual([r["session"] for r in self.ps()], [box])
        self.assertEqual(self.warder("exec", "box", "echo", "on").out, b"on\n")

    def test_nobody_asks(self):
        del self.env["NOTIFY_SOCKET"]
        self.start()
        self.assertEqual(self.ps(), [])


class Unit(AgentCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here")
    def test_it_is_good_and_hardened(self):
        with open(UNIT) as f:
            text = f.read().replace("@BIN@/warder", os.path.realpath(WARDER)).replace("Documentation=man:warder(1)\n", "")
        path = self.path("warder-agent.service", text)
        done = cmd("systemd-analyze", "verify", path)
        self.assertCode(done, 0)
        self.assertEqual([line for line in done.err.splitlines() if b"warder-agent" in line], [])
        done = cmd("systemd-analyze", "security", "--offline=yes", "--threshold=%d" % EXPOSURE, path)
        self.assertCode(done, 0)

    @unittest.skipUnless(shutil.which("setpriv"), "no setpriv here")
    def test_its_capabilities_are_enough(self):
        """With those of the unit and no others: each kind of sandbox, and what can be asked of one."""
        names = ["+" + c[4:].lower() for c in unit_value("CapabilityBoundingSet").split()]
        self.assertNotIn("+sys_module", names)
        self.command = ("setpriv", "--bounding-set", "-all," + ",".join(names), "--no-new-privs", WARDER)
        self.start()
        work = self.path("work")
        os.mkdir(work, 0o755)
        os.chown(work, 12345, 12345)
        self.create("--name", "box", "--net", "allow=localhost:1", "--rw", work, "--memory", "64M", "--pids", "20")
        self.assertEqual(self.warder("exec", "box", "sh", "-c", "echo x > /tmp/f; cat /tmp/f").out, b"x\n")
        self.create("--name", "kept")
        self.assertCode(self.warder("exec", "kept", "cp", "/etc/hostname", "/tmp/f"), 0)
        self.assertCode(self.warder("snapshot", "kept", "shot"), 0)
        self.assertCode(self.warder("run", "--quiet", "--from", "shot", "--", "test", "-s", "/tmp/f"), 0)
        self.assertCode(self.warder("pause", "box"), 0)
        self.assertCode(self.warder("resume", "box"), 0)
        done = self.warder("run", "--quiet", "--workspace", "name:disk", "--disk", "16M", "--", "sh", "-c", "echo y > /workspace/g; cat /workspace/g")
        self.assertEqual(done.out, b"y\n", done)
        self.assertCode(self.warder("run", "--quiet", "--", "unshare", "-m", "true"), 137)
        self.assertCode(self.warder("kill", "box"), 0)


class Replaced(AgentCase):
    def asking(self, *options):
        """A sandbox that asks for what is denied whenever it gets a line: (session, answer)."""
        rules = self.path("deny.yaml", NO_LIGHTHOUSE)
        proc = subprocess.Popen([WARDER, "run", "--quiet", "--name", "asks", "--rules", rules, *options, "--", "python3", "-c", ASK],
                                env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self._end, proc)

        def answer(word):
            proc.stdin.write(word.encode() + b"\n")
            proc.stdin.flush()
            return proc.stdout.readline()
        self.assertEqual(answer("first"), b"1\n")  # EPERM
        (row,) = self.ps()
        return row["session"], answer, proc

    def assertWhole(self, session, words):
        self.wait_sealed(session)
        events = self.events(session)
        self.assertContiguous(events)
        self.assertEqual([e for e in events if e["kind"] == "gap"], [])
        told = [e["proc"]["args"][1] for e in events if e["kind"] == "exec" and e["proc"]["exe"].endswith("/true")]
        self.assertEqual(told, words)
        denied = [e for e in events if e["kind"] == "rule.alert" and e["rule"]["name"] == "No lighthouse"]
        self.assertTrue(denied)
        self.assertCode(self.warder("verify", self.bundle(session)), 0)

    def test_nobody_is_there(self):
        """Agent and nursery are killed: what is denied stays denied, what is done is told, the next one goes on."""
        self.start()
        session, answer, proc = self.asking()
        words = ["first"]
        for pid in [self.agent.pid] + [pid for pid, _ in self.ours("park")]:
            os.kill(pid, signal.SIGKILL)
        self.agent.wait()
        self.reader.join(30)
        self.agent.stderr.close()
        wait_for("the nursery's end", lambda: not list(self.ours("park")))
        for i in range(20):
            words.append("dead%d" % i)
            self.assertEqual(answer(words[-1]), b"1\n")
        self.start()
        words.append("again")
        self.assertEqual(answer("again"), b"1\n")
        self.assertEqual(self.warder("exec", "asks", "echo", "on").out, b"on\n")
        proc.stdin.close()
        self.assertEqual(proc.wait(TIMEOUT), 0)
        self.assertWhole(session, words)

    def test_another_binary(self):
        """An upgrade: the file is replaced, the agent started anew; sandboxes of the one before go on, and new ones come."""
        mine = self.path("warder-here")
        shutil.copy(WARDER, mine)
        self.command = (mine,)
        self.start()
        session, answer, proc = self.asking()
        shutil.copy(helper("takeover"), mine + ".new")  # another program, that does the same
        os.rename(mine + ".new", mine)
        self.assertEqual(answer("replaced"), b"1\n")
        self.assertEqual(self.warder("run", "--quiet", "--", "echo", "old").out, b"old\n")
        self.end_agent()
        self.assertEqual(answer("between"), b"1\n")
        self.start()
        self.assertIn(b"found 1 sandbox", b"".join(self.said))
        self.assertEqual(os.stat("/proc/%d/exe" % self.agent.pid).st_ino, os.stat(mine).st_ino)
        self.assertEqual(answer("after"), b"1\n")
        self.assertEqual(self.warder("exec", "asks", "echo", "on").out, b"on\n")
        self.assertEqual(self.warder("run", "--quiet", "--", "echo", "new").out, b"new\n")
        proc.stdin.close()
        self.assertEqual(proc.wait(TIMEOUT), 0)
        self.assertWhole(session, ["first", "replaced", "between", "after"])


if __name__ == "__main__":
    unittest.main()
