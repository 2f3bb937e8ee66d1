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

from warder import TestCase, cmd, comm_of, descendants, helper, is_alive, need_root, wait_for

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


class WithRunsc:
    """Before a TestCase among the bases: its sandboxes are run by `runsc`, by default the first that there is."""
    runsc = platform = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        need_root()
        if not RUNSCS:
            raise unittest.SkipTest("runsc is not installed (make deps)")

    def setUp(self):
        super().setUp()
        self.runsc = self.runsc or RUNSCS[0]
        self.env["WARDER_RUNSC"] = self.runsc.path


class GvisorCase(WithRunsc, TestCase):
    def session_argv(self, command, options=()):
        if self.platform and "--platform" not in options:
            options = ["--platform", self.platform, *options]
        return super().session_argv(command, ["--backend", "gvisor", *options])

    def sh(self, script, *options, **kw):
        return self.session("sh", "-c", script, options=options, **kw)

    def reason(self, s):
        return s.code, s.result["reason"]

    def runs_on(self):
        """The platform of this test's sandboxes, which is chosen here if nobody has."""
        self.platform = self.platform or self.runsc.platforms[0]
        return self.platform


# ---- its processes ----

PARTS = {b"warder-init": "keeper", b"runsc-gofer": "gofer", b"runsc-sandbox": "sentry", b"": "stub"}


def part_of(pid):
    """What a process below a warder is of it; None: it has ended."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            name = f.read().split(b"\0")[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    comm = comm_of(pid)
    if not is_alive(pid):  # asked last: what ends in between has an empty name, as stubs have
        return None
    return "engine" if comm == "warder-engine" else PARTS.get(name, "other")


def parts_below(top):
    """{part: [pid]} of a warder. What a sentry has begun is its stub, also as long as it has the sentry's name."""
    found, sentries = {}, set()
    for pid in descendants(top):
        part = part_of(pid)
        if part == "sentry":
            part = "stub" if pid in sentries else part
            sentries.update(descendants(pid))
        if part:
            found.setdefault(part, []).append(pid)
    return found


NR_PIDFD_OPEN, NR_PIDFD_GETFD = 434, 438


def fds_of(pid):
    """{descriptor: where it leads}, without what is closed meanwhile."""
    found = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found[int(fd)] = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            pass
    return found


def sink_of(pid):
    """The descriptor by which the sentry `pid` tells what its guest does."""
    call = ctypes.CDLL(None, use_errno=True).syscall

    def is_sink(pidfd, fd):
        copy = call(NR_PIDFD_GETFD, pidfd, fd, 0)
        if copy < 0:
            return False
        with socket.socket(fileno=copy) as s:
            try:
                return s.family == socket.AF_UNIX and str(s.getpeername()).endswith("sink.sock")
            except OSError:  # not connected
                return False

    def look():
        pidfd = call(NR_PIDFD_OPEN, pid, 0)
        if pidfd < 0:
            raise ProcessLookupError("the sentry %d has ended" % pid)
        try:
            return [fd for fd, to in fds_of(pid).items() if to.startswith("socket:") and is_sink(pidfd, fd)]
        finally:
            os.close(pidfd)
    return wait_for("the connection to the sink", look)[0]


def inject(pid, number, *args):
    """Make a process call the kernel; what came of it. Not where it stands between two calls of its own: once more."""
    def attempt():
        done = cmd(helper("inject"), str(pid), str(number), *map(str, args))
        if done.code not in (0, 3):
            raise AssertionError(done)
        return done.out if done.code == 0 else None
    return int(wait_for("process %d to be in a call" % pid, attempt).split()[1])


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
