# SPDX-License-Identifier: Apache-2.0
"""`warder oci`: the life of a container as the OCI runtime specification has it, by hand, and by podman."""

import copy
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import unittest

from warder import *
from leftovers import cgroup_mounts

BUSYBOX = "/bin/busybox"
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)

CAPS = ["CAP_CHOWN", "CAP_KILL", "CAP_SETUID"]
KILLS = """
- rule: nothing is id
  desc: a test
  condition: kind = exec and proc.args startswith "id forbidden"
  output: it ran
  priority: CRITICAL
  action: kill
"""


def make_root(root):
    """A root of nothing but busybox."""
    for name in ("bin", "etc", "proc", "dev", "sys", "tmp", "root", "vol"):
        os.makedirs(os.path.join(root, name))
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    shutil.copy(BUSYBOX, os.path.join(root, "bin", "busybox"))
    for name in cmd(BUSYBOX, "--list").out.decode().split():
        if name != "busybox":
            os.symlink("busybox", os.path.join(root, "bin", name))


def config(root, *args):
    """As podman writes it, with less in it."""
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0, "umask": 18}, "args": list(args), "cwd": "/",
            "env": ["PATH=/bin", "WHO=me"], "noNewPrivileges": True,
            "capabilities": {"bounding": CAPS, "effective": CAPS, "permitted": CAPS},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 512, "soft": 256}],
        },
        "root": {"path": root},
        "hostname": "box",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
            {"destination": "/mnt/small", "type": "tmpfs", "source": "tmpfs", "options": ["size=1m", "noexec"]},
        ],
        "linux": {
            "namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}], "memory": {"limit": 256 << 20},
                          "pids": {"limit": 64}},
            "maskedPaths": ["/proc/kcore", "/proc/version", "/sys/firmware"],
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger"],
            "cgroupsPath": "/somewhere/else",
        },
    }


class Oci(TestCase):
    def setUp(self):
        need_root()
        if not os.access(BUSYBOX, os.X_OK):
            raise unittest.SkipTest("no static busybox (make deps)")
        super().setUp()
        self.before = own_cgroups()
        self.program = self.path("warder-oci")
        os.symlink(WARDER, self.program)

    def oci(self, *argv, **kw):
        return cmd(self.program, *argv, env=self.env, **kw)

    def record(self):
        """The one session's events."""
        sessions = os.path.join(self.env["WARDER_STATE"], "sessions")
        (name,) = os.listdir(sessions)
        folder = os.path.join(sessions, name)
        self.assertCode(cmd(WARDER, "verify", folder), 0)
        return [json.loads(line) for line in cmd(WARDER, "events", folder).out.splitlines()]

    def assertNothingLeft(self):
        self.assertEqual([d for d in ("oci", "keepers", "sessions")
                          if any(not n.startswith(".") for n in self.names(d))], [])
        wait_for("control groups to go", lambda: own_cgroups() <= self.before)

    def names(self, folder):
        try:
            return os.listdir(os.path.join(self.env["WARDER_RUN"], folder))
        except FileNotFoundError:
            return []


