# SPDX-License-Identifier: Apache-2.0
"""The probes by themselves: a payload does acts under tests/helpers/probe_dump, and tests compare each raw
record with what was really done."""

import base64
import functools
import json
import os
import unittest

import warder
from warder import *

__all__ = warder.__all__ + [
    "PY", "PRELUDE", "Dump", "Probes", "families", "names_are_resolved", "ESCAPES", "sequences", "write", "mounts", "v2_mount", "memory_cgroup", "remove_cgroup", "mounted_dev",
    "TOCTOU", "TRUNC", "UNREACH", "DELETED", "PSEUDO", "COMPAT", "IOURING", "KILLED", "RUNTIME"]

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


@functools.lru_cache(None)  # they are of this kernel; asking takes seconds under emulation
def families():
    """{name: row} of the probe families here."""
    rows = [json.loads(line) for line in cmd(helper("probe_dump"), "--families").out.splitlines()]
    return {r["family"]: r for r in rows if "family" in r}


def names_are_resolved():
    """Is there a hook that says what a name led to? Else it is the caller's word."""
    return "security_path" in families()["file"]["hook"]


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

    def dump(self, *command, options=(), wrap=(), pass_fds=()):
        told = self.path("told")
        fd = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        if fd != 9:  # else closing both would close somebody else's
            os.dup2(fd, 9)
            os.close(fd)
        try:
            done = cmd(*wrap, helper("probe_dump"), *options, "--", *command, pass_fds=[9, *pass_fds])
        finally:
            os.close(9)
        if done.code == 3 and b"probe_dump:" in done.err.splitlines()[-1:]:
            self.fail(str(done))
        facts = {}
        with open(told) as f:
            for line in f:
                facts.update(json.loads(line))
        d = Dump(done, facts)
        self.assertEqual(d.end["late"], 0, "records out of order")
        return d

    def script(self, body, *args, options=(), wrap=(), via=(), pass_fds=()):
        """Run Python lines as the payload."""
        path = self.path("payload.py", PRELUDE + body)
        return self.dump(*via, PY, path, self.tmp, *args, options=options, wrap=wrap, pass_fds=pass_fds)


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


def mounted_dev(path):
    """major:minor of the file system that a path lies on, as the mount table has it."""
    best = ("", None)
    with open("/proc/self/mountinfo") as f:
        for line in f:
            dev, point = line.split()[2], line.split()[4]
            if len(point) >= len(best[0]) and (path + "/").startswith(point.rstrip("/") + "/"):
                best = (point, dev)
    return best[1]
