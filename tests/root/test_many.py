# SPDX-License-Identifier: Apache-2.0
"""Many short sandboxes, many at once: each event belongs to the one that made it, and nothing is left. How many:
MANY_SANDBOXES; here 2,000, `make soak` 10,000. And control groups made inside a sandbox."""

import json
import os
import unittest

from probes import *
from warder import IN_VM

SANDBOX = 7  # as probe_dump calls it
COUNT = int(os.environ.get("MANY_SANDBOXES", "60" if IN_VM else "2000"))


class Many(Probes):
    def many(self, *options):
        done = cmd(helper("many"), *options, "--tiny", helper("tiny"), cwd=self.tmp, timeout=120 + COUNT)
        self.assertCode(done, 0)
        return json.loads(done.out)

    def file_hook(self):
        rows = [json.loads(line) for line in cmd(helper("probe_dump"), "--families").out.splitlines()]
        return next(r["hook"] for r in rows if r.get("family") == "file")

    def assertClean(self, r):
        start, early, end = r["start"], r["early"], r["end"]
        self.assertEqual((r["wrong"], r["first_wrong"]), (0, ""))
        if r["lost"] and IN_VM and "kretprobe.multi" in self.file_hook():
            # 64 at once use up the return probes of one emulated processor: what is missing was counted, then.
            self.assertLessEqual(r["missing"], r["lost"], r["first_missing"])
        else:
            self.assertEqual((r["missing"], r["first_missing"], r["lost"]), (0, "", 0))
        self.assertEqual(end["fds"], start["fds"], "descriptors")
        self.assertEqual((end["cgroups"], end["dying_cgroups"]), (0, 0))
        self.assertEqual(end["kernel_bytes"], start["kernel_bytes"], "all tables are made once")
        for name, used in end["maps"].items():
            # It remembers what was written in a sandbox until room is needed.
            if name != "made":
                self.assertEqual(used, start["maps"][name], name)
        self.assertLess(end["rss_kb"], early["rss_kb"] + 1024, "memory grows with the number of sandboxes")

    def test_many_short_sandboxes(self):
        self.assertClean(self.many("--count", str(COUNT), "--at-once", "64"))

    def test_process_ids_used_again(self):
        """Every process of a place has the same number: only with its start does it say who it was."""
        count = max(COUNT // 10, 40)
        r = self.many("--count", str(count), "--at-once", "8", "--same-pids")
        self.assertClean(r)
        self.assertGreater(r["reused_pids"], count * 3 // 4)


class Nested(Probes):
    """Control groups made inside, with a writable hierarchy."""

    SETUP = """
import ctypes
root = sys.argv[2]
leaf = root + open("/proc/self/cgroup").read().split("0::")[1].split("\\n")[0]
def enter(group, pid=0):
    with open(group + "/cgroup.procs", "w") as f: f.write(str(pid))
def act(name):
    pid = os.fork()
    if pid == 0:
        open(name, "w").close()
        os.execv("/bin/true", ["true", name])
    os.waitpid(pid, 0)
    return pid
deep = leaf
def remove():
    for _ in range(200):
        try:
            for g in (leaf + "/a/b/c", leaf + "/a/b", leaf + "/a"): os.rmdir(g)
            return
        except OSError: time.sleep(0.01)
import time
for part in "abc":
    deep += "/" + part
    os.mkdir(deep)
ids = [os.stat(g).st_ino for g in (leaf, leaf + "/a", deep)]
"""

    def of(self, d, name):
        """Events of one act: its open, its exec."""
        opened = [r for r in d.kinds("file.open") if r["path"].endswith("/" + name)]
        ran = [r for r in d.kinds("exec") if d.args(r).split(b"\0")[:2] == [b"true", name.encode()]]
        self.assertEqual((len(opened), len(ran)), (1, 1), name)
        return opened + ran

    def test_cgroups_made_inside(self):
        d = self.script(self.SETUP + """
act("top")
enter(leaf + "/a"); act("first")
enter(deep); act("third")
enter(leaf); act("back")
remove()
tell(ids=ids)
""", v2_mount())
        leaf, first, third = d.told["ids"]
        for name, cgid in (("top", leaf), ("first", first), ("third", third), ("back", leaf)):
            for r in self.of(d, name):
                self.assertEqual((r["sandbox"], r["cgid"]), (SANDBOX, cgid), name)
        self.assertEqual(d.escapes("cgroup_leave"), [], "below is not outside")

    def test_moved_to_a_child_by_another(self):
        d = self.script(self.SETUP + """
pid = os.fork()
if pid == 0:
    while open("/proc/self/cgroup").read().split("0::")[1].strip().rsplit("/", 1)[1] != "c": time.sleep(0.01)
    open("moved", "w").close()
    os.execv("/bin/true", ["true", "moved"])
enter(deep, pid)
os.waitpid(pid, 0)
remove()
tell(ids=ids)
""", v2_mount())
        for r in self.of(d, "moved"):
            self.assertEqual((r["sandbox"], r["cgid"]), (SANDBOX, d.told["ids"][2]))
        self.assertEqual(d.escapes("cgroup_leave"), [])

    def test_cgroup_namespace(self):
        """What the sandbox calls its root is told by what the kernel calls it."""
        d = self.script(self.SETUP + """
enter(deep)
pid = os.fork()
if pid == 0:
    sc(272, 0x02000000)  # unshare(CLONE_NEWCGROUP)
    open("inside", "w").close()
    shown = open("/proc/self/cgroup").read().split("0::")[1].strip()
    os.execv("/bin/true", ["true", "inside"] if shown == "/" else ["true", "not-root"])
os.waitpid(pid, 0)
enter(leaf)
remove()
tell(ids=ids)
""", v2_mount())
        for r in self.of(d, "inside"):
            self.assertEqual((r["sandbox"], r["cgid"]), (SANDBOX, d.told["ids"][2]))
        self.assertEqual(d.escapes("cgroup_leave"), [])
        self.assertEqual(len(d.escapes("unshare")), 1)

    def test_from_a_nested_one_to_the_outside(self):
        d = self.script(self.SETUP + """
enter(deep)
enter(root); act("outside")
remove()
tell(ids=ids)
""", v2_mount())
        self.assertEqual(len(d.escapes("cgroup_leave")), 1)
        for r in self.of(d, "outside"):
            self.assertEqual(r["sandbox"], SANDBOX, "still ours")


if __name__ == "__main__":
    unittest.main()
