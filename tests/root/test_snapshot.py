# SPDX-License-Identifier: Apache-2.0
"""snapshot and restore: the same files, whose they are, who may, and that nothing half made is ever there."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase
from warder import *

need_root()

LIST = r"""cd / && find workspace tmp var/tmp -mindepth 1 -printf '%p %y %m %u %l %n ' \
 '(' -type d -printf '\n' -o -type l -printf '\n' -o -printf '%s %T@\n' ')' | sort"""
FILL = r"""set -e; cd /workspace; mkdir -p d/e; echo text > d/e/f; chmod 640 d/e/f; ln d/e/f hard; ln -s /etc/passwd soft
mkfifo pipe; truncate -s 300M sparse; echo end >> sparse; echo t > /tmp/t; echo v > /var/tmp/v; chmod 700 d; echo s > /run/s
touch -d 2001-02-03T04:05:06 d/e/f"""


class Snapshot(AgentCase):
    def inside(self, box, script):
        done = self.warder("exec", box, "sh", "-c", script)
        self.assertCode(done, 0)
        return done.out

    def rows(self, *options):
        done = self.warder("snapshot", "list", "--json", *options)
        self.assertCode(done, 0)
        return [json.loads(line) for line in done.out.splitlines()]

    def kept(self, name, tenant="default"):
        return os.path.join(self.path("state"), "snapshots", tenant, name)

    def tenant_dir(self):
        return sorted(n for n in os.listdir(self.kept("", "default")) if n != ".lock")

    def test_the_same_files(self):
        self.start()
        box = self.create("--name", "box")
        self.inside("box", FILL)
        before = self.inside("box", LIST)
        done = self.warder("snapshot", "box", "first", "--json")
        self.assertCode(done, 0)
        row = json.loads(done.out)
        self.assertEqual((row["snapshot"], row["tenant"], row["session"], row["sandbox"]), ("first", "default", box, "box"))
        self.assertEqual(self.rows(), [row])
        archive = os.path.join(self.kept("first"), "files.tar.zst")
        with open(archive, "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).hexdigest(), row["sha256"])
        self.assertEqual(os.stat(archive).st_mode & 0o777, 0o600)
        self.assertLess(row["stored"], 1 << 20)  # holes stay holes
        # It goes on, and what it does then is not in the snapshot.
        self.inside("box", "echo later > /workspace/later; rm /workspace/hard")
        new = self.warder("restore", "first", "--name", "again").out.decode().strip()
        self.assertEqual(self.inside("again", LIST), before)
        self.assertEqual(self.inside("again", "cat /workspace/d/e/f /tmp/t /var/tmp/v; tail -c 4 /workspace/sparse; ls /run"),
                         b"text\nt\nv\nend\n")
        # Its payload can do with them what it likes, and they count against its limits.
        self.inside("again", "echo more >> /workspace/d/e/f; rm -r /workspace/d /tmp/t; df /workspace | grep -q /workspace")
        for session in (box, new):
            self.assertCode(self.warder("rm", session), 0)
            self.wait_sealed(session)
            self.assertCode(self.warder("verify", self.bundle(session)), 0)
        taken = [e for e in self.events(box) if e["kind"] == "session.snapshot"]
        given = [e for e in self.events(new) if e["kind"] == "session.restore"]
        self.assertEqual([e["snapshot"]["sha256"] for e in taken + given], [row["sha256"]] * 2)
        self.assertEqual((taken[0]["outcome"], given[0]["snapshot"]["session"]), ("success", box))
        self.assertRegex(taken[0]["snapshot"]["who"], "^uid 0, pid [0-9]+")
        # Filling it is nothing that its payload did.
        self.assertFalse([e for e in self.events(new) if e["kind"].startswith("file.") and "/d/e/f" in e["file"].get("path", "")
                          and e["seq"] < given[0]["seq"]])
        self.assertCode(self.warder("snapshot", "rm", "first"), 0)
        self.assertEqual((self.rows(), self.tenant_dir()), ([], []))

    def test_run_from_without_an_agent(self):
        self.start()
        self.create("--name", "box")
        self.inside("box", "echo kept > f")
        self.assertCode(self.warder("snapshot", "box", "s"), 0)
        self.end_agent()
        done = self.warder("run", "--quiet", "--from", "s", "--", "sh", "-c", "cat f; id -u; stat -c %u f")
        self.assertEqual((done.code, done.out), (0, b"kept\n1000\n1000\n"), done)

    def test_named_workspace_and_host_directory(self):
        self.start()
        self.create("--name", "box", "--workspace", "name:w")
        self.inside("box", "echo mine > f; chmod 600 f")
        self.assertCode(self.warder("snapshot", "box", "s"), 0)
        done = self.warder("run", "--quiet", "--from", "s", "--", "sh", "-c", "cat f; stat -c '%u %a' f")
        self.assertEqual((done.code, done.out), (0, b"mine\n1000 600\n"), done)
        done = self.warder("run", "--from", "s", "--workspace", "name:w2", "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "--workspace")
        host = self.path("host")
        os.mkdir(host)
        self.create("--name", "open", "--workspace", host)
        done = self.warder("snapshot", "open", "t")
        self.assertCode(done, 125)
        self.assertOneLine(done, "directory of the host")

    def test_refused(self):
        self.start()
        self.create("--name", "box")
        self.assertCode(self.warder("snapshot", "box", "s"), 0)
        for argv, words in ((["snapshot", "box", "s"], "there already"), (["snapshot", "box", "../s"], "letters"),
                            (["snapshot", "nobody", "x"], "no running sandbox"), (["snapshot", "box"], "expected"),
                            (["snapshot", "rm", "x"], "no snapshot 'x'"), (["restore", "x"], "no snapshot 'x'"),
                            (["snapshot", "rm", "../default"], "letters"), (["restore"], "which"),
                            (["run", "--from", "x", "--tenant", "other", "--", "true"], "no snapshot 'x'")):
            with self.subTest(argv):
                done = self.warder(*argv)
                self.assertCode(done, 125)
                self.assertOneLine(done, words)
        self.assertEqual(self.tenant_dir(), ["s"])
        self.assertEqual(self.inside("box", "echo on"), b"on\n")  # nobody stands still after all that

    def test_other_bytes_are_not_restored(self):
        self.start()
        self.create("--name", "box")
        self.inside("box", "head -c 100000 /dev/urandom > f")
        self.assertCode(self.warder("snapshot", "box", "s"), 0)
        archive = os.path.join(self.kept("s"), "files.tar.zst")
        with open(archive, "r+b") as f:
            f.seek(50000)
            c = f.read(1)
            f.seek(50000)
            f.write(bytes([c[0] ^ 1]))
        done = self.warder("restore", "s")
        self.assertCode(done, 125)
        self.assertOneLine(done, "snapshot")
        with open(archive, "r+b") as f:
            f.truncate(60000)
        done = self.warder("restore", "s")
        self.assertCode(done, 125)
        self.assertOneLine(done, "damaged")
        wait_for("their end", lambda: len(self.ps()) == 1)

    def test_no_room(self):
        self.start()
        self.create("--name", "box")
        self.inside("box", "head -c 9M /dev/urandom > f")
        self.assertCode(self.warder("snapshot", "box", "s"), 0)
        done = self.warder("restore", "s", "--disk", "4M")
        self.assertCode(done, 125)
        self.assertOneLine(done, "no room", "--disk")
        wait_for("its end", lambda: len(self.ps()) == 1)

    def test_a_paused_one_stays_so(self):
        self.start()
        self.create("--name", "box")
        self.inside("box", "echo x > f")
        self.assertCode(self.warder("pause", "box"), 0)
        wait_for("frozen", lambda: self.ps()[0]["state"] == "frozen")
        self.assertCode(self.warder("snapshot", "box", "s"), 0)
        with open(os.path.join(self.leaf(), "cgroup.freeze")) as f:
            self.assertEqual(f.read(), "1\n")
        self.assertCode(self.warder("resume", "box"), 0)
        self.assertEqual(self.inside("box", "cat f"), b"x\n")

    def leaf(self):
        session = self.ps()[0]["session"]
        found = [c.partition(" ")[2] for c in own_cgroups() if c.endswith(session)]
        return [c for c in found if os.path.exists(c + "/cgroup.freeze")][0]

    def pack(self):
        """The process that packs, if it is there."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/comm" % pid) as f:
                    if f.read() != "warder-pack\n":
                        continue
                with open("/proc/%s/status" % pid) as f:
                    parent = [line.split()[1] for line in f if line.startswith("PPid:")][0]
                if int(parent) in sum(self.keepers().values(), []):
                    return int(pid)
            except OSError:
                continue
        return None

    def begin(self, name):
        """A snapshot that is under way: the process that packs it stands still."""
        box = self.create("--name", "box", "--disk", "512M")
        self.inside("box", "head -c 200M /dev/urandom > f")
        for _ in range(20):
            p = subprocess.Popen([WARDER, "snapshot", "box", name], env=self.env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
            self.addCleanup(self._end, p)
            pid = wait_for("the packing", lambda: self.pack() or p.poll() is not None)
            if pid is not True and self.stop(pid):
                return box, p, pid
            self.assertEqual(p.wait(60), 0)  # it was quicker than we
            self.assertCode(self.warder("snapshot", "rm", name), 0)
        self.fail("it was always quicker than we")

    @staticmethod
    def stop(pid):
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return False
        return is_alive(pid)

    def test_the_keeper_is_killed(self):
        self.start()
        box, p, _ = self.begin("half")
        for pids in self.keepers().values():
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(p.wait(60), 125)
        wait_for("it to be swept", lambda: not self.ps())
        wait_for("its control groups to go", lambda: not any(box in c for c in own_cgroups()))
        self.assertEqual(self.rows(), [])
        done = self.warder("restore", "half")
        self.assertCode(done, 125)
        # What it had begun goes with the next one.
        self.create("--name", "next")
        self.assertCode(self.warder("snapshot", "next", "whole"), 0)
        self.assertEqual(self.tenant_dir(), ["whole"])

    def test_who_packs_is_killed(self):
        self.start()
        _, p, pid = self.begin("half")
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(p.wait(60), 125)
        self.assertIn(b"was killed", p.stderr.read())
        self.assertEqual((self.rows(), self.tenant_dir()), ([], []))
        self.assertEqual(self.inside("box", "echo on"), b"on\n")

    def test_a_full_disk(self):
        # What the state lies on is small: a tmpfs of its own.
        os.mkdir(self.path("state"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "warder-test", self.path("state")], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("state")], check=True)
        self.start()
        session = self.create("--name", "box")
        self.inside("box", "head -c 40M /dev/urandom > f")
        done = self.warder("snapshot", "box", "s")
        self.assertCode(done, 125)
        self.assertOneLine(done, "no space left")
        self.assertEqual((self.rows(), self.tenant_dir()), ([], []))
        self.assertEqual(self.inside("box", "echo on"), b"on\n")
        self.assertCode(self.warder("rm", "box"), 0)
        self.wait_sealed(session)
        failed = [e for e in self.events(session) if e["kind"] == "session.snapshot"]
        self.assertEqual([(e["outcome"], e["snapshot"]["name"]) for e in failed], [("failure", "s")])


