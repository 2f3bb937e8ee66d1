# SPDX-License-Identifier: Apache-2.0
"""The sandbox by itself, without probes or rules: what a payload can see and do, how its end is told, and
that nothing stays behind. Driven by tests/helpers/sbx."""

import errno
import json
import os
import signal
import stat
import subprocess
import time
import unittest

import leftovers
from warder import *

need_root()

MASKED = ["kcore", "keys", "key-users", "timer_list", "interrupts", "sysrq-trigger"]
ABSENT = ["/root", "/home", "/boot", "/sys", "/srv", "/mnt", "/media", "/var/lib", "/var/log", "/etc/shadow",
          "/etc/ssh", "/etc/sudoers", "/dev/kmsg", "/dev/mem", "/dev/kvm", "/dev/vda", "/dev/sda", "/dev/fuse",
          "/dev/net", "/dev/loop-control", "/var/run/docker.sock", "/run/docker.sock", "/work", "/etc/ssl/private"]
NAMESPACES = ["mnt", "pid", "ipc", "uts", "net", "cgroup", "user"]
# What answers EPERM with the filter and something else without it, or is denied by it for sure.
DENIED = """mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr
    unshare unshare_user setns ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp bpf init_module
    finit_module delete_module kexec_load perf_event_open userfaultfd io_uring_setup io_uring_enter
    io_uring_register add_key request_key keyctl open_by_handle_at name_to_handle_at fanotify_init acct quotactl
    swapon reboot settimeofday clock_settime adjtimex syslog personality clone_newuser clone_newns tiocsti
    tiocsti_high tioclinux open_tree_attr statmount listmount lsm_set_self_attr memfd_secret netlink_netfilter af_packet af_alg af_vsock af_xdp af_packet_high raw_icmp""".split()
ALLOWED = "personality_ask af_unix af_inet af_inet6 netlink_route".split()


class Result:
    def __init__(self, done, text):
        self.code, self.out, self.err, self.done = done.code, done.out, done.err, done
        self.json = json.loads(text) if text else {}

    def __str__(self):
        return "%s\n%s" % (self.done, self.json)

    def __getattr__(self, name):
        return self.json[name]


class SandboxCase(TestCase):
    """Sessions carry a name of this process, so that other sandboxes of the host are nobody's leftovers."""
    prefix = "rt-%d-" % os.getpid()
    always = ()  # options of all
    made = 0

    def session_name(self):
        SandboxCase.made += 1
        return "%s%d" % (self.prefix, SandboxCase.made)

    def argv(self, command, options, fd):
        name = () if "--session" in options else ("--session", self.session_name())
        return ["sh", "-c", 'exec 3>"$0"; exec "$@"', fd, helper("sbx"), *self.always, *name, *options, "--",
                *command]

    def left(self):
        """Control groups and processes of our sessions, and mounts."""
        for top in leftovers.cgroup_mounts():
            for folder, subs, _ in os.walk(top):
                yield from (os.path.join(folder, s) for s in subs if self.prefix in s)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cgroup" % pid) as f:
                    if self.prefix in f.read():
                        yield "process " + pid
            except OSError:
                pass
        yield from leftovers.mounts()

    def sbx(self, *command, options=(), **kw):
        self.count += 1
        report = self.path("report%d" % self.count)
        done = cmd(*self.argv(command, options, report), **kw)
        with open(report) as f:
            result = Result(done, f.read())
        if result.json.get("error") == errno.EOPNOTSUPP and "id-mapped" in result.text:
            raise unittest.SkipTest("the file system of %s has no id-mapped mounts on this kernel" % self.tmp)
        return result

    def sh(self, script, *args, **kw):
        return self.sbx("sh", "-c", script, "sh", *args, **kw)

    def lines(self, script, **kw):
        r = self.sh(script, **kw)
        self.assertEqual(r.code, 0, str(r))
        return r.out.decode().splitlines()

    def start(self, *command, options=(), **kw):
        self.count += 1
        report = self.path("report%d" % self.count)
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
        proc = subprocess.Popen(self.argv(command, options, report), **kw)
        self.addCleanup(self._end, proc)
        return proc, report

    def assertClean(self, before, seconds=15):
        end = time.monotonic() + seconds * SLOW
        while set(self.left()) - before and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(set(self.left()) - before, set())


