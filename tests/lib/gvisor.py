# SPDX-License-Identifier: Apache-2.0
"""Which runsc the tests run with: the system's, the one of another Debian release that `make deps` unpacks beside it
(.ci/runsc), and those of WARDER_RUNSC_ALSO (paths with ':' between them); one of each version.

    load_tests = each_runsc(Life, Network)                  once more for each further runsc
    load_tests = each_runsc(Life, every=(Ends, View))       those of `every` for each platform that it has
"""

import ctypes
import glob
import os
import socket
import subprocess
import unittest

CACHE = "/var/cache/warder-deps/runsc"


class Runsc:
    def __init__(self, path):
        def ask(*argv):
            done = subprocess.run([path, *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            return done.stdout.decode("utf-8", "replace").split()
        self.path = path
        version = ask("--version")
        self.version = version[2].rpartition("~")[2].partition(".")[0] if len(version) > 2 else "unknown"  # 20221219
        said = {w.strip("-") for w in ask("help", "platforms")}
        self.platforms = [p for p in ("ptrace", "systrap") if p in said]


def _find():
    paths = ["/usr/bin/runsc", *os.environ.get("WARDER_RUNSC_ALSO", "").split(":"), *sorted(glob.glob(CACHE + "/*/runsc"))]
    found = {}
    for r in (Runsc(p) for p in paths if os.access(p, os.X_OK)):
        found.setdefault(r.version, r)
    return list(found.values())


RUNSCS = _find() if os.geteuid() == 0 else []


class SecondVersion(unittest.TestCase):
    def test_a_second_version(self):
        self.skipTest("one version of runsc is here (%s): make deps unpacks another one below %s"
                      % (", ".join(r.version for r in RUNSCS), CACHE))


NR_PIDFD_OPEN, NR_PIDFD_GETFD = 434, 438


def sink_of(pid):
    """The descriptor by which the sentry `pid` tells what its guest does, as text; None."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    pidfd = call(NR_PIDFD_OPEN, pid, 0)
    found = None
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            if os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("socket:"):
                with socket.socket(fileno=call(NR_PIDFD_GETFD, pidfd, int(fd), 0)) as s:
                    if s.family == socket.AF_UNIX and str(s.getpeername()).endswith("sink.sock"):
                        found = fd
        except OSError:
            pass
    os.close(pidfd)
    return found


def each_runsc(*cases, every=()):
    """A module's load_tests. Cases have members `runsc` and `platform`; None: the first that there is, its own choice."""
    def load_tests(loader, tests, pattern):
        suite = unittest.TestSuite(tests)
        for i, r in enumerate(RUNSCS):
            for j, platform in enumerate(r.platforms):
                if i == 0 and j == 0:
                    continue  # they are there
                for case in [*every, *(cases if j == 0 else ())]:
                    name = "%s_%s_%s" % (case.__name__, r.version, platform)
                    suite.addTests(loader.loadTestsFromTestCase(type(name, (case,), {"runsc": r, "platform": platform})))
        if len(RUNSCS) == 1:
            suite.addTests(loader.loadTestsFromTestCase(SecondVersion))
        return suite
    return load_tests
