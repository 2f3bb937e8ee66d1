# SPDX-License-Identifier: Apache-2.0
"""Files: opened, renamed, deleted, changed, watched; paths as the sandbox sees them; io_uring."""

import os
import unittest

from probes import *


class Files(Probes):
    def test_open_for_writing(self):
        os.mkdir(self.path("deep"))
        self.path("old", "text")
        d = self.script("""
o = os.open
def ids(fd):
    s = os.fstat(fd)
    return [fd, s.st_ino, s.st_mode]
tell(new=ids(o("new", os.O_CREAT | os.O_WRONLY, 0o640)), old=ids(o("./deep/../old", os.O_RDWR)))
os.symlink("old", "link")
tell(link=ids(o("link", os.O_WRONLY | os.O_APPEND)))
o("old", os.O_RDONLY | os.O_TRUNC)
o("old", os.O_RDONLY)
dirfd = o("deep", os.O_RDONLY)
o("x", os.O_CREAT | os.O_WRONLY, dir_fd=dirfd)
sc(85, b"deep/creat", 0o600)
how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o600, 0)
buf = ctypes.create_string_buffer(how)
sc(437, -100, b"deep/openat2", ctypes.addressof(buf), len(how))
os.chdir("deep")
os.rmdir("/nonexistent") if 0 else None
""")
        def opened(name):
            return [r for r in d.kinds("file.open") if r.get("path") == self.path(name)]
        new, = opened("new")
        self.assertEqual([new["fd"], new["ino"], new["mode"]], d.told["new"])
        self.assertEqual(new["open_flags"] & 0o3777, os.O_CREAT | os.O_WRONLY)
        self.assertEqual(new["flags"], 0, "a path from the kernel's own object")
        rw, link, trunc = opened("old")
        self.assertEqual([rw["fd"], rw["ino"], rw["mode"]], d.told["old"])
        self.assertEqual([link["fd"], link["ino"], link["mode"]], d.told["link"])
        self.assertTrue(trunc["open_flags"] & os.O_TRUNC)
        for name in ("deep/x", "deep/creat", "deep/openat2"):
            self.assertEqual(len(opened(name)), 1, name)

    def test_refused_open_is_told(self):
        secret = self.path("secret", "x")
        os.chmod(secret, 0o600)
        d = self.script("""
os.setgid(65534); os.setuid(65534)
for p in ("secret", sys.argv[1] + "/secret"):
    try:
        os.open(p, os.O_WRONLY)
    except PermissionError:
        pass
try:
    os.open("secret", os.O_RDONLY)
except PermissionError:
    pass
try:
    os.open("/nonexistent/x", os.O_WRONLY)
except FileNotFoundError:
    pass
""")
        rel, absolute = d.kinds("file.open", ret=-13)
        self.assertEqual((rel["path"], rel["base"]), ("secret", self.tmp))
        self.assertEqual(absolute["path"], secret)
        self.assertNotIn("base", absolute)
        self.assertTrue(rel["flags"] & TOCTOU)
        self.assertEqual(rel["uid"], 65534)
        self.assertEqual(d.kinds("file.open", ret=-2), [])

    def test_names(self):
        d = self.script("""
os.mkdir("d", 0o751)
dirfd = os.open("d", os.O_RDONLY)
open("a", "w").close()
os.rename("a", "b")
os.rename("b", "c", dst_dir_fd=dirfd)
os.link("d/c", "hard")
os.symlink("any/where", "soft")
os.symlink("x", "soft2", dir_fd=dirfd)
os.unlink("hard")
os.unlink("c", dir_fd=dirfd)
os.unlink("d/soft2"); os.unlink("soft")
os.rmdir("d")
try:
    os.unlink("nonexistent")
except FileNotFoundError:
    pass
""")
        t = self.tmp
        def names(kind):
            return [tuple(r.get(k) for k in ("base", "path", "base2", "path2")) for r in d.kinds(kind)]
        self.assertEqual(names("file.mkdir"), [(t, "d", None, None)])
        self.assertEqual(d.one("file.mkdir")["mode"], 0o751)
        self.assertEqual(names("file.rename"), [(t, "a", t, "b"), (t, "b", t + "/d", "c")])
        self.assertEqual(names("file.link"), [(t, "hard", t, "d/c"), (t, "soft", None, "any/where"),
                                              (t + "/d", "soft2", None, "x")])
        self.assertEqual([r["op"] for r in d.kinds("file.link")], [1, 2, 2])
        self.assertEqual(names("file.delete"), [(t, "hard", None, None), (t + "/d", "c", None, None),
                                                (t, "d/soft2", None, None), (t, "soft", None, None),
                                                (t, "d", None, None)])
        self.assertTrue(all(r["flags"] & TOCTOU for r in d.kinds("file.rename", "file.delete")))

    def test_attributes(self):
        d = self.script("""
f = open("a", "w")
os.chmod("a", 0o4755)
os.fchmod(f.fileno(), 0o600)
os.chown("a", 11, 12)
os.fchown(f.fileno(), 13, 14)
os.truncate("a", 77)
os.ftruncate(f.fileno(), 78)
os.setxattr("a", "user.x", b"1") if 0 else sc(188, b"a", b"trusted.x", b"1", 1, 0)
""")
        rows = d.kinds("file.attr")
        self.assertEqual([r["op"] for r in rows], [1, 1, 2, 2, 4, 4, 3])
        self.assertEqual([r["mode"] for r in rows[:2]], [0o4755, 0o600])
        self.assertEqual([(r["fuid"], r["fgid"]) for r in rows[2:4]], [(11, 12), (13, 14)])
        self.assertEqual([r["size"] for r in rows[4:6]], [77, 78])
        self.assertEqual(rows[6]["path2"], "trusted.x")
        self.assertEqual([r["path"] for r in rows],
                         ["a", self.path("a"), "a", self.path("a"), "a", self.path("a"), "a"])

    def test_watched_names_are_told_when_read(self):
        for name in (".kube/config", ".git/config", ".aws/credentials", "shadow", "plain"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.path(name, "x")
        d = self.script("""
def look(p):
    try:
        os.close(os.open(p, os.O_RDONLY))
    except OSError:
        pass
for p in (".kube/config", ".git/config", ".aws/credentials", "shadow", "plain", "none/.aws/credentials",
          "none/.kube/config", "none/.git/config", "none/plain", "id_rsa", "xid_rsa", "none/" + "x" * 300 + "/.netrc"):
    look(p)
os.symlink("shadow", "innocent")
look("innocent")
""")
        rows = [(r["ret"] >= 0, r["path"]) for r in d.kinds("file.open") if r["open_flags"] & 3 == os.O_RDONLY]
        t = self.path
        self.assertEqual(rows, [
            (True, t(".kube/config")), (True, t(".aws/credentials")), (True, t("shadow")),
            (False, "none/.aws/credentials"), (False, "none/.kube/config"), (False, "id_rsa"),
            (False, "none/" + "x" * 300 + "/.netrc"), (True, t("shadow"))])

    def test_path_is_the_sandboxs_own(self):
        os.makedirs(self.path("root/data"))
        os.mkdir(self.path("real"))
        d = self.script("""
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
sc(165, b"real", b"root/data", 0, 4096, 0)
sc(165, b"tmpfs", b"root/data", b"tmpfs", 0, 0) if sys.argv[2] == "nested" else None
outside = os.open(".", os.O_RDONLY)
os.chroot("root"); os.chdir("/data")
open("f", "w").close()
open("/top", "w").close()
os.open("stray", os.O_CREAT | os.O_WRONLY, dir_fd=outside)
""", "nested")
        paths = {r["path"]: r["flags"] for r in d.kinds("file.open") if r["path"][:5] in ("/data", "/top")}
        self.assertEqual(paths, {"/data/f": 0, "/top": 0})
        stray = [r for r in d.kinds("file.open") if r["path"].endswith("/stray")]
        self.assertEqual([r["path"] for r in stray], [self.path("stray")])
        self.assertTrue(stray[0]["flags"] & UNREACH)

    def test_deep_and_long_path(self):
        d = self.script("""
for i in range(15):
    os.mkdir("x" * 200)
    os.chdir("x" * 200)
open("f", "w").close()
for i in range(10):
    os.mkdir("y" * 200)
    os.chdir("y" * 200)
open("g", "w").close()
""")
        f = [r for r in d.kinds("file.open") if r["path"].endswith("/f")]
        self.assertEqual(f[0]["path"], self.tmp + "/" + "/".join(["x" * 200] * 15) + "/f")
        g = [r for r in d.kinds("file.open") if r["path"].endswith("/g")]
        self.assertTrue(g[0]["flags"] & TRUNC, "longer than a path may be: the end is kept")
        self.assertGreater(len(g[0]["path"]), 3800)

    def test_hostile_pointers(self):
        d = self.script("""
sc(87, 0); sc(87, -1); sc(82, 1, 2); sc(83, -4096, 0); sc(42, 0, 0, 0)
tell(r=sc(165, 1, 2, 3, 4, 5))
""")
        self.assertEqual(d.told["r"], -14)
        self.assertTrue(d.escapes("mount")[0]["flags"] & 0x400, "the unreadable string is marked")


class Uring(Probes):
    """The ring's own threads and workers belong to the sandbox, and what they do is told."""

    def check(self, mode):
        d = self.dump(helper("try_uring"), mode, "open:" + self.path("a"), "mkdir:d", "rename:%s:b" % self.path("a"),
                      "unlink:b", "connect:1", wrap=["env", "-C", self.tmp])
        if d.done.code == 77:
            self.skipTest("io_uring is turned off here: %s" % d.done.err.decode())
        results = [int(x) for x in d.done.err.split()[-5:]]
        self.assertGreaterEqual(results[0], 0)
        self.assertEqual(results[1:], [0, 0, 0, -111])
        seen = [(r["kind"], r.get("base"), r.get("path"), r.get("base2"), r.get("path2"))
                for r in d.kinds("file.open", "file.mkdir", "file.rename", "file.delete") if r["flags"] & IOURING]
        t = self.tmp
        self.assertEqual(seen, [
            ("file.open", None, t + "/a", None, None), ("file.mkdir", t, "d", None, None),
            ("file.rename", None, t + "/a", t, "b"), ("file.delete", t, "b", None, None)])
        connect = d.one("net.connect")
        self.assertEqual((connect["dport"], connect["flags"] & IOURING), (1, IOURING))
        self.assertEqual({r["sandbox"] for r in d.records}, {7})
        self.assertEqual(len(d.escapes("io_uring")), 1)
        return d, connect

    def test_plain(self):
        self.check("plain")

    def test_kernel_thread(self):
        d, connect = self.check("sqpoll")
        self.assertTrue(connect["comm"].startswith("iou-sqp-"))
        self.assertNotEqual(connect["tid"], connect["tgid"])

    def test_worker(self):
        d, connect = self.check("worker")
        self.assertTrue(connect["comm"].startswith("iou-wrk-"))


if __name__ == "__main__":
    unittest.main()