class Ends(SandboxCase):
    """How it ended, told apart."""

    def test_exit_codes(self):
        for code in (0, 1, 42, 255):
            r = self.sh("exit %d" % code)
            self.assertEqual((r.code, r.exit_code, r.signal, r.reason), (code, code, 0, "exit"))

    def test_signals(self):
        for sig in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGHUP):
            r = self.sh("kill -%d $$" % sig)
            self.assertEqual((r.code, r.exit_code, r.signal, r.reason), (128 + sig, 128 + sig, sig, "exit"))

    def test_not_found(self):
        for name in ("no-such-command", "/no/such/file", "./none"):
            r = self.sbx(name)
            self.assertEqual((r.code, r.error), (127, errno.ENOENT))
            self.assertIn(name, r.text)

    def test_not_executable(self):
        for name in ("/etc/passwd", "/usr", "/workspace"):
            r = self.sbx(name)
            self.assertEqual((r.code, r.error), (126, errno.EACCES), str(r))

    def test_not_a_program(self):
        junk = self.path("junk", b"\x00\x01\x02 no program\n")
        os.chmod(junk, 0o755)
        r = self.sbx("/opt/junk", options=["--ro", junk + ":/opt/junk"])
        self.assertEqual((r.code, r.error), (126, errno.ENOEXEC))

    def test_path_lookup(self):
        self.assertEqual(self.sbx("true", options=["--env", "PATH=/nowhere:/usr/bin"]).code, 0)
        self.assertEqual(self.sbx("true", options=["--env", "PATH=/nowhere"]).code, 127)
        # Not executable in one directory, absent in the next: the first is what a person must know.
        self.assertEqual(self.sbx("passwd", options=["--env", "PATH=/etc:/nowhere"]).code, 126)

    def test_missing_working_directory(self):
        self.assertEqual(self.sbx("true", options=["--cwd", "/nowhere"]).code, 127)

    def test_timeout_with_term_ignored(self):
        before = set(self.left())
        r = self.sh("trap '' TERM INT HUP; while :; do sleep 1; done", options=["--timeout", "300ms"])
        self.assertEqual((r.code, r.reason, r.signal), (137, "timeout", signal.SIGKILL))
        self.assertClean(before)

    def test_timeout_reaches_every_session_and_group(self):
        before = set(self.left())
        r = self.sh("setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & sleep 1000",
                    options=["--timeout", "300ms"])
        self.assertEqual((r.code, r.reason), (137, "timeout"))
        self.assertClean(before)

    def test_timeout_without_init(self):
        """The outer layer: who should have ended it does not run any more."""
        before = set(self.left())
        name = self.session_name()
        proc, report = self.start("sh", "-c", "echo up; exec sleep 1000", options=["--session", name, "--timeout", "%ds" % (10 * SLOW)])
        self.assertEqual(proc.stdout.readline(), b"up\n")
        leaf = [c for c in self.left() if c.endswith("/" + name) and os.path.exists(c + "/cgroup.freeze")][0]
        with open(leaf + "/cgroup.procs") as f:
            inits = [int(p) for p in f.read().split() if os.readlink("/proc/%s/exe" % p).startswith("/memfd:")]
        self.assertEqual(len(inits), 1)
        os.kill(inits[0], signal.SIGSTOP)
        wait_for("init to be stopped before the time is over", lambda: state_of(inits[0]) == "T")
        proc.communicate(timeout=TIMEOUT)
        with open(report) as f:
            self.assertEqual(json.load(f)["reason"], "timeout")
        self.assertClean(before)

    def test_background_processes_end_with_the_payload(self):
        before = set(self.left())
        r = self.sh("sleep 1000 > /dev/null 2>&1 < /dev/null & exit 5")
        self.assertEqual((r.code, r.reason), (5, "exit"))
        self.assertClean(before)

    def test_signal_is_forwarded_to_the_group(self):
        proc, _ = self.start("sh", "-c", "trap 'echo got; exit 9' USR1; echo up; while :; do sleep 0.05; done")
        self.assertEqual(proc.stdout.readline(), b"up\n")
        proc.send_signal(signal.SIGUSR1)
        self.assertEqual(proc.communicate(timeout=60)[0], b"got\n")
        self.assertEqual(proc.returncode, 9)

    def test_init_is_out_of_reach_of_its_children(self):
        r = self.sh("kill -9 1; kill -STOP 1; kill -TERM 1; kill -SEGV 1; exit 4")
        self.assertEqual((r.code, r.reason), (4, "exit"), str(r))
        r = self.sh("cat /proc/1/environ; readlink /proc/1/exe /proc/1/cwd; ls /proc/1/fd; cat /proc/1/maps; cat /proc/1/mem")
        self.assertEqual(r.out, b"", "process 1 shows itself")

    def test_orphans_are_reaped(self):
        r = self.sh("for i in 1 2 3 4 5 6 7 8; do sh -c 'true & true &' ; done; sleep 0.2; "
                    "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l")
        self.assertEqual(r.out.strip(), b"0")


