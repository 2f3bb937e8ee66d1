# SPDX-License-Identifier: Apache-2.0
"""snapshot --processes and restore: what runs under gVisor is kept, and goes on elsewhere, watched from its first step.
Where that cannot be had it is refused by name."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_agent
from gvisor import RUNSCS, SecondVersion, WithRunsc
from warder import *

need_root()

# It counts in its memory, by an open file, and starts a program for each number.
COUNTS = "n=0; exec 5>>/workspace/log; while :; do n=$((n + 1)); echo $n >&5; echo $n; sleep 0.1; done"
CANNOT = ("20221219",)  # it gives descriptors back by number


class Keeping(WithRunsc, test_agent.AgentCase):
    def setUp(self):
        super().setUp()
        self.platform = self.platform or self.runsc.platforms[0]
        self.options = ("--backend", "gvisor", "--platform", self.platform)

    def begin(self, *command, options=()):
        box = self.create(*self.options, *options, "--name", "box", "--", *(command or ("sh", "-c", COUNTS)))
        wait_for("its first lines", lambda: self.numbers(box))
        return box

    def numbers(self, box):
        return [int(x) for x in self.warder("logs", box).out.split()]

    def kept(self, name):
        return os.path.join(self.path("state"), "snapshots", "default", name)

    def snapshot(self, name="s"):
        done = self.warder("snapshot", "box", name, "--processes", "--json")
        self.assertCode(done, 0)
        return json.loads(done.out)

    def rm(self, box):
        self.assertCode(self.warder("rm", box), 0)
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)
        return self.events(box)


class Checkpoint(Keeping):
    def test_it_goes_on_here_and_there(self):
        self.start()
        box = self.begin()
        row = self.snapshot()
        self.assertGreater(row["processes"], 1000)
        self.assertRegex(row["runtime"], "^runsc .*%s.* %s$" % (self.runsc.version, self.platform))
        self.assertEqual(os.stat(self.kept("s/processes.img")).st_mode & 0o777, 0o600)
        last = self.numbers(box)[-1]
        wait_for("it to go on", lambda: self.numbers(box)[-1] > last + 2)
        events = self.rm(box)
        done = self.warder("restore", "s", *self.options, "--name", "again")
        self.assertCode(done, 0)
        new = done.out.decode().strip()
        wait_for("it to go on there", lambda: len(self.numbers(new)) > 3)
        inside = self.warder("exec", new, "cat", "/workspace/log")
        self.assertCode(inside, 0)
        log = [int(x) for x in inside.out.split()]
        self.assertEqual(log, list(range(1, len(log) + 1)))  # one count, of both
        first = self.numbers(new)[0]
        self.assertGreater(first, 1)
        again = self.rm(new)
        # Of both records: the files and the processes, by their digests.
        for kind, of in (("session.snapshot", events), ("session.restore", again)):
            told = {e["snapshot"]["name"]: e["snapshot"]["sha256"] for e in of if e["kind"] == kind}
            self.assertEqual(told, {"s": row["sha256"], "s/processes": row["processes_sha256"]})
        # Who goes on is told before one of them makes a step, and by whom that is known.
        known = [e for e in again if e["kind"] == "exec" and e["vantage"] == "runtime" and e["proc"].get("comm") == "sh"]
        self.assertEqual([(e["proc"]["pid"], e["proc"]["cwd"], e["proc"]["args"][:2]) for e in known],
                         [(1, "/workspace", ["sh", "-c"])], known)
        seen = [e for e in again if e["kind"] == "exec" and e["vantage"] == "guest" and e["proc"]["comm"] == "sleep"]
        self.assertTrue(seen)
        self.assertLess(known[0]["seq"], seen[0]["seq"])
        for of in (events, again):
            self.assertEqual([e for e in of if e["kind"] in ("escape", "gap", "rule.alert")], [])

    def test_a_command_takes_the_files_only(self):
        self.start()
        self.begin()
        self.snapshot()
        done = self.warder("run", "--quiet", *self.options, "--from", "s", "--", "head", "-n1", "log")
        self.assertEqual((done.code, done.out), (0, b"1\n"), done)

    def test_images_that_are_none(self):
        """Cut, changed, another's, a link: not one byte of it is given to a sentry."""
        self.start()
        self.begin()
        self.snapshot()
        path = self.kept("s/processes.img")
        with open(path, "rb") as f:
            good = f.read()
        flipped = bytearray(good)
        flipped[len(good) // 2] ^= 1

        def write(data, **kw):
            with open(path, "wb") as f:
                f.write(data)

        def link():
            os.rename(path, path + ".moved")
            os.symlink(path + ".moved", path)

        for words, act in (("damaged", lambda: write(good[:-1])), ("damaged", lambda: write(bytes(flipped))),
                           ("damaged", lambda: write(b"")), ("damaged", lambda: (write(good), os.chown(path, 1234, -1))),
                           ("damaged", lambda: (os.chown(path, 0, -1), os.chmod(path, 0o644))),
                           ("symbolic links", lambda: (os.chmod(path, 0o600), link()))):
            act()
            done = self.warder("restore", "s", *self.options)
            self.assertCode(done, 125)
            self.assertOneLine(done, words)
        self.assertEqual(len(self.ps()), 1)

    def test_another_law_and_another_runtime(self):
        self.start()
        self.begin()
        self.snapshot()
        done = self.warder("restore", "s", *self.options, "--pids", "77")
        self.assertCode(done, 125)
        self.assertOneLine(done, "the policy that they had")
        about = self.kept("s/snapshot.json")
        with open(about) as f:
            text = f.read()
        with open(about, "w") as f:
            f.write(text.replace('"runtime":"runsc ', '"runtime":"runsc of another day '))
        done = self.warder("restore", "s", *self.options)
        self.assertCode(done, 125)
        self.assertOneLine(done, "of another day", "alone")

    def test_commands_that_came_in(self):
        self.start()
        self.begin()
        self.assertCode(self.warder("exec", "box", "true"), 0)
        done = self.warder("snapshot", "box", "s", "--processes")
        self.assertCode(done, 125)
        self.assertOneLine(done, "warder exec")
        self.assertFalse(os.path.exists(self.kept("s")))

    def test_a_full_disk_and_it_goes_on(self):
        """What cannot be kept is not half kept, and nobody stands still for it."""
        self.start("tenants:\n  default: { disk: 20M }\n")
        box = self.begin("python3", "-c", "import itertools, os, time\nkept = os.urandom(30 << 20)\n"
                         "for n in itertools.count(1):\n    print(n, flush=True)\n    time.sleep(.1)", options=("--disk", "16M"))
        done = self.warder("snapshot", "box", "s", "--processes")
        self.assertCode(done, 125)
        self.assertOneLine(done, "more than may be kept")
        self.assertFalse(os.path.exists(self.kept("s")))
        last = self.numbers(box)[-1]
        wait_for("it to go on", lambda: self.numbers(box)[-1] > last + 2)


class Refused(Keeping):
    def test_refused_by_name(self):
        if self.runsc.version not in CANNOT:
            self.options += ("--net", "open")
        self.start()
        self.begin()
        done = self.warder("snapshot", "box", "s", "--processes")
        self.assertCode(done, 125)
        self.assertOneLine(done, "by number" if self.runsc.version in CANNOT else "--net none")
        self.assertFalse(os.path.exists(self.kept("s")))

    def test_namespaces_keep_none(self):
        self.start()
        self.options = ()
        self.begin()
        done = self.warder("snapshot", "box", "s", "--processes")
        self.assertCode(done, 125)
        self.assertOneLine(done, "backend ns keeps no processes")


def load_tests(loader, tests, pattern):
    """Those that go on with every runsc that can, and what it refuses with each."""
    suite = unittest.TestSuite()
    for r in RUNSCS or [None]:
        for platform in r.platforms if r else [None]:
            for case in (Refused,) if r and r.version in CANNOT else (Checkpoint, Refused):
                name = "%s_%s_%s" % (case.__name__, r.version, platform) if r else case.__name__
                suite.addTests(loader.loadTestsFromTestCase(type(name, (case,), {"runsc": r, "platform": platform})))
    if len(RUNSCS) == 1:
        suite.addTests(loader.loadTestsFromTestCase(SecondVersion))
    return suite


if __name__ == "__main__":
    unittest.main()
