# SPDX-License-Identifier: Apache-2.0
"""Files: opened, renamed, deleted, changed, watched; paths as the sandbox sees them; io_uring."""

import base64
import os
import unittest

from probes import *


def whole_name(r, which=""):
    """Absolute: as the kernel resolved it, or the caller's name with the directory that it starts from."""
    base, path = r.get("base" + which), r["path" + which]
    return "%s/%s" % (base, path) if base else path


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
        # Where a hook says what a name led to, it is absolute; else the caller's word and what it starts from.
        resolved = names_are_resolved()

        def names(kind):
            rows = []
            for r in d.kinds(kind):
                base, path, base2, path2 = (r.get(k) for k in ("base", "path", "base2", "path2"))
                if resolved:
                    self.assertEqual((base, base2, r["flags"]), (None, None, 0), r)
                else:
                    self.assertTrue(r["flags"] & TOCTOU, r)
                    self.assertEqual(base[:len(t)], t, r)
                path = os.path.join(base or "", path)
                if path2 is None or (kind == "file.link" and r["op"] == 2):
                    rows.append((path, path2))
                else:
                    rows.append((path, os.path.join(base2 or "", path2)))
            return rows
        p = self.path
        self.assertEqual(names("file.mkdir"), [(p("d"), None)])
        self.assertEqual(d.one("file.mkdir")["mode"], 0o751)
        self.assertEqual(names("file.rename"), [(p("a"), p("b")), (p("b"), p("d/c"))])
        self.assertEqual(names("file.link"), [(p("hard"), p("d/c")), (p("soft"), "any/where"), (p("d/soft2"), "x")])
        self.assertEqual([r["op"] for r in d.kinds("file.link")], [1, 2, 2])
        self.assertEqual(names("file.delete"), [(p(n), None) for n in ("hard", "d/c", "d/soft2", "soft", "d")])

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
        a = self.path("a")
        by_name = a if names_are_resolved() else "a" # but of setxattr, where no hook knows the mount
        self.assertEqual([r["path"] for r in rows], [by_name, a, by_name, a, by_name, a, "a"])

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