class Descriptors(SandboxCase):
    def test_three_and_no_more(self):
        fd = os.open("/etc/shadow", os.O_RDONLY)
        self.addCleanup(os.close, fd)
        r = self.sbx("ls", "/proc/self/fd", pass_fds=[fd])
        self.assertEqual(r.out.split(), [b"0", b"1", b"2", b"3"])  # 3 is the directory that ls reads

    def test_stdin_to_stdout_and_stderr_apart(self):
        r = self.sh("cat; echo err >&2", input=b"\x00bytes\xff\n")
        self.assertEqual((r.out, r.err), (b"\x00bytes\xff\n", b"err\n"))

    def test_output_ends_with_the_payload(self):
        # If init kept the write end, this would hang.
        proc, _ = self.start("sh", "-c", "echo one")
        self.assertEqual(proc.communicate(timeout=60)[0], b"one\n")
        self.assertEqual(proc.returncode, 0)

    def test_dev_stdout_of_a_pipe(self):
        proc, _ = self.start("sh", "-c", "echo out > /dev/stdout; echo err > /dev/stderr")
        self.assertEqual(proc.communicate(timeout=60), (b"out\n", b"err\n"))

    def test_closed_descriptors_of_the_caller(self):
        # The launcher's own first files then have the numbers 0 to 2.
        done = cmd("sh", "-c", 'exec "$0" -- sh -c "exit 7" <&- >&- 2>&-', helper("sbx"))
        self.assertEqual(done.code, 7, str(done))

    def test_a_directory_is_not_passed_on(self):
        fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, fd)
        proc, report = self.start("ls", "/proc/self/fd/0/root", stdin=fd)
        self.assertEqual(proc.communicate(timeout=60)[0], b"")
        self.assertEqual(proc.returncode, 125)
        with open(report) as f:
            self.assertIn("standard input", f.read())

    def test_no_controlling_terminal(self):
        need("script")
        inner = "%s -- sh -c 'cat /dev/tty' 2>&1" % helper("sbx")
        done = cmd("script", "-qec", inner, "/dev/null")
        self.assertIn(b"No such device or address", done.out)


class View(SandboxCase):
    """What a payload can see."""

    def test_root_is_an_allow_list(self):
        r = self.sh('for p in "$@"; do if [ -e "$p" ]; then echo "$p"; fi; done', *ABSENT)
        self.assertEqual(r.out, b"")
        names = set(self.lines("ls -A /"))
        self.assertLessEqual(names, {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "dev", "etc", "proc", "run",
                                     "tmp", "usr", "var", "workspace"})

    def test_root_is_read_only(self):
        r = self.sh('for p in / /usr /usr/bin /etc /dev /proc/sys/kernel /var; do '
                    'if touch $p/x 2>/dev/null; then echo $p; fi; done; '
                    'if echo x >> /etc/passwd; then echo passwd; fi')
        self.assertEqual(r.out, b"", str(r))

    def test_private_places_are_writable(self):
        places = "/workspace /tmp /var/tmp /run /dev/shm"
        r = self.sh("for p in %s; do echo x > $p/f && cat $p/f; done" % places)
        self.assertEqual(r.out, b"x\n" * 5, str(r))
        self.assertEqual(self.sh("ls -A %s | grep -v :" % places).out.strip(), b"", "something stayed")
        self.assertEqual(self.lines("pwd; echo $HOME"), ["/workspace", "/workspace"])

    def test_programs_run_from_workspace_and_tmp_only(self):
        r = self.sh("for p in /workspace /tmp /run /dev/shm; do cp /usr/bin/true $p/t && $p/t 2>/dev/null && echo $p; done")
        self.assertEqual(r.out.split(), [b"/workspace", b"/tmp"])

    def test_secrets_of_the_host_are_shut(self):
        secret = self.path("secret", "top")
        os.chmod(secret, 0o600)
        folder = self.path("dir")
        os.mkdir(folder, 0o700)
        r = self.sh("cat /opt/s; ls /opt/d", options=["--ro", secret + ":/opt/s", "--ro", folder + ":/opt/d"])
        self.assertEqual(r.out, b"")
        self.assertIn(b"Permission denied", r.err)

    def test_identity(self):
        self.assertEqual(self.lines("id -u; id -g; id -G; id -un; hostname"), ["1000", "1000", "1000", "sandbox",
                                                                               "sandbox"])
        self.assertEqual(self.lines("hostname; cat /etc/hostname", options=["--name", "my-job"]), ["my-job"] * 2)

    def test_the_host_sees_a_private_id(self):
        uids = set()
        procs = [self.start("sleep", "60")[0] for _ in range(2)]
        for p in procs:
            uids.add(wait_for("the payload", lambda: self.payload_uid(p.pid, "sleep")))
        self.assertEqual(len(uids), 2, "two sandboxes share a user id")
        self.assertTrue(all(0x70000000 <= u < 0x80000000 for u in uids), uids)

    @staticmethod
    def payload_uid(pid, comm):
        """Of the process called `comm` below pid."""
        children = {}
        for p in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % p) as f:
                    name, _, rest = f.read().partition("(")[2].rpartition(") ")
                children.setdefault(int(rest.split()[1]), []).append((int(p), name))
            except OSError:
                pass
        todo = [pid]
        while todo:
            for p, name in children.get(todo.pop(), []):
                todo.append(p)
                if name == comm:
                    return os.stat("/proc/%d" % p).st_uid or None
        return None

    def test_status(self):
        fields = dict(line.split(":\t", 1) for line in self.lines("cat /proc/self/status") if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(fields[name], 16), 0, name)
        self.assertEqual((fields["NoNewPrivs"], fields["Seccomp"], fields["Groups"].strip()), ("1", "2", ""))
        self.assertEqual(fields["Umask"], "0022")

    def test_no_way_back_up(self):
        """No filter is needed for these: no namespace of any kind can be made, and no right comes back by an exec."""
        counts = self.lines("cat /proc/sys/user/max_*_namespaces")
        self.assertGreaterEqual(len(counts), 7)
        self.assertEqual(set(counts), {"0"})
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", "import ctypes; print(ctypes.CDLL(None).prctl(27, 0, 0, 0, 0))")
        self.assertEqual(int(r.out), 0xef, "securebits: none for root, none kept, each locked")

    def test_namespaces_differ(self):
        inside = self.lines("for n in %s; do readlink /proc/self/ns/$n; done" % " ".join(NAMESPACES))
        outside = [os.readlink("/proc/self/ns/" + n) for n in NAMESPACES]
        for name, a, b in zip(NAMESPACES, inside, outside):
            self.assertNotEqual(a, b, name)

    def test_only_its_own_processes(self):
        self.assertEqual(self.lines("set -- /proc/[0-9]*; echo $#"), ["2"])  # init and sh, which counts by itself
        self.assertEqual(self.lines("cat /proc/self/cgroup | grep '^0:'"), ["0::/"])

    def test_proc_is_masked(self):
        for name in MASKED:
            if not os.path.exists("/proc/" + name):
                continue
            r = self.sbx("cat", "/proc/" + name)
            self.assertEqual((r.code, r.out), (1, b""), name)
        r = self.sh("for f in kernel/core_pattern kernel/modprobe vm/drop_caches user/max_user_namespaces; do "
                    "echo 1 > /proc/sys/$f; done; echo -1000 > /proc/self/oom_score_adj && echo lowered")
        self.assertEqual(r.out, b"")

    def test_devices(self):
        self.assertEqual(sorted(self.lines("ls /dev")), sorted(
            "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".split()))
        self.assertEqual(self.lines("echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 9 /dev/urandom | wc -c"),
                         ["3", "9"])
        r = self.sh("echo x > /dev/full")
        self.assertNotEqual(r.code, 0)

    def test_environment(self):
        env = dict(line.split("=", 1) for line in self.lines("env", options=["--env", "A=1", "--env", "HOME=/tmp"]))
        self.assertEqual((env["A"], env["HOME"], env["container"]), ("1", "/tmp", "warder"))
        self.assertLessEqual(set(env), {"A", "HOME", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "container",
                                        "PWD", "OLDPWD", "SHLVL", "_"})

    def test_arguments_arrive(self):
        big = "x" * 100000
        r = self.sbx("sh", "-c", 'echo ${#1} "$2" $#', "sh", big, "a b\n\xff\x01", "")
        self.assertEqual(r.out, b"100000 a b\n\xc3\xbf\x01 3\n")


