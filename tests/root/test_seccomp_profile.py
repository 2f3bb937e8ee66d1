# SPDX-License-Identifier: Apache-2.0
"""Profiles of others, OCI's and Docker's: taken as they are, and never a way to more than warder gives."""

import json
import os
import unittest

from seccomp_profiles import docker
from warder import *

# Which error a call gets, by its number: nothing in between that could ask another one.
ASK = r'''
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def ask(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(nr, *[ctypes.c_ulong(a) for a in args])
    return "ok" if r >= 0 else errno.errorcode[ctypes.get_errno()]
X = @X@
NR = dict(mount=165 if X else 40, ptrace=101 if X else 117, bpf=321 if X else 280, unshare=272 if X else 97, uname=63 if X else 160,
          getpid=39 if X else 172, getppid=110 if X else 173, personality=135 if X else 92, socket=41 if X else 198,
          sync_file_range=277 if X else 84, clone3=435, setns=308 if X else 268)
for word in sys.argv[1:]:
    name, *args = word.split(",")
    print(word, ask(NR[name], *map(int, args)))
'''.replace("@X@", str(os.uname().machine == "x86_64"))


class Profiles(TestCase):
    def setUp(self):
        super().setUp()
        need_root()

    def profile(self, p):
        return self.path("profile.json", p if isinstance(p, (str, bytes)) else json.dumps(p, indent=2))

    def ask(self, p, *words, options=()):
        s = self.session(PYTHON_IN_SANDBOX, "-c", ASK, *words,
                         options=("--seccomp", self.profile(p), "--no-default-rules", *options))
        self.assertCode(s, 0)
        return dict(line.split() for line in s.out.decode().splitlines()), s

    def test_the_shape_of_dockers_own(self):
        got, s = self.ask(docker(), "getpid", "mount,0,0,0,0,0", "ptrace,0,0,0,0", "bpf,0,0,0", "unshare,268435456",
                          "personality,4294967295", "personality,8", "socket,1,1,0", "socket,40,1,0", "socket,16,3,12", "clone3,0,0",
                          "sync_file_range,0,0,0,0")
        self.assertEqual(got, {
            "getpid": "ok", "personality,4294967295": "ok", "socket,1,1,0": "ok",
            "mount,0,0,0,0,0": "EPERM", "bpf,0,0,0": "EPERM", "unshare,268435456": "EPERM", "socket,40,1,0": "EPERM",
            "ptrace,0,0,0,0": "EPERM",  # it allows this one; warder does not
            "socket,16,3,12": "EPERM", "personality,8": "EPERM",
            "clone3,0,0": "ENOSYS",
            "sync_file_range,0,0,0,0": "EPERM"})  # in no list
        tried = {e["escape"]["type"] for e in s.kinds("escape")}
        self.assertTrue({"mount", "bpf"} <= tried or len(tried) >= 2, tried)  # attempts are told all the same

    def test_allowing_all_is_warders_own(self):
        words = ("mount,0,0,0,0,0", "ptrace,0,0,0,0", "bpf,0,0,0", "unshare,268435456", "setns,0,0", "socket,16,3,12",
                 "personality,8", "clone3,0,0", "getpid")
        names = [w.split(",")[0] for w in words]
        want = {w: "EPERM" for w in words}
        want.update({"clone3,0,0": "ENOSYS", "getpid": "ok"})
        for p in ({"defaultAction": "SCMP_ACT_ALLOW"},
                  {"defaultAction": "SCMP_ACT_LOG", "syscalls": [{"names": names, "action": "SCMP_ACT_ALLOW"}]},
                  {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mount", "ptrace"], "action": "SCMP_ACT_KILL"}]},
                  {"linux": {"seccomp": {"defaultAction": "SCMP_ACT_ALLOW", "architectures": []}}}):
            self.assertEqual(self.ask(p, *words)[0], want)

    def test_it_takes_away(self):
        p = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
            {"names": ["uname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 5},
            {"name": "getppid", "action": "SCMP_ACT_ERRNO"},
            {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 97,  # or: the same argument twice
             "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}, {"index": 0, "value": 10, "op": "SCMP_CMP_EQ"}]},
            {"names": ["personality"], "action": "SCMP_ACT_KILL_PROCESS", "includes": {"minKernel": "99.0"}},
            {"names": ["getpid"], "action": "SCMP_ACT_KILL", "excludes": {"minKernel": "3.0"}}]}
        got, _ = self.ask(p, "uname,0", "getppid", "socket,1,1,0", "socket,10,1,0", "socket,2,1,0", "personality,4294967295", "getpid")
        self.assertEqual(got, {"uname,0": "EIO", "getppid": "EPERM", "socket,1,1,0": "EAFNOSUPPORT",
                               "socket,10,1,0": "EAFNOSUPPORT", "socket,2,1,0": "ok", "personality,4294967295": "ok", "getpid": "ok"})
        p["syscalls"] = [{"names": ["uname"], "action": "SCMP_ACT_KILL_PROCESS"}]
        s = self.session("uname", options=("--seccomp", self.profile(p)))
        self.assertCode(s, 159)
        self.assertEqual(s.result["signal"], 31)
        p["syscalls"] = [{"names": ["execve", "execveat"], "action": "SCMP_ACT_ERRNO"}]
        s = self.session("true", options=("--seccomp", self.profile(p)))
        self.assertCode(s, 126)

    def test_plan_and_policy(self):
        def plan(*options):
            done = self.warder("run", "--dry-run", "--json", *options, "true")
            self.assertCode(done, 0)
            return json.loads(done.out)

        path = self.profile(docker())
        policy = self.path("p.yaml", "seccomp: profile.json\n")
        with_it, without = plan("--policy", policy), plan()
        self.assertEqual(with_it["layers"]["seccomp"], "profile+default")
        self.assertEqual(with_it["layers"]["seccomp_profile"]["unknown"], 1)
        self.assertEqual(with_it["policy"], plan("--seccomp", path)["policy"])
        self.assertNotEqual(with_it["policy"], without["policy"])
        self.assertEqual(plan("--policy", policy, "--seccomp", "default")["policy"], without["policy"])
        self.profile(dict(docker(), defaultErrnoRet=2))
        self.assertNotEqual(with_it["policy"], plan("--policy", policy)["policy"])
        self.assertIn(b"profile+default", self.warder("run", "--dry-run", "--policy", policy, "true").out)
        self.assertCode(self.warder("policy", "check", policy), 0)
        self.profile('{"defaultAction": "SCMP_ACT_ALOW"}')
        done = self.warder("policy", "check", policy)
        self.assertCode(done, 1)
        self.assertIn(b"profile.json:1:19", done.err)

    def test_mistakes_have_a_place(self):
        row = '{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[%s]}'
        for text, words in (
                ("", (":1:1:",)), ("{", (":1:2:",)), ("[]", (":1:1:", "object")),
                ('{\n "defaultAction": "SCMP_ACT_NOTIFY"}', (":2:19:", "SCMP_ACT_NOTIFY")),
                ('{"syscalls":[]}', ("action",)),
                ('{"defaultAction":"SCMP_ACT_ALLOW","sycalls":[]}', ("'sycalls'",)),
                ('{"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/x"}', ("'listenerPath'",)),
                ('{"defaultAction":"SCMP_ACT_ALLOW","defaultAction":"SCMP_ACT_KILL"}', ("second time",)),
                ('{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":99999}', ("4095",)),
                ('{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_S390X"]}', ("nothing for",)),
                ('{"defaultAction":"SCMP_ACT_ALLOW","syscalls":{}}', ("list",)),
                (row % '{"action":"SCMP_ACT_KILL"}', ("names",)),
                (row % '{"names":[5],"action":"SCMP_ACT_KILL"}', ("name of a system call",)),
                (row % '{"names":["x"],"action":"SCMP_ACT_KILL","args":[{"index":6,"value":1,"op":"SCMP_CMP_EQ"}]}', ("0 to 5",)),
                (row % '{"names":["x"],"action":"SCMP_ACT_KILL","args":[{"index":0,"value":1.5,"op":"SCMP_CMP_EQ"}]}', ("whole",)),
                (row % '{"names":["x"],"action":"SCMP_ACT_KILL","args":[{"index":0,"value":1,"op":"SCMP_CMP_XX"}]}', ("SCMP_CMP_XX",)),
                (row % '{"names":["x"],"action":"SCMP_ACT_KILL","includes":{"minKernel":"new"}}', ("version",)),
                (row % '{"names":["x"],"action":"SCMP_ACT_KILL","includes":{"cap":[]}}', ("'cap'",))):
            with self.subTest(text[:60]):
                done = self.warder("run", "--seccomp", self.profile(text), "true")
                self.assertCode(done, 125)
                self.assertOneLine(done, "profile.json", *words)
        self.assertOneLine(self.warder("run", "--seccomp", self.path("none"), "true"), "none")
        os.chmod(self.profile("{}"), 0o666)
        self.assertOneLine(self.warder("run", "--seccomp", self.path("profile.json"), "true"), "profile.json")


if __name__ == "__main__":
    unittest.main()
