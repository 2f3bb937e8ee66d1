# SPDX-License-Identifier: Apache-2.0
"""Files of an agent's sandboxes: `warder cp` in both directions, and workspaces that stay."""

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()


def need_disks():
    """Without loop devices named workspaces have no limit (test_the_limit_cannot_be_had)."""
    try:
        with open("/dev/loop-control") as f:
            fcntl.ioctl(f, 0x4C82)  # LOOP_CTL_GET_FREE
    except OSError as e:
        raise unittest.SkipTest("this host has no loop devices: %s" % e)
    if not any(os.access(d + "/mke2fs", os.X_OK) for d in ("/usr/sbin", "/sbin")):
        raise unittest.SkipTest("mke2fs is not installed (make deps)")


class Copy(AgentCase):
    def setUp(self):
        super().setUp()
        self.start()
        self.create("--name", "box")

    def inside(self, script):
        done = self.warder("exec", "box", "sh", "-c", script)
        self.assertCode(done, 0)
        return done.out

    def test_files(self):
        data = os.urandom(300000)
        self.assertCode(self.warder("cp", self.path("f", data), "box:/workspace/"), 0)
        self.assertCode(self.warder("cp", self.path("f"), "box:g"), 0)
        self.assertEqual(self.inside("cmp f g && stat -c '%s %U' f"), b"300000 sandbox\n")
        self.assertCode(self.warder("cp", "box:g", self.path("back")), 0)
        self.assertEqual(open(self.path("back"), "rb").read(), data)
        self.assertEqual(self.warder("cp", "box:/workspace/f", "-").out, data)

    def test_trees(self):
        os.makedirs(self.path("d/e"))
        self.path("d/e/x y", "deep\n")
        os.symlink("e/x y", self.path("d/link"))
        self.assertCode(self.warder("cp", self.path("d"), "box:in/there"), 0)
        self.assertEqual(self.inside("cat in/there/link; ls in/there"), b"deep\ne\nlink\n")
        done = self.warder("cp", "box:in/there", "-")
        self.assertCode(done, 0)
        with tarfile.open(fileobj=io.BytesIO(done.out)) as t:
            self.assertEqual(sorted(t.getnames()), [".", "./e", "./e/x y", "./link"])
        self.assertCode(self.warder("cp", "-", "box:again", input=done.out), 0)
        self.assertEqual(self.inside("cat again/link"), b"deep\n")

    def test_links_lead_nowhere_else(self):
        """A hostile link inside: out of it comes what it is inside, and what goes in stays inside."""
        secret = self.path("secret", "of the host\n")
        self.inside("ln -s %s leak; ln -s / root; ln -s /etc/passwd p; ln -s %s into" % (secret, self.tmp))
        done = self.warder("cp", "box:leak", "-")
        self.assertNotEqual(done.code, 0)
        self.assertNotIn(b"of the host", done.out + done.err)
        self.assertIn(b"sandbox:x:1000", self.warder("cp", "box:p", "-").out)  # its own file
        self.assertNotEqual(self.warder("cp", secret, "box:into/new").code, 0)
        self.assertFalse(os.path.exists(self.path("new")))
        # On the host nothing is followed or half there.
        os.symlink(secret, self.path("to"))
        self.assertCode(self.warder("cp", "box:p", self.path("to")), 0)
        self.assertEqual(open(secret).read(), "of the host\n")
        self.assertNotEqual(self.warder("cp", "box:nothing", self.path("half")).code, 0)
        self.assertFalse(os.path.exists(self.path("half")))

    def test_bad_input(self):
        for argv, words in ((["a", "b"], "one of the two"), (["box:a", "box:b"], "one of the two"), (["a"], "where to"),
                            ([self.path("absent"), "box:x"], "No such file"), (["box:x", self.tmp], "is a directory"),
                            ([self.path("f", "x"), "nobody:x"], "no running sandbox")):
            done = self.warder("cp", *argv)
            self.assertCode(done, 125)
            self.assertOneLine(done, words)


