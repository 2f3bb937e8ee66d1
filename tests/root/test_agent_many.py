# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes of an agent alive at once, and kill -9 of the agent, of keepers and of everything: what lives is
adopted, what died is swept, no event is unaccounted for, nothing is left. How many: MANY_ALIVE; here 24, `make many`
200 (5 GB of memory and minutes of two CPUs, as long as each keeper loads probes of its own)."""

import os
import random
import signal
import subprocess
import sys
import unittest

from warder import *
import leftovers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()

COUNT = int(os.environ.get("MANY_ALIVE", "8" if IN_VM else "24"))
LONG = 60 + 2 * COUNT  # seconds, for a machine that does other things as well: none of this is about time


class Many(AgentCase):
    def create_all(self):
        """All of them at once."""
        asked = [subprocess.Popen([WARDER, "create", "--name", "b%d" % i, "--memory", "64M"], env=self.env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for i in range(COUNT)]
        for p in asked:
            self.addCleanup(self._end, p)
        made = [p.communicate(timeout=LONG)[0].decode().strip() for p in asked]
        self.assertEqual([p.returncode for p in asked], [0] * COUNT)
        return made

    def alive(self):
        return {r["session"] for r in self.ps()}

    def works(self, session, word):
        done = self.warder("exec", session, "sh", "-c", "cat /tmp/f 2>/dev/null; echo %s > /tmp/f" % word)
        self.assertCode(done, 0)
        return done.out.decode().strip()

    def kill_all(self, pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def control_groups(self, sessions):
        found = own_cgroups()
        return [c for c in found if any(s in c for s in sessions)]

    def assertSwept(self, sessions):
        wait_for("control groups to go", lambda: not self.control_groups(sessions), LONG)
        wait_for("processes to go", lambda: not [a for _, a in self.ours("keep", root=False) if a[3] in sessions], LONG)
        for folder in ("keepers", "sessions"):
            top = os.path.join(self.env["WARDER_RUN"], folder)
            wait_for("entries to go", lambda: not set(os.listdir(top)) & set(sessions), LONG)

    def assertAccounted(self, session):
        """Cut off at most: what was seen is in it without a hole, or the hole is told."""
        done = self.warder("verify", self.bundle(session))
        self.assertIn(done.code, (0, 2, 3), done)
        events = self.events(session)
        self.assertContiguous(events)
        gaps = [e for e in events if e["kind"] == "gap"]
        self.assertEqual(done.code == 3, bool(gaps))

    def test_agent_and_keepers_are_killed(self):
        before = leftovers.snapshot(BUILD)
        self.start("quota: { sandboxes: 0 }\n")
        sessions = set(self.create_all())
        self.assertEqual((len(sessions), self.alive()), (COUNT, sessions))
        chosen = random.Random(COUNT).sample(sorted(sessions), 8)
        for s in chosen:
            self.works(s, "before")
        # The agent dies: nobody else does, and the next one finds them all.
        self.end_agent(signal.SIGKILL)
        self.assertEqual(set(self.keepers()), sessions)
        self.start()
        self.assertIn(b"found %d sandboxes" % COUNT, b"".join(self.said))
        self.assertEqual(self.alive(), sessions)
        for s in chosen:
            self.assertEqual(self.works(s, "after"), "before")
        # A third of the keepers die, each with what is around it or alone: those sandboxes end, the others do not.
        dying = set(random.Random(1).sample(sorted(sessions), COUNT // 3))
        found = self.keepers()
        self.kill_all(pid for i, s in enumerate(sorted(dying)) for pid in (found[s] if i % 2 else found[s][:1]))
        wait_for("them to be swept", lambda: self.alive() == sessions - dying, LONG)
        self.assertSwept(dying)
        for s in set(chosen) - dying:
            self.assertEqual(self.works(s, "again"), "after")
        # All die at once, the agent first. Whoever comes next sweeps.
        self.end_agent(signal.SIGKILL)
        self.kill_all([pid for pids in self.keepers().values() for pid in pids])
        self.start()
        wait_for("them to be swept", lambda: not self.alive(), LONG)
        self.assertSwept(sessions)
        for s in sorted(sessions):
            self.assertAccounted(s)
        self.end_agent()
        self.assertEqual(leftovers.wait_clean(BUILD, before, LONG), [])

    def test_while_they_are_made(self):
        """kill -9 of the agent with its workers in the middle of it."""
        before = leftovers.snapshot(BUILD)
        self.start("quota: { sandboxes: 0 }\n")
        asked = [subprocess.Popen([WARDER, "create", "--name", "b%d" % i], env=self.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(8)]
        for p in asked:
            self.addCleanup(self._end, p)
        wait_for("the first", lambda: any(p.poll() is not None for p in asked), LONG)
        self.end_agent(signal.SIGKILL)
        self.kill_all([pid for pid, _ in self.ours("keep")][::2])
        made = {}
        for p in asked:
            out, err = p.communicate(timeout=LONG)
            self.assertIn(p.returncode, (0, 125))
            if p.returncode == 0:
                made[out.decode().strip()] = p
            else:
                self.assertTrue(err, "why not is told")
        self.start()
        # Each that lives can be used; the others are gone.
        wait_for("the sweep", lambda: self.alive() <= set(made) and set(self.keepers()) == self.alive(), LONG)
        for s in self.alive():
            self.assertCode(self.warder("exec", s, "true"), 0)
            self.assertCode(self.warder("rm", s), 0)
        wait_for("their end", lambda: not self.alive(), LONG)
        wait_for("the last keeper", lambda: not list(self.ours("keep", root=False)), LONG)
        self.end_agent()
        self.assertEqual(leftovers.wait_clean(BUILD, before, LONG), [])


if __name__ == "__main__":
    unittest.main()
