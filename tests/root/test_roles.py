# SPDX-License-Identifier: Apache-2.0
"""What each process of an agent with live sandboxes may hold: user, capabilities, filter, descriptors. By /proc alone,
whatever the processes say of themselves."""

import os
import re
import signal
import subprocess
import sys
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()

# By name (PR_SET_NAME): capabilities, and what may be open besides sockets, pipes and the like. None has a program or table
# of the kernel's, a way to another process, a key or a file of the host's.
ROLES = {
    # Last: where it was told to keep its record, and where its sink writes.
    "warder-engine": (0, r"/cgroup\.(kill|freeze|events)$|/state/(sessions|cursors)(/|$)|/run/sessions(/|$)|/proc$"
                      r"|/memfd:warder-|/s1/session(/|$)|/out\.jsonl$"),
    "warder-hub": (0, r"/dev/ptmx$|/dev/pts/"),
    "warder-api": (0, r"$^"),
    "warder-net": (0, r"anon_inode:bpf_link$"),  # that leads its sandbox's connections to it: gone when it is
    "warder-route": (0, r"$^"),
}
FREE = re.compile(r"(socket|pipe):\[|anon_inode:(\[(eventfd|eventpoll|timerfd|signalfd)\]|seccomp notify|inotify)|/dev/null")


def status(path):
    with open(path) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


class Roles(AgentCase):
    def all_ours(self):
        """{pid: name} of this test's processes that run our program and are no sandbox's."""
        exe, found = os.path.realpath(WARDER), {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    ours = b"WARDER_RUN=" + self.env["WARDER_RUN"].encode() in f.read().split(b"\0")
                if ours and os.readlink("/proc/%s/exe" % pid) == exe:
                    found[int(pid)] = comm_of(int(pid))
            except OSError:
                continue
        return found

    def assertUnprivileged(self, pid, name, caps):
        for tid in os.listdir("/proc/%d/task" % pid):
            st = status("/proc/%d/task/%s/status" % (pid, tid))
            who = (name, st["Name"])
            self.assertEqual(len(set(st["Uid"].split() + st["Gid"].split())), 1, who)
            self.assertNotIn("0", st["Uid"].split(), who)
            self.assertEqual(st["Groups"].strip(), "", who)
            for row in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertEqual(int(st[row], 16) & ~caps, 0, who + (row,))
            self.assertEqual((st["NoNewPrivs"], st["Seccomp"]), ("1", "2"), who)

    def assertHolds(self, pid, name, files):
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                link = os.readlink("/proc/%d/fd/%s" % (pid, fd))
            except FileNotFoundError:
                continue
            if int(fd) <= 2:  # given by who started the agent
                continue
            if not FREE.match(link) and not re.search(files, link):
                self.fail("%s holds %s as %s" % (name, link, fd))

    def look(self):
        """Every process of ours: privileged ones are the agent, the nursery and keepers, and no others."""
        seen, root = set(), set()
        for pid, name in self.all_ours().items():
            try:
                uid = status("/proc/%d/status" % pid)["Uid"].split()[0]
                if uid == "0":
                    with open("/proc/%d/cmdline" % pid, "rb") as f:
                        root.add(b" ".join(f.read().split(b"\0")[1:3]).decode())
                    continue
                self.assertIn(name, ROLES)
                self.assertUnprivileged(pid, name, ROLES[name][0])
                self.assertHolds(pid, name, ROLES[name][1])
                seen.add(name)
            except (FileNotFoundError, ProcessLookupError):
                continue  # a worker that has ended
        return seen, root

    def test_of_an_agent(self):
        self.start("groups: []\nparked: 1\n")
        out = self.path("out.jsonl")
        self.create("--name", "plain", "--tenant", "one")
        self.create("--name", "net", "--tenant", "two", "--net", "allow=localhost:1")
        self.create("--name", "sink", "--tenant", "two", "--export", "file:" + out)
        self.create("--name", "kafka", "--kafka", "127.0.0.1:1")
        asks = subprocess.Popen([WARDER, "exec", "plain", "sh", "-c", "echo up; exec sleep 300.81"], env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(self._end, asks)
        self.assertEqual(asks.stdout.readline(), b"up\n")
        seen, root = self.look()
        self.assertLessEqual({"warder-engine", "warder-hub", "warder-api", "warder-net"}, seen)
        # besides who asks for it here
        self.assertEqual(root, {"agent ", "agent park", "agent keep", "exec plain"})

    def test_of_a_run(self):
        proc, finish = self.start_session("sh", "-c", "echo ready; read line", stdin=subprocess.PIPE,
                                          options=["--no-agent", "--net", "allow=localhost:1", "--export", "metrics:127.0.0.1:0"])
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        seen, root = self.look()
        self.assertEqual(seen, {"warder-engine", "warder-net"})
        self.assertEqual(root, {"run --quiet"})
        self.assertCode(finish(b"\n"), 0)


if __name__ == "__main__":
    unittest.main()