class Workspace(AgentCase):
    def test_it_stays_and_has_one_writer(self):
        self.start()
        self.assertCode(self.warder("run", "--quiet", "--workspace", "name:proj", "--", "sh", "-c", "echo kept > f"), 0)
        box = self.create("--name", "box", "--workspace", "name:proj")
        self.assertEqual(self.warder("exec", "box", "cat", "f").out, b"kept\n")
        self.assertEqual(self.ps()[0]["workspace"], "proj")
        for options in ([], ["--no-agent"]):
            done = self.warder("run", *options, "--workspace", "name:proj", "--", "true")
            self.assertCode(done, 125)
            self.assertOneLine(done, "'proj' is in use")
        done = self.warder("workspace", "rm", "proj")
        self.assertCode(done, 125)
        self.assertOneLine(done, "in use")
        row = json.loads(self.warder("workspace", "list", "--json").out)
        self.assertEqual((row["workspace"], row["tenant"], row["in_use"]), ("proj", "default", True))
        # Another tenant's of that name is another one.
        self.assertCode(self.warder("run", "--quiet", "--tenant", "t", "--workspace", "name:proj", "--", "sh", "-c",
                                    "test ! -e f"), 0)
        self.assertCode(self.warder("rm", box), 0)
        rows = [json.loads(line) for line in self.warder("workspace", "list", "--json").out.splitlines()]
        self.assertEqual({(r["tenant"], r["in_use"]) for r in rows}, {("default", False), ("t", False)})
        self.assertCode(self.warder("workspace", "rm", "proj"), 0)
        self.assertCode(self.warder("workspace", "rm", "--tenant", "t", "proj"), 0)
        self.assertEqual(self.warder("workspace", "list").out, b"")
        done = self.warder("workspace", "rm", "proj")
        self.assertCode(done, 125)
        self.assertOneLine(done, "no workspace 'proj'")

    def test_whatever_a_payload_leaves(self):
        outside = self.path("outside", "stays\n")
        s = self.session(PYTHON_IN_SANDBOX, "-c", """
import os
for i in range(1100):
    os.mkdir("d"); os.chdir("d")
    if i in (0, 500, 1099):
        open("f", "w").close(); os.symlink(%r, "link"); os.symlink("/", "top")
os.mkdir("x" * 255); os.mkfifo("fifo"); os.mkdir(".moved-0"); open(".moved-0/y", "w").close()
""" % outside, options=["--workspace", "name:deep", "--no-workspace-diff"])
        self.assertCode(s, 0)
        self.assertCode(self.warder("workspace", "rm", "deep"), 0)
        with open(outside) as f:
            self.assertEqual(f.read(), "stays\n")
        self.assertEqual(os.listdir(self.path("state/workspaces/default")), [])

    def test_bad_names(self):
        for name in ("", "../x", ".x", "a/b", "x" * 64, "a b"):
            done = self.warder("run", "--workspace", "name:" + name, "--", "true")
            self.assertCode(done, 125)
            self.assertOneLine(done, "a name of letters")