class Writes(Probes):
    """Bytes at close, by every way to write and every way to close."""

    def totals(self, d, name):
        ids = {r["id"]: r["path"] for r in d.kinds("file.open", "file.write") if r.get("path") and r["id"]}
        return [(r["size"], r["count"], r["fd"]) for r in d.kinds("file.write", op=2)
                if ids.get(r["id"]) == self.path(name)]

    def test_every_call_counts(self):
        self.path("source", "s" * 1000)
        d = self.script("""
src = os.open("source", os.O_RDONLY)
calls = dict(
    write=lambda f: os.write(f, b"x" * 100),
    pwrite=lambda f: os.pwrite(f, b"x" * 50, 7),
    writev=lambda f: os.writev(f, [b"x" * 10, b"y" * 5]),
    pwritev=lambda f: os.pwritev(f, [b"x" * 10, b"y" * 6], 0),
    sendfile=lambda f: os.sendfile(f, src, 0, 300),
    copy=lambda f: os.copy_file_range(src, f, 400, 0),
)
def splice(f):
    r, w = os.pipe()
    os.write(w, b"p" * 77)
    return os.splice(r, f, 77)
if hasattr(os, "splice"):
    calls["splice"] = splice
done = {}
for name, call in calls.items():
    f = os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)
    n = call(f) + call(f)
    os.close(f)
    done[name] = [n, f]
f = os.open("never", os.O_CREAT | os.O_WRONLY, 0o600)
os.close(f)
f = os.open("failed", os.O_CREAT | os.O_WRONLY, 0o600)
sc(1, f, -4096, 10)
os.close(f)
tell(done=done)
""")
        for name, (n, fd) in d.told["done"].items():
            self.assertEqual((name, self.totals(d, name)), (name, [(n, 2, fd)]))
            r, = [r for r in d.kinds("file.open") if r["path"] == self.path(name)]
            w = d.one("file.write", id=r["id"])
            self.assertEqual((w["ino"], w["dev"], w["mode"]), (r["ino"], r["dev"], r["mode"]))
            self.assertTrue(r["ts"] - 10**7 < w["first_ts"] <= w["ts"])
        self.assertEqual(self.totals(d, "never") + self.totals(d, "failed"), [])
        self.assertEqual([r for r in d.kinds("file.write") if r["mode"] & 0o170000 != 0o100000], [],
                         "pipes, sockets and terminals are not files")

    def test_every_way_to_close(self):
        d = self.script("""
def new(name, **kw):
    f = os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(f, name.encode())
    return f
null = os.open("/dev/null", os.O_RDWR)
f = new("dup2"); os.dup2(null, f); os.write(f, b"elsewhere"); os.close(f)
a, b = new("range1"), new("range2")
sc(436, min(a, b), max(a, b), 0)
f = new("dup"); g = os.dup2(f, 40); os.close(f); os.write(g, b"more"); os.close(g)
new("exit")
f = new("exec")
pid = os.fork()
if pid == 0:
    os.write(f, b"child")     # inherited: its own count
    os.execv("/bin/true", ["true"])
os.waitpid(pid, 0)
os.close(f)
tell(child=pid)
""")
        self.assertEqual(self.totals(d, "dup2")[0][:2], (4, 1))
        for name in ("range1", "range2", "exit"):
            self.assertEqual([t[:2] for t in self.totals(d, name)], [(len(name), 1)], name)
        self.assertEqual([t[:2] for t in self.totals(d, "dup")], [(3, 1), (4, 1)])
        # The child's: told at its write with the path, since it opened nothing; the total at exec, which
        # closes what Python opened.
        mine, theirs = [r for r in d.kinds("file.write") if r["tgid"] != d.told["child"]], \
            d.kinds("file.write", tgid=d.told["child"])
        self.assertEqual([(r["op"], r["size"], r.get("path")) for r in theirs],
                         [(1, 5, self.path("exec")), (2, 5, None)])
        execs = d.kinds("exec", tgid=d.told["child"])
        self.assertLess(theirs[1]["ts"], execs[-1]["ts"])
        self.assertEqual([t[:2] for t in self.totals(d, "exec")], [(5, 1), (4, 1)])
        # (fd 9 is how facts come back to the test: inherited too.)
        self.assertEqual({r["fd"] for r in mine if "path" in r}, {9})

    def test_what_stays_open_is_told_while_it_is(self):
        d = self.script("""
f = os.open("log", os.O_CREAT | os.O_WRONLY, 0o600)
os.write(f, b"a")
time.sleep(1.1)
os.write(f, b"b"); os.write(f, b"c")
tell(before=time.clock_gettime_ns(time.CLOCK_BOOTTIME))
time.sleep(0.2)
""")
        first, total = [r for r in d.kinds("file.write") if r["fd"] != 9]
        self.assertEqual((first["op"], first["size"], first["path"]), (1, 2, self.path("log")))
        self.assertLess(first["ts"], d.told["before"])
        self.assertEqual((total["op"], total["size"], total["count"]), (2, 3, 3))

    def test_shared_mapping(self):
        d = self.script("""
import mmap
f = os.open("a", os.O_CREAT | os.O_RDWR, 0o640)
os.truncate(f, 8192)
g = os.open("a", os.O_RDONLY)
m = [mmap.mmap(f, 5000), mmap.mmap(f, 100, prot=mmap.PROT_READ),     # could be made writable
     mmap.mmap(f, 100, flags=mmap.MAP_PRIVATE), mmap.mmap(g, 100, prot=mmap.PROT_READ), mmap.mmap(-1, 100)]
tell(ino=os.fstat(f).st_ino, fd=f)
""")
        rows = d.kinds("file.mmap")
        self.assertEqual([(r["size"], r["op"], r["path"], r["ino"]) for r in rows],
                         [(5000, 3, self.path("a"), d.told["ino"]), (100, 1, self.path("a"), d.told["ino"])])

    def test_nodes(self):
        d = self.script("""
os.mknod("fifo", 0o10640)
os.mknod("plain", 0o100600)
sc(133, b"dev", 0o20666, 1 << 8 | 3)
os.mkdir("d"); dirfd = os.open("d", os.O_RDONLY)
sc(259, dirfd, b"in", 0o10600, 0)
""")
        rows = [(whole_name(r), bool(r.get("base")), r["mode"], r["size"]) for r in d.kinds("file.mknod")]
        t, by_caller = self.tmp, not names_are_resolved()
        self.assertEqual(rows, [(t + "/fifo", by_caller, 0o10640, 0), (t + "/plain", by_caller, 0o100600, 0),
                                (t + "/dev", by_caller, 0o20666, 0x103), (t + "/d/in", by_caller, 0o10600, 0)])
        self.assertEqual(len(d.escapes("mknod")), 1, "only the device is a sign of escape")