class Network(SandboxCase):
    def test_nothing_but_loopback(self):
        self.assertEqual(self.lines("ls /proc/sys/net/ipv4/conf | tr '\n' ' '"), ["all default lo "])
        self.assertEqual(self.lines("tail -n +2 /proc/net/route | wc -l"), ["0"])

    def test_out_fails_at_once(self):
        code = ("import socket\n"
                "for a in ('169.254.169.254', '1.1.1.1', '10.0.0.1'):\n"
                "    try: socket.create_connection((a, 80), 5)\n"
                "    except OSError as e: print(e.errno)\n")
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", code)
        self.assertEqual(r.out.split(), [str(errno.ENETUNREACH).encode()] * 3)

    def test_serves_itself_on_any_port(self):
        code = ("import socket, threading\n"
                "for fam, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n"
                "    s = socket.socket(fam); s.bind((host, 80)); s.listen()\n"
                "    c = socket.create_connection((host, 80)); a = s.accept()[0]; a.send(b'x')\n"
                "    print(c.recv(1))\n")
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", code)
        self.assertEqual(r.out, b"b'x'\n" * 2, str(r))

    def test_host_network_is_marked(self):
        inside = self.sh("readlink /proc/self/ns/net", options=["--net", "host"])
        self.assertEqual(inside.out.decode().strip(), os.readlink("/proc/self/ns/net"))
        self.assertIn("unsafe.net_host", inside.degraded)


