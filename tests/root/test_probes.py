# SPDX-License-Identifier: Apache-2.0
"""Processes: exec, fork, exit, membership, losses, OOM, and what the kernel gives."""

import base64
import collections
import json
import os
import unittest

from probes import *


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
     loginuid=int(open("/proc/self/loginuid").read()), ino=exe.st_ino, nlink=exe.st_nlink, mode=exe.st_mode, args=open("/proc/self/cmdline").read(),
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
        # Not stat's: an overlay gives each of its layers a number of its own there.
        self.assertEqual("%d:%d" % (r["dev"] >> 20, r["dev"] & 0xfffff), mounted_dev(t["exe"]))
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
        self.assertEqual(d.args(r), whole, "all of it is sent, for the hash")
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

    def test_dropped_is_known_after_thousands_of_other_files(self):
        """Written first, run when 4,000 newer ones were made: bpf/lib/made.bpf.h keeps 16,384 with 99.5 %."""
        d = self.script("""
true = open("/bin/true", "rb").read()
for name in ["first%d" % i for i in range(8)]:
    with open(name, "wb", opener=lambda p, f: os.open(p, f, 0o755)) as f:
        f.write(true)
for i in range(4000):
    os.close(os.open("other%d" % i, os.O_CREAT | os.O_WRONLY, 0o600))
for name in ["./first%d" % i for i in range(8)] + ["/bin/true"]:
    pid = os.fork()
    if pid == 0:
        os.execv(name, [name])
    os.waitpid(pid, 0)
""")
        # In one of 100,000 runs one of the eight is forgotten.
        self.assertEqual([e["upper_layer"] for e in d.kinds("exec")[1:]], [1] * 8 + [0])

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
     other=run(os.open("/dev/zero", 0)), null=run(os.open("/dev/null", 0)))
tell(user=run(r, setgid=65534, setuid=65534))
""")
        names = {n: d.kinds("exec", tgid=d.told[n])[0] for n in d.told}
        kinds = ["none", "tty", "pipe", "socket", "file", "other", "null"]
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
""", via=["/bin/sh", "-c", '"$@"; until [ -e "$0/daemon" ]; do sleep 0.1; done', self.tmp])
        self.assertEqual(len(d.kinds("file.open", path=self.path("daemon"))), 1)

    def test_setup_is_quiet_then_init_is_watched(self):
        d = self.dump("/bin/sh", "-c", "exec 8>&-; sleep 0.5", options=["--init-acts"])
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


class Loss(Probes):
    FLOOD = """
for i in range(3000):
    os.close(os.open("f%d" % (i % 10), os.O_CREAT | os.O_WRONLY, 0o600))
"""

    def test_lost_records_are_counted(self):
        d = self.script(self.FLOOD, options=["--bulk", "65536", "--slow", "1"])
        # a row a reason: beyond the sandbox's rate, or the ring was full
        self.assertEqual({(g["of"], g["sandbox"]) for g in d.gaps}, {("file.open", 7)})
        gap = {"count": sum(g["count"] for g in d.gaps), "first_ts": min(g["first_ts"] for g in d.gaps),
               "last_ts": max(g["last_ts"] for g in d.gaps)}
        seen = [r for r in d.kinds("file.open") if r["path"].startswith(self.path("f"))]
        opens = len(d.kinds("file.open"))
        self.assertEqual(len(seen), opens)
        self.assertEqual(len(seen) + gap["count"], 3000)
        self.assertGreater(gap["last_ts"], gap["first_ts"])
        last = d.kinds("exit")[-1]
        self.assertLess(gap["last_ts"], last["ts"], "and nothing of the urgent ring was lost")
        # Independent of the counters: the numbers of those that came leave holes at the end only.
        for (ring, _), seqs in sequences(d.records).items():
            if ring == 0:
                self.assertEqual(sorted(seqs), list(range(1, len(seqs) + 1)))

    def test_an_escape_is_not_crowded_out(self):
        """Argument lists that fill the urgent ring leave room for what ends a sandbox."""
        d = self.script("""
for i in range(100):
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/true", ["true", "x" * 7000])
    os.waitpid(pid, 0)
sc(272, 0x04000000)  # unshare of the host name
""", options=["--urgent", "65536", "--slow", "1"])
        self.assertTrue(d.escapes("unshare"), d.gaps)
        lost = collections.Counter()
        for g in d.gaps:  # a row a reason
            lost[g["of"]] += g["count"]
        self.assertGreater(lost["exec"], 50)
        self.assertNotIn("escape", lost)

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
        self.assertEqual(set(families), {"process", "lineage", "file", "net", "dns", "oom", "escape", "io_uring",
                                         "limit", "metadata", "signal"})
        self.assertTrue(all(r["ok"] for r in families.values()), families)

    def test_without_type_information(self):
        need("unshare", "mount")
        done = cmd("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh",
                   helper("probe_dump"), "--", "/bin/true")
        self.assertEqual(done.code, 3)
        self.assertOneLine(done, "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF")

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


if __name__ == "__main__":
    unittest.main()
