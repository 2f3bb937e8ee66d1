# SPDX-License-Identifier: Apache-2.0
"""The view from inside a gVisor sandbox: what the payload did is what the record says, with `vantage: guest`, no more
and no less; and rules judge it as they judge any other."""

import os
import unittest

from gvisor import GvisorCase, each_runsc
from warder import *

need_root()

SHELL = r"""
echo one > /workspace/a
echo two >> /workspace/a
cat /workspace/a > /workspace/b
/bin/mkdir /workspace/d
/bin/mv /workspace/b /workspace/d/c
/bin/rm /workspace/a
/bin/nosuch
exit 3
"""

PYTHON = r"""
import os, socket, subprocess
with open("/workspace/x", "w") as f:
    f.write("y" * 10)
    f.flush()
    f.write("z" * 5)
s = socket.socket()
s.settimeout(5)
try:
    s.connect(("127.0.0.1", 81))
except OSError:
    pass
l = socket.socket()
l.bind(("0.0.0.0", 8080))
l.listen()
u = socket.socket(socket.AF_UNIX)
u.bind("/workspace/u")
u.listen()
c = socket.socket(socket.AF_UNIX)
c.connect("/workspace/u")
u.accept()
subprocess.run(["/bin/true", "a b", ""], check=True)
os.makedirs("/workspace/m/n")
os.rename("/workspace/x", "/workspace/m/n/x")
os.chmod("/workspace/m/n/x", 0o600)
os.truncate("/workspace/m/n/x", 3)
os.chdir("/workspace/m")
os.symlink("../x", "n/s")
d = os.open("n", os.O_RDONLY)
os.link("x", "/workspace/h", src_dir_fd=d)
os.unlink("x", dir_fd=d)
def question(name):
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0\3" + name + b"\7example\0\0\1\0\1"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.sendto(b"to nobody", ("127.0.0.1", 5000))
u.sendto(question(b"one"), ("127.0.0.1", 53))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.connect(("127.0.0.1", 53))
u.send(question(b"two"))
"""


