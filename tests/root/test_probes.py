# SPDX-License-Identifier: Apache-2.0
"""The probes by themselves: acts are done by a payload under tests/helpers/probe_dump, and each raw record
is compared with what was really done."""

import base64
import json
import os
import socket
import stat
import subprocess
import unittest

from warder import *

PY = PYTHON_IN_SANDBOX

TOCTOU, TRUNC, UNREACH, DELETED, PSEUDO = 0x1, 0x2, 0x4, 0x8, 0x10
COMPAT, IOURING, KILLED, RUNTIME = 0x20, 0x40, 0x100, 0x200

ESCAPES = dict(setns=1, unshare=2, mount=3, clone_ns=18, cgroup_leave=17, memfd_exec=39)

# What payload scripts begin with. `tell` hands facts back to the test.
PRELUDE = r"""
import ctypes, json, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def sc(nr, *args):
    a = [ctypes.c_char_p(x) if isinstance(x, bytes) else ctypes.c_long(x) for x in args]
    r = libc.syscall(ctypes.c_long(nr), *a)
    return -ctypes.get_errno() if r < 0 else r
def tell(**facts):
    os.write(9, (json.dumps(facts) + "\n").encode())
os.chdir(sys.argv[1])
"""


class Dump:
    def __init__(self, done, told):
        self.done, self.told = done, told
        self.records = []
        self.end = self.begin = None
        self.gaps = []
        for line in done.out.splitlines():
            try:
                r = json.loads(line)
            except ValueError:
                raise AssertionError("not a record: %r in %s" % (line, done))
            if r["kind"] == "BEGIN":
                self.begin = r
            elif r["kind"] == "END":
                self.end = r
            elif r["kind"] == "GAP":
                self.gaps.append(r)
            else:
                self.records.append(r)
        if not self.end:
            raise AssertionError("no end: %s" % done)

    def kinds(self, *kinds, **where):
        return [r for r in self.records if r["kind"] in kinds
                and all(r.get(k) == v for k, v in where.items())]

    def one(self, kind, **where):
        found = self.kinds(kind, **where)
        if len(found) != 1:
            raise AssertionError("%d records %s %s among\n%s" % (
                len(found), kind, where, "\n".join(str(r) for r in self.kinds(kind))))
        return found[0]

    def escapes(self, type=None):
        return [r for r in self.kinds("escape") if type in (None, r["type"])]

    def args(self, r):
        """The whole argv area: pieces that came before, then what the record holds in front of them."""
        area = bytearray(base64.b64decode(r["args"]))
        for c in self.records[:self.records.index(r)]:
            if c["kind"] == "chunk" and c["exec_id"] == r["exec_id"]:
                if c["offset"] != len(area):
                    raise AssertionError("piece at %d, expected at %d" % (c["offset"], len(area)))
                area += base64.b64decode(c["data"])
        return bytes(area)


def sequences(records):
    """{(ring, cpu): [seq...]} in the order in which they came out."""
    seqs = {}
    for r in records:
        seqs.setdefault((r["ring"], r["cpu"]), []).append(r["seq"])
    return seqs


class Probes(TestCase):
    def setUp(self):
        need_root()
        super().setUp()
        os.chmod(self.tmp, 0o755)

    def dump(self, *command, options=(), wrap=()):
        told = self.path("told")
        with open(told, "w") as f:
            os.set_inheritable(f.fileno(), True)
            fd9 = os.dup2(f.fileno(), 9, inheritable=True)
            try:
                done = cmd(*wrap, helper("probe_dump"), *options, "--", *command, pass_fds=[fd9])
            finally:
                os.close(fd9)
        if done.code == 3 and b"probe_dump:" in done.err.splitlines()[-1:]:
            self.fail(str(done))
        facts = {}
        with open(told) as f:
            for line in f:
                facts.update(json.loads(line))
        d = Dump(done, facts)
        self.assertEqual(d.end["late"], 0, "records out of order")
        return d

    def script(self, body, *args, options=(), wrap=(), via=()):
        """Run Python lines as the payload."""
        path = self.path("payload.py", PRELUDE + body)
        return self.dump(*via, PY, path, self.tmp, *args, options=options, wrap=wrap)