class Tenants(AgentCase):
    UID = 23457

    def test_only_its_own(self):
        import grp
        run = tempfile.mkdtemp(prefix="warder-agent-", dir="/tmp")
        self.addCleanup(shutil.rmtree, run, ignore_errors=True)
        os.chmod(run, 0o711)
        self.env["WARDER_RUN"] = os.path.join(run, "run")
        group = [g for g in grp.getgrall() if not g.gr_mem and g.gr_gid][0]
        self.start("tenants:\n  them: { groups: ['%s'] }\n" % group.gr_name)

        def other(*argv):
            return cmd("setpriv", "--reuid", str(self.UID), "--regid", str(group.gr_gid), "--clear-groups", WARDER, *argv,
                       env=self.env)
        self.create("--name", "box")
        self.assertCode(self.warder("snapshot", "box", "ours"), 0)
        self.assertCode(other("create", "--name", "box2"), 0)
        self.assertCode(other("snapshot", "box2", "theirs"), 0)
        done = other("snapshot", "box", "x")
        self.assertCode(done, 125)
        self.assertOneLine(done, "no running sandbox")
        done = other("snapshot", "list", "--json")
        self.assertEqual([json.loads(line)["snapshot"] for line in done.out.splitlines()], ["theirs"])
        for argv in (["restore", "ours"], ["snapshot", "rm", "ours"], ["create", "--from", "ours"]):
            done = other(*argv)
            self.assertCode(done, 125)
            self.assertOneLine(done, "no snapshot 'ours'")
        self.assertCode(other("restore", "theirs", "--name", "back"), 0)
        self.assertCode(other("snapshot", "rm", "theirs"), 0)
        done = self.warder("snapshot", "list", "--json")
        self.assertEqual([json.loads(line)["snapshot"] for line in done.out.splitlines()], ["ours"])


if __name__ == "__main__":
    unittest.main()
