# SPDX-License-Identifier: Apache-2.0
"""What a sandbox left in its workspace, told in the record."""

import hashlib
import json
import os
import stat
import subprocess
import sys
import unittest

from warder import *


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Workspace(TestCase):
    def shared(self):
        path = self.path("ws")
        os.mkdir(path)
        os.chmod(path, 0o755)
        return path

    def changes(self, s):
        return {e["file"]["path"]: e["file"] for e in s.kinds("workspace.change")}

    def scan(self, s):
        return s.kinds("workspace.scan")[-1]["workspace"]

    def test_the_operators_directory(self):
        ws = self.shared()
        for name, text in (("kept", "k"), ("changed", "old"), ("gone", "g"), ("script", "#!"), ("touched", "t")):
            with open(os.path.join(ws, name), "w") as f:
                f.write(text)
        s = self.session("sh", "-c", "echo new > changed; touch -d 2001-01-01 changed; rm gone; chmod 755 script; "
                         "touch touched; mkdir d; echo x > d/new; ln -s /etc/passwd link; mkfifo pipe; mv d e",
                         options=("--workspace", ws))
        self.assertCode(s, 0)
        self.assertIntact(s)
        c = self.changes(s)
        self.assertEqual(sorted(c), ["/workspace/" + n for n in
                                     ("changed", "e", "e/new", "gone", "link", "pipe", "script")])
        f = c["/workspace/changed"]
        self.assertEqual((f["change"], f["sha256"], f["sha256_before"], f["size"], f["size_before"]),
                         ("changed", sha(b"new\n"), sha(b"old"), 4, 3))
        self.assertEqual(f["host_path"], os.path.join(ws, "changed"))
        f = c["/workspace/gone"]
        self.assertEqual((f["change"], f["sha256_before"]), ("deleted", sha(b"g")))
        self.assertNotIn("sha256", f)
        f = c["/workspace/script"]
        self.assertEqual((f["change"], f["executable"], f["executable_before"]), ("changed", True, False))
        f = c["/workspace/e/new"]
        self.assertEqual((f["change"], f["sha256"], f["size"]), ("created", sha(b"x\n"), 2))
        self.assertEqual((c["/workspace/link"]["type"], c["/workspace/link"]["target"]), ("symlink", "/etc/passwd"))
        self.assertEqual(c["/workspace/pipe"]["type"], "fifo")
        w = self.scan(s)
        self.assertEqual((w["created"], w["changed"], w["deleted"], w["when"]), (4, 2, 1, "stop"))
        self.assertNotIn("why", w)

    def test_its_own(self):
        s = self.session("sh", "-c", "echo hi > a; mkdir d; chmod 000 d; echo s > b; chmod 000 b")
        c = self.changes(s)
        self.assertEqual(sorted(c), ["/workspace/a", "/workspace/b", "/workspace/d"])
        self.assertEqual((c["/workspace/a"]["change"], c["/workspace/a"]["sha256"]), ("created", sha(b"hi\n")))
        self.assertEqual(c["/workspace/b"]["sha256"], sha(b"s\n"))

    def test_what_is_not_compared_is_stated(self):
        """The sandbox's own places, gone with it: every one that it can write to is compared, or named as not."""
        s = self.session("sh", "-c", "awk '$4 ~ /^rw/ { print $2 }' /proc/self/mounts | sort -u | "
                         "while read p; do test -d $p && touch $p/x 2>/dev/null && echo $p; done; true")
        with open(os.path.join(s.dir, "manifest.json")) as f:
            stated = json.load(f)["summary"]["not_compared"]
        writable = s.out.decode().split()
        self.assertIn("/tmp", writable)
        self.assertEqual(set(writable) - set(stated), {"/workspace"})
        self.assertEqual(self.scan(s)["places"], ["/workspace"])

    def test_killed_and_short_lived(self):
        s = self.session("sh", "-c", "echo hi > a; unshare -m true; sleep 60")
        self.assertCode(s, 137)
        self.assertIn("/workspace/a", self.changes(s))
        s = self.session("true")
        self.assertEqual(self.scan(s)["created"], 0)

    def test_writable_places(self):
        rw, one = self.shared(), self.path("one", "before")
        os.chmod(one, 0o666)
        s = self.session("sh", "-c", "echo x > /data/new; echo after > /data-file",
                         options=("--rw", rw + ":/data", "--rw", one + ":/data-file"))
        self.assertCode(s, 0)
        c = self.changes(s)
        self.assertEqual(c["/data/new"]["change"], "created")
        self.assertEqual((c["/data-file"]["change"], c["/data-file"]["sha256"]), ("changed", sha(b"after\n")))
        self.assertEqual(sorted(self.scan(s)["places"]), ["/data", "/data-file", "/workspace"])

    def test_hostile_tree(self):
        """No link is followed, nothing blocks, names of all bytes survive, and what is left out is counted."""
        secret = self.path("outside", "not to be read")
        ws = self.shared()
        s = self.session(PYTHON_IN_SANDBOX, "-c", r"""
import os
os.symlink(%r, "link"); os.symlink("/", "root"); os.symlink("loop", "loop")
os.mkfifo("pipe")
with open("sparse", "wb") as f: f.truncate(1 << 40)
name = bytes(b for b in range(1, 256) if b != ord("/"))
open(name[:200], "w").close(); open(name[200:], "w").close()
os.link("pipe", "pipe2")
deep = b"."
for i in range(100):
    deep += b"/" + b"d" * 30
    os.mkdir(deep)
""" % secret, options=("--workspace", ws, "--fsize", "0", "--timeout", "60s"))
        self.assertCode(s, 0)
        c = self.changes(s)
        self.assertEqual(c["/workspace/link"]["target"], secret)
        self.assertNotIn("sha256", c["/workspace/link"])
        self.assertFalse([p for p in c if p.startswith("/workspace/root/")])
        self.assertEqual((c["/workspace/sparse"]["size"], c["/workspace/sparse"]["unhashed"]), (1 << 40, "size"))
        raw = [e for e in s.kinds("workspace.change") if "raw" in e]
        self.assertEqual(len(raw), 2)
        w = self.scan(s)
        self.assertIn("depth", w["why"])
        self.assertGreater(w["skipped"], 0)
        self.assertEqual(s.verify().code, 0)

    def test_many_files(self):
        s = self.session(PYTHON_IN_SANDBOX, "-c", """
import os
for i in range(30000):
    os.close(os.open("f%d" % i, os.O_CREAT | os.O_WRONLY))
""", options=("--timeout", "100s", "--memory", "2G"))
        self.assertCode(s, 0)
        w = self.scan(s)
        self.assertEqual(w["created"], 30000)
        self.assertEqual(w["skipped"], 30000 - len(s.kinds("workspace.change")))
        self.assertIn("changes", w["why"])

    @staticmethod
    def write(path, data):
        with open(path, "wb") as f:
            f.write(data)

    def both(self, s, code):
        """What both verifiers say."""
        here = os.path.join(SRC, "tests", "store", "verify.py")
        self.assertCode(cmd(sys.executable, here, s.dir), code)
        done = s.verify()
        self.assertCode(done, code)
        return done.out

    def test_texts(self):
        ws = self.shared()
        with open(os.path.join(ws, "t"), "w") as f:
            f.write("one\ntwo\n")
        s = self.session("sh", "-c", r"echo one > t; printf 'a\0b' > binary; echo new > n",
                         options=("--workspace", ws, "--keep-texts"))
        c = self.changes(s)
        blobs = os.path.join(s.dir, "blobs")

        def kept(name):
            with open(os.path.join(blobs, name), "rb") as f:
                data = f.read()
            self.assertEqual(sha(data), name)
            return data

        self.assertEqual(kept(c["/workspace/t"]["text_before"]), b"one\ntwo\n")
        self.assertEqual(kept(c["/workspace/t"]["text"]), b"one\n")
        self.assertEqual(kept(c["/workspace/n"]["text"]), b"new\n")
        self.assertNotIn("text", c["/workspace/binary"])
        self.assertEqual(stat.S_IMODE(os.stat(blobs).st_mode), 0o700)
        self.both(s, 0)
        with open(os.path.join(blobs, "0" * 64), "w"):
            pass  # nobody names it
        self.both(s, 0)
        path = os.path.join(blobs, c["/workspace/n"]["text"])
        for hurt in (lambda: os.rename(path, path + "x"), lambda: os.symlink(path + "x", path),
                     lambda: os.mkdir(path), lambda: os.mkfifo(path), lambda: self.write(path, b"new\n\n"),
                     lambda: self.write(path, b"x" * 70000), lambda: self.write(path, b"")):
            hurt()
            self.assertIn(b"altered: blobs/" + c["/workspace/n"]["text"].encode(), self.both(s, 1))
            if os.path.lexists(path):
                (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        os.rename(path + "x", path)
        self.both(s, 0)
        os.rename(blobs, blobs + ".away")
        os.symlink(blobs + ".away", blobs)
        self.both(s, 1)
        s = self.session("sh", "-c", "echo x > t", options=("--workspace", ws))
        self.assertNotIn("text", self.changes(s)["/workspace/t"])
        self.assertFalse(os.path.exists(os.path.join(s.dir, "blobs")))

    def test_on_demand(self):
        proc, finish = self.start_session("sh", "-c", "echo hi > a; echo ready; read x; rm a", stdin=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        folder = self.path("s1/session")
        done = self.warder("diff", "--workspace", folder)
        self.assertCode(done, 1)
        self.assertIn(b"+ /workspace/a ", done.out)
        done = self.warder("diff", "--workspace", "--json", folder)
        self.assertEqual(done.out.count(b"\n"), 2)
        s = finish(b"\n")
        self.assertEqual([e["workspace"]["when"] for e in s.kinds("workspace.scan")],
                         ["demand", "demand", "stop"])
        done = self.warder("diff", "--workspace", s.dir)
        self.assertNotIn(b"/workspace/a ", done.out)

    def test_off(self):
        proc, finish = self.start_session("sh", "-c", "echo ready; read x", stdin=subprocess.PIPE,
                                          options=("--no-workspace-diff",))
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        done = self.warder("diff", "--workspace", self.path("s1/session"))
        self.assertOneLine(done, "started with --no-workspace-diff")
        finish(b"\n")
        s = self.session("sh", "-c", "echo hi > a", options=("--no-workspace-diff",))
        self.assertEqual(s.kinds("workspace.scan", "workspace.change"), [])
        done = self.warder("diff", "--workspace", s.dir)
        self.assertCode(done, 125)


if __name__ == "__main__":
    unittest.main()
