# SPDX-License-Identifier: Apache-2.0
"""Escape signals: every attempt, seccomp or not; ordinary use is silent; killed in the kernel."""

import json
import os
import unittest

from probes import *


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


def by_entry_points():
    """Are calls reached by their own entry points? Then a number that this kernel has no call for (nfsservctl)
    ends where nothing is hooked: it does nothing but fail."""
    return "kretprobe.multi" in families()["escape"]["hook"]


class Escapes(Probes):
    def setUp(self):
        super().setUp()
        gone = {180} if by_entry_points() else set()
        self.rows = [a for a in ATTEMPTS if a[1] not in gone]

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
        self.attempts([(nr, args) for _, nr, args in self.rows])
        d = self.script(self.TRY)
        # One of them works here: that it did is told besides.
        worked = d.one("escape", type="ns_change")
        self.assertEqual((worked["args"][0], worked["old"] != worked["new"]), (0x4000000, True))
        told = [(r["type"], r["nr"], r["ret"]) for r in d.escapes() if r["type"] != "ns_change"]
        self.assertEqual(told, [(t, nr, res) for (t, nr, _), res in zip(self.rows, d.told["res"])])
        for r, (_, _, args) in zip([r for r in d.escapes() if r["type"] != "ns_change"], self.rows):
            for got, arg in zip(r["args"], args):
                if not isinstance(arg, bytes):
                    self.assertEqual(got, arg & 0xffffffffffffffff, r)
        mount = d.one("escape", type="mount")
        self.assertEqual((mount["detail"], mount["detail2"]), ("/nonexistent", "a"))
        self.assertEqual(d.one("escape", nr=176)["detail"], "warder_none")

    def test_attempts_that_seccomp_denies(self):
        rows = [a for a in self.rows if a[0] != "clone_ns"]
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

    def test_helpers_that_the_kernel_starts(self):
        """release_agent of a v1 hierarchy, kernel.modprobe, uevent_helper where there is one: opened only, not written."""
        there = [p for p in ("/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/ksm/run") if os.path.exists(p)][:1]
        d = self.script("""
os.mkdir("v1")
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
mounted = sc(165, b"none", b"v1", b"cgroup", 0, b"none,name=agents")
for p in ["v1/release_agent", "/proc/sys/kernel/modprobe"] + sys.argv[2:]:
    try: os.close(os.open(p, os.O_WRONLY))
    except OSError: pass
sc(166, b"v1", 0)
tell(mounted=mounted)
""", *there)
        want = ["/proc/sys/kernel/modprobe", *there]
        if d.told["mounted"] == 0:
            want.insert(0, self.path("v1/release_agent"))
        else:  # a kernel without v1: then the file cannot be there
            self.assertEqual(d.told["mounted"], -19)
        self.assertEqual([(r["detail"], r["ret"] >= 0) for r in d.escapes("kernel_file")],
                         [(p, p.startswith(self.tmp) or os.path.exists(p)) for p in want])

    def test_refused_by_whatever_name(self):
        """Denied, so there is no file to look at: relative names, a directory's descriptor, `..`, links on the way,
        truncate()."""
        os.symlink("/proc/sys/kernel", self.path("link"))
        d = self.script("""
here = os.open(sys.argv[1], os.O_RDONLY)
kernel = os.open("/proc/sys/kernel", os.O_RDONLY)
os.setgid(65534); os.setuid(65534)
def attempt(p, **kw):
    try:
        os.open(p, os.O_WRONLY, **kw)
        return 0
    except OSError as e:
        return -e.errno
os.chdir("/proc/sys")
r = [attempt("kernel/core_pattern"), attempt("hostname", dir_fd=kernel), attempt("kernel/../vm/overcommit_memory")]
os.fchdir(here)
r += [attempt("link/core_pattern"), attempt("/tmp/../proc/sys/kernel/core_pattern")]
r += [sc(76, b"link/core_pattern", 0), sc(76, b"/proc/sys/kernel/hostname", 0)]
os.chdir("/proc/sys")
r += [attempt("../../etc/passwd"), sc(76, b"/etc/passwd", 0)]
tell(r=r)
""")
        self.assertEqual(d.told["r"], [-13] * 9)
        self.assertEqual([(r["detail"], r["ret"], r["nr"]) for r in d.escapes("kernel_file")],
                         [("kernel/core_pattern", -13, 257), ("hostname", -13, 257),
                          ("kernel/../vm/overcommit_memory", -13, 257), ("link/core_pattern", -13, 257),
                          ("/tmp/../proc/sys/kernel/core_pattern", -13, 257), ("link/core_pattern", -13, 76),
                          ("/proc/sys/kernel/hostname", -13, 76)])

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
if sys.argv[2:]: os.kill(os.getpid(), 19)
open("a", "w").close()
open("b", "w").close()
"""
        d = self.script(body, "stop", options=["--watch", "--forge-cred"])
        gain, = d.escapes("cred_gain")
        self.assertEqual((gain["old"], gain["args"][0]), (0, 5), "user id 0 and capabilities")
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
def act(): # without tracepoints the end of clone is not the child's
    os.open("/dev/null", os.O_WRONLY)
    os._exit(0)
pid = sc(56, 0x4000000 | 17, 0, 0, 0, 0)
if pid == 0: act()
args = struct.pack("QQQQQQQQ", 0x8000000, 0, 0, 0, 17, 0, 0, 0)
pid3 = sc(435, args, len(args))
if pid3 == 0: act()
os.waitpid(pid, 0); os.waitpid(pid3, 0)
tell(pids=[pid, pid3])
""")
        self.assertEqual([(r["new"], r["args"][0] & 0x7e000000) for r in d.escapes("clone_ns")],
                         list(zip(d.told["pids"], [0x4000000, 0x8000000])))
        # The children are in another place than their parent was.
        self.assertEqual({(r["args"][0], r["tgid"]) for r in d.escapes("ns_change")},
                         set(zip([0x4000000, 0x8000000], d.told["pids"])))
        self.assertEqual(len(d.escapes()), 4)

    def test_killed_in_the_kernel(self):
        d = self.script("""
open("before", "w").close()
sc(272, 0x4000000)
open("after", "w").close()
""", options=["--kill", str(1 << ESCAPES["unshare"])])
        self.assertEqual(d.done.code, 137)
        e, = d.escapes("unshare")
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
        d = self.dump("/bin/sh", "-c", "exec 8>&-; sleep 0.5", options=[
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
            self.assertEqual(os.path.basename(d.one("file.mkdir")["path"]), "low")


if __name__ == "__main__":
    unittest.main()
