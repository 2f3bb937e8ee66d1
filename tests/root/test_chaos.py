# SPDX-License-Identifier: Apache-2.0
"""Things break at random under an agent with sandboxes that work: any of its processes is killed, the wall clock jumps, a
control group is taken away, the disk is full, a record is changed while it is written. After each the rest goes on, and
at the end every record is whole, says what is missing, or is told to be altered where it was; nothing is left.

CHAOS_SECONDS says how long (here a short one, `make chaos` 600), CHAOS_SEED repeats what a run printed: the same
things in the same order, as far as the machine lets them."""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
import unittest

from warder import *
import leftovers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()

SECONDS = float(os.environ.get("CHAOS_SECONDS", "20"))
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().getrandbits(32))
BOXES = 3
# Goes on for ever, in a sandbox: processes, files, output.
WORK = "n=0; while :; do n=$((n+1)); echo $n > /workspace/f$((n % 7)); cat /workspace/f0 2>/dev/null; sleep 0.1; done"
HALF_YEAR, MIB = 15000000, 1 << 20


class Chaos(AgentCase):
    def setUp(self):
        super().setUp()
        self.before = leftovers.snapshot(BUILD)
        self.rng = random.Random(SEED)
        self.made, self.altered, self.log = [], set(), []
        self.clock = self.path("clock", struct.pack("=q", 0))
        os.chmod(self.clock, 0o644)
        os.chmod(self.tmp, 0o755)  # the engine's user maps the clock
        # A disk of its own, which can be full.
        self.disk = self.path("state")
        os.mkdir(self.disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", "chaos", self.disk], check=True)
        self.plain = dict(self.env)
        self.env.update(LD_PRELOAD=helper("clock_jump"), CLOCK_JUMP=self.clock)

    def end_all(self):
        super().end_all()
        subprocess.run(["umount", self.disk], check=True)

    # The clients live by the host's clock.
    def warder(self, *argv, **kw):
        return super().warder(*argv, env=kw.pop("env", self.plain), **kw)

    def say(self, *words):
        self.log.append(" ".join(map(str, words)))

    # ---- what there is ----

    def alive(self):
        done = self.warder("ps", "--json")
        return [json.loads(line)["session"] for line in done.out.splitlines()] if done.code == 0 else []

    def processes(self):
        """(pid, what it is) of all of ours but the agent and those in a sandbox; a steady order."""
        found = []
        for top in [self.agent.pid, *[pids[0] for _, pids in sorted(self.keepers().items())]]:
            for pid in sorted(descendants(top)):
                name = comm_of(pid)
                if name.startswith("warder") and not self.is_payload(pid):
                    found.append((pid, name))
        return found + [(pids[0], "keeper") for _, pids in sorted(self.keepers().items())]

    @staticmethod
    def is_payload(pid):
        try:
            with open("/proc/%d/status" % pid) as f:
                return any(line.startswith("NSpid:") and len(line.split()) > 2 for line in f)
        except OSError:
            return True

    def group(self, session):
        """Its control group in the hierarchy that has cgroup.kill."""
        for top in own_cgroups():
            path = top.partition(" ")[2]
            if session in path.split("/")[-1] and os.path.exists(path + "/cgroup.kill"):
                return path
        return None

    @staticmethod
    def is_empty(path):
        with open(path + "/cgroup.events") as f:
            return "populated 0" in f.read()

    def one(self):
        alive = sorted(self.alive(), key=self.made.index)
        return self.rng.choice(alive) if alive else None

    # ---- what goes wrong ----

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def agent_dies(self):
        self.end_agent(signal.SIGKILL)
        self.start()

    def process_dies(self):
        found = self.processes()
        if found:
            pid, what = self.rng.choice(found)
            self.say("  it is", what)
            self.kill(pid)

    def several_die(self):
        for pid, what in self.rng.sample(self.processes(), min(3, len(self.processes()))):
            self.say("  one is", what)
            self.kill(pid)

    def clock_jumps(self):
        with open(self.clock, "r+b") as f:
            f.write(struct.pack("=q", self.rng.choice((-HALF_YEAR, -3600, -1, 0, 1, 86400, HALF_YEAR))))

    def group_goes(self):
        session = self.one()
        path = session and self.group(session)
        if not path:
            return
        try:
            with open(path + "/cgroup.kill", "w") as f:
                f.write("1")
            wait_for("it to be empty", lambda: self.is_empty(path))
            os.rmdir(path)
        except FileNotFoundError:
            pass  # who keeps it was quicker
        except OSError as e:
            self.say("  not removed:", e)

    def disk_is_full(self):
        fill = os.path.join(self.disk, "fill")
        try:
            with open(fill, "wb") as f:
                while f.write(bytes(MIB)):
                    f.flush()
        except OSError:
            pass
        done = self.warder("create", "--name", "full")
        if done.code == 0:
            self.made.append(done.out.decode().strip())
        else:
            self.assertTrue(done.err, "why not is told")
        os.unlink(fill)

    def record_is_changed(self):
        session = self.one()
        path = session and os.path.join(self.bundle(session), "events.0001.seg")
        if not path or session in self.altered or os.path.getsize(path) < 1024:
            return
        with open(path, "r+b") as f:
            f.seek(400)
            byte = f.read(1)
            f.seek(400)
            f.write(bytes([byte[0] ^ 0x40]))
        self.altered.add(session)

    ACTS = (agent_dies, process_dies, process_dies, several_die, clock_jumps, clock_jumps, group_goes, disk_is_full,
            record_is_changed)

    # ---- what must hold ----

    def fill_up(self):
        """As many as before work; whoever is told to be alive is."""
        def works(session):
            done = self.warder("exec", session, "echo", "on")
            if done.code == 0:
                return done.out == b"on\n"
            # Whom nobody can speak with goes on, and can be ended.
            if b"its hub has died" in done.err and session in self.alive():
                self.warder("rm", session)
            return session not in self.alive()
        for session in self.alive():
            wait_for("%s to answer" % session, lambda: works(session), 60)
        while len(self.alive()) < BOXES:
            done = self.warder("create", "--memory", "64M", "--", "sh", "-c", WORK)
            self.assertCode(done, 0)
            self.made.append(done.out.decode().strip())

    def idle_fds(self):
        return len(os.listdir("/proc/%d/fd" % self.agent.pid))

    def idle_memory(self):
        with open("/proc/%d/status" % self.agent.pid) as f:
            return [int(line.split()[1]) for line in f if line.startswith("RssAnon:")][0]

    def assertAccounted(self, session):
        done = self.warder("verify", self.bundle(session))
        if session in self.altered:
            self.assertCode(done, 1)
            self.assertIn(b"altered: events.0001.seg", done.out)
            return
        self.assertIn(done.code, (0, 2, 3), done)
        events = self.events(session)
        self.assertContiguous(events)
        self.assertEqual(done.code == 3, any(e["kind"] == "gap" for e in events), done)

    def run_chaos(self):
        end = time.monotonic() + SECONDS
        self.start("quota: { sandboxes: 0 }\n")
        for act in self.rng.sample(self.ACTS, len(self.ACTS)):  # each of them at least once
            self.round(act)
        while time.monotonic() < end:
            self.round(self.rng.choice(self.ACTS))
        # A new agent, which finds all there is; then the sandboxes end in good order.
        self.agent_dies()
        wait_for("the sweep", lambda: set(self.keepers()) == set(self.alive()), 60)
        for session in self.alive():
            self.warder("rm", session)
        wait_for("their end", lambda: not self.alive() and not self.keepers(), 60)
        fds, memory = self.idle_fds(), self.idle_memory()
        for _ in range(5):
            self.assertCode(self.warder("run", "--quiet", "--", "true"), 0)
        wait_for("its descriptors to be as many as before", lambda: self.idle_fds() <= fds)
        self.assertLess(self.idle_memory(), memory + 4096)
        self.end_agent()
        for session in self.made:
            self.assertAccounted(session)
        self.assertEqual(leftovers.wait_clean(BUILD, self.before, 60), ["mount of tmpfs / on " + self.disk])

    def round(self, act):
        self.fill_up()
        self.say(act.__name__)
        act(self)

    def test_chaos(self):
        print("CHAOS_SEED=%d" % SEED, flush=True)
        try:
            self.run_chaos()
        except BaseException:
            print("CHAOS_SEED=%d, what was done:\n%s" % (SEED, "\n".join(self.log)), flush=True)
            raise


if __name__ == "__main__":
    unittest.main()
