# SPDX-License-Identifier: Apache-2.0
"""Escape signals, limits and signals as `warder run` tells them: each provoked from inside a sandbox and looked
at field by field; and the silence of ordinary programs."""

import os
import unittest

from warder import *

SC = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def sc(nr, *args):
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_char_p(x) if isinstance(x, bytes) else ctypes.c_long(x) for x in args])
    return -ctypes.get_errno() if r < 0 else r
"""


class RunCase(TestCase):
    def setUp(self):
        need_root()
        super().setUp()

    def python(self, body, options=(), rules=False):
        base = () if rules else ("--no-default-rules",)
        return self.session(PYTHON_IN_SANDBOX, "-c", SC + body, options=[*base, *options])


class Signals(RunCase):
    """What the sandbox denies is told as an attempt, with what was asked for."""

    def test_attempts(self):
        s = self.python("""
calls = [(155, b"/a", b"/b"), (161, b"/x"), (430, b"ext4", 0), (246, 0, 0, 0, 0), (169, 0, 0, 0, 0), (167, b"/s", 0),
         (135, 0x0040000), (248, b"user", b"k", 0, 0, 0), (165, b"src", b"/mnt", b"tmpfs", 6, 0), (308, -1, 0),
         (321, 0, 0, 0), (175, 0, 0, b""), (304, -1, 0, 0), (272, 0x10000000), (323, 0), (298, 0, 0, -1, -1, 0)]
print([sc(*c) for c in calls])
""")
        self.assertCode(s, 0)
        self.assertEqual(eval(s.out), [-1] * 16)
        got = [(field(e, "escape.type"), e["outcome"], e["errno"], e["syscall"]) for e in s.kinds("escape")]
        want = [("pivot_root", "pivot_root"), ("chroot", "chroot"), ("mount_api", "fsopen"), ("kexec", "kexec_load"),
                ("reboot", "reboot"), ("swap", "swapon"), ("personality", "personality"), ("keyctl", "add_key"),
                ("mount", "mount"), ("setns", "setns"), ("bpf", "bpf"), ("module", "init_module"),
                ("open_by_handle_at", "open_by_handle_at"), ("unshare", "unshare"), ("userfaultfd", "userfaultfd"),
                ("perf_event_open", "perf_event_open")]
        self.assertEqual(got, [(t, "denied", "EPERM", c) for t, c in want])
        mount, = s.kinds("escape", escape__type="mount")
        self.assertEqual((mount["escape"]["detail"], mount["escape"]["target"]), ("/mnt", "src"))
        self.assertEqual(s.kinds("escape", escape__type="chroot")[0]["escape"]["detail"], "/x")
        self.assertEqual(s.kinds("mount"), [], "nothing was mounted")

    def test_program_in_memory(self):
        s = self.python("""
fd = os.memfd_create("x")
os.write(fd, open("/bin/true", "rb").read())
os.execve(fd, ["x"], {})
""")
        self.assertCode(s, 0)
        e, = s.kinds("escape")
        self.assertEqual(e["escape"]["type"], "memfd_exec")
        self.assertTrue(s.kinds("exec", proc__memfd=True))

    def test_search_for_devices_and_engines(self):
        s = self.python("""
import socket
for p in ("/dev/kvm", "/dev/mem", "/dev/null"):
    try: os.open(p, os.O_RDONLY)
    except OSError as e: pass
c = socket.socket(socket.AF_UNIX)
try: c.connect("/var/run/docker.sock")
except OSError: pass
try: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)
except OSError: pass
try: os.open("/proc/self/mem", os.O_RDWR)
except OSError: pass
""")
        self.assertCode(s, 0)
        got = {(e["escape"]["type"], e["escape"]["detail"]) for e in s.kinds("escape")}
        self.assertLessEqual({("device", "/dev/kvm"), ("device", "/dev/mem"), ("runtime_socket", "/var/run/docker.sock"),
                              ("kernel_file", "/proc/sys/kernel/core_pattern")}, got)
        self.assertTrue([d for t, d in got if t == "proc_mem" and d.endswith("/mem")], got)

    def test_metadata_without_a_network(self):
        s = self.python("""
import socket
for family, to in ((socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET6, ("fd00:ec2::254", 80)),
                   (socket.AF_INET, ("10.0.0.1", 80))):
    c = socket.socket(family); c.settimeout(0.1)
    try: c.connect(to)
    except OSError: pass
""")
        self.assertEqual([e["escape"]["detail"] for e in s.kinds("escape", escape__type="metadata")],
                         ["169.254.169.254:80", "[fd00:ec2::254]:80"])

    def test_signal_sent(self):
        s = self.session("sh", "-c", "sleep 50 & kill -TERM $!; wait; exit 0", options=["--no-default-rules"])
        e, = s.kinds("signal", signal__name="SIGTERM")
        self.assertEqual((e["proc"]["comm"], e["outcome"]), ("sh", "success"))
        self.assertIn(e["signal"]["target"], [c["child"]["pid"] for c in s.kinds("fork")])


class Kills(RunCase):
    def test_siblings_do_not_run_on(self):
        """They write into a pipe that we hold: after the kill in the kernel they come to one more call at most."""
        s = self.python("""
for i in range(4):
    if os.fork() == 0:
        while True: os.getppid()