class Denied(SandboxCase):
    """Calls that a payload must not make."""

    def tried(self, *options):
        r = self.sbx("/opt/try", options=["--ro", helper("try_syscall") + ":/opt/try", *options])
        self.assertEqual(r.code, 0, str(r))
        return {name: (int(ret), int(e)) for name, ret, e in map(str.split, r.out.decode().splitlines())}

    def test_filter(self):
        tried = self.tried()
        for name in DENIED:
            self.assertEqual(tried[name], (-1, errno.EPERM), name)
        for name in ALLOWED:
            self.assertGreaterEqual(tried[name][0], 0, name)
        for name in ("clone3", "future", "first_unknown"):
            self.assertEqual(tried[name], (-1, errno.ENOSYS), name)
        self.assertEqual(tried["ioctl_other"], (-1, errno.EBADF))
        self.assertEqual(tried["ping"][0], -1)
        self.assertEqual(tried["mknod_disk"][0], -1)

    def test_writable_host_directories_allow_no_setuid(self):
        folder = self.path("rw")
        os.mkdir(folder, 0o755)
        tried = self.tried("--rw", folder + ":/opt/rw")
        self.assertEqual(tried["chmod_suid"], (-1, errno.EPERM))
        self.assertEqual(tried["fchmodat2_suid"], (-1, errno.EPERM))
        self.assertEqual(tried["openat2"], (-1, errno.ENOSYS))
        r = self.sh("cp /usr/bin/true /opt/rw/t && chmod u+s /opt/rw/t", options=["--rw", folder + ":/opt/rw"])
        self.assertNotEqual(r.code, 0)
        self.assertFalse(os.stat(folder + "/t").st_mode & (stat.S_ISUID | stat.S_ISGID))

    def test_foreign_abis_kill(self):
        for abi in ("int80", "x32"):
            if cmd(helper("try_syscall"), abi).code == 128 + signal.SIGSEGV:
                self.skipTest("this kernel has no 32-bit system calls: %s is SIGSEGV outside of a sandbox, too" % abi)
            r = self.sbx("/opt/try", abi, options=["--ro", helper("try_syscall") + ":/opt/try"])
            self.assertEqual((r.code, r.signal), (128 + signal.SIGSYS, signal.SIGSYS), abi)

    def test_setuid_programs_gain_nothing(self):
        r = self.sh("for p in /usr/bin/su /usr/bin/passwd /usr/bin/mount; do "
                    "[ -u $p ] && $p --help > /dev/null 2>&1; done; "
                    "cp /usr/bin/id /tmp/id; chmod u+s /tmp/id; /tmp/id -u; grep NoNewPrivs /proc/self/status")
        self.assertEqual(r.out.split(), [b"1000", b"NoNewPrivs:", b"1"])

    def test_host_processes_are_out_of_reach(self):
        victim = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(self._end, victim)
        self.sh("kill -9 -1; kill -9 %d" % victim.pid)
        self.assertIsNone(victim.poll())


class Binds(SandboxCase):
    def test_read_only(self):
        src = self.path("ro")
        os.mkdir(src, 0o755)
        with open(src + "/f", "w") as f:
            f.write("text")
        r = self.sh("cat /data/f; touch /data/new; echo x > /data/f", options=["--ro", src + ":/data"])
        self.assertEqual(r.out, b"text")
        self.assertEqual(os.listdir(src), ["f"])

    def test_writable_belongs_to_the_owner_outside(self):
        src = self.path("rw")
        os.mkdir(src, 0o700)
        os.chown(src, 12345, 23456)
        r = self.sh("id -u; stat -c %u /data; echo x > /data/new; mkdir /data/d", options=["--rw", src + ":/data"])
        self.assertEqual(r.out.split(), [b"1000", b"1000"], str(r))
        for name in ("new", "d"):
            st = os.stat(os.path.join(src, name))
            self.assertEqual((st.st_uid, st.st_gid), (12345, 23456))

    def test_workspace_of_the_host(self):
        src = self.path("work")
        os.mkdir(src, 0o755)
        r = self.sh("echo result > out.txt", options=["--workspace", src])
        self.assertEqual(r.code, 0, str(r))
        with open(src + "/out.txt") as f:
            self.assertEqual(f.read(), "result\n")

    def test_file_in_the_private_workspace(self):
        src = self.path("input", "text")
        r = self.sh("cat in/data; touch in/more; stat -c %u in", options=["--ro", src + ":/workspace/in/data"])
        self.assertEqual(r.out.split(), [b"text1000"], str(r))

    def test_one_inside_the_other(self):
        src = self.path("proj")
        os.makedirs(src + "/.git")
        opts = ["--ro", src + "/.git:/proj/.git", "--rw", src + ":/proj"]
        r = self.sh("touch /proj/ok && touch /proj/.git/no", options=opts)
        self.assertNotEqual(r.code, 0)
        self.assertEqual(sorted(os.listdir(src)), [".git", "ok"])
        self.assertEqual(os.listdir(src + "/.git"), [])

    def refused(self, *options, words=()):
        r = self.sbx("true", options=options)
        self.assertEqual(r.code, 125, str(r))
        for w in words:
            self.assertIn(w, r.text)

    def test_refusals(self):
        import socket
        sock = self.path("sock")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(sock)
        os.mkfifo(self.path("fifo"))
        self.refused("--ro", sock + ":/x", words=["sock"])
        self.refused("--ro", self.path("fifo") + ":/x")
        self.refused("--ro", "/dev/null:/x", words=["/dev"])
        self.refused("--ro", "/proc:/x")
        self.refused("--ro", "/sys/kernel:/x")
        self.refused("--ro", "/run:/x")
        self.refused("--ro", "/:/x")
        self.refused("--ro", self.path("absent") + ":/x", words=["absent"])
        self.refused("--ro", "/usr:relative", words=["relative"])
        self.refused("--ro", "/usr:/a/../b")
        self.refused("--ro", "/usr:/proc/x")
        self.refused("--backend", "gvisor-nowhere", words=["gvisor-nowhere", "ns"])
        self.refused("--memory", "1K", words=["memory"])

    def test_target_through_a_link_of_the_bind_is_refused(self):
        src = self.path("evil")
        os.mkdir(src)
        os.symlink("/etc", src + "/link")
        self.refused("--rw", src + ":/data", "--ro", self.path("f", "x") + ":/data/link/passwd")

    def test_missing_target_in_a_host_directory_is_not_made(self):
        src = self.path("keep")
        os.mkdir(src)
        self.refused("--rw", src + ":/data", "--ro", self.path("f", "x") + ":/data/new/file")
        self.assertEqual(os.listdir(src), [])


