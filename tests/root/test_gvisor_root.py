# SPDX-License-Identifier: Apache-2.0
"""What a sandbox under gVisor begins with: an image, a named workspace's disk, the files of a snapshot."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_agent
from gvisor import WithRunsc
from test_agent_files import need_disks
from test_image_run import ImageCase as Images
from warder import *

need_root()


class Root(WithRunsc, Images):
    def session_argv(self, command, options=()):
        return super().session_argv(command, ["--backend", "gvisor", *options])

    def test_an_image(self):
        digest = self.image(self.base(), Env=["FROM_IMAGE=1"], WorkingDir="/usr/", User="1000:1000")
        s = self.run_image("sh", "-c", "id -u; id -g; pwd; echo $FROM_IMAGE; cat lower /closed/f; echo changed > /usr/lower; "
                           "cat /usr/lower; rm /closed/f; echo gone $?; test -e /usr/bin/env || echo none of the host")
        self.assertCode(s, 0)
        self.assertEqual(s.out.decode().split("\n"), ["1000", "1000", "/usr", "1", "lower", "closed", "changed", "gone 0",
                                                      "none of the host", ""])
        self.assertEqual((s.result["image"], s.result["reason"]), (digest, "exit"))
        self.assertIntact(s)
        # Nothing of it is in the image.
        self.assertCode(self.warder("image", "verify", "it"), 0)
        s = self.run_image("cat", "/usr/lower", "/closed/f")
        self.assertEqual((s.code, s.out), (0, b"lower\nclosed\n"))

    def test_another_user_is_refused(self):
        self.image(self.base(), User="app")
        done = self.warder("run", "--backend", "gvisor", "--root", "image:it", "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "user 33:44", "1000 only")
        s = self.run_image("id", "-u", options=("--user", "1000:1000"))
        self.assertEqual((s.code, s.out), (0, b"1000\n"), s.err)

    def test_what_it_writes_is_limited(self):
        self.image(self.base())
        s = self.run_image("sh", "-c", "dd if=/dev/zero of=/usr/big bs=1M count=20 2>/dev/null || echo full", options=("--tmp", "8M"))
        self.assertEqual((s.code, s.out), (0, b"full\n"), s.err)

    def test_links_where_ours_go(self):
        outside = self.path("outside")
        os.mkdir(outside)
        self.image(self.base().link("workspace", outside).link("tmp", "/etc").link("dev", outside))
        s = self.run_image("sh", "-c", "echo x > /workspace/w; echo x > /tmp/t; echo x > /dev/null; echo on")
        self.assertEqual((s.code, s.out), (0, b"on\n"), s.err)
        self.assertEqual(os.listdir(outside), [])

    def test_a_named_workspace(self):
        need_disks()
        options = ("--workspace", "name:w", "--disk", "16M", "--no-workspace-diff")
        s = self.session("sh", "-c", "echo kept > f; dd if=/dev/zero of=big bs=1M count=20 2>/dev/null || echo full; rm big", options=options)
        self.assertEqual((s.code, s.out), (0, b"full\n"), s.err)
        s = self.session("sh", "-c", "cat f", options=options)
        self.assertEqual((s.code, s.out), (0, b"kept\n"), s.err)


class Snapshots(WithRunsc, test_agent.AgentCase):
    """gVisor's gofer writes to the same directories: what its kernel wrote is there for the host's."""

    def test_taken_and_begun_with(self):
        self.start()
        self.create("--name", "box", "--backend", "gvisor")
        fill = ("echo kept > f; chmod 640 f; mkdir d; echo t > /tmp/t; head -c 3000000 /dev/zero | tr '\\0' x > big; "
                "ln -s /etc/passwd soft; exec 3>open; echo open >&3; sha256sum big > sum; sleep 1000 & echo up")
        self.assertEqual(self.warder("exec", "box", "sh", "-c", fill).out, b"up\n")
        self.assertCode(self.warder("snapshot", "box", "s"), 0)
        self.assertEqual(self.warder("exec", "box", "echo", "on").out, b"on\n")
        look = "cat f /tmp/t open; sha256sum -c sum; readlink soft; find f -printf '%m %U\\n'; echo more >> f; cat f"
        want = b"kept\nt\nopen\nbig: OK\n/etc/passwd\n640 1000\nkept\nmore\n"
        # Under the other kernel, and under the host's.
        for options in (["--backend", "gvisor"], []):
            self.create("--name", "again", "--from", "s", *options)
            done = self.warder("exec", "again", "sh", "-c", look)
            self.assertEqual((done.code, done.out), (0, want), done)
            self.assertCode(self.warder("rm", "again"), 0)


if __name__ == "__main__":
    unittest.main()
