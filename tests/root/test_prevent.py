# SPDX-License-Identifier: Apache-2.0
"""Full tier: what the enforcement maps deny does not happen, and the record says who refused it."""

import json
import os
import unittest

from probes import *
from test_enforce import DENIED, EPERM, KILLED_BY_9, TRIES, Enforce, exe_key


class Prevent(Enforce):
    def setUp(self):
        super().setUp()
        done = cmd(helper("probe_dump"), "--families", "--enforce", "deny:kind:file.open")
        rows = [json.loads(line) for line in done.out.splitlines()]
        self.family = next(r for r in rows if r.get("family") == "prevent")
        if self.family["tier"] != "full":
            raise unittest.SkipTest("this kernel cannot prevent: " + self.family["detail"])

    def test_every_hook_is_there(self):
        self.assertTrue(self.family["ok"], self.family)

    def test_files(self):
        os.makedirs(self.path("no/dir"))
        os.makedirs(self.path("yes"))
        for name in ("no/old", "no/gone", "yes/file"):
            self.path(name, "text")
        d = self.tried(r"""
attempt("open", lambda: os.open("no/old", os.O_WRONLY))
attempt("trunc", lambda: os.open("yes/../no/old", os.O_WRONLY | os.O_TRUNC))
attempt("create", lambda: os.open("no/new", os.O_WRONLY | os.O_CREAT))
attempt("unlink", lambda: os.unlink("no/gone"))
attempt("rmdir", lambda: os.rmdir("no/dir"))
attempt("mkdir", lambda: os.mkdir("no/made"))
attempt("rename_to", lambda: os.rename("yes/file", "no/file"))
attempt("rename_from", lambda: os.rename("no/old", "yes/old"))
attempt("link", lambda: os.link("no/old", "yes/hard"))
attempt("symlink", lambda: os.symlink("x", "no/soft"))
attempt("chmod", lambda: os.chmod("no/old", 0o777))
attempt("chown", lambda: os.chown("no/old", 1, 1))
attempt("truncate", lambda: os.truncate("no/old", 0))
attempt("elsewhere", lambda: os.rename("yes/file", "yes/file2"))
attempt("read", lambda: os.open("no/old", os.O_RDONLY))
""", "deny:path:" + self.path("no"))
        acts = {"open": "file.open", "trunc": "file.open", "create": "file.open", "unlink": "file.delete",
                "rmdir": "file.delete", "mkdir": "file.mkdir", "rename_to": "file.rename",
                "rename_from": "file.rename", "link": "file.link", "symlink": "file.link", "chmod": "file.attr",
                "chown": "file.attr", "truncate": "file.attr"}
        for act, kind in acts.items():
            self.assertEqual(d.told[act], EPERM, act)
            r = self.decided(d, act, 1, DENIED, kind)
            self.assertEqual(r["ret"], -EPERM, r)
        self.assertEqual((d.told["elsewhere"], d.told["read"]), (0, 0))
        self.assertEqual(sorted(os.listdir(self.path("no"))), ["dir", "gone", "old"])
        self.assertEqual(os.listdir(self.path("yes")), ["file2"])
        with open(self.path("no/old")) as f:
            self.assertEqual(f.read(), "text")

    def test_killed_before_the_act(self):
        self.path("keep", "text")
        d = self.tried(r"""
attempt("kill", lambda: os.unlink("keep"))
""", "kill:path:%s@file.delete" % self.path("keep"))
        self.assertEqual(d.told["kill"], KILLED_BY_9)
        self.decided(d, "kill", 1, DENIED | KILLED, "file.delete")
        self.assertTrue(os.path.exists(self.path("keep")))

    def test_exec(self):
        d = self.tried(r"""
attempt("denied", lambda: os.execv("/bin/true", ["true"]))
attempt("other", lambda: os.execv("/bin/echo", ["echo", "-n"]))
""", "deny:exe:" + exe_key("/bin/true"))
        self.assertEqual(d.told["denied"], EPERM)
        self.decided(d, "denied", 1, DENIED, "exec")
        self.assertEqual(d.told["other"], 0)


del Enforce  # its own tests run elsewhere

if __name__ == "__main__":
    unittest.main()
