# SPDX-License-Identifier: Apache-2.0
"""The operator's watch list: reads are told by path and by inode, whatever name leads there."""

import os
import unittest

from probes import *

LOOK = """
def look(*names, flags=os.O_RDONLY):
    for p in names:
        try:
            os.close(os.open(p, flags))
        except OSError:
            pass
"""


class Watchlist(Probes):
    def reads(self, body, *entries):
        options = [w for e in entries for w in ("--watch-path", e)]
        self.d = self.script(LOOK + body, options=options)
        return [(r["path"], r["op"]) for r in self.d.kinds("file.open") if r["open_flags"] & 3 == os.O_RDONLY]

    def test_exact_path_and_nothing_else(self):
        t = self.path
        for name in ("secret", "secret.txt", "plain"):
            self.path(name, "x")
        os.mkdir(t("sub"))
        self.path("sub/secret", "x")
        rows = self.reads("""
look("secret", "secret.txt", "plain", "sub/secret", "sub/../secret", sys.argv[1] + "/secret")
""", t("plain-not-there"), t("secret"))
        self.assertEqual(rows, [(t("secret"), 2)] * 3)
        self.assertEqual([r["flags"] for r in self.d.kinds("file.open")][-3:], [0, 0, 0])

    def test_nothing_is_listed_by_default(self):
        self.path("secret", "x")
        self.assertEqual(self.reads('look("secret")'), [])

    def test_other_names_of_the_same_file(self):
        t = self.path
        self.path("secret", "x")
        os.mkdir(t("elsewhere"))
        rows = self.reads("""
os.link("secret", "hard")
os.symlink("secret", "soft")
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
open("target", "w").close()
sc(165, b"secret", b"target", 0, 4096, 0)
look("hard", "soft", "target")
os.rename("hard", "elsewhere/renamed")
look("elsewhere/renamed")
""", t("secret"))
        self.assertEqual(rows, [(t("hard"), 1), (t("secret"), 1), (t("target"), 1), (t("elsewhere/renamed"), 1)])

    def test_a_file_that_comes_later_is_known_by_path(self):
        rows = self.reads("""
look("later")
open("x", "w").close()
os.rename("x", "later")
look("later", sys.argv[1] + "/later")
""", self.path("later"))
        self.assertEqual(rows, [("later", 1), (self.path("later"), 1), (self.path("later"), 1)])
        self.assertEqual(self.d.kinds("file.open")[0]["ret"], -2, "sought in vain")

    def test_directory_with_all_below(self):
        t = self.path
        os.makedirs(t("keys/deep/er"))
        os.mkdir(t("mnt"))
        self.path("keys/a", "x")
        self.path("keys/deep/er/b", "x")
        self.path("keys2", "x")
        rows = self.reads("""
look("keys/a", "keys/deep/er/b", "keys2", "keys")
open("keys/new", "w").close()
look("keys/new")
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
sc(165, b"keys/deep", b"mnt", 0, 4096, 0)
look("mnt/er/b")
""", t("keys") + "/")
        self.assertEqual(rows, [(t("keys/a"), 1), (t("keys/deep/er/b"), 1), (t("keys"), 1), (t("keys/new"), 1),
                                (t("mnt/er/b"), 1)])
        made, = [r for r in self.d.kinds("file.open") if r["open_flags"] & 3 == os.O_WRONLY
                 and r["path"] == t("keys/new")]
        self.assertEqual(made["op"], 1, "writing is told with the entry, too")

    def test_prefix_of_bytes(self):
        t = self.path
        for name in ("token-a", "token-b", "tok"):
            self.path(name, "x")
        self.assertEqual(self.reads('look("token-a", "token-b", "tok")', t("token-") + "*"),
                         [(t("token-a"), 1), (t("token-b"), 1)])

    def test_refused(self):
        t = self.path
        self.path("secret", "x")
        os.chmod(t("secret"), 0o600)
        rows = self.reads("""
os.setgid(65534); os.setuid(65534)
look("secret", sys.argv[1] + "/secret", "other")
dirfd = os.open(".", os.O_RDONLY)
os.chdir("/")
look(b"secret")
try:
    os.open("secret", os.O_RDONLY, dir_fd=dirfd)
except PermissionError:
    pass
""", t("secret"))
        self.assertEqual(rows, [("secret", 1), (t("secret"), 1), ("secret", 1)])
        self.assertEqual({r["ret"] for r in self.d.kinds("file.open", op=1)}, {-13})

    def test_most_specific_entry_is_named(self):
        t = self.path
        os.mkdir(t("d"))
        self.path("d/a", "x")
        self.path("d/b", "x")
        self.assertEqual(self.reads('look("d/a", "d/b")', t("d") + "/", t("d/b")), [(t("d/a"), 1), (t("d/b"), 2)])

    def test_bad_entries(self):
        for entry in ("relative", "", "/a/../b", "/a//b", "/" + "x" * 250, "/a/."):
            done = cmd(helper("probe_dump"), "--watch-path", entry, "--", "/bin/true")
            self.assertEqual(done.code, 3, entry)
            self.assertIn(b"watched path 1", done.err)


if __name__ == "__main__":
    unittest.main()
