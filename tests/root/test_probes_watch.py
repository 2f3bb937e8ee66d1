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

    def by_ring(self, mode):
        t = self.path
        self.path("secret", "x")
        self.path("plain", "x")
        os.link(t("secret"), t("hard"))
        self.path("id_rsa", "x")
        d = self.dump(helper("try_uring"), mode, "read:" + t("hard"), "read:plain", "read:id_rsa",
                      "open:/proc/sys/kernel/core_pattern", wrap=["env", "-C", self.tmp], options=["--watch-path", t("secret")])
        if d.done.code == 77:
            self.skipTest("io_uring is turned off here: %s" % d.done.err.decode())
        rows = [(r["path"], r["op"], r["ino"], r["flags"], r["fd"] == r["ret"] >= 0) for r in d.kinds("file.open")
                if r["open_flags"] & 3 == os.O_RDONLY]
        self.assertEqual(rows, [(t("hard"), 1, os.stat(t("secret")).st_ino, IOURING, True),
                                (t("id_rsa"), 0, os.stat(t("id_rsa")).st_ino, IOURING, True)])
        e, = d.escapes("kernel_file")
        self.assertEqual((e["detail"], e["flags"] & (IOURING | TOCTOU)), ("/proc/sys/kernel/core_pattern", IOURING))

    def test_by_io_uring(self):
        self.by_ring("plain")

    def test_by_a_worker_of_io_uring(self):
        self.by_ring("worker")

    def test_bad_entries(self):
        for entry in ("relative", "", "/a/../b", "/a//b", "/" + "x" * 250, "/a/."):
            done = cmd(helper("probe_dump"), "--watch-path", entry, "--", "/bin/true")
            self.assertEqual(done.code, 3, entry)
            self.assertIn(b"watched path 1", done.err)


class Sessions(TestCase):
    """`warder run --watch`, and where a file lies on the host."""

    def setUp(self):
        need_root()
        super().setUp()
        os.chmod(self.tmp, 0o755)

    def test_watch_and_host_path(self):
        idmapped(self, "data")
        self.path("data/secret", "x")
        self.path("data/plain", "x")
        os.link(self.path("data/secret"), self.path("data/alias"))
        policy = self.path("policy.yaml", "watch:\n  paths:\n    - /mnt/later\n")
        s = self.session("/bin/sh", "-c", "cat /mnt/secret /mnt/alias /mnt/plain; echo x > /mnt/made; "
                         "echo y > /workspace/own; cat /mnt/later",
                         options=["--rw", self.path("data") + ":/mnt", "--watch", "/mnt/later", "--watch", "/mnt/secret"])
        self.assertCode(s, 1)
        p = self.session("/bin/cat", "/mnt/later", options=["--policy", policy])
        rows = {(e["file"]["path"], e["file"].get("host_path"), e["file"].get("watched"), e["outcome"])
                for e in s.kinds("file.open") if not e["file"]["path"].startswith("/dev/")}
        self.assertEqual(rows, {
            ("/mnt/secret", self.path("data/secret"), "/mnt/secret", "success"),
            ("/mnt/alias", self.path("data/alias"), "/mnt/secret", "success"),
            ("/mnt/made", self.path("data/made"), None, "success"),
            ("/workspace/own", None, None, "success"),
            ("/mnt/later", self.path("data/later"), "/mnt/later", "failure")})
        w, = [e for e in s.kinds("file.write") if e["file"]["path"] == "/mnt/made"]
        self.assertEqual(w["file"]["host_path"], self.path("data/made"))
        self.assertEqual([e["file"]["watched"] for e in p.kinds("file.open") if "watched" in e["file"]], ["/mnt/later"])

    def test_bad_option(self):
        for entry in ("etc/shadow", "/etc/../x", ""):
            done = cmd(WARDER, "run", "--watch", entry, "--", "/bin/true")
            self.assertEqual(done.code, 125, done)
            self.assertIn(b"--watch", done.err)


if __name__ == "__main__":
    unittest.main()
