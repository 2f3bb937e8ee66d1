# SPDX-License-Identifier: Apache-2.0
"""Files of an agent's sandboxes: `warder cp` in both directions, and workspaces that stay."""

import io
import json
import os
import sys
import tarfile
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()


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
        self.assertEqual(open(outside).read(), "stays\n")
        self.assertEqual(os.listdir(self.path("state/workspaces/default")), [])

    def test_bad_names(self):
        for name in ("", "../x", ".x", "a/b", "x" * 64, "a b"):
            done = self.warder("run", "--workspace", "name:" + name, "--", "true")
            self.assertCode(done, 125)
            self.assertOneLine(done, "a name of letters")


if __name__ == "__main__":
    unittest.main()