class Limits(SandboxCase):
    def test_memory(self):
        code = "b = []\nfor i in range(400): b.append(bytearray(1 << 20))\n"
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", code, options=["--memory", "64M"])
        self.assertNotEqual(r.code, 0, str(r))
        self.assertGreater(r.oom_kills, 0, str(r))
        self.assertLessEqual(r.mem_peak, 65 << 20)

    def test_memory_of_files_counts(self):
        r = self.sh("head -c 200M /dev/zero > /dev/shm/f", options=["--memory", "64M", "--tmp", "1G"])
        self.assertNotEqual(r.code, 0)
        self.assertGreater(r.oom_kills, 0, str(r))

    def test_enough_memory_is_enough(self):
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", "b = bytearray(32 << 20)", options=["--memory", "128M"])
        self.assertEqual((r.code, r.oom_kills), (0, 0), str(r))
        self.assertGreater(r.mem_peak, 32 << 20)

    def test_fork_bomb(self):
        before = set(self.left())
        r = self.sh("b() { b | b & }; b; sleep 2", options=["--pids", "20", "--timeout", "4s"])
        self.assertLessEqual(r.pids_peak, 20)
        self.assertGreater(r.pids_denied, 0, str(r))
        self.assertClean(before)

    def test_pids_are_the_payloads(self):
        # N of them may live at once; init is not counted.
        code = ("import os, time\n"
                "n = 1\n"
                "try:\n"
                "    while n < 50:\n"
                "        if os.fork() == 0: time.sleep(30)\n"
                "        n += 1\n"
                "except BlockingIOError: pass\n"
                "print(n, flush=True)\n"
                "os._exit(0)\n")
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", code, options=["--pids", "8"])
        self.assertEqual(r.out.split()[0], b"8", str(r))

    def test_full_file_systems(self):
        for where, opt in (("/tmp", "--tmp"), ("/workspace", "--disk"), ("/dev/shm", "--tmp")):
            r = self.sh("head -c 20M /dev/zero > %s/f" % where, options=[opt, "8M"])
            self.assertNotEqual(r.code, 0)
            self.assertIn(b"No space left", r.err)

    def test_number_of_files(self):
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", "for i in range(100000): open('/tmp/%d' % i, 'w').close()",
                     options=["--tmp", "8M"])
        self.assertIn(b"No space left", r.err)

    def test_open_files_cannot_be_raised(self):
        r = self.sh("ulimit -Hn; ulimit -n 100000 2>/dev/null && echo raised", options=["--nofile", "64"])
        self.assertEqual(r.out.split(), [b"64"])
        self.assertEqual(self.lines("ulimit -c"), ["0"])

    def test_cpu(self):
        name = self.session_name()
        proc, _ = self.start("sh", "-c", "echo up; sleep 1000", options=["--cpus", "0.25", "--session", name])
        self.assertEqual(proc.stdout.readline(), b"up\n")
        quota = {}
        for top in leftovers.cgroup_mounts():
            for folder, _, files in os.walk(top):
                if name in folder:
                    for f in {"cpu.max", "cpu.cfs_quota_us"} & set(files):
                        with open(os.path.join(folder, f)) as text:
                            quota[f] = text.read().strip()
        self.assertIn(quota, ({"cpu.max": "25000 100000"}, {"cpu.cfs_quota_us": "25000"}))
        proc.terminate()
        proc.communicate(timeout=60)

    def test_no_swap_and_all_or_none(self):
        """What the kernel was told, on v2 and on v1: no swap, and the whole group ends when memory does."""
        name = self.session_name()
        proc, _ = self.start("sh", "-c", "echo up; sleep 1000", options=["--memory", "64M", "--session", name])
        self.assertEqual(proc.stdout.readline(), b"up\n")
        names = {"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "1",
                 "memory.limit_in_bytes": "67108864", "memory.memsw.limit_in_bytes": "67108864"}
        told = {}
        for top in leftovers.cgroup_mounts():
            for folder, _, files in os.walk(top):
                if folder.endswith(name):
                    for f in set(names) & set(files):
                        with open(os.path.join(folder, f)) as text:
                            told[f] = text.read().strip()
        self.assertEqual(told, {f: names[f] for f in told})
        self.assertTrue({"memory.max", "memory.oom.group"} <= set(told) or "memory.limit_in_bytes" in told, told)
        proc.terminate()
        proc.communicate(timeout=60)

    def test_no_controllers(self):
        """A host without them: per-process limits in their place, and each is said to be missing."""
        hidden = [d for d in leftovers.cgroup_mounts() if os.path.basename(d) in ("memory", "pids")]
        if len(hidden) != 2:
            raise unittest.SkipTest("this host has its controllers on v2, where they cannot be hidden")
        code = ("import os, time\n"
                "try: bytearray(200 << 20)\n"
                "except MemoryError: print('memory', flush=True)\n"
                "n = 1\n"
                "try:\n"
                "    while n < 50:\n"
                "        if os.fork() == 0: time.sleep(30)\n"
                "        n += 1\n"
                "except BlockingIOError: print(n, flush=True)\n"
                "os._exit(0)\n")
        self.count += 1
        report = self.path("report%d" % self.count)
        argv = self.argv([PYTHON_IN_SANDBOX, "-c", code], ["--memory", "64M", "--pids", "8"], report)
        done = cmd("unshare", "-m", "sh", "-c", "umount %s && exec \"$@\"" % " ".join(hidden), "sh", *argv)
        with open(report) as f:
            r = Result(done, f.read())
        self.assertEqual((r.code, r.out.split()), (0, [b"memory", b"8"]), str(r))
        self.assertLessEqual({"limit.memory", "limit.pids"}, set(r.degraded))

    def test_usage_is_reported(self):
        r = self.sh("true; true")
        self.assertGreater(r.cpu_usec, 0)
        self.assertGreaterEqual(r.pids_peak, 1)

    def test_file_size(self):
        r = self.sh("head -c 2M /dev/zero > f", options=["--fsize", "1M"])
        self.assertNotEqual(r.code, 0)