class Guest(GvisorCase):
    def acts(self, s):
        """By their times: one that the host's kernel did not see at the call's end is told after others."""
        return sorted(s.kinds("file.mkdir", "file.rename", "file.delete", "file.attr", "file.link"), key=lambda e: e["mono"])

    def of_guest(self, s, *kinds):
        return [e for e in s.events if e["kind"] in kinds and e.get("vantage") == "guest"]

    def test_shell(self):
        s = self.session("sh", "-c", SHELL)
        self.assertEqual(s.code, 3, s)
        execs = [(os.path.basename(e["proc"].get("exe", "")), e["proc"]["args"]) for e in self.of_guest(s, "exec")
                 if e["outcome"] == "success"]
        self.assertEqual([x[1] for x in execs], [
            ["sh", "-c", SHELL],
            ["cat", "/workspace/a"],
            ["/bin/mkdir", "/workspace/d"],
            ["/bin/mv", "/workspace/b", "/workspace/d/c"],
            ["/bin/rm", "/workspace/a"],
        ])
        self.assertEqual([x[0] for x in execs][1:], ["cat", "mkdir", "mv", "rm"])
        failed = [e["exec"]["path"] for e in self.of_guest(s, "exec") if e["outcome"] == "failure"]
        self.assertEqual(failed, ["/bin/nosuch"])
        opens = [(e["file"]["path"], e["file"].get("write", False)) for e in self.of_guest(s, "file.open")]
        self.assertEqual(opens, [("/workspace/a", True), ("/workspace/a", True), ("/workspace/b", True)])
        wrote = {}
        for e in self.of_guest(s, "file.write"):
            wrote.setdefault(e["file"]["path"], 0)
            wrote[e["file"]["path"]] += e["file"]["bytes"] if e["file"]["op"] == "first" else 0
        self.assertEqual(wrote["/workspace/a"], 8)
        # Names that the guest's kernel does not tell come from the host's, who it was from the guest's.
        acts = [(e["kind"], e["proc"]["comm"], e["file"].get("old_path"), e["file"]["path"])
                for e in self.acts(s)]
        self.assertEqual(acts, [
            ("file.mkdir", "mkdir", None, "/workspace/d"),
            ("file.rename", "mv", "/workspace/b", "/workspace/d/c"),
            ("file.delete", "rm", None, "/workspace/a"),
        ])
        self.assertEqual({e["vantage"] for e in s.kinds("file.mkdir", "file.rename", "file.delete")}, {"kernel"})
        forks = {e["child"]["pid"] for e in self.of_guest(s, "fork")}
        exits = {e["proc"]["pid"]: e["exit"].get("code") for e in self.of_guest(s, "exit")}
        self.assertEqual(set(exits) - {1}, forks)
        self.assertEqual(exits[1], 3)
        self.assertEqual({c for p, c in exits.items() if p != 1} - {0, 127}, set())

    def test_python(self):
        s = self.session("python3", "-c", PYTHON)
        self.assertEqual(s.code, 0, s)
        execs = [e["proc"]["args"] for e in self.of_guest(s, "exec") if e["outcome"] == "success"]
        self.assertEqual(execs, [["python3", "-c", PYTHON], ["/bin/true", "a b", ""]])
        opens = [e["file"]["path"] for e in self.of_guest(s, "file.open") if e["file"].get("write")]
        self.assertEqual(opens, ["/workspace/x"])
        wrote = [e for e in self.of_guest(s, "file.write")]
        self.assertEqual([(e["file"]["path"], e["file"]["bytes"], e["file"]["op"]) for e in wrote],
                         [("/workspace/x", 10, "first"), ("/workspace/x", 15, "total")])
        dials = [(e["net"]["dst"]["ip"], e["net"]["dst"]["port"]) for e in self.of_guest(s, "net.connect")
                 if e["net"]["family"] == "inet"]
        self.assertEqual(dials, [("127.0.0.1", 81), ("127.0.0.1", 53)])
        self.assertEqual([e["net"]["src"]["port"] for e in self.of_guest(s, "net.bind", "net.listen")
                          if e["net"]["family"] == "inet"], [8080, 8080])
        self.assertEqual([(e["kind"], e["net"].get("path")) for e in self.of_guest(s, "net.connect", "net.accept")
                          if e["net"]["family"] == "unix"], [("net.connect", "/workspace/u"), ("net.accept", None)])
        acts = [(e["kind"], e["file"].get("old_path"), e["file"]["path"], e["file"].get("op"), e["proc"]["pid"])
                for e in self.acts(s)]
        self.assertEqual(acts, [
            ("file.mkdir", None, "/workspace/m", None, 1),
            ("file.mkdir", None, "/workspace/m/n", None, 1),
            ("file.rename", "/workspace/x", "/workspace/m/n/x", None, 1),
            ("file.attr", None, "/workspace/m/n/x", "chmod", 1),
            ("file.attr", None, "/workspace/m/n/x", "truncate", 1),
            ("file.link", "../x", "/workspace/m/n/s", "symbolic", 1),
            ("file.link", "/workspace/m/n/x", "/workspace/h", "hard", 1),
            ("file.delete", None, "/workspace/m/n/x", None, 1),
        ])
        # sends to somebody, and what was asked of name servers: only where the guest's calls show
        if s.result["degraded"].count("gvisor.mirror"):
            self.assertEqual(s.kinds("dns.query", "net.send"), [])
        else:
            self.assertEqual([(e["dns"]["name"], e["proc"]["pid"], e["vantage"]) for e in s.kinds("dns.query")],
                             [("one.example", 1, "kernel"), ("two.example", 1, "kernel")])
            self.assertEqual([(e["net"]["dst"]["ip"], e["net"]["dst"]["port"]) for e in s.kinds("net.send")],
                             [("127.0.0.1", 5000), ("127.0.0.1", 53)])
        child = [e for e in self.of_guest(s, "exec") if e["proc"]["args"][0] == "/bin/true"][0]
        self.assertEqual(child["proc"]["ancestors"][0]["pid"], 1)

    def test_long_arguments(self):
        s = self.session("python3", "-c", "import os; os.execv('/bin/true', ['true', 'x' * 100000, 'end'])")
        e = self.of_guest(s, "exec")[-1]
        self.assertEqual([len(a) for a in e["proc"]["args"]], [4, 100000, 3])
        self.assertNotIn("args_truncated", e["proc"])

    def test_a_description_that_is_too_large(self):
        """Three arguments of 100 KB each: gVisor drops every message about the program, and says only that there was a
        call."""
        s = self.session("python3", "-c",
                       "import os\nif not os.fork():\n os.execv('/bin/true', ['true'] + ['x' * 100000] * 3)\nos.wait()")
        self.assertEqual(s.code, 0, s)
        e = self.of_guest(s, "exec")[-1]
        self.assertTrue(e["proc"]["args_truncated"], e)
        self.assertNotIn("exe_ino", e["proc"])
        self.assertTrue([g for g in s.kinds("gap") if g["gap"]["reason"] == "guest"])

    def test_an_attempt_inside_is_killed(self):
        s = self.session("python3", "-c",
                       "import ctypes, time\nctypes.CDLL(None, use_errno=True).mount(b'x', b'/tmp', b'tmpfs', 0, None)\n"
                       "time.sleep(100)")
        self.assertEqual(s.code, 137, s)
        self.assertEqual(s.result["reason"], "rule", s.result)
        e = self.of_guest(s, "escape")[0]
        self.assertEqual(e["escape"]["type"], "mount")

    def test_the_record_is_whole(self):
        s = self.session("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true $i; done")
        self.assertEqual(s.code, 0, s)
        self.assertEqual([e["proc"]["args"][1] for e in self.of_guest(s, "exec")[1:]], list("12345678"))
        self.assertEqual(s.kinds("gap"), [])
        self.assertIntact(s)
        self.assertContiguous(s.events)
        # what gVisor's own processes do on the host is not the payload's
        self.assertEqual([e for e in s.kinds("exec", "fork", "file.open") if e["vantage"] == "kernel"], [])

    def test_benign_work_is_quiet(self):
        s = self.session("sh", "-c", "mkdir -p p/q; echo x > p/q/f; cp p/q/f g; python3 -c 'import json, threading; "
                       "t = threading.Thread(target=print); t.start(); t.join()'; ls -l p; rm -r p")
        self.assertEqual(s.code, 0, s)
        self.assertEqual([e["rule"]["name"] for e in s.kinds("rule.alert")], [])


load_tests = each_runsc(every=(Guest,))

if __name__ == "__main__":
    unittest.main()