class Bundle(Oci):
    """Each command by hand. We are what conmon is: the one who waits for the keeper."""

    def setUp(self):
        super().setUp()
        self.assertEqual(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0)
        self.addCleanup(libc.prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        self.root = self.path("root")
        make_root(self.root)

    def bundle(self, conf, name="bundle"):
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(conf, f)
        return folder

    def conf(self, *args):
        return config(self.root, *args)

    def create(self, conf, *options, id="c1", code=0):
        """(keeper's pid, files of its output)"""
        folder = self.bundle(conf)
        pid_file = self.path("pid")
        self.out, self.err = open(self.path("out"), "w+b"), open(self.path("err"), "w+b")
        self.addCleanup(self.out.close)
        self.addCleanup(self.err.close)
        done = subprocess.run([self.program, "create", "--bundle", folder, "--pid-file", pid_file, *options, id],
                              env=self.env, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        self.assertEqual(done.returncode, code, self.said(self.err))
        if code:
            return None
        self.addCleanup(self.oci, "delete", "--force", id)
        with open(pid_file) as f:
            return int(f.read())

    @staticmethod
    def said(f):
        f.seek(0)
        return f.read().decode("utf-8", "replace")

    def state(self, id="c1"):
        done = self.oci("state", id)
        self.assertCode(done, 0)
        return json.loads(done.out)

    def ended(self, pid):
        """The keeper's exit code, as its waiter sees it."""
        got = wait_for("the keeper's end", lambda: [s for p, s in [os.waitpid(pid, os.WNOHANG)] if p], 60)
        return os.waitstatus_to_exitcode(got[0])

    def run_to_end(self, conf, code, *options):
        pid = self.create(conf, *options)
        self.assertCode(self.oci("start", "c1"), 0)
        self.assertEqual(self.ended(pid), code, self.said(self.err))
        self.assertEqual(self.state()["status"], "stopped")
        self.assertCode(self.oci("delete", "c1"), 0)
        return self.said(self.out)

    def create_slowly(self):
        """A create that stands still in the middle: its keeper lives, and waits for somebody at a full console socket.
        (the process, a function that lets it go on)"""
        place = self.path("console")
        listener, first = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        for s in (listener, first):
            self.addCleanup(s.close)
        listener.bind(place)
        listener.listen(0)
        first.connect(place)
        conf = self.conf("sh", "-c", "echo ran; sleep 1000")
        conf["process"]["terminal"] = True
        proc = subprocess.Popen([self.program, "create", "--bundle", self.bundle(conf), "--console-socket", place, "c1"],
                                env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self._end, proc)
        self.addCleanup(proc.stderr.close)
        self.addCleanup(self.oci, "delete", "--force", "c1")

        def go_on():
            for _ in range(2):
                peer, _ = listener.accept()
                self.addCleanup(peer.close)
        self.addCleanup(listener.close)  # before delete: it would wait for the keeper, who waits for us
        wait_for("the keeper", lambda: self.oci("state", "c1").code == 0 and self.state()["pid"])
        return proc, go_on

    def test_being_created(self):
        """It lives from its first moment on: it is not what has stopped, and nobody starts or removes it."""
        proc, go_on = self.create_slowly()
        self.assertEqual(self.state()["status"], "creating")
        self.assertIn(b"creating", self.oci("list").out)
        for wrong in (["start", "c1"], ["delete", "c1"], ["exec", "c1", "true"], ["pause", "c1"],
                      ["create", "-b", self.path("bundle"), "c1"]):
            done = self.oci(*wrong)
            self.assertCode(done, 1)
        go_on()
        self.assertEqual(proc.wait(TIMEOUT), 0)
        self.assertEqual(self.state()["status"], "created")
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertNothingLeft()

    def test_deleted_while_it_is_created(self):
        proc, go_on = self.create_slowly()
        delete = subprocess.Popen([self.program, "delete", "--force", "c1"], env=self.env)
        self.addCleanup(self._end, delete)
        go_on()
        self.assertEqual(delete.wait(TIMEOUT), 0)
        proc.wait(TIMEOUT)  # it was there for a moment, or not even that
        self.assertNothingLeft()

    def test_keeper_killed_while_it_is_created(self):
        proc, _ = self.create_slowly()
        os.kill(self.state()["pid"], signal.SIGKILL)
        self.assertEqual(proc.wait(TIMEOUT), 1)
        self.assertIn(b"keeper died", proc.stderr.read())
        self.assertNothingLeft()

    def test_create_killed(self):
        """Who called create has gone, so nobody will ever say start: the keeper ends, too."""
        proc, go_on = self.create_slowly()
        keeper = self.state()["pid"]
        proc.kill()
        proc.wait(TIMEOUT)
        go_on()
        self.assertEqual(self.ended(keeper), 137)
        self.assertEqual(self.state()["status"], "stopped")
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertNothingLeft()

    def test_told_to_end_before_the_start(self):
        """By a signal to the process that the pid file names."""
        pid = self.create(self.conf("sh", "-c", "echo ran"))
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.ended(pid), 137)
        self.assertEqual((self.state()["status"], self.said(self.out)), ("stopped", ""))
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertNothingLeft()

    def test_pid_file(self):
        """Where it cannot be written, nothing runs, and that is said."""
        self.create(self.conf("true"), "--pid-file", "/no/such/file", code=1)
        self.assertIn("/no/such/file", self.said(self.err))
        self.assertNothingLeft()
        pid = self.create(self.conf("sleep", "1000"))
        self.assertCode(self.oci("start", "c1"), 0)
        for options in ([], ["--detach"]):
            done = self.oci("exec", *options, "--pid-file", "/no/such/file", "c1", "sh", "-c", "echo ran > /tmp/ran")
            self.assertCode(done, 1)
            self.assertIn(b"/no/such/file", done.err)
        self.assertCode(self.oci("exec", "c1", "ls", "/tmp/ran"), 1)
        self.assertCode(self.oci("kill", "c1", "KILL"), 0)
        self.assertEqual(self.ended(pid), 137)

    def test_keeper_alone_holds_it(self):
        """Nobody that it started keeps it alive, or is taken for it."""
        pid = self.create(self.conf("sleep", "1000"))
        self.assertCode(self.oci("start", "c1"), 0)
        lock = os.stat(os.path.join(self.env["WARDER_RUN"], "oci", "c1", "lock"))
        holders = set()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                for fd in os.listdir("/proc/%s/fd" % entry):
                    st = os.stat("/proc/%s/fd/%s" % (entry, fd))
                    if (st.st_dev, st.st_ino) == (lock.st_dev, lock.st_ino):
                        holders.add(int(entry))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
        self.assertEqual(holders, {pid})

    def test_counted_by_its_policy(self):
        """What others see of it, and quotas count, is what its options come to."""
        conf = self.conf("sleep", "1000")
        del conf["linux"]["resources"]["memory"]
        conf["annotations"] = {"warder.policy": self.path("p.yaml", "tenant: t7\nlimits:\n  memory: 64M\n")}
        agent = subprocess.Popen([WARDER, "agent"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self._end, agent)
        wait_for("the agent", lambda: self.warder("ps").code == 0)
        self.create(conf)
        (row,) = [json.loads(line) for line in self.warder("ps", "--json").out.splitlines()]
        self.assertEqual((row["tenant"], row["memory"]), ("t7", 64 << 20))

    def test_workspace_of_its_policy(self):
        """One by name outlives the container; it lies below our state, where nothing else may be written to."""
        for said in ("one\n", "one\ntwo\n"):
            conf = self.conf("sh", "-c", "echo %s >> /workspace/f; cat /workspace/f" % said.split()[-1])
            conf["annotations"] = {"warder.policy": self.path("p.yaml", "workspace: name:w\n")}
            self.assertEqual(self.run_to_end(conf, 0), said)

    def test_life_cycle(self):
        """created (nothing of the payload has run), running, stopped; what each command says when it is not its time."""
        vol = idmapped(self, "vol")
        conf = self.conf("sh", "-c", "trap 'echo bye; exit 3' TERM; : > /vol/ran; while :; do sleep 0.1; done")
        conf["mounts"].append({"destination": "/vol", "type": "bind", "source": vol, "options": ["rbind", "rw"]})
        conf["annotations"] = {"some.key": "some \"value\""}
        pid = self.create(conf)
        state = self.state()
        self.assertEqual((state["status"], state["pid"], state["id"]), ("created", pid, "c1"))
        self.assertEqual((state["bundle"], state["annotations"]), (self.path("bundle"), conf["annotations"]))
        self.assertFalse(os.path.exists(os.path.join(vol, "ran")))
        self.assertCode(self.oci("exec", "c1", "true"), 1)
        self.assertCode(self.oci("start", "c1"), 0)
        self.assertEqual(self.state()["status"], "running")
        wait_for("the payload", lambda: os.path.exists(os.path.join(vol, "ran")))
        for wrong in (["start", "c1"], ["delete", "c1"], ["resume", "c1"], ["create", "-b", self.path("bundle"), "c1"],
                      ["kill", "c1", "NOSUCH"], ["state", "other"], ["delete", "other"], ["state", "../x"], ["state"],
                      ["nosuch", "c1"], ["update", "c1"]):
            self.assertCode(self.oci(*wrong), 1)
        self.assertCode(self.oci("delete", "--force", "other"), 0)
        self.assertCode(self.oci("kill", "c1", "TERM"), 0)
        self.assertEqual(self.ended(pid), 3)
        self.assertEqual(self.said(self.out), "bye\n")
        self.assertEqual((self.state()["status"], self.state()["pid"]), ("stopped", 0))
        self.assertCode(self.oci("kill", "c1", "TERM"), 1)
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertNothingLeft()
        events = self.record()
        self.assertInOrder(events, {"kind": "session.start", "sandbox": "c1"}, {"kind": "exec"}, {"kind": "session.stop"})

    def test_what_it_is(self):
        """Its own environment, directory, name, limits, streams; no right; /proc as asked for and ours."""
        conf = self.conf("sh", "-c", """
            echo "$WHO $HOME $(pwd) $(hostname) $(id -u) $(umask) $(ulimit -n) $(ulimit -Hn)"
            grep -h -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status
            cat /proc/version 2>/dev/null || echo masked
            ls /workspace /sys/kernel 2>/dev/null
            df -k /mnt/small | tail -1 | grep -c 1024
            : > /etc/made && echo wrote; echo oops >&2; exit 7""")
        conf["process"]["cwd"] = "/root"
        conf["process"]["user"]["umask"] = 0o77
        out = self.run_to_end(conf, 7)
        self.assertEqual(out.splitlines()[0], "me  /root box 0 0077 256 512")
        self.assertEqual(out.splitlines()[1:5], ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
                                                 "Seccomp:\t2"])
        self.assertEqual(out.splitlines()[5:], ["masked", "1", "wrote"])
        self.assertEqual(self.said(self.err), "oops\n")
        self.assertFalse(os.path.exists(os.path.join(self.root, "etc", "made")))

    def test_readonly(self):
        conf = self.conf("sh", "-c", "touch /etc/x; touch /tmp/x; touch /mnt/small/x && echo there")
        conf["root"]["readonly"] = True
        self.assertEqual(self.run_to_end(conf, 0), "there\n")
        self.assertEqual(self.said(self.err).count("Read-only"), 2)

    def test_other_user(self):
        """Root's files stay root's, also where the file system is shown as the payload's."""
        with open(os.path.join(self.root, "etc", "secret"), "w") as f:
            os.fchmod(f.fileno(), 0o600)
        conf = self.conf("sh", "-c", "id -u; cat /etc/secret; touch /etc/x; touch /tmp/x && echo tmp")
        conf["process"]["user"] = {"uid": 1234, "gid": 1234}
        self.assertEqual(self.run_to_end(conf, 0), "1234\ntmp\n")
        self.assertEqual(self.said(self.err).count("Permission denied"), 2)

    def test_refused(self):
        """What a sandbox does not give is named; nothing is left of the attempt."""
        def change(path, value):
            conf = copy.deepcopy(self.conf("true"))
            at = conf
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            return conf
        ns = self.conf("true")["linux"]["namespaces"]
        for path, value, word in (
                (["process", "capabilities", "bounding"], ["CAP_SYS_ADMIN"], "CAP_SYS_ADMIN"),
                (["linux", "namespaces"], [n for n in ns if n["type"] != "pid"], "'pid'"),
                (["linux", "namespaces"], [n for n in ns if n["type"] != "ipc"], "'ipc'"),
                (["linux", "namespaces"], ns + [{"type": "user"}], "'user'"),
                (["linux", "namespaces", 0], {"type": "pid", "path": "/proc/1/ns/pid"}, "'pid'"),
                (["linux", "namespaces", 1], {"type": "network", "path": "/proc/self/ns/net"}, "host's"),
                (["linux", "namespaces", 1], {"type": "network", "path": "/proc/self/ns/uts"}, "no network namespace"),
                (["linux", "namespaces", 1], {"type": "network", "path": "/etc/passwd"}, "no network namespace"),
                (["linux", "devices"], [{"path": "/dev/kmsg", "type": "c", "major": 1, "minor": 11}], "/dev/kmsg"),
                (["linux", "resources", "devices"], [{"allow": True, "access": "rwm"}], "devices"),
                (["linux", "resources", "cpu"], {"cpus": "0"}, "cpus"),
                (["linux", "uidMappings"], [{"containerID": 0, "hostID": 0, "size": 1}], "uidMappings"),
                (["linux", "sysctl"], {"kernel.core_pattern": "x"}, "kernel.core_pattern"),
                (["linux", "maskedPaths"], ["/etc/passwd"], "/etc/passwd"),
                (["linux", "rootfsPropagation"], "shared", "shared"),
                (["linux", "seccomp"], {"defaultAction": "SCMP_ACT_NOTIFY"}, "SCMP_ACT_NOTIFY"),
                (["hooks"], {"prestart": [{"path": "/bin/true"}]}, "hooks.prestart"),
                (["mounts"], [{"destination": "/x", "type": "bind", "source": "/run", "options": ["bind"]}], "/run"),
                (["mounts"], [{"destination": "/x", "type": "nfs", "source": "a:/b"}], "nfs"),
                (["mounts"], [{"destination": "/dev/x", "type": "tmpfs", "source": "tmpfs"}], "/dev"),
                (["mounts"], [{"destination": "/x", "type": "bind", "source": "/etc", "options": ["shared"]}], "shared"),
                (["annotations"], {"warder.nosuch": "1"}, "warder.nosuch"),
                (["annotations"], {"warder.policy": "no-such-policy"}, "no-such-policy"),
                (["process", "args"], ["nosuch"], "not found in $PATH"),
                (["process", "args"], ["/etc"], "no such file"),
                (["process", "terminal"], True, "console-socket"),
                (["process", "cwd"], "relative", "cwd"),
                (["ociVersion"], "2.0.0", "2.0.0"),
                (["root", "path"], "/", "whole host")):
            with self.subTest(word=word, path=path):
                self.create(change(path, value), code=1)
                self.assertIn(word, self.said(self.err))
                self.assertEqual(self.said(self.err).count("\n"), 1)
        self.create(self.conf("true"), "--preserve-fds", "1", code=1)
        self.assertIn("preserve-fds", self.said(self.err))
        self.assertNothingLeft()

    def test_log(self):
        """--log: what a sandbox does without is said there, never on the container's own stderr."""
        log = self.path("log")
        folder = self.bundle(self.conf("true"))
        self.create(self.conf("true"))
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertCode(self.oci("--log", log, "--log-format", "json", "create", "-b", folder, "c2"), 0)
        self.assertCode(self.oci("delete", "c2"), 0)
        self.assertCode(self.oci("--log", log, "--log-format", "json", "state", "c2"), 1)
        with open(log) as f:
            lines = [json.loads(line) for line in f]
        self.assertTrue(any("capabilities" in line["msg"] and line["level"] == "info" for line in lines))
        self.assertIn("does not exist", lines[-1]["msg"])
        self.assertEqual(lines[-1]["level"], "error")

    def test_exec(self):
        pid = self.create(self.conf("sleep", "1000"))
        self.assertCode(self.oci("start", "c1"), 0)
        done = self.oci("exec", "--env", "X=y", "c1", "sh", "-c", "cat; echo $X $WHO; echo e >&2; exit 9", input=b"in\n")
        self.assertEqual((done.code, done.out, done.err), (9, b"in\ny me\n", b"e\n"))
        done = self.oci("exec", "c1", "nosuch")
        self.assertEqual(done.code, 127)
        self.assertIn(b"not found in $PATH", done.err)
        process = self.conf("sh", "-c", "echo $$ $WHO; kill -TERM $$")["process"]
        done = self.oci("exec", "--process", self.path("p.json", json.dumps(process)), "c1")
        self.assertEqual((done.code, done.out.split()[1]), (143, b"me"))
        process["user"]["uid"] = 5
        done = self.oci("exec", "--process", self.path("p.json", json.dumps(process)), "c1")
        self.assertCode(done, 1)
        self.assertIn(b"user 5:0", done.err)
        # As conmon does it: it lets go, and waits for the process that the file names.
        process = self.conf("sh", "-c", "exit 11")["process"]
        self.assertCode(self.oci("exec", "--process", self.path("p.json", json.dumps(process)), "--detach", "--pid-file",
                                 self.path("xpid"), "c1"), 0)
        with open(self.path("xpid")) as f:
            self.assertEqual(self.ended(int(f.read())), 11)
        self.assertEqual(len(json.loads(self.oci("ps", "--format", "json", "c1").out)), 2)
        self.assertCode(self.oci("kill", "--all", "c1", "KILL"), 0)
        self.assertEqual(self.ended(pid), 137)
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertNothingLeft()

    def test_pause(self):
        pid = self.create(self.conf("sleep", "1000"))
        self.assertCode(self.oci("pause", "c1"), 1)
        self.assertCode(self.oci("start", "c1"), 0)
        self.assertCode(self.oci("pause", "c1"), 0)
        self.assertEqual(self.state()["status"], "paused")
        self.assertCode(self.oci("exec", "c1", "true"), 1)
        self.assertCode(self.oci("resume", "c1"), 0)
        self.assertEqual(self.state()["status"], "running")
        self.assertCode(self.oci("pause", "c1"), 0)
        self.assertCode(self.oci("kill", "c1", "KILL"), 0)
        self.assertEqual(self.ended(pid), 137)
        who = [field(e, "action.by") or json.dumps(e) for e in self.record() if e["kind"].startswith("action")]
        self.assertTrue(who)

    def test_terminal(self):
        """The master comes by the console socket; what is written to it is typed."""
        place = self.path("console")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(place)
            s.listen(1)
            s.settimeout(60)
            conf = self.conf("sh", "-c", "stty -echo; stty size; read x; echo got $x; test -t 2; exit $?")
            conf["process"]["terminal"] = True
            conf["process"]["consoleSize"] = {"height": 33, "width": 99}
            pid = self.create(conf, "--console-socket", place)
            peer, _ = s.accept()
            with peer:
                _, fds, _, _ = socket.recv_fds(peer, 256, 1)
        master = fds[0]
        self.addCleanup(os.close, master)
        self.assertCode(self.oci("start", "c1"), 0)
        os.write(master, b"hello\n")
        text = b""
        while b"got hello" not in text:
            text += os.read(master, 4096)
        self.assertIn(b"33 99", text)
        self.assertEqual(self.ended(pid), 0)

    def test_exec_with_a_terminal(self):
        """Of a size, also where nobody says one."""
        self.create(self.conf("sleep", "1000"))
        self.assertCode(self.oci("start", "c1"), 0)
        process = self.conf("stty", "size")["process"]
        process.update(terminal=True, consoleSize={"height": 0, "width": 0})
        place, wanted = self.path("console"), self.path("p.json", json.dumps(process))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(place)
            s.listen(1)
            s.settimeout(60)
            for argv in (["--tty", "c1", "stty", "size"], ["--process", wanted, "c1"]):
                self.assertCode(self.oci("exec", "--detach", "--console-socket", place, *argv), 0)
                peer, _ = s.accept()
                with peer:
                    _, (master,), _, _ = socket.recv_fds(peer, 256, 1)
                text = b""
                try:
                    while b"\n" not in text:
                        text += os.read(master, 4096)
                finally:
                    os.close(master)
                self.assertEqual(text.split(), [b"24", b"80"])

    def test_rule_kills(self):
        conf = self.conf("sh", "-c", "id forbidden; sleep 1000")
        conf["annotations"] = {"warder.rules": self.path("rules.yaml", KILLS), "warder.tenant": "t1"}
        pid = self.create(conf)
        self.assertCode(self.oci("start", "c1"), 0)
        self.assertEqual(self.ended(pid), 137)
        self.assertCode(self.oci("delete", "c1"), 0)
        events = self.record()
        self.assertEqual([field(e, "rule.name") for e in events if e["kind"] == "rule.alert"], ["nothing is id"])
        stop = [e for e in events if e["kind"] == "session.stop"][-1]
        self.assertEqual((field(stop, "session.tenant") or stop["tenant"], "rule" in json.dumps(stop)), ("t1", True))
        self.assertNothingLeft()

    def test_network_of_others(self):
        """A prepared namespace is joined; settings of it are set in it."""
        with NetNS() as net:
            server = net.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.addCleanup(server.close)
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            server.settimeout(60)
            conf = self.conf("sh", "-c", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start; echo over | nc 127.0.0.1 %d"
                             % server.getsockname()[1])
            conf["linux"]["namespaces"][1]["path"] = net.file
            conf["linux"]["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "7"}
            pid = self.create(conf)
            self.assertCode(self.oci("start", "c1"), 0)
            peer, _ = server.accept()
            with peer:
                self.assertEqual(peer.recv(64), b"over\n")
            self.assertEqual(self.ended(pid), 0)
            self.assertEqual(self.said(self.out), "7\n")
            self.assertCode(self.oci("delete", "c1"), 0)
        self.assertTrue([e for e in self.record() if e["kind"] == "net.connect"])

    def test_seccomp_of_theirs(self):
        conf = self.conf("sh", "-c", "mkdir /tmp/x; echo $?")
        conf["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
                                    "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO",
                                                  "errnoRet": 71}]}
        self.assertEqual(self.run_to_end(conf, 0), "1\n")
        self.assertIn("Protocol error", self.said(self.err))

    def test_deleted_before_the_start(self):
        pid = self.create(self.conf("sh", "-c", "echo ran"))
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertEqual(self.ended(pid), 137)
        self.assertEqual(self.said(self.out), "")
        self.assertNothingLeft()
        self.assertEqual(len([e for e in self.record() if e["kind"] == "session.stop"]), 1)

    def test_keeper_killed(self):
        """The sandbox goes with it, and delete removes the rest."""
        pid = self.create(self.conf("sleep", "1000"))
        self.assertCode(self.oci("start", "c1"), 0)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.ended(pid), -signal.SIGKILL)
        wait_for("it to count as stopped", lambda: self.state()["status"] == "stopped")
        self.assertCode(self.oci("delete", "c1"), 0)
        self.assertNothingLeft()

    def test_seen_by_an_agent(self):
        """ps shows it by its name, exec goes into it, kill ends it."""
        agent = subprocess.Popen([WARDER, "agent"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self._end, agent)
        wait_for("the agent", lambda: self.warder("ps").code == 0)
        pid = self.create(self.conf("sleep", "1000"), id="from-outside")
        self.assertCode(self.oci("start", "from-outside"), 0)
        self.assertIn(b"from-outside", self.warder("ps").out)
        done = self.warder("exec", "from-outside", "--", "sh", "-c", "echo $WHO")
        self.assertEqual((done.code, done.out), (0, b"me\n"))
        self.assertCode(self.warder("kill", "from-outside"), 0)
        self.assertEqual(self.ended(pid), 137)

    def test_features(self):
        features = json.loads(self.oci("features").out)
        self.assertEqual(features["hooks"], [])
        self.assertIn("network", features["linux"]["namespaces"])
        self.assertIn(b"warder-oci version", self.oci("--version").out)
        self.assertCode(self.warder("oci", "features"), 0)


class Podman(Oci):
    """Debian's podman, with storage and control groups of the test's own."""

    def setUp(self):
        super().setUp()
        need("podman", "conmon")
        # Podman hands no variable of ours on.
        wrapper = self.path("wrapper", "#!/bin/sh\nexport %s\nexec %s \"$@\"\n" % (
            " ".join("WARDER_%s='%s'" % (n, self.env["WARDER_" + n]) for n in ("STATE", "RUN", "CONFIG")), self.program))
        os.chmod(wrapper, 0o755)
        store = self.path("p")
        self.base = ["podman", "--root", store + "/root", "--runroot", store + "/run", "--tmpdir", store + "/tmp",
                     "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--runtime", wrapper]
        self.parent = "oci-test-%d" % os.getpid()  # no name that is taken for one of ours
        self.addCleanup(self.remove_cgroups)
        self.addCleanup(self.podman, "rm", "--all", "--force")
        root = self.path("root")
        make_root(root)
        self.assertCode(cmd("tar", "-C", root, "-cf", self.path("root.tar"), "."), 0)
        done = self.podman("import", self.path("root.tar"), "box")
        if done.code:
            raise unittest.SkipTest("podman cannot keep an image here: %s" % done.err.decode()[-200:].strip())

    def remove_cgroups(self):
        for mount in cgroup_mounts():
            for folder, _, _ in os.walk(os.path.join(mount, self.parent), topdown=False):
                wait_for("conmon to leave %s" % folder, lambda: self.rmdir(folder), 60)

    @staticmethod
    def rmdir(folder):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    def podman(self, *argv, **kw):
        return cmd(*self.base, *argv, env=self.env, **kw)

    def run_box(self, *argv, **kw):
        return self.podman("run", "--network", "none", "--cgroup-parent", "/" + self.parent, "--ulimit", "nofile=512:512",
                           *argv, **kw)

    def test_run(self):
        vol = idmapped(self, "vol")
        done = self.run_box("--rm", "-i", "-v", vol + ":/vol", "--hostname", "box", "--env", "A=b", "--memory", "128m", "box",
                            "sh", "-c", "cat; echo $A $(hostname); echo kept > /vol/f; echo e >&2; exit 5", input=b"in\n")
        self.assertEqual((done.code, done.out, done.err), (5, b"in\nb box\n", b"e\n"))
        with open(os.path.join(vol, "f")) as f:
            self.assertEqual(f.read(), "kept\n")
        self.assertEqual(self.run_box("--rm", "box", "nosuch").code, 127)
        done = self.run_box("--rm", "--privileged", "box", "true")
        self.assertEqual(done.code, 126)
        self.assertIn(b"--privileged", done.err)
        self.assertEqual(self.podman("ps", "-aq").out, b"")
        self.assertNothingLeft()

    def test_detached(self):
        """-d, logs, exec, pause, stop with the payload's own end, kill, rm; the name is what podman shows."""
        done = self.run_box("-d", "--name", "d1", "box", "sh", "-c",
                            "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done")
        self.assertCode(done, 0)
        short = done.out.decode().strip()[:12]
        wait_for("its output", lambda: b"up" in self.podman("logs", "d1").out)
        done = self.podman("exec", "-i", "d1", "sh", "-c", "cat; exit 9", input=b"typed\n")
        self.assertEqual((done.code, done.out), (9, b"typed\n"))
        self.assertEqual(self.podman("exec", "d1", "nosuch").code, 127)
        self.assertCode(self.podman("pause", "d1"), 0)
        self.assertCode(self.podman("unpause", "d1"), 0)
        self.assertIn(short.encode(), self.warder("status").out)
        self.assertCode(self.podman("stop", "-t", "60", "d1"), 0)
        self.assertIn(b"bye", self.podman("logs", "d1").out)
        self.assertEqual(self.podman("inspect", "d1", "--format", "{{.State.ExitCode}}").out, b"3\n")
        self.assertCode(self.podman("rm", "d1"), 0)
        self.assertCode(self.run_box("-d", "--name", "d2", "box", "sleep", "1000"), 0)
        self.assertCode(self.podman("kill", "d2"), 0)
        self.assertEqual(self.podman("wait", "d2").out, b"137\n")
        self.assertCode(self.podman("rm", "-f", "d2"), 0)
        self.assertNothingLeft()

    def test_rule_kills(self):
        rules = self.path("rules.yaml", KILLS)
        done = self.run_box("--rm", "--annotation", "warder.rules=" + rules, "box", "sh", "-c", "id forbidden; sleep 1000")
        self.assertEqual(done.code, 137)
        events = self.record()
        self.assertIn("nothing is id", [field(e, "rule.name") for e in events])
        self.assertNothingLeft()

    def test_network_of_podmans(self):
        """By path, as with podman's own networks."""
        with NetNS() as net:
            server = net.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.addCleanup(server.close)
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            server.settimeout(60)
            argv = ["run", "--rm", "--network", "ns:" + net.file, "--cgroup-parent", "/" + self.parent, "--ulimit",
                    "nofile=512:512", "box", "sh", "-c", "echo over | nc 127.0.0.1 %d" % server.getsockname()[1]]
            proc = subprocess.Popen([*self.base, *argv], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT)
            self.addCleanup(self._end, proc)
            peer, _ = server.accept()
            with peer:
                self.assertEqual(peer.recv(64), b"over\n")
            out, _ = proc.communicate(timeout=TIMEOUT)
            self.assertEqual((proc.returncode, out), (0, b""))
        self.assertNothingLeft()


if __name__ == "__main__":
    unittest.main()