time.sleep(0.3)
sc(272, 0x10000000)
os.write(1, b"still here")
""", rules=True)
        self.assertEqual((s.code, s.result["reason"], s.out), (137, "rule", b""))
        e, = s.kinds("escape", escape__type="unshare")
        self.assertTrue(e["escape"]["killed"])
        self.assertEqual({x["exit"].get("signal") for x in s.kinds("exit")}, {"SIGKILL"})

    def test_moved_out_of_its_cgroup(self):
        """From the host, as a confused tool might: found by its membership, killed, told."""
        proc, finish = self.start_session("sh", "-c", "echo ready; exec sleep 300.5")
        self.assertEqual(proc.stdout.readline(), b"ready\n")

        def sleeper():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open("/proc/%s/cmdline" % pid, "rb") as f:
                        if f.read() == b"sleep\0" + b"300.5\0":
                            return pid
                except OSError:
                    pass
        pid = wait_for("the sleeper", sleeper)
        with open("/proc/self/mounts") as f:
            v2 = [line.split()[1] for line in f if line.split()[2] == "cgroup2"][0]
        with open(v2 + "/cgroup.procs", "w") as f:
            f.write(pid)
        s = finish()
        self.assertEqual((s.code, s.result["reason"], s.result["rule"]), (137, "rule", "Task left its sandbox"))
        e, = s.kinds("escape", escape__type="cgroup_leave")
        self.assertEqual(e["proc"]["pid"], int(pid))

        def gone():
            try:
                with open("/proc/%s/stat" % pid) as f:
                    return f.read().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                return True
        wait_for("it to be gone", gone)


class Refused(RunCase):
    def test_disk(self):
        s = self.session("dd", "if=/dev/zero", "of=/workspace/f", "bs=64k", "count=100", options=["--disk", "1M"])
        self.assertEqual(s.code, 1)
        e, = s.kinds("limit")
        self.assertEqual((e["limit"]["type"], e["limit"]["value"], e["limit"]["target"], e["limit"]["effect"], e["outcome"],
                          e["errno"], e["vantage"], e["proc"]["comm"]),
                         ("disk", 1 << 20, "/workspace/f", "refused", "failure", "ENOSPC", "kernel", "dd"))
        self.assertEqual(len(s.kinds("rule.alert", rule__name="Limit of the sandbox hit")), 1)

    def test_file_size(self):
        s = self.session("dd", "if=/dev/zero", "of=/workspace/f", "bs=64k", "count=100", options=["--fsize", "1M"])
        e, = s.kinds("limit")
        self.assertEqual((e["limit"]["type"], e["limit"]["value"], e["limit"]["used"], e["errno"]),
                         ("fsize", 1 << 20, 1 << 20, "EFBIG"))
        self.assertTrue(s.kinds("exit", exit__signal="SIGXFSZ"))

    def test_tasks_by_who_was_refused(self):
        s = self.session("sh", "-c", "for i in 1 2 3 4 5 6; do sleep 30 & done; wait", options=["--pids", "4"])
        e = s.kinds("limit", limit__type="pids", vantage="kernel")
        self.assertTrue(e, s.events)
        self.assertEqual((e[0]["limit"]["value"], e[0]["errno"], e[0]["proc"]["comm"]), (4, "EAGAIN", "sh"))


class Ordinary(RunCase):
    """Near misses of the real world: no escape signal, no limit, no kill."""

    def quiet(self, *command, options=()):
        s = self.session(*command, options=options)
        self.assertCode(s, 0)
        self.assertEqual([(e["escape"], e["proc"].get("exe")) for e in s.kinds("escape")], [])
        self.assertEqual(s.kinds("limit", "oom", "mount"), [])

    def test_shell_tools(self):
        self.quiet("sh", "-c", "cp -a /etc/passwd a; tar cf b.tar a; mkdir c; tar xf b.tar -C c; chmod 600 a; ln -s a d; "
                               "find . | sort | xargs ls -l > e; sed -i s/root/x/ e; rm -rf c; df . > f; date > g; "
                               "mkfifo p; cat /proc/meminfo /proc/self/status > h; nice true; env -i sh -c :")

    def test_python(self):
        self.quiet(PYTHON_IN_SANDBOX, "-c", """
import concurrent.futures, json, mmap, os, select, signal, socket, sqlite3, ssl, subprocess, tempfile, threading, time
rang = []; signal.signal(signal.SIGALRM, lambda *a: rang.append(1)); signal.alarm(1)
db = sqlite3.connect("db"); db.execute("create table t(a)"); db.commit()
with concurrent.futures.ThreadPoolExecutor(4) as pool: list(pool.map(str, range(100)))
subprocess.run(["sh", "-c", "echo hi > out; kill -TERM $$"])
a, b = socket.socketpair(); a.send(b"x"); b.recv(1)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1); c = socket.create_connection(s.getsockname())
m = mmap.mmap(-1, 4096); os.nice(1); os.sched_getaffinity(0)
tempfile.TemporaryFile().write(b"x"); json.dumps({}); os.listdir("/dev")
while not rang: time.sleep(0.01) # one that comes while Python ends kills it: its handler is gone by then
""")

    def test_compiler(self):
        need("gcc")
        self.quiet("sh", "-c", 'echo "int main(void) { return 0; }" > a.c && gcc -O2 -o a a.c && ./a')

    def test_git(self):
        need("git")
        self.quiet("sh", "-c", "git init -q . && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit "
                               "-qm m && git log --oneline && git clone -q . ../tmp/copy 2>/dev/null || git gc -q")

    def test_perl(self):
        need("perl")
        self.quiet("perl", "-e", 'my $p = fork; if (!$p) { exec "true" } waitpid $p, 0; open F, ">f"; print F `date`;')


if __name__ == "__main__":
    unittest.main()