class Leftovers(SandboxCase):
    def test_many_at_once(self):
        before = set(self.left())
        procs = [subprocess.Popen([helper("sbx"), "--session", self.session_name(), "--", "sh", "-c",
                                   "sleep 0.2; exit %d" % (i % 7)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                 for i in range(100)]
        for i, p in enumerate(procs):
            err = p.communicate(timeout=TIMEOUT_MANY)[1]
            self.assertEqual(p.returncode, i % 7, err)
        self.assertClean(before, 30)

    def test_frozen_from_its_first_instruction(self):
        """Whoever freezes it while it starts is not kept waiting for the start that cannot be told."""
        before = set(self.left())
        r = self.sbx("sh", "-c", "echo on; exit 3", options=["--frozen"])
        self.assertEqual((r.code, r.out), (3, b"on\n"), r)
        r = self.sbx("no-such-command", options=["--frozen"])
        self.assertEqual(r.code, 127, r)
        self.assertClean(before)

    def test_failure_leaves_nothing(self):
        before = set(self.left())
        self.sbx("no-such-command")
        self.sbx("true", options=["--ro", "/usr/bin:/data", "--ro", "/etc/passwd:/data/none/x"])
        self.assertClean(before)

    def session(self, name):
        with open("/proc/self/mountinfo") as f:
            v2 = [x.split()[4] for x in f if " - cgroup2 " in x][0]
        return os.path.join(v2, "warder", name)

    @staticmethod
    def read(path):
        """Empty when it is gone: another warder of this host may sweep, too."""
        try:
            with open(path) as f:
                return f.read()
        except OSError:
            return ""

    def test_killed_launcher(self):
        before = set(self.left())
        name = self.session_name()
        proc, _ = self.start("sh", "-c", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000", options=["--session", name])
        procs = os.path.join(self.session(name), "cgroup.procs")

        def members():
            return self.read(procs).split()
        wait_for("the sandbox", lambda: os.path.exists(procs) and len(members()) >= 4)
        live, _ = self.start("sleep", "1000", options=["--session", name + "-live"])
        wait_for("the other one", lambda: os.path.exists(self.session(name + "-live")))
        proc.kill()
        proc.wait()
        wait_for("its processes to end", lambda: not members())
        done = cmd(helper("sbx"), "--sweep")
        self.assertEqual(done.code, 0, str(done))
        self.assertGreaterEqual(int(done.out.split()[0]), 1)
        self.assertFalse(os.path.exists(self.session(name)))
        self.assertTrue(os.path.exists(self.session(name + "-live")), "a live sandbox was swept")
        self.assertIsNone(live.poll())
        live.terminate()
        live.wait(30)
        self.assertClean(before)

    def test_launcher_killed_during_set_up(self):
        before = set(self.left())
        for _ in range(5):
            name = self.session_name()
            proc, _ = self.start("sleep", "1000", options=["--session", name])
            leaf = self.session(name)
            # Stopped wherever it is; as soon as somebody is in the leaf that is in the middle of set-up.
            while not (os.path.exists(leaf + "/cgroup.procs") and self.read(leaf + "/cgroup.procs")):
                self.assertIsNone(proc.poll())
            with open(leaf + "/cgroup.freeze", "w") as f:
                f.write("1")
            proc.kill()
            proc.wait()
            with open(leaf + "/cgroup.freeze", "w") as f:
                f.write("0")
            wait_for("the set-up task to end", lambda: not self.read(leaf + "/cgroup.procs"))
        self.assertEqual(cmd(helper("sbx"), "--sweep").code, 0)
        self.assertClean(before)

    def test_killed_launcher_of_a_frozen_sandbox(self):
        before = set(self.left())
        name = self.session_name()
        proc, _ = self.start("sh", "-c", "echo up; sleep 1000", options=["--session", name])
        leaf = self.session(name)
        self.assertEqual(proc.stdout.readline(), b"up\n")
        with open(leaf + "/cgroup.freeze", "w") as f:
            f.write("1")
        proc.kill()
        proc.wait()
        self.assertEqual(cmd(helper("sbx"), "--sweep").code, 0)
        self.assertFalse(os.path.exists(leaf))
        self.assertClean(before)

    def test_same_session_twice(self):
        name = self.session_name()
        proc, _ = self.start("sleep", "1000", options=["--session", name])
        wait_for("the sandbox", lambda: os.path.exists(self.session(name)))
        r = self.sbx("true", options=["--session", name])
        self.assertEqual(r.code, 125)
        self.assertIn(name, r.text)
        self.assertIsNone(proc.poll(), "the first one suffered")
        proc.terminate()
        proc.wait(30)

    def test_bad_session_names(self):
        for name in ("../x", "a/b", ".", "", "a" * 100, "a\nb"):
            self.assertEqual(self.sbx("true", options=["--session", name]).code, 125, name)


class Benign(SandboxCase):
    """What must go on working."""

    def test_shell(self):
        self.assertEqual(self.lines("seq 1 1000 | sort -rn | head -1; echo $(( $(ls /usr/bin | wc -l) > 10 )); "
                                    "cat <<X | tr a-z A-Z\nhello\nX\n"), ["1000", "1", "HELLO"])

    def test_python(self):
        code = ("import subprocess, threading, tempfile, multiprocessing, socket, ssl, json, sqlite3\n"
                "t = threading.Thread(target=print, args=('thread',), kwargs={'flush': True}); t.start(); t.join()\n"
                "print(subprocess.run(['echo', 'sub'], capture_output=True).stdout.decode().strip(), flush=True)\n"
                "with multiprocessing.Pool(2) as p: print(p.map(abs, [-1, -2]), flush=True)\n"
                "tempfile.NamedTemporaryFile().write(b'x')\n"
                "print(len(socket.getaddrinfo('localhost', 80)) > 0)\n"
                "db = sqlite3.connect('a.db'); db.execute('create table t(x)'); db.commit()\n")
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", code)
        self.assertEqual(r.out.decode().splitlines(), ["thread", "sub", "[1, 2]", "True"], str(r))

    def test_compiler(self):
        need("gcc")
        r = self.sh("printf '#include <stdio.h>\\nint main(void) { puts(\"hello\"); }\\n' > a.c && gcc -o a a.c && ./a")
        self.assertEqual(r.out, b"hello\n", str(r))

    def test_git(self):
        need("git")
        r = self.sh("git init -q r && cd r && echo x > f && git add f && "
                    "git -c user.name=a -c user.email=a@b commit -qm m && git log --oneline | wc -l")
        self.assertEqual(r.out.strip(), b"1", str(r))

    def test_archives_and_many_files(self):
        r = self.sh("mkdir d && for i in $(seq 1 500); do echo $i > d/$i; done && tar czf a.tgz d && rm -r d && "
                    "tar xzf a.tgz && ls d | wc -l && mkfifo p && (echo via > p & cat p) && ln -s a l && mv l m")
        self.assertEqual(r.out.split(), [b"500", b"via"], str(r))

    def test_pty(self):
        code = "import os, pty\npid, fd = pty.fork()\nif pid == 0: os.execvp('tty', ['tty'])\nprint(os.read(fd, 99))\n"
        r = self.sbx(PYTHON_IN_SANDBOX, "-c", code)
        self.assertIn(b"/dev/pts/", r.out, str(r))


# The same, where the root comes from a template and the network namespace was made ahead.

class EndsWarm(Ends):
    always = ("--warm",)


class ViewWarm(View):
    always = ("--warm",)


class NetworkWarm(Network):
    always = ("--warm",)


class DeniedWarm(Denied):
    always = ("--warm",)


class LimitsWarm(Limits):
    always = ("--warm",)


class Plan(SandboxCase):
    def plan(self, *options):
        done = cmd(helper("sbx"), "--plan", "--json", *options, "--", "true")
        self.assertEqual(done.code, 0, str(done))
        return json.loads(done.out)

    def test_changes_nothing(self):
        before = set(self.left())
        self.plan()
        self.assertEqual(set(self.left()) - before, set())

    def test_hash_is_of_the_policy(self):
        a, b = self.plan("--session", "a1"), self.plan("--session", "b2")
        self.assertEqual(a["policy"], b["policy"])
        self.assertNotEqual(a["policy"], self.plan("--memory", "64M")["policy"])

    def test_text(self):
        done = cmd(helper("sbx"), "--plan", "--", "echo", "a\x1b[31mb")
        self.assertIn(b"seccomp", done.out)
        self.assertNotIn(b"\x1b", done.out)

    def test_features(self):
        done = cmd(helper("sbx"), "--features")
        self.assertIn(b"cgroup2", done.out)
        self.assertNotIn(b"FAIL", done.out, str(done))


TIMEOUT_MANY = 120 * SLOW


if __name__ == "__main__":
    unittest.main()