class Paths(Probes):
    def test_two_hundred_directories_deep(self):
        d = self.script("""
for i in range(200):
    os.mkdir("d%d" % i)
    os.chdir("d%d" % i)
open("f", "w").close()
os.rename("f", "g")
""")
        deep = self.tmp + "".join("/d%d" % i for i in range(200))
        opened, = [r for r in d.kinds("file.open") if r["path"].endswith("/f")]
        self.assertEqual((opened["path"], opened["flags"]), (deep + "/f", 0))
        renamed = d.one("file.rename")
        self.assertEqual((whole_name(renamed), whole_name(renamed, "2")), (deep + "/f", deep + "/g"))

    def test_names_of_all_bytes(self):
        d = self.script("""
for b in range(1, 256):
    if b not in b"/.":
        os.close(os.open(b"n%c" % b, os.O_CREAT | os.O_WRONLY, 0o600))
whole = bytes(b for b in range(1, 256) if b != 47)
os.close(os.open(whole, os.O_CREAT | os.O_WRONLY, 0o600))
os.rename(whole, b"x" * 255)
os.unlink(b"x" * 255)
""")
        # The dump is UTF-8 for people; that nothing is cut is what counts here (Events tests the bytes).
        opened = [r for r in d.kinds("file.open") if r["open_flags"] & os.O_CREAT]
        self.assertEqual(len(opened), 254)
        self.assertTrue(all(not r["flags"] & TRUNC for r in opened))
        self.assertEqual(whole_name(d.one("file.delete")), self.path("x" * 255))

    def test_a_table_shared_with_others_is_no_proof(self):
        """Between open's return and the probe another thread can put another file there."""
        d = self.script("""
import threading
open("alone", "w").close()
wait, go = threading.Event(), threading.Event()
t = threading.Thread(target=wait.wait); t.start()
open("shared", "w").close()
wait.set(); t.join()
while len(os.listdir("/proc/self/task")) > 1: time.sleep(0.01) # join does not wait for the kernel's end of it
open("again", "w").close()
""")
        flags = {os.path.basename(r["path"]): r["flags"] & TOCTOU for r in d.kinds("file.open")}
        self.assertEqual((flags["alone"], flags["shared"], flags["again"]), (0, TOCTOU, 0))

    def test_deleted_and_overlaid(self):
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(self.path(name))
        self.path("lower/base", "text")
        d = self.script("""
f = os.open("gone", os.O_CREAT | os.O_RDWR, 0o600)
os.unlink("gone")
os.close(os.open("/proc/self/fd/%d" % f, os.O_WRONLY))
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
tell(mounted=sc(165, b"overlay", b"merged", b"overlay", 0, b"lowerdir=lower,upperdir=upper,workdir=work"))
os.close(os.open("merged/base", os.O_WRONLY))
""")
        gone = [r for r in d.kinds("file.open") if r["path"] == self.path("gone")]
        self.assertEqual([bool(r["flags"] & DELETED) for r in gone], [False, True])
        if d.told["mounted"] == 0:
            over = [r for r in d.kinds("file.open") if r["path"].endswith("/base")]
            self.assertEqual([r["path"] for r in over], [self.path("merged/base")])