class Exec(Probes):
    def test_all_fields(self):
        d = self.script("""
import resource
st = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
status = dict(l.split(":\\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\\t" in l)
exe = os.stat("/proc/self/exe")
tell(pid=os.getpid(), ppid=os.getppid(), exe=os.readlink("/proc/self/exe"),
     ns={n: int(os.readlink("/proc/self/ns/" + n)[:-1].split("[")[1]) for n in ("mnt", "pid", "net", "user")},
     start_ticks=int(st[19]), cap_eff=int(status["CapEff"], 16), cap_prm=int(status["CapPrm"], 16),
     loginuid=int(open("/proc/self/loginuid").read()), ino=exe.st_ino, dev=[os.major(exe.st_dev),
     os.minor(exe.st_dev)], nlink=exe.st_nlink, mode=exe.st_mode, args=open("/proc/self/cmdline").read(),
     env=len(open("/proc/self/environ", "rb").read()), cgroup=os.stat(
     "%s" + open("/proc/self/cgroup").read().split("0::")[1].split("\\n")[0]).st_ino)
""".replace("%s", v2_mount()))
        t, r = d.told, d.kinds("exec")[0]
        self.assertEqual((r["tgid"], r["tid"], r["ppid"]), (t["pid"], t["pid"], t["ppid"]))
        self.assertEqual(r["exe"], t["exe"])
        self.assertEqual(r["cwd"], os.getcwd())
        self.assertEqual({k: r["ns_" + k] for k in t["ns"]}, t["ns"])
        self.assertEqual(r["start"] // 10**7, t["start_ticks"])
        self.assertEqual((r["cap_effective"], r["cap_permitted"]), (t["cap_eff"], t["cap_prm"]))
        self.assertEqual(r["loginuid"], t["loginuid"])
        self.assertEqual((r["ino"], r["nlink"], r["mode"]), (t["ino"], t["nlink"], t["mode"]))
        self.assertEqual([r["dev"] >> 20, r["dev"] & 0xfffff], t["dev"])
        self.assertEqual(d.args(r).decode(), t["args"])
        self.assertEqual(r["args_total"], len(t["args"]))
        self.assertEqual(r["argc"], t["args"].count("\0"))
        self.assertEqual(r["env_total"], t["env"])
        self.assertEqual(r["cgid"], t["cgroup"])
        self.assertEqual((r["uid"], r["gid"], r["ruid"]), (0, 0, 0))
        self.assertEqual((r["memfd"], r["secureexec"], r["upper_layer"], r["flags"]), (0, 0, 0, 0))
        self.assertEqual(r["comm"], os.path.basename(PY)[:15])
        self.assertEqual(r["sandbox"], 7)
        self.assertEqual(r["ancestors"][0]["tgid"], t["ppid"])
        self.assertEqual(r["ancestors"][0]["start"], r["parent_start"])
        self.assertEqual(len(r["ancestors"]), 1, "ancestry ends at the sandbox's first process")

    def test_ancestors_of_a_deep_tree(self):
        d = self.script("""
import subprocess
n = int(sys.argv[2])
tell(**{"pid%d" % n: os.getpid()})
if n:
    subprocess.run([sys.executable, sys.argv[0], sys.argv[1], str(n - 1)], check=True, pass_fds=[9])
""", "9")
        last = d.kinds("exec", tgid=d.told["pid0"])[0]
        self.assertEqual([a["tgid"] for a in last["ancestors"]],
                         [d.told["pid%d" % i] for i in range(1, 9)])
        starts = {r["tgid"]: r["start"] for r in d.kinds("exec")}
        self.assertEqual([a["start"] for a in last["ancestors"]],
                         [starts[a["tgid"]] for a in last["ancestors"]])

    def test_100_kib_of_arguments_byte_for_byte(self):
        words = [bytes([1 + (i * 7 + j) % 255 for j in range(1000)]) for i in range(102)]
        d = self.dump("/bin/true", *words)
        r = d.one("exec")
        self.assertEqual(d.args(r), b"/bin/true\0" + b"".join(w + b"\0" for w in words))
        self.assertEqual(r["flags"], 0)
        self.assertEqual(r["argc"], 103)

    def test_more_than_is_kept_says_so(self):
        words = [b"x" * 100000, b"y" * 100000]
        d = self.dump("/bin/true", *words)
        r = d.one("exec")
        whole = b"/bin/true\0" + b"".join(w + b"\0" for w in words)
        self.assertEqual(d.args(r), whole[:128 * 1024])
        self.assertEqual(r["args_total"], len(whole))
        self.assertTrue(r["flags"] & TRUNC)

    def test_1000_execs_1000_records(self):
        d = self.dump("/bin/sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done")
        self.assertEqual(len(d.kinds("exec", exe=os.path.realpath("/bin/true"))), 1000)
        self.assertEqual(len(d.kinds("exit")), 1001)
        self.assertEqual(d.gaps, [])
        for where, seqs in sequences(d.records).items():
            self.assertEqual(sorted(seqs), list(range(1, len(seqs) + 1)), where)
        self.assertEqual([r["ts"] for r in d.records], sorted(r["ts"] for r in d.records))

    def test_script_has_its_interpreter(self):
        path = self.path("s.sh", "#!/bin/sh -e\nexit 0\n")
        os.chmod(path, 0o755)
        r = self.dump(path, "arg").one("exec")
        self.assertEqual(r["script"], path)
        self.assertEqual(r["exe"], os.path.realpath("/bin/sh"))
        self.assertEqual(base64.b64decode(r["args"]), b"/bin/sh\0-e\0" + path.encode() + b"\0arg\0")

    def test_fileless_deleted_and_dropped(self):
        d = self.script("""
true = open("/bin/true", "rb").read()
def run(fn):
    pid = os.fork()
    if pid == 0:
        fn()
        os._exit(9)
    os.waitpid(pid, 0)
fd = os.memfd_create("evil")
os.write(fd, true)
run(lambda: os.execve(fd, ["m"], {}))
f = os.open("dropped", os.O_CREAT | os.O_WRONLY, 0o755)
os.write(f, true)
os.close(f)
run(lambda: os.execv("dropped", ["d"]))
g = os.open("dropped", os.O_RDONLY | os.O_CLOEXEC)
os.unlink("dropped")
run(lambda: os.execve(g, ["g"], {}))
""")
        memfd, dropped, gone = d.kinds("exec")[1:]
        self.assertEqual((memfd["exe"], memfd["memfd"], memfd["nlink"]), ("memfd:evil", 1, 0))
        self.assertTrue(memfd["flags"] & PSEUDO)
        self.assertEqual((dropped["exe"], dropped["memfd"], dropped["upper_layer"]),
                         (self.path("dropped"), 0, 1))
        self.assertEqual((gone["exe"], gone["memfd"], gone["nlink"]), (self.path("dropped"), 0, 0))
        self.assertTrue(gone["flags"] & DELETED)
        self.assertEqual([e["tgid"] for e in d.escapes("memfd_exec")], [memfd["tgid"]])

    def test_stdin_types_and_credentials(self):
        d = self.script("""
import pty
def run(fd, **kw):
    pid = os.fork()
    if pid == 0:
        for k, v in kw.items():
            getattr(os, k)(v)
        if fd is None:
            os.close(0)
        else:
            os.dup2(fd, 0)
        os.execv("/bin/true", ["true"])
    os.waitpid(pid, 0)
    return pid
a, b = socket.socketpair()
r, w = os.pipe()
master, slave = pty.openpty()
tell(socket=run(a.fileno()), pipe=run(r), tty=run(slave), none=run(None), file=run(os.open("/etc/passwd", 0)),
     other=run(os.open("/dev/null", 0)))
tell(user=run(r, setgid=65534, setuid=65534))
""")
        names = {n: d.kinds("exec", tgid=d.told[n])[0] for n in d.told}
        kinds = ["none", "tty", "pipe", "socket", "file", "other"]
        for i, n in enumerate(kinds):
            self.assertEqual((n, names[n]["stdin_type"]), (n, i))
        user = names["user"]
        self.assertEqual((user["uid"], user["gid"], user["ruid"], user["cap_effective"]),
                         (65534, 65534, 65534, 0))


class Lineage(Probes):
    def test_exit_code_signal_and_threads(self):
        d = self.script("""
import signal, threading
def child(fn):
    pid = os.fork()
    if pid == 0:
        fn()
        os._exit(99)
    return os.waitpid(pid, 0)
def from_thread():
    threading.Thread(target=lambda: os._exit(5)).start()
    time.sleep(60)
def leader_first():
    t = threading.Thread(target=lambda: time.sleep(0.1))
    t.start()
    sc(60, 6)  # the end of the leader alone; the process ends with its last thread
tell(code=child(lambda: os._exit(42)), signal=child(lambda: os.kill(os.getpid(), signal.SIGKILL)),
     thread=child(from_thread), leader=child(leader_first))
""")
        self.assertEqual([d.told[n][1] for n in ("code", "signal", "thread")], [42 << 8, 9, 5 << 8])
        for name, (pid, status) in d.told.items():
            exit = d.one("exit", tgid=pid)
            self.assertEqual((name, exit["status"]), (name, status))
            fork = d.one("fork", child_tgid=pid)
            self.assertEqual(fork["child_start"], exit["start"])
            self.assertLess(fork["ts"], exit["ts"])

    def test_threads_make_no_fork_record(self):
        d = self.script("""
import threading
for i in range(5):
    t = threading.Thread(target=lambda: open("t", "w").close())
    t.start(); t.join()
""")
        self.assertEqual(d.kinds("fork"), [])
        opens = d.kinds("file.open", path=self.path("t"))
        self.assertEqual(len(opens), 5)
        self.assertEqual(len({r["tgid"] for r in opens}), 1)
        self.assertNotIn(opens[0]["tgid"], {r["tid"] for r in opens})

    def test_pids_in_a_namespace(self):
        d = self.dump("unshare", "-pf", "--mount-proc", "/bin/sh", "-c", "/bin/true; exit 0")
        inner = [r["nspid"] for r in d.kinds("exec") if r["comm"] in ("sh", "true")]
        self.assertEqual(inner, [1, 2])
        self.assertTrue(all(r["nspid"] != r["tgid"] for r in d.kinds("exec") if r["comm"] == "true"))

    def test_daemon_stays_ours(self):
        d = self.script("""
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
time.sleep(0.3)
open("daemon", "w").close()
""", via=["/bin/sh", "-c", '"$@"; sleep 1', "sh"])
        self.assertEqual(len(d.kinds("file.open", path=self.path("daemon"))), 1)

    def test_setup_is_quiet_then_init_is_watched(self):
        d = self.dump("/bin/sh", "-c", "sleep 0.5", options=["--init-acts"])
        self.assertEqual(d.records[0]["kind"], "exec", "first record is the payload's exec")
        unshare = d.escapes("unshare")
        self.assertEqual(len(unshare), 1, "before the payload runs: no record; after: one")
        self.assertTrue(unshare[0]["flags"] & RUNTIME)
        self.assertEqual(unshare[0]["tgid"], d.records[0]["ppid"])

    def test_existing_cgroup(self):
        d = self.dump("/bin/sh", "-c", "unshare -u true", options=["--watch"])
        self.assertEqual([r["comm"] for r in d.kinds("exec")], ["sh", "unshare", "true"])
        self.assertEqual(len(d.escapes("unshare")), 1)

    def test_leaving_the_cgroup(self):
        d = self.script("""
root = "%s"
tell(pid=os.getpid(), old=os.stat(sys.argv[2] if len(sys.argv) > 2 else root).st_ino, new=os.stat(root).st_ino)
leaf = root + open("/proc/self/cgroup").read().split("0::")[1].split("\\n")[0]
os.mkdir(leaf + "/sub")
open(leaf + "/sub/cgroup.procs", "w").write("0")
tell(leaf=os.stat(leaf + "/sub").st_ino)
open(root + "/cgroup.procs", "w").write("0")
os.rmdir(leaf + "/sub")
os.execv("/bin/true", ["true"])
""" % v2_mount())
        left = d.escapes("cgroup_leave")
        self.assertEqual(len(left), 1, "moving within the sandbox is no escape")
        self.assertEqual((left[0]["tgid"], left[0]["old"], left[0]["new"]),
                         (d.told["pid"], d.told["leaf"], d.told["new"]))
        after = d.one("exec", comm="true")
        self.assertEqual((after["sandbox"], after["cgid"]), (7, d.told["new"]))
        self.assertEqual(d.one("exit", tgid=d.told["pid"])["status"], 0)

    def test_born_outside_the_cgroup(self):
        d = self.script("""
root = os.open("%s", os.O_RDONLY)
args = struct.pack("QQQQQQQQQQQ", 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, root)
pid = sc(435, args, len(args))
if pid == 0:
    os.execv("/bin/true", ["true"])
os.waitpid(pid, 0)
tell(child=pid, root=os.fstat(root).st_ino)
""" % v2_mount())
        left = d.escapes("cgroup_leave")
        self.assertEqual([(r["tgid"], r["new"]) for r in left], [(d.told["child"], d.told["root"])])
        self.assertEqual(d.one("exec", comm="true")["tgid"], d.told["child"])


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


class Net(Probes):
    LISTEN = """
os.system("ip link set lo up")
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(5)
port = l.getsockname()[1]
def attempt(fam, addr, blocking=True, type=socket.SOCK_STREAM):
    s = socket.socket(fam, type)
    s.setblocking(blocking)
    try:
        s.connect(addr)
    except OSError as e:
        return s, -e.errno
    return s, 0
"""

    def addr(self, r, which):
        raw = base64.b64decode(r[which])
        return socket.inet_ntop(r["family"], raw[:4] if r["family"] == socket.AF_INET else raw)

    def net(self, body):
        need("ip")
        return self.script(self.LISTEN + body, via=["unshare", "-n"])

    def test_connect_and_bytes(self):
        d = self.net("""
s, r = attempt(socket.AF_INET, ("127.0.0.1", port))
a, _ = l.accept()
s.sendall(b"x" * 1000); got = 0
while got < 1000: got += len(a.recv(4096))
a.sendall(b"y" * 77); s.recv(100)
tell(port=port, own=s.getsockname()[1], pid=os.getpid())
s.shutdown(1); a.recv(1); a.close(); s.recv(1); s.close(); time.sleep(0.2)
""")
        t = d.told
        c = d.one("net.connect")
        self.assertEqual((c["ret"], c["family"], c["type"], c["proto"]), (0, 2, 1, 6))
        self.assertEqual((self.addr(c, "daddr"), c["dport"], self.addr(c, "saddr"), c["sport"]),
                         ("127.0.0.1", t["port"], "127.0.0.1", t["own"]))
        self.assertNotEqual(c["cookie"], 0)
        self.assertEqual((d.one("net.listen")["sport"], d.one("net.accept")["dport"]),
                         (t["port"], t["own"]))
        close = d.one("net.close", cookie=c["cookie"])
        self.assertEqual((close["bytes_out"], close["bytes_in"], close["tgid"]), (1000, 77, t["pid"]))

    def test_refused_v4_and_v6(self):
        d = self.net("""
tell(v4=attempt(socket.AF_INET, ("127.0.0.1", 1))[1], v6=attempt(socket.AF_INET6, ("::1", 2))[1],
     mapped=attempt(socket.AF_INET6, ("::ffff:127.0.0.1", 3))[1])
""")
        rows = d.kinds("net.connect")
        self.assertEqual([(self.addr(r, "daddr"), r["dport"], r["ret"]) for r in rows[:2]],
                         [("127.0.0.1", 1, -111), ("::1", 2, -111)])
        self.assertEqual((rows[2]["dport"], rows[2]["ret"]), (3, -111))
        self.assertIn(self.addr(rows[2], "daddr"), ("::ffff:127.0.0.1", "127.0.0.1"))

    def test_non_blocking(self):
        d = self.net("""
import select
s, r = attempt(socket.AF_INET, ("127.0.0.1", port), blocking=False)
t, r2 = attempt(socket.AF_INET, ("127.0.0.1", 1), blocking=False)
tell(r=[r, r2])
time.sleep(0.1)
""")
        self.assertEqual(d.told["r"], [-115, -115])
        # Over loopback both are decided by the time the call returns.
        self.assertEqual([r["ret"] for r in d.kinds("net.connect")], [0, -111])

    def test_pending_then_decided(self):
        d = self.net("""
os.system("ip link add v0 type veth peer name v1 && ip addr add 198.51.100.1/24 dev v0 && ip link set v0 up && ip link set v1 up")
os.system("ip neigh add 198.51.100.2 lladdr 02:00:00:00:00:01 dev v0")
s, r = attempt(socket.AF_INET, ("198.51.100.2", 80), blocking=False)
tell(r=r)
time.sleep(0.1)
s.close()
u, r = attempt(socket.AF_INET, ("198.51.100.3", 80), blocking=False)
time.sleep(4)
""")
        self.assertEqual(d.told["r"], -115)
        rows = d.kinds("net.connect", dport=80)
        first = [r for r in rows if self.addr(r, "daddr") == "198.51.100.2"]
        self.assertEqual(first[0]["ret"], -115)
        second = [r["ret"] for r in rows if self.addr(r, "daddr") == "198.51.100.3"]
        self.assertEqual(second, [-115, -113], "pending, then no route to host")

    def test_unix(self):
        d = self.script("""
def server(name):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(1)
    return s
def client(name):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name)
    except OSError as e:
        return -e.errno
    return 0
keep = [server("sock"), server(b"\\0abs\\xff")]
os.symlink("sock", "link")
tell(r=[client("sock"), client("link"), client(b"\\0abs\\xff"), client("none")])
""")
        rows = d.kinds("net.connect", family=1)
        got = [(r["ret"], base64.b64decode(r["path"])) for r in rows]
        sock = self.path("sock").encode()
        self.assertEqual(got, [(0, sock), (0, sock), (0, b"\0abs\xff"), (-2, b"none")])
        self.assertEqual([bool(r["flags"] & TOCTOU) for r in rows], [False, False, True, True])

    def test_fast_open_has_no_connect_call(self):
        d = self.net("""
s = socket.socket()
try:
    s.sendto(b"x", 0x20000000, ("127.0.0.1", 1))
except OSError as e:
    tell(r=-e.errno)
""")
        r = d.one("net.connect")
        self.assertEqual((r["dport"], self.addr(r, "daddr"), r["ret"]), (1, "127.0.0.1", -115))

    def test_udp_once_a_second(self):
        d = self.net("""
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(50):
    u.sendto(b"x", ("127.0.0.1", 4444))
u.sendto(b"x", ("127.0.0.1", 4445))
tell(pid=os.getpid())
""")
        rows = d.kinds("net.send")
        self.assertEqual([(r["dport"], self.addr(r, "daddr"), r["proto"], r["tgid"]) for r in rows],
                         [(4444, "127.0.0.1", 17, d.told["pid"]), (4445, "127.0.0.1", 17, d.told["pid"])])

    def test_dns(self):
        query = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\3foo\4test\0\0\1\0\1"
        d = self.net("""
query = %r
def ask(fam, host, connect):
    srv = socket.socket(fam, socket.SOCK_DGRAM); srv.bind((host, 53))
    c = socket.socket(fam, socket.SOCK_DGRAM)
    if connect:
        c.connect((host, 53)); c.send(query)
    else:
        c.sendto(query, (host, 53))
    q, peer = srv.recvfrom(600)
    srv.sendto(q + b"answer" * 100, peer)
    c.recv(2000)
    srv.close()
    return c.getsockname()[1]
tell(pid=os.getpid(), v4=ask(socket.AF_INET, "127.0.0.1", False), v4c=ask(socket.AF_INET, "127.0.0.2", True),
     v6=ask(socket.AF_INET6, "::1", False))
srv = socket.socket(); srv.bind(("127.0.0.1", 53)); srv.listen(1)
c = socket.create_connection(("127.0.0.1", 53))
c.sendall(struct.pack("!H", len(query)) + query)
a, _ = srv.accept(); a.recv(100); a.sendall(b"\\0\\x10" + b"Z" * 16); c.recv(100)
""" % query)
        q, a = d.kinds("dns.query"), d.kinds("dns.answer")
        self.assertEqual([(self.addr(r, "daddr"), r["dport"], r["proto"]) for r in q],
                         [("127.0.0.1", 53, 17), ("127.0.0.2", 53, 17), ("::1", 53, 17),
                          ("127.0.0.1", 53, 6)])
        self.assertEqual([base64.b64decode(r["data"]) for r in q], [query] * 3 +
                         [bytes([0, len(query)]) + query])
        self.assertEqual([r["sport"] for r in q[:3]], [d.told[k] for k in ("v4", "v4c", "v6")])
        self.assertEqual({r["tgid"] for r in q + a}, {d.told["pid"]}, "the packet's process")
        self.assertEqual([r["cookie"] for r in a], [r["cookie"] for r in q])
        self.assertEqual([self.addr(r, "daddr") for r in a], [self.addr(r, "daddr") for r in q])
        whole = query + b"answer" * 100
        self.assertEqual([(base64.b64decode(r["data"]), r["total"]) for r in a[:3]],
                         [(whole[:512], len(whole))] * 3)
        self.assertTrue(all(r["flags"] & TRUNC for r in a[:3]))
        self.assertEqual(base64.b64decode(a[3]["data"]), b"\0\x10" + b"Z" * 16)


# (escape type, number, arguments): harmless ways to try each; None in place of a result: any.
ATTEMPTS = [
    ("setns", 308, (-1, 0)), ("unshare", 272, (0x4000000,)), ("mount", 165, (b"a", b"/nonexistent", 0, 0, 0)),
    ("umount", 166, (b"/nonexistent", 0)), ("pivot_root", 155, (b"/nonexistent", b"/none")),
    ("chroot", 161, (b"/nonexistent",)), ("mount_api", 430, (b"nonexistfs", 0)),
    ("mount_api", 428, (-1, b"/nonexistent", 0)), ("mount_api", 429, (-1, b"", -1, b"", 0)),
    ("mount_api", 431, (-1, 0, 0, 0, 0)), ("mount_api", 432, (-1, 0, 0)), ("mount_api", 433, (-1, b"x", 0)),
    ("mount_api", 442, (-1, b"x", 0, 0, 0)), ("ptrace", 101, (2, 0, 0, 0)), ("process_vm", 310, (0, 0, 0, 0, 0, 0)),
    ("process_vm", 311, (0, 0, 0, 0, 0, 0)), ("process_vm", 440, (-1, 0, 0, 0, 0)), ("bpf", 321, (9999, 0, 0)),
    ("module", 175, (0, 0, b"")), ("module", 313, (-1, b"", 0)), ("module", 176, (b"warder_none", 0)),
    ("open_by_handle_at", 304, (-1, 0, 0)), ("keyctl", 250, (9999, 0)), ("keyctl", 248, (0, 0, 0, 0, 0)),
    ("keyctl", 249, (0, 0, 0, 0)), ("io_uring", 425, (0, 0)), ("perf_event_open", 298, (0, 0, -1, -1, 0)),
    ("userfaultfd", 323, (0xffff,)), ("kexec", 246, (0, 0, 0, 0xffffffff)), ("kexec", 320, (-1, -1, 0, b"", 0xff)),
    ("reboot", 169, (0, 0, 0, 0)), ("swap", 167, (b"/nonexistent", 0)), ("swap", 168, (b"/nonexistent",)),
    ("personality", 135, (0,)), ("pidfd_getfd", 438, (-1, -1, 0)), ("time", 227, (99, 0)),
    ("fanotify", 300, (0x7fffffff, 0)), ("acct", 163, (b"/nonexistent",)), ("quotactl", 179, (-1, b"/x", 0, 0)),
    ("quotactl", 443, (-1, -1, 0, 0)), ("nfsservctl", 180, (0, 0, 0)), ("ioport", 172, (99,)),
    ("ioport", 173, (-1, 1, 1)), ("mknod", 133, (b"/nonexistent/x", 0o60600, 0x100)),
    ("mknod", 259, (-100, b"/nonexistent/x", 0o20600, 0x100)), ("syslog", 103, (99, 0, 0)),
    ("socket_family", 41, (17, 3, 0)), ("socket_family", 41, (38, 5, 0)), ("socket_family", 41, (16, 3, 12)),
    ("clone_ns", 56, (0x10000000 | 0x200, 0, 0, 0, 0)),  # a new user namespace that shares fs: refused
]

# The same families, used as ordinary programs do.
HARMLESS = [(272, (0x400,)), (135, (0xffffffff,)), (41, (2, 1, 0)), (41, (16, 3, 0)), (41, (1, 1, 0)),
            (133, (b"fifo", 0o10600, 0)), (159, ("zeros",)), (39, ())]


class Escapes(Probes):
    TRY = """
zeros = ctypes.create_string_buffer(1024)
attempts = json.load(open("attempts"))
res = []
for nr, args in attempts:
    res.append(sc(nr, *[bytes(a["b"], "latin-1") if isinstance(a, dict) else
                        ctypes.addressof(zeros) if a == "zeros" else a for a in args]))
tell(res=res)
"""

    def attempts(self, rows):
        text = json.dumps([(nr, [{"b": a.decode("latin-1")} if isinstance(a, bytes) else a for a in args])
                           for nr, args in rows])
        self.path("attempts", text)

    def test_every_attempt_is_told(self):
        self.attempts([(nr, args) for _, nr, args in ATTEMPTS])
        d = self.script(self.TRY)
        told = [(r["type"], r["nr"], r["ret"]) for r in d.escapes()]
        self.assertEqual(told, [(t, nr, res) for (t, nr, _), res in zip(ATTEMPTS, d.told["res"])])
        for r, (_, _, args) in zip(d.escapes(), ATTEMPTS):
            for got, arg in zip(r["args"], args):
                if not isinstance(arg, bytes):
                    self.assertEqual(got, arg & 0xffffffffffffffff, r)
        mount = d.one("escape", type="mount")
        self.assertEqual((mount["detail"], mount["detail2"]), ("/nonexistent", "a"))
        self.assertEqual(d.one("escape", nr=176)["detail"], "warder_none")

    def test_attempts_that_seccomp_denies(self):
        rows = [a for a in ATTEMPTS if a[0] != "clone_ns"]
        self.attempts([(nr, args) for _, nr, args in rows])
        numbers = sorted({nr for _, nr, _ in rows})
        d = self.script("""
numbers = json.loads(sys.argv[2])
prog = [(0x20, 0, 0, 0)] + [(0x15, 0, 1, n) if 0 else i for n in numbers
        for i in ((0x15, 0, 1, n), (6, 0, 0, 0x50000 | 99))] + [(6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in prog))
fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(prog), ctypes.addressof(code)))
assert sc(157, 38, 1, 0, 0, 0) == 0  # no_new_privs
assert sc(317, 1, 0, ctypes.addressof(fprog)) == 0
""" + self.TRY, json.dumps(numbers))
        self.assertEqual(set(d.told["res"]), {-99})
        self.assertEqual([(r["type"], r["nr"], r["ret"]) for r in d.escapes()],
                         [(t, nr, -99) for t, nr, _ in rows])

    def test_ordinary_use_is_not(self):
        self.attempts(HARMLESS)
        d = self.script(self.TRY + "os.waitpid(os.fork() or os._exit(0), 0)\n")
        self.assertEqual(d.escapes(), [])

    def test_files_that_steer_the_kernel(self):
        d = self.script("""
def look(p, how=os.O_WRONLY):
    try:
        os.close(os.open(p, how))
    except OSError as e:
        return -e.errno
    return 0
os.mkdir("p")
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
tell(m=sc(165, b"proc", b"p", b"proc", 0, 0))
for p in ("/proc/sys/kernel/core_pattern", "p/sysrq-trigger", "p/sys/kernel/hostname", "/proc/self/comm",
          "/proc/self/oom_score_adj", sys.argv[2] + "/cgroup.procs", "/sys/kernel/uevent_helper", "plain"):
    look(p, os.O_WRONLY | (os.O_CREAT if p == "plain" else 0))
look("/proc/sys/kernel/core_pattern", os.O_RDONLY)
os.setgid(65534); os.setuid(65534)
tell(denied=look("/proc/sys/kernel/core_pattern"))
""", v2_mount())
        rows = [(r["ret"] >= 0, r["detail"]) for r in d.escapes("kernel_file")]
        want = [(True, "/proc/sys/kernel/core_pattern"), (True, self.path("p/sysrq-trigger")),
                (True, self.path("p/sys/kernel/hostname")), (True, v2_mount() + "/cgroup.procs"),
                (False, "/proc/sys/kernel/core_pattern")]
        if not os.path.exists("/proc/sysrq-trigger"):
            del want[1]
        self.assertEqual([r for r in rows if "uevent" not in r[1]], want)
        self.assertEqual(d.told, {"m": 0, "denied": -13})

    def test_raw_devices(self):
        d = self.script("""
for name, mode, major, minor in (("disk", 0o60600, 250, 77), ("mem", 0o20600, 1, 1), ("null", 0o20600, 1, 3)):
    os.mknod(name, mode, os.makedev(major, minor))
    try:
        os.close(os.open(name, os.O_RDONLY))
    except OSError as e:
        tell(**{name: -e.errno})
""")
        self.assertEqual([r["detail"] for r in d.escapes("mknod")], ["disk", "mem", "null"])
        opened = [n for n in ("disk", "mem") if n not in d.told]
        self.assertEqual([r["detail"] for r in d.escapes("device")], [self.path(n) for n in opened])

    def test_container_engine_sockets(self):
        d = self.script("""
s = socket.socket(socket.AF_UNIX); s.bind("docker.sock"); s.listen(1)
os.symlink("docker.sock", "harmless")
for name in ("docker.sock", "harmless", "/run/containerd/nonexistent/containerd.sock", "/nonexistent/x.sock"):
    c = socket.socket(socket.AF_UNIX)
    try:
        c.connect(name)
    except OSError:
        pass
""")
        self.assertEqual([(r["ret"], r["detail"]) for r in d.escapes("runtime_socket")], [
            (0, self.path("docker.sock")), (0, self.path("docker.sock")),
            (-2, "/run/containerd/nonexistent/containerd.sock")])

    def test_privilege_from_nowhere(self):
        body = """
time.sleep(1)
open("a", "w").close()
open("b", "w").close()
"""
        d = self.script(body, options=["--watch", "--forge-cred"])
        gain, = d.escapes("cred_gain")
        self.assertEqual((gain["old"], gain["args"][0]), (0, 1))
        self.assertEqual(gain["new"], d.kinds("exec")[0]["cap_permitted"])
        self.assertEqual(self.script(body, options=["--watch"]).escapes(), [])

    def test_privilege_by_the_book(self):
        d = self.script("""
import subprocess
if os.fork() == 0:
    os.setresuid(1234, 1234, 0)
    open("/dev/null", "w")
    os.setresuid(0, 0, 0)
    open("/dev/null", "w")
    os._exit(0)
os.wait()
if os.fork() == 0:
    os.setgroups([]); os.setgid(1234); os.setuid(1234)
    open("/dev/null", "w")
    sc(272, 0x10000000)  # all capabilities, but in a user namespace of its own
    open("/dev/null", "w")
    os.execv("/bin/true", ["true"])
os.wait()
""")
        self.assertEqual(d.escapes("cred_gain"), [])
        self.assertEqual(len(d.kinds("exec", comm="true")), 1)

    def test_killed_by_seccomp(self):
        d = self.script("""
prog = [(0x20, 0, 0, 0), (0x15, 0, 1, 39), (6, 0, 0, 0x80000000), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in prog))
fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(prog), ctypes.addressof(code)))
sc(157, 38, 1, 0, 0, 0)
sc(317, 1, 0, ctypes.addressof(fprog))
sc(39)
""")
        self.assertEqual(d.done.code, 128 + 31)
        e, = d.escapes("seccomp_violation")
        self.assertEqual(d.one("exit", tgid=e["tgid"])["status"] & 0x7f, 31)

    def test_clone_with_namespaces(self):
        d = self.script("""
pid = sc(56, 0x4000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
args = struct.pack("QQQQQQQQ", 0x8000000, 0, 0, 0, 17, 0, 0, 0)
pid3 = sc(435, args, len(args))
if pid3 == 0: os._exit(0)
os.waitpid(pid, 0); os.waitpid(pid3, 0)
tell(pids=[pid, pid3])
""")
        self.assertEqual([(r["new"], r["args"][0] & 0x7e000000) for r in d.escapes("clone_ns")],
                         list(zip(d.told["pids"], [0x4000000, 0x8000000])))
        self.assertEqual(len(d.escapes()), 2)

    def test_killed_in_the_kernel(self):
        d = self.script("""
open("before", "w").close()
sc(272, 0x4000000)
open("after", "w").close()
""", options=["--kill", str(1 << ESCAPES["unshare"])])
        self.assertEqual(d.done.code, 137)
        e, = d.escapes()
        self.assertTrue(e["flags"] & KILLED)
        self.assertTrue(os.path.exists(self.path("before")))
        self.assertFalse(os.path.exists(self.path("after")))
        self.assertEqual(d.one("exit", tgid=e["tgid"])["status"], 9)

    def test_killed_with_the_child_it_made(self):
        d = self.script("""
if sc(56, 0x4000000 | 17, 0, 0, 0, 0) == 0:
    open("child", "w").close()
open("parent", "w").close()
""", options=["--kill", str(1 << ESCAPES["clone_ns"])])
        self.assertEqual(d.done.code, 137)
        self.assertFalse(os.path.exists(self.path("child")))
        self.assertFalse(os.path.exists(self.path("parent")))
        self.assertEqual([r["status"] for r in d.kinds("exit")], [9, 9])

    def test_kill_is_for_the_payload_only(self):
        d = self.dump("/bin/sh", "-c", "sleep 0.5", options=[
            "--init-acts", "--kill", str(1 << ESCAPES["unshare"])])
        self.assertEqual(d.done.code, 0)
        self.assertFalse(d.escapes("unshare")[0]["flags"] & KILLED)

    def test_other_types_live(self):
        d = self.script("sc(308, -1, 0)\n", options=["--kill", str(1 << ESCAPES["unshare"])])
        self.assertEqual(d.done.code, 0)
        self.assertEqual(len(d.escapes("setns")), 1)

    def test_32_bit_calls(self):
        d = self.script("""
import mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex("5389f889f389d1cd805bc3"))  # eax=edi ebx=esi ecx=edx int 0x80
fn = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint, ctypes.c_uint)(
    ctypes.addressof(ctypes.c_char.from_buffer(m)))
low = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40)
low.write(b"low\\0")
at = ctypes.addressof(ctypes.c_char.from_buffer(low))
tell(low=at < 2**32, pid=fn(20, 0, 0), me=os.getpid(), ns=fn(310, 0x4000000, 0), mkdir=fn(39, at & 0xffffffff, 0o700))
""")
        if d.done.code in (139, 132) or b"Segmentation" in d.done.err:
            self.skipTest("this kernel has no 32-bit system calls (CONFIG_IA32_EMULATION)")
        self.assertEqual(d.told["pid"], d.told["me"])
        foreign = d.escapes("foreign_abi")
        self.assertEqual(len(foreign), 1, "told once for each image")
        self.assertEqual((foreign[0]["nr"], foreign[0]["flags"] & COMPAT), (20, COMPAT))
        unshare, = d.escapes("unshare")
        self.assertEqual((unshare["args"][0], unshare["flags"] & COMPAT), (0x4000000, COMPAT))
        if d.told["low"] and d.told["mkdir"] == 0:
            self.assertEqual(d.one("file.mkdir")["path"], "low")


class Loss(Probes):
    FLOOD = """
for i in range(3000):
    os.close(os.open("f%d" % (i % 10), os.O_CREAT | os.O_WRONLY, 0o600))
"""

    def test_lost_records_are_counted(self):
        d = self.script(self.FLOOD, options=["--bulk", "65536", "--slow", "1"])
        gap, = d.gaps
        self.assertEqual((gap["of"], gap["sandbox"]), ("file.open", 7))
        seen = [r for r in d.kinds("file.open") if r["path"].startswith(self.path("f"))]
        opens = len(d.kinds("file.open"))
        self.assertEqual(len(seen) + gap["count"], 3000 + (len(seen) - opens) + (opens - len(seen)))
        self.assertGreater(gap["last_ts"], gap["first_ts"])
        last = d.kinds("exit")[-1]
        self.assertLess(gap["last_ts"], last["ts"], "and nothing of the urgent ring was lost")
        # Independent of the counters: the numbers of those that came leave holes at the end only.
        for (ring, _), seqs in sequences(d.records).items():
            if ring == 0:
                self.assertEqual(sorted(seqs), list(range(1, len(seqs) + 1)))

    def test_nothing_lost_when_drained(self):
        d = self.script(self.FLOOD)
        self.assertEqual(d.gaps, [])
        opens = [r for r in d.kinds("file.open") if r["path"].startswith(self.path("f"))]
        self.assertEqual([r["path"] for r in opens], [self.path("f%d" % (i % 10)) for i in range(3000)])

    def test_drained_without_privilege(self):
        d = self.script(self.FLOOD, options=["--unprivileged", "--bulk", "65536"])
        opens = len(d.kinds("file.open"))
        self.assertGreater(opens, 100)
        self.assertEqual(opens + sum(g["count"] for g in d.gaps if g["of"] == "file.open"), 3000)


class Oom(Probes):
    def test_victim(self):
        base = memory_cgroup()
        group = os.path.join(base, "warder-probe-oom-%d" % os.getpid())
        os.mkdir(group)
        self.addCleanup(remove_cgroup, group)
        v1 = os.path.exists(os.path.join(group, "memory.limit_in_bytes"))
        limit = "memory.limit_in_bytes" if v1 else "memory.max"
        write(os.path.join(group, limit), str(32 << 20))
        options = []
        if v1:
            join = "open(%r, 'w').write('0')\n" % os.path.join(group, "cgroup.procs")
        else:
            join = ""
            options = ["--cgroup", group]
        d = self.script(join + """
tell(pid=os.getpid())
open("/proc/self/oom_score_adj", "w").write("500")
keep = []
while True:
    keep.append(bytearray(1 << 20))
""", options=options)
        self.assertEqual(d.done.code, 137)
        r = d.one("oom")
        self.assertEqual((r["tgid"], r["oom_score_adj"], r["sandbox"]), (d.told["pid"], 500, 7))
        self.assertGreater(r["anon_rss"], 8 << 20)
        self.assertLess(r["anon_rss"], 40 << 20)
        self.assertGreater(r["total_vm"], r["anon_rss"])
        self.assertEqual(d.one("exit", tgid=d.told["pid"])["status"], 9)


class Features(Probes):
    def test_rows(self):
        done = cmd(helper("probe_dump"), "--families")
        rows = [json.loads(line) for line in done.out.splitlines()]
        features = {r["feature"]: r for r in rows if "feature" in r}
        for r in features.values():
            if r["required"]:
                self.assertTrue(r["ok"], r)
            self.assertTrue(r["detail"], r)
        families = {r["family"]: r for r in rows if "family" in r}
        self.assertEqual(set(families), {"process", "lineage", "file", "net", "dns", "oom", "escape", "io_uring"})
        self.assertTrue(all(r["ok"] for r in families.values()), families)

    def test_without_root(self):
        done = cmd("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", helper("probe_dump"), "--",
                   "/bin/true") if can_run_as_nobody() else None
        if not done:
            self.skipTest("the build directory is not readable for another user")
        self.assertEqual(done.code, 3)
        self.assertOneLine(done, "root")


def can_run_as_nobody():
    return cmd("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x",
               helper("probe_dump")).code == 0


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def mounts(type):
    with open("/proc/self/mounts") as f:
        return [line.split() for line in f if line.split()[2] == type]


def v2_mount():
    return mounts("cgroup2")[0][1]


def memory_cgroup():
    """A directory in which a memory limit can be set: of our own v1 group, or the v2 root."""
    for m in mounts("cgroup"):
        if "memory" in m[3].split(","):
            with open("/proc/self/cgroup") as f:
                own = [line.strip().split(":")[2] for line in f if ":memory:" in line]
            return m[1] + (own[0] if own[0] != "/" else "")
    root = v2_mount()
    with open(root + "/cgroup.controllers") as f:
        if "memory" not in f.read():
            raise unittest.SkipTest("no memory controller on this host")
    write(root + "/cgroup.subtree_control", "+memory")
    return root


def remove_cgroup(path):
    def gone():
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True
    wait_for("cgroup %s to be empty" % path, gone)


if __name__ == "__main__":
    unittest.main()
