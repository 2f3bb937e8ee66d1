# SPDX-License-Identifier: Apache-2.0
"""What a sandbox tries against who watches it, seen or not: it comes to nothing, and each attempt is an event."""

import json
import os
import subprocess
import unittest

from warder import *

need_root()

TRY = """
import ctypes, json, os, socket, sys
libc, told = ctypes.CDLL(None, use_errno=True), {}
def tell(name, fn):
    try:
        fn()
        told[name] = 0
    except OSError as e:
        told[name] = e.errno
def call(*args):
    if libc.syscall(*args) < 0:
        raise OSError(ctypes.get_errno(), "")
def dial(path):
    socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(path)
watcher = int(sys.argv[1])
tell("kill", lambda: os.kill(watcher, 9))
tell("kill_init", lambda: os.kill(1, 9))
tell("all", lambda: os.kill(-1, 0))
tell("ptrace", lambda: call(101, 16, watcher, 0, 0) if os.uname().machine == "x86_64" else call(117, 16, watcher, 0, 0))
tell("mem", lambda: os.open("/proc/1/mem", os.O_RDWR))
tell("door", lambda: dial("/run/warder/control.sock"))
tell("api", lambda: os.open("/run/warder/api.sock", os.O_RDWR))
tell("settings", lambda: os.open("/etc/warder/agent.yaml", os.O_WRONLY | os.O_CREAT))
tell("records", lambda: os.open("/var/lib/warder/sessions", os.O_RDONLY))
tell("keys", lambda: os.open("/var/lib/warder/keys", os.O_RDONLY))
tell("unlink", lambda: os.unlink("/run/warder/control.sock"))
told["processes"] = sum(open("/proc/%s/comm" % p).read().startswith("warder") for p in os.listdir("/proc") if p.isdigit())
print(json.dumps(told))
"""
SIGNALLED = "Watcher signalled"
SOUGHT = "Files of the watcher sought"


class Watcher(TestCase):
    def tries(self, *options):
        proc, finish = self.start_session("sh", "-c", "read pid; exec python3 -c '%s' $pid" % TRY.replace("'", '"'),
                                          options=options, stdin=subprocess.PIPE)
        s = finish(b"%d\n" % engine_of(proc.pid))
        self.assertCode(s, 0)
        return json.loads(s.out), s

    def alerts(self, s, name):
        return [a for a in s.kinds("rule.alert") if field(a, "rule.name") == name]

    def test_unseen(self):
        """As any sandbox is: no process of the watcher's is there, none of its files."""
        told, s = self.tries()
        self.assertIntact(s)
        self.assertIn(told["kill"], (1, 3))  # EPERM, ESRCH
        self.assertEqual(told["ptrace"], 1)
        self.assertIn(told["mem"], (1, 13))
        for name in ("door", "api", "records", "keys", "unlink"):
            self.assertEqual(told[name], 2, name)
        self.assertIn(told["settings"], (2, 13, 30))
        self.assertLessEqual(told["processes"], 1)  # its init
        # init took no signal: the rest was there to tell
        self.assertIn("SIGKILL", {field(e, "signal.name") for e in s.kinds("signal")})
        self.assertLessEqual({"ptrace", "proc_mem"}, {field(e, "escape.type") for e in s.kinds("escape")})
        sought = {field(a, "file.path") or field(a, "net.path") for a in self.alerts(s, SOUGHT)}
        self.assertLessEqual({"/run/warder/control.sock", "/run/warder/api.sock", "/etc/warder/agent.yaml",
                              "/var/lib/warder/sessions", "/var/lib/warder/keys"}, sought)

    def test_its_own_are_no_matter(self):
        """The same names elsewhere, and work with signals: nothing is said."""
        s = self.session("sh", "-c", "mkdir -p /workspace/sessions /workspace/keys; : > /workspace/agent.yaml; : > /workspace/api.sock;"
                         "cat /workspace/agent.yaml; ls /workspace/keys; sleep 300.83 & kill $!; wait")
        self.assertCode(s, 0)
        self.assertEqual(self.alerts(s, SOUGHT) + self.alerts(s, SIGNALLED), [])

    def test_files_are_not_given(self):
        """No sandbox may write where the watcher's are, by whatever option."""
        for name in ("RUN", "STATE", "CONFIG"):
            os.makedirs(self.env["WARDER_" + name], exist_ok=True)
            for path in (self.env["WARDER_" + name], self.tmp):
                done = self.warder("run", "--no-agent", "--quiet", "--rw", path, "--", "true")
                self.assertCode(done, 125)
                self.assertIn(b"would let the sandbox write", done.err)


if __name__ == "__main__":
    unittest.main()
