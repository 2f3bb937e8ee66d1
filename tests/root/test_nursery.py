# SPDX-License-Identifier: Apache-2.0
"""One set of probes for all sandboxes of an agent: each sees its own events only, a flood costs its maker alone, and
whoever is killed leaves nothing in the tables."""

import collections
import ctypes
import json
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase, NO_LIGHTHOUSE
from test_loss import EVERY, every
from warder import *

need_root()

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
NEXT_KEY, MAP_BY_ID, INFO = 4, 14, 15


def bpf(cmd, attr):
    buf = ctypes.create_string_buffer(attr, len(attr))
    r = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, cmd, buf, len(attr))
    return r if r >= 0 else -ctypes.get_errno()


class Map:
    """A map of the kernel, by its id."""

    def __init__(self, number):
        self.fd = bpf(MAP_BY_ID, struct.pack("=III", number, 0, 0))
        info = ctypes.create_string_buffer(128)
        if self.fd < 0 or bpf(INFO, struct.pack("=IIQ", self.fd, len(info), ctypes.addressof(info))) < 0:
            raise OSError(-self.fd, "map %d" % number)
        _, _, self.key_size, _, self.max, _ = struct.unpack_from("=6I", info.raw)
        self.name = info.raw[24:40].rstrip(b"\0").decode()

    def keys(self):
        found, key = [], ctypes.create_string_buffer(self.key_size)
        at = 0
        while bpf(NEXT_KEY, struct.pack("=IIQQQ", self.fd, 0, at, ctypes.addressof(key), 0)) == 0:
            found.append(key.raw)
            last = ctypes.create_string_buffer(key.raw, self.key_size)
            at = ctypes.addressof(last)
        return found

    def close(self):
        os.close(self.fd)