class Disk(AgentCase):
    """A named workspace holds so much and no more."""

    def setUp(self):
        need_disks()
        super().setUp()

    def in_proj(self, script, *options):
        return self.session("sh", "-c", script, options=["--workspace", "name:proj", "--no-agent", *options])

    def rows(self):
        return [json.loads(line) for line in self.warder("workspace", "list", "--json").out.splitlines()]

    def test_it_has_a_limit(self):
        s = self.in_proj("head -c 100M /dev/zero > f; echo $?; rm f; ls -A; echo kept > k; df -m . | tail -1", "--disk", "32M")
        self.assertCode(s, 0)
        self.assertEqual(s.out.splitlines()[0], b"1")
        self.assertIn(b"No space left", s.err)
        self.assertLessEqual(int(s.out.split()[2]), 32)
        # Who hit it is told, with the kernel's word.
        e = s.kinds("limit", limit__type="disk")
        self.assertTrue(e, s.events)
        self.assertEqual(s.result["limits_hit"], ["disk"])
        self.assertNotIn("limit.disk", s.result["degraded"])
        row, = self.rows()
        self.assertEqual((row["size"], row["in_use"]), (32 << 20, False))
        self.assertLess(row["used"], 16 << 20)  # what was deleted is the host's again
        # A later sandbox may make it grow; less does not make it shrink.
        for options, size in (([], 512), (["--disk", "48M"], 512)):
            s = self.in_proj("cat k; head -c 40M /dev/zero > f && rm f && echo fits", *options)
            self.assertEqual((s.code, s.out), (0, b"kept\nfits\n"))
            self.assertEqual(self.rows()[0]["size"], size << 20)
        self.assertCode(self.warder("workspace", "rm", "proj"), 0)
        self.assertEqual([n for n in os.listdir(self.path("state/workspaces/default")) if "proj" in n], [])

    def test_number_of_files_is_limited(self):
        s = self.in_proj("seq 1 20000 | xargs -n 5000 touch; ls | wc -l", "--disk", "16M", "--no-workspace-diff")
        self.assertEqual(s.code, 0, s.err)
        self.assertIn(b"No space left on device", s.err)
        self.assertLess(int(s.out), 3000)
        self.assertTrue(s.kinds("limit", limit__type="disk"))

    def test_too_small_a_disk(self):
        done = self.warder("run", "--workspace", "name:tiny", "--disk", "1M", "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "workspace 'tiny'", "--disk", "4 MiB")
        self.assertEqual(self.rows(), [])

    def test_the_hosts_disk_is_full(self):
        os.mkdir(self.path("state"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "warder-test", self.path("state")], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("state")], check=True)
        session = self.path("session")
        done = self.warder("run", "--quiet", "--session-dir", session, "--workspace", "name:w", "--disk", "64M",
                           "--no-workspace-diff", "--", "sh", "-c", "head -c 40M /dev/urandom > f && sync -f f; echo $?")
        # It is no end of the sandbox, and what it wrote is an error of its own.
        self.assertEqual((done.code, done.out.splitlines()[-1:]), (0, [b"1"]), done)

    def test_the_limit_cannot_be_had(self):
        # A host without loop devices: there is none, and that is said.
        s = self.session("sh", "-c", "echo on", options=["--workspace", "name:bare"], prefix=[
            "unshare", "-m", "sh", "-c", 'mount --bind /dev/null /dev/loop-control && exec "$@"', "sh"])
        self.assertEqual((s.code, s.out), (0, b"on\n"), s.err)
        self.assertIn(b"workspace 'bare' has no limit: no loop devices", s.err)
        self.assertIn("limit.disk", s.result["degraded"])
        self.assertIsNone(self.rows()[0]["size"])

    def test_killed_with_it_mounted(self):
        self.start()
        box = self.create("--name", "box", "--workspace", "name:proj", "--disk", "32M")
        self.assertCode(self.warder("exec", "box", "sh", "-c", "echo kept > f; sync"), 0)
        for pid in self.keepers()[box]:
            os.kill(pid, signal.SIGKILL)
        wait_for("it to be swept", lambda: not self.ps())
        # The next one waits for the kernel to let go of it: two at once would be the end of the file system.
        again = self.create("--name", "again", "--workspace", "name:proj")
        self.assertEqual(self.warder("exec", "again", "cat", "f").out, b"kept\n")
        self.assertCode(self.warder("rm", again), 0)
        image = self.path("state/workspaces/default/.disk.proj")
        # The kernel's device keeps the lock of its file.
        wait_for("its loop device to be free", lambda: cmd("flock", "-n", image, "true").code == 0)
        done = cmd("e2fsck", "-fn", image, env=dict(self.env, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"))
        self.assertCode(done, 0)

    def test_tenants_have_so_much_disk(self):
        self.start("queue: 0\ntenants:\n  t: { disk: 64M }\n")
        a = self.create("--tenant", "t", "--workspace", "name:a", "--disk", "40M")
        self.assertCode(self.warder("rm", a), 0)
        # It stays, and it counts while nobody has it.
        done = self.warder("create", "--tenant", "t", "--disk", "32M")
        self.assertCode(done, 125)
        self.assertOneLine(done, "40 MiB of 64 MiB disk in use")
        done = self.warder("create", "--tenant", "t", "--workspace", "name:a", "--disk", "80M")
        self.assertCode(done, 125)
        self.assertOneLine(done, "disk")
        box = self.create("--tenant", "t", "--name", "box", "--disk", "20M")
        a = self.create("--tenant", "t", "--workspace", "name:a", "--disk", "40M")  # nothing more is needed
        # Snapshots take of it, too.
        self.assertCode(self.warder("exec", "box", "sh", "-c", "head -c 3M /dev/urandom > f"), 0)
        self.assertCode(self.warder("snapshot", "box", "one"), 0)
        done = self.warder("snapshot", "box", "two")
        self.assertCode(done, 125)
        self.assertOneLine(done, "snapshot")
        self.assertEqual([json.loads(line)["snapshot"] for line in self.warder("snapshot", "list", "--json").out.splitlines()],
                         ["one"])
        self.assertCode(self.warder("rm", box), 0)
        self.assertCode(self.warder("rm", a), 0)
        self.assertCode(self.warder("workspace", "rm", "--tenant", "t", "a"), 0)
        self.create("--tenant", "t", "--disk", "32M")


if __name__ == "__main__":
    unittest.main()
