# SPDX-License-Identifier: Apache-2.0
"""Full tier: what the enforcement maps deny does not happen, and the record says who refused it."""

import functools
import json
import os
import socket
import unittest

from probes import *
from test_enforce import DENIED, EPERM, KILLED_BY_9, TRIES, Enforce, exe_key


@functools.lru_cache(None)
def prevention():
    done = cmd(helper("probe_dump"), "--families", "--enforce", "deny:kind:file.open")
    rows = [json.loads(line) for line in done.out.splitlines()]
    return next(r for r in rows if r.get("family") == "prevent")


class Prevent(Enforce):
    def setUp(self):
        super().setUp()
        self.family = prevention()
        if self.family["tier"] != "full":
            raise unittest.SkipTest("this kernel cannot prevent: " + self.family["detail"])

    def test_every_hook_is_there(self):
        self.assertTrue(self.family["ok"], self.family)
        if IN_VM:  # check-vm's kernels are booted so: there `lsm/*` programs would attach and never run
            with open("/sys/kernel/security/lsm") as f:
                self.assertNotIn("bpf", f.read().strip().split(","))

    def test_files(self):
        os.makedirs(self.path("no/dir"))
        os.makedirs(self.path("yes"))
        for name in ("no/old", "no/gone", "yes/file"):
            self.path(name, "text")
        d = self.tried(r"""
attempt("open", lambda: os.open("no/old", os.O_WRONLY))
attempt("trunc", lambda: os.open("yes/../no/old", os.O_WRONLY | os.O_TRUNC))
attempt("create", lambda: os.open("no/new", os.O_WRONLY | os.O_CREAT))
attempt("unlink", lambda: os.unlink("no/gone"))
attempt("rmdir", lambda: os.rmdir("no/dir"))
attempt("mkdir", lambda: os.mkdir("no/made"))
attempt("rename_to", lambda: os.rename("yes/file", "no/file"))
attempt("rename_from", lambda: os.rename("no/old", "yes/old"))
attempt("link", lambda: os.link("no/old", "yes/hard"))
attempt("symlink", lambda: os.symlink("x", "no/soft"))
attempt("chmod", lambda: os.chmod("no/old", 0o777))
attempt("chown", lambda: os.chown("no/old", 1, 1))
attempt("truncate", lambda: os.truncate("no/old", 0))
attempt("elsewhere", lambda: os.rename("yes/file", "yes/file2"))
attempt("read", lambda: os.open("no/old", os.O_RDONLY))
""", "deny:path:" + self.path("no"))
        acts = {"open": "file.open", "trunc": "file.open", "create": "file.open", "unlink": "file.delete",
                "rmdir": "file.delete", "mkdir": "file.mkdir", "rename_to": "file.rename",
                "rename_from": "file.rename", "link": "file.link", "symlink": "file.link", "chmod": "file.attr",
                "chown": "file.attr", "truncate": "file.attr"}
        for act, kind in acts.items():
            self.assertEqual(d.told[act], EPERM, act)
            r = self.decided(d, act, 1, DENIED, kind)
            self.assertEqual(r["ret"], -EPERM, r)
        self.assertEqual((d.told["elsewhere"], d.told["read"]), (0, 0))
        self.assertEqual(sorted(os.listdir(self.path("no"))), ["dir", "gone", "old"])
        self.assertEqual(os.listdir(self.path("yes")), ["file2"])
        with open(self.path("no/old")) as f:
            self.assertEqual(f.read(), "text")

    def test_killed_before_the_act(self):
        self.path("keep", "text")
        d = self.tried(r"""
attempt("kill", lambda: os.unlink("keep"))
""", "kill:path:%s@file.delete" % self.path("keep"))
        self.assertEqual(d.told["kill"], KILLED_BY_9)
        self.decided(d, "kill", 1, DENIED | KILLED, "file.delete")
        self.assertTrue(os.path.exists(self.path("keep")))

    def test_shared_mapping(self):
        os.mkdir(self.path("no"))
        for name in ("no/file", "yes"):
            self.path(name, "x" * 4096)
        d = self.tried(r"""
import mmap
def shared(name):
    with open(name, "r+b") as f: mmap.mmap(f.fileno(), 4096)
def private(name):
    with open(name, "r+b") as f: mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE)
attempt("shared", lambda: shared("no/file"))
attempt("private", lambda: private("no/file"))
attempt("elsewhere", lambda: shared("yes"))
""", "deny:path:%s@file.mmap" % self.path("no"))
        self.assertEqual([d.told[k] for k in ("shared", "private", "elsewhere")], [EPERM, 0, 0])
        r = self.decided(d, "shared", 1, DENIED, "file.mmap")
        self.assertEqual((r["path"], r["ret"], r["size"]), (self.path("no/file"), -EPERM, 4096))
        self.assertEqual([r["path"] for r in d.kinds("file.mmap") if not r["ret"]], [self.path("yes")])

    def test_socket_families(self):
        d = self.tried(r"""
attempt("packet", lambda: socket.socket(17, 3, 3))
attempt("netfilter", lambda: socket.socket(16, 3, 12))
attempt("route", lambda: socket.socket(16, 3, 0))
""", "deny:escape:socket_family")
        self.assertEqual([d.told[k] for k in ("packet", "netfilter", "route")], [EPERM, EPERM, 0])
        for who, family in (("packet", 17), ("netfilter", 16)):
            r = self.decided(d, who, 1, DENIED, "escape")
            self.assertEqual((r["type"], r["args"][0], r["ret"]), ("socket_family", family, -EPERM))

    def test_sockets_that_no_cgroup_program_judges(self):
        """Made outside and passed in, or of another family."""
        l = socket.create_server(("127.0.0.1", 0))
        outside = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET6)]
        for s in [l, *outside]:
            self.addCleanup(s.close)
        fds = [s.fileno() for s in outside]
        port = l.getsockname()[1]
        path = self.path("payload.py", PRELUDE + TRIES + r"""
t, u, six = [socket.socket(fileno=int(fd)) for fd in sys.argv[2:5]]
to = ("127.0.0.1", int(sys.argv[5]))
attempt("tcp", lambda: t.connect(to))
attempt("udp", lambda: u.connect(to))
attempt("mapped", lambda: six.connect(("::ffff:127.0.0.1", to[1])))
attempt("other", lambda: u.connect(("127.0.0.1", to[1] - 1)))
srv = socket.socket(socket.AF_UNIX); srv.bind("srv"); srv.listen(1)
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect("srv"))
""")
        d = self.dump(PY, path, self.tmp, *map(str, fds), str(port), pass_fds=fds, options=[
            "--enforce", "deny:addr:127.0.0.0/8,%d-%d" % (port, port)])
        self.assertEqual([d.told[k] for k in ("tcp", "udp", "mapped", "other", "unix")], [EPERM] * 3 + [0, 0])
        for who in ("tcp", "udp", "mapped"):
            r = self.decided(d, who, 1, DENIED, "net.connect")
            self.assertEqual((r["dport"], r["ret"], r["flags"] & TOCTOU), (port, -EPERM, 0), who)
        l.settimeout(0)
        self.assertRaises(BlockingIOError, l.accept)
        d = self.tried(r"""
srv = socket.socket(socket.AF_UNIX); srv.bind("srv2"); srv.listen(1)
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect("srv2"))
""", "deny:kind:net.connect")
        self.assertEqual(d.told["unix"], EPERM)
        self.assertEqual(self.decided(d, "unix", 1, DENIED, "net.connect")["family"], 1)

    def test_exec(self):
        d = self.tried(r"""
attempt("denied", lambda: os.execv("/bin/true", ["true"]))
attempt("other", lambda: os.execv("/bin/echo", ["echo", "-n"]))
""", "deny:exe:" + exe_key("/bin/true"))
        self.assertEqual(d.told["denied"], EPERM)
        self.decided(d, "denied", 1, DENIED, "exec")
        self.assertEqual(d.told["other"], 0)


del Enforce  # its own tests run elsewhere

if __name__ == "__main__":
    unittest.main()