class Nursery(AgentCase):
    def start(self, config=None):
        """A sandbox that is asked for before the nursery listens loads probes of its own."""
        super().start(config)

        pid = self.nursery()

        def listens():
            sockets = set()
            for fd in os.listdir("/proc/%d/fd" % pid):
                try:
                    sockets.update(re.findall(r"socket:\[(\d+)\]", os.readlink("/proc/%d/fd/%s" % (pid, fd))))
                except FileNotFoundError:
                    pass
            with open("/proc/net/unix") as f:
                return any(line[3] == "00010000" and line[6] in sockets for line in map(str.split, f))
        wait_for("the nursery to listen", listens, 120)

    def fdinfo(self, pid, pattern):
        found = set()
        for fd in os.listdir("/proc/%d/fdinfo" % pid):
            try:
                with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
                    found.update(re.findall(pattern, f.read()))
            except FileNotFoundError:
                pass
        return found

    def programs(self, pid):
        return self.fdinfo(pid, r"(?m)^prog_type:(?:.*\n)*?prog_id:\s*(\d+)")

    def hooks(self, pid):
        """Links that the whole host pays for."""
        return self.fdinfo(pid, r"link_type:\s*(?:raw_tracepoint|tracing)\nlink_id:\s*(\d+)")

    def nursery(self):
        def children_of_agent():
            for pid, _ in self.ours("park"):
                try:
                    with open("/proc/%d/stat" % pid) as f:
                        if int(f.read().rpartition(")")[2].split()[1]) == self.agent.pid:
                            return pid
                except (FileNotFoundError, ProcessLookupError):
                    pass
            return None
        return wait_for("the nursery", children_of_agent, 120)

    def keeper(self, session):
        return self.keepers()[session][0]

    def table(self, pid, name):
        for number in self.fdinfo(pid, r"map_id:\s*(\d+)"):
            m = Map(int(number))
            if m.name == name:
                self.addCleanup(m.close)
                return m
        raise AssertionError("no map '%s'" % name)

    def test_loaded_once(self):
        self.start()
        boxes = [self.create("--name", "b%d" % i) for i in range(3)]
        pids = [self.keeper(box) for box in boxes]
        first = self.hooks(pids[0])
        self.assertTrue(first)
        self.assertTrue(self.programs(pids[0]))
        for pid in pids[1:]:
            self.assertEqual(self.programs(pid), self.programs(pids[0]))
            self.assertEqual(self.hooks(pid), first)
        # What others than sandboxes pay for, too, is there while one lives: the nursery itself does not have it.
        idle = self.hooks(self.nursery())
        self.assertTrue(idle <= first)
        for box in boxes:
            self.assertCode(self.warder("rm", box), 0)
        again = self.hooks(self.keeper(self.create("--name", "again")))
        self.assertEqual(len(again), len(first))
        self.assertEqual(again & idle, idle)
        self.assertFalse((again - idle) & (first - idle))

    def test_each_sees_its_own(self):
        self.start("parked: 1\n")
        boxes = [self.create("--name", name) for name in ("a", "b")]
        for name in ("a", "b"):
            self.assertCode(self.warder("exec", name, "sh", "-c", "echo %s > /workspace/of-%s" % (name, name)), 0)
        for box in boxes:
            self.assertCode(self.warder("rm", box), 0)
        for box, mine, other in zip(boxes, "ab", "ba"):
            self.wait_sealed(box)
            events = self.events(box)
            self.assertContiguous(events)
            paths = [e["file"]["path"] for e in events if e["kind"] == "file.open"]
            self.assertIn("/workspace/of-" + mine, paths)
            self.assertNotIn("/workspace/of-" + other, paths)
            self.assertFalse([e for e in events if e["kind"] == "gap" or e.get("degraded")])

    def test_who_comes_after_is_another(self):
        """What one made is not what the next one at its place made."""
        self.start()
        result = self.path("r.json")

        def ran(*command):
            done = self.warder("run", "--quiet", "--result", result, "--workspace", "name:tools", "--", *command)
            self.assertCode(done, 0)
            with open(result) as f:
                session = json.load(f)["session"]
            return [e["proc"].get("dropped") for e in self.events(session)
                    if e["kind"] == "exec" and e["proc"]["exe"] == "/workspace/tool"]
        self.assertEqual(ran("sh", "-c", "cp /bin/true tool; ./tool"), [True])
        for _ in range(3):
            self.assertEqual(ran("./tool"), [None])

    def test_a_flood_costs_its_maker(self):
        self.start()
        loud, quiet = self.create("--name", "loud"), self.create("--name", "quiet")
        engines = [pid for pid, argv in self.ours("keep", root=False) if argv[3] == loud and comm_of(pid) == "warder-engine"]
        self.assertEqual(len(engines), 1)
        flood = subprocess.Popen([WARDER, "exec", "loud", "sh", "-c", "echo up; read x; i=0; "
                                  "while [ $i -lt 20000 ]; do : > /workspace/f; i=$((i+1)); done; echo done"],
                                 env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(flood.stdout.close)
        self.assertEqual(flood.stdout.readline(), b"up\n")
        os.kill(engines[0], signal.SIGSTOP)  # so that its rings fill up, however fast this machine is
        try:
            flood.stdin.write(b"go\n")
            flood.stdin.close()
            self.assertEqual(flood.stdout.readline(), b"done\n")
            for i in range(20):
                self.assertCode(self.warder("exec", "quiet", "sh", "-c", ": > /workspace/q%d" % i), 0)
        finally:
            os.kill(engines[0], signal.SIGCONT)
        self.assertEqual(flood.wait(60), 0)
        for name, box in (("loud", loud), ("quiet", quiet)):
            self.assertCode(self.warder("rm", name), 0)
            self.wait_sealed(box)
        self.assertEqual(self.warder("verify", self.bundle(quiet)).code, 0)
        paths = [e["file"]["path"] for e in self.events(quiet) if e["kind"] == "file.open"]
        for i in range(20):
            self.assertIn("/workspace/q%d" % i, paths)
        # Every one of the flood is there or in a gap. Those that a rate cut are told with their kind.
        events = self.events(loud)
        lost = sum(e["gap"]["count"] for e in events if e["kind"] == "gap" and e["gap"].get("kind") == "file.open")
        self.assertGreater(lost, 0)
        self.assertEqual(lost + len([e for e in events if e["kind"] == "file.open" and e["file"]["path"] == "/workspace/f"]), 20000)
        self.assertEqual(self.warder("verify", self.bundle(loud)).code, 3)

    def test_a_storm_of_every_kind(self):
        """An agent's sandboxes have smaller rings (512 KiB and 1 MiB). Nobody reads while all there is to tell comes at
        once: what found no room is counted by kind."""
        n = 200
        self.start()
        box = self.create("--name", "box", "--no-default-rules")
        self.assertCode(self.warder("cp", helper("flood"), "box:/workspace/flood"), 0)
        engine, = [pid for pid, argv in self.ours("keep", root=False) if argv[3] == box and comm_of(pid) == "warder-engine"]
        flood = subprocess.Popen([WARDER, "exec", "box", "sh", "-c", "cd /workspace; chmod +x flood; echo up; read x; ./flood %s %d; "
                                  "echo $?" % (EVERY, n)], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(flood.stdout.close)
        self.assertEqual(flood.stdout.readline(), b"up\n")
        os.kill(engine, signal.SIGSTOP)
        try:
            flood.stdin.write(b"go\n")
            flood.stdin.close()
            self.assertEqual(flood.stdout.readline(), b"0\n")
        finally:
            os.kill(engine, signal.SIGCONT)
        self.assertEqual(flood.wait(60), 0)
        self.assertCode(self.warder("rm", "box"), 0)
        self.wait_sealed(box)
        events = self.events(box)
        self.assertContiguous(events)
        there, lost = collections.Counter(e["kind"] for e in events), collections.Counter()
        for e in events:
            if e["kind"] == "gap":
                lost[e["gap"]["kind"]] += e["gap"]["count"]
        self.assertGreater(sum(lost.values()), 0)
        for kind, count in every(n).items():
            self.assertGreaterEqual(there[kind] + lost[kind], count, "%s; lost %s" % (kind, lost))
        self.assertEqual(self.warder("verify", self.bundle(box)).code, 3)

    def test_who_is_killed_leaves_nothing(self):
        self.start()
        box, other = self.create("--name", "box"), self.create("--name", "other")
        sandboxes = self.table(self.keeper(other), "sandboxes")
        rings = self.table(self.keeper(other), "rings")
        wait_for("both", lambda: len(sandboxes.keys()) == 2)
        os.kill(self.keeper(box), signal.SIGKILL)
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)
        wait_for("its entry to go", lambda: len(sandboxes.keys()) == 1, 60)
        # The number of the dead one comes again, for another.
        new = self.create("--name", "new")
        wait_for("both", lambda: len(sandboxes.keys()) == 2)
        self.assertCode(self.warder("exec", "new", "touch", "/workspace/new"), 0)
        self.assertCode(self.warder("exec", "other", "touch", "/workspace/other"), 0)
        for session, own in ((new, "new"), (other, "other")):
            self.assertCode(self.warder("rm", session), 0)
            self.wait_sealed(session)
            paths = [e["file"]["path"] for e in self.events(session) if e["kind"] == "file.open"]
            self.assertIn("/workspace/" + own, paths)
        wait_for("all entries to go", lambda: not sandboxes.keys(), 60)
        self.assertGreater(rings.max, 2)

    def test_the_nursery_is_killed(self):
        self.start("parked: 1\n")
        box = self.create("--name", "box")
        first = self.nursery()
        os.kill(first, signal.SIGKILL)
        self.assertCode(self.warder("exec", "box", "touch", "/workspace/on"), 0)
        # Whoever comes now is served, by a new one or without.
        self.assertEqual(self.warder("run", "--quiet", "--", "echo", "x").out, b"x\n")
        self.agent.send_signal(signal.SIGHUP)
        self.assertNotEqual(wait_for("another", lambda: self.nursery() if self.nursery() != first else None, 120), first)
        self.assertEqual(self.warder("exec", "box", "unshare", "-m", "true").code, 137)
        self.wait_sealed(box)
        events = self.events(box)
        self.assertContiguous(events)
        self.assertIn("/workspace/on", [e["file"]["path"] for e in events if e["kind"] == "file.open"])
        self.assertEqual([e["run"]["reason"] for e in events if e["kind"] == "session.stop"], ["rule"])

    def test_rules_of_one_are_not_anothers(self):
        rules = self.path("deny.yaml", NO_LIGHTHOUSE)
        self.start()
        shut = self.create("--name", "shut", "--rules", rules)
        self.create("--name", "open")
        want = "import socket\ns = socket.socket()\ntry:\n    s.connect(('127.0.0.9', 9))\nexcept OSError as e:\n    print(e.errno)"
        self.assertEqual(self.warder("exec", "shut", "python3", "-c", want).out, b"1\n")    # EPERM
        self.assertEqual(self.warder("exec", "open", "python3", "-c", want).out, b"111\n")  # ECONNREFUSED
        sets = self.table(self.keeper(shut), "enforce_sets")
        self.assertTrue(sets.keys())
        os.kill(self.keeper(shut), signal.SIGKILL)
        wait_for("its rules to go", lambda: not sets.keys(), 60)
        self.assertEqual(self.warder("exec", "open", "python3", "-c", want).out, b"111\n")


if __name__ == "__main__":
    unittest.main()