class Events(TestCase):
    def setUp(self):
        need_root()
        super().setUp()

    def test_names_come_back_byte_for_byte(self):
        names = [bytes([b]) * 3 for b in range(1, 256) if b != 47 and b != 46]
        names.append(bytes(b for b in range(1, 256) if b != 47))
        prog = self.path("names.py", "import os,sys\nfor b in %r:\n os.close(os.open(b, os.O_CREAT|os.O_WRONLY))\n"
                         % names)
        s = self.session(PY, "/names.py", options=["--ro", prog + ":/names.py"])
        self.assertCode(s, 0)
        seen = []
        for e in s.kinds("file.open"):
            raw = e.get("raw", {}).get("file.path")
            path = base64.b64decode(raw) if raw else e["file"]["path"].encode()
            if path.startswith(b"/workspace/"):
                seen.append(path[len(b"/workspace/"):])
        self.assertEqual(seen, names)

    def test_writes_have_the_path_of_their_open(self):
        s = self.session("/bin/sh", "-c", "echo hello > f; echo again >> f; exec 3> g; echo x >&3; cat g")
        self.assertCode(s, 0)
        rows = [(e["file"]["path"], e["file"]["bytes"], e["file"]["op"], e["file"]["writes"])
                for e in s.kinds("file.write") if e["file"]["path"].startswith("/workspace/")]
        self.assertEqual(rows, [("/workspace/f", 6, "total", 1), ("/workspace/f", 6, "total", 1),
                                ("/workspace/g", 2, "total", 1)])


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
        # At once, and again when it is decided.
        connect, outcome = d.kinds("net.connect")
        self.assertEqual((connect["dport"], connect["flags"] & IOURING), (1, IOURING))
        self.assertEqual((connect["cookie"], outcome["ret"]), (outcome["cookie"], -111))
        self.assertEqual({r["sandbox"] for r in d.records}, {7})
        self.assertEqual(len(d.escapes("io_uring")), 1)
        return d, connect

    def test_plain(self):
        self.check("plain")

    def check_more(self, mode):
        d = self.dump(helper("try_uring"), mode, "write:w:hello", "link:w:hard", "symlink:any/where:soft",
                      "truncate:w:3", "fsetxattr:w:trusted.a", "setxattr:w:trusted.b", wrap=["env", "-C", self.tmp])
        if d.done.code == 77:
            self.skipTest("io_uring is turned off here: %s" % d.done.err.decode())
        results = [int(x) for x in d.done.err.split()[-6:]]
        self.assertEqual((results[0], results[1], results[2]), (5, 0, 0))
        rows = d.kinds("file.link", "file.attr")
        self.assertTrue(all(r["flags"] & IOURING for r in rows))
        t = self.tmp
        names = [(r["op"], r.get("base"), r.get("path"), r.get("base2"), r.get("path2")) for r in rows]
        self.assertEqual(names[:2], [(1, t, "hard", t, "w"), (2, t, "soft", None, "any/where")])
        if results[3] != -22: # an operation that this kernel does not have
            self.assertEqual(names[2], (4, None, t + "/w", None, None))
            self.assertEqual(rows[2]["size"], 3)
        self.assertEqual(names[-2:], [(3, None, t + "/w", None, "trusted.a"), (3, t, "w", None, "trusted.b")])
        opened = d.kinds("file.open", path=t + "/w")[0]
        wrote = d.one("file.write", id=opened["id"])
        self.assertEqual((wrote["size"], wrote["count"], wrote["op"]), (5, 1, 2))

    def test_more_by_the_task(self):
        self.check_more("plain")

    def test_more_by_a_worker(self):
        self.check_more("worker")

    def test_kernel_thread(self):
        d, connect = self.check("sqpoll")
        self.assertTrue(connect["comm"].startswith("iou-sqp-"))
        self.assertNotEqual(connect["tid"], connect["tgid"])

    def test_worker(self):
        d, connect = self.check("worker")
        self.assertTrue(connect["comm"].startswith("iou-wrk-"))


if __name__ == "__main__":
    unittest.main()
