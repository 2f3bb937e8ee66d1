# SPDX-License-Identifier: Apache-2.0
"""What the tests of the real binary share: start it, read what it left, name spaces, servers, skips.

    from warder import *
    class Run(TestCase):
        def test_echo(self):
            s = self.session("echo", "hi")
            self.assertEqual((s.code, s.out), (0, b"hi\\n"))
            self.assertEqual(s.kinds("exec")[-1]["proc"]["args"], ["echo", "hi"])
"""

import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

__all__ = ["SRC", "BUILD", "WARDER", "TestCase", "Session", "NetNS", "DnsServer", "MockKafka", "cmd", "helper",
           "kcat_read", "need", "need_root", "TIMEOUT", "field", "wait_for", "loop_mount", "idmapped", "own_cgroups", "children",
           "descendants", "comm_of", "state_of", "is_alive", "has_argument", "engine_of", "IN_VM", "SLOW", "PYTHON_IN_SANDBOX"]

SRC = os.environ.get("WARDER_SRC") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("WARDER_BUILD") or os.path.join(SRC, "build"))
WARDER = os.path.join(BUILD, "warder")
# The distribution's own: one that lives in a home directory is not visible in a sandbox.
PYTHON_IN_SANDBOX = "/usr/bin/python3"
# Under another kernel in an emulated machine (make check-vm): starting a process takes ten times as long.
IN_VM = bool(os.environ.get("WARDER_VM"))
SLOW = 5 if IN_VM else 1
TIMEOUT = 120 * SLOW  # seconds until a command counts as hanging; nothing here takes a tenth of it


# ---- reasons to skip ----

def need(*programs):
    """Skip when a program of another package is missing."""
    for p in programs:
        if not shutil.which(p):
            raise unittest.SkipTest("%s is not installed (make deps)" % p)


def need_root():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root")


def helper(name):
    """Path of a program from tests/helpers."""
    path = os.path.join(BUILD, "tests", "helpers", name)
    if not os.access(path, os.X_OK):
        raise AssertionError("%s was not built (make test-bins)" % path)
    return path


# ---- file systems ----

def loop_mount(mkfs, size, place, options=None):
    """Make a file system in a file beside `place` and mount it there. The caller unmounts: the rest ends with it."""
    image = place + ".img"
    # In a machine of `make check-vm` nobody else loads them.
    for module in ("loop", "quota_v2", mkfs.split()[0].partition(".")[2]):
        subprocess.run(["modprobe", "-q", module], stderr=subprocess.DEVNULL)
    with open(image, "wb") as f:
        f.truncate(int(size[:-1]) << 20)
    try:
        for argv in ([*mkfs.split(), image], ["mount", "-o", ",".join(filter(None, ["loop", options])), image, place]):
            if not shutil.which(argv[0]):
                raise OSError("%s is not installed (make deps)" % argv[0])
            done = cmd(*argv)
            if done.code:
                raise OSError(str(done))
    finally:
        os.unlink(image)


def idmapped(test, name):
    """A directory that `--rw` can show in a sandbox: on a file system that has id-mapped mounts. overlayfs has none, and
    that is what the root of a machine of `make check-vm` and of many containers is."""
    place = test.path(name)
    os.mkdir(place)
    with open("/proc/self/mountinfo") as f:
        points = {line.split()[4]: line.partition(" - ")[2].split()[0] for line in f}
    at = os.path.realpath(place)
    while at not in points:
        at = os.path.dirname(at)
    if points[at] == "overlay":
        loop_mount("mkfs.ext4 -q", "8M", place)
        test.addCleanup(subprocess.run, ["umount", place], check=True)
    return place


# ---- commands ----

class Done:
    """How a command ended: code as a shell shows it, out and err as bytes."""

    def __init__(self, argv, code, out, err):
        self.argv, self.out, self.err = argv, out, err
        self.code = code if code >= 0 else 128 - code

    def __str__(self):
        return "%s\nexit code %d\nstdout: %s\nstderr: %s" % (
            " ".join(a if len(a) < 200 else a[:200] + "..." for a in map(str, self.argv)), self.code,
            self.out[-2000:].decode("utf-8", "replace"), self.err[-4000:].decode("utf-8", "replace"))


def cmd(*argv, input=b"", timeout=TIMEOUT, **kw):
    """Run a command to its end. Hanging is an error that shows what it said so far."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        proc = subprocess.Popen([os.fspath(a) for a in argv], stdin=subprocess.PIPE, stdout=out,
                                stderr=err, **kw)
        hung = False
        try:
            proc.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            hung = True
            proc.kill()
            proc.wait()
        except BaseException:
            proc.terminate()
            proc.wait()
            raise
        out.seek(0)
        err.seek(0)
        done = Done(argv, proc.returncode, out.read(), err.read())
        if hung:
            raise AssertionError("still running after %d s: %s" % (timeout, done))
        return done


def wait_for(what, fn, seconds=30):
    """Poll until fn() is true. The limit only ends a test that has failed anyway."""
    end = time.monotonic() + seconds * SLOW
    while True:
        got = fn()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError("waited %d s for %s" % (seconds, what))
        time.sleep(0.02)


def field(event, name, default=None):
    """field(ev, "proc.exe"): by the name that rules use."""
    for part in name.split("."):
        if not isinstance(event, dict) or part not in event:
            return default
        event = event[part]
    return event


# ---- processes, which may end while they are looked at ----

def _stat(pid):
    """(name, state, parent); of one that is gone ("", "X", 0)."""
    try:
        with open("/proc/%d/stat" % pid, errors="replace") as f:
            head, _, tail = f.read().rpartition(") ")
    except (FileNotFoundError, ProcessLookupError):
        return "", "X", 0
    state, parent = tail.split()[:2]
    return head.partition(" (")[2], state, int(parent)


def _pids():
    return map(int, filter(str.isdigit, os.listdir("/proc")))


def children(pid):
    # By their parent: the kernel's own list leaves some out while others end.
    return [p for p in _pids() if _stat(p)[2] == pid]


def descendants(pid):
    """All below, without the process itself."""
    below = {}
    for p in _pids():
        below.setdefault(_stat(p)[2], []).append(p)
    found, at = [], [pid]
    while at:
        at = [p for top in at for p in below.get(top, [])]
        found += at
    return found


def comm_of(pid):
    return _stat(pid)[0]


def state_of(pid):
    """A letter, as in /proc/PID/stat; X: it is gone."""
    return _stat(pid)[1]


def is_alive(pid):
    return state_of(pid) not in "ZX"


def has_argument(argument):
    """Whether any process has `argument` in its argument vector."""
    for pid in _pids():
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                if argument in f.read().split(b"\0"):
                    return True
        except OSError:
            pass
    return False


def engine_of(pid):
    """The engine of a `warder run`, once it is there."""
    return wait_for("the engine of %d" % pid, lambda: [p for p in children(pid) if comm_of(p) == "warder-engine"])[0]


def own_cgroups():
    """Control groups of ours that exist now, in any hierarchy."""
    import leftovers
    return set(leftovers.cgroups(BUILD))


class Session(Done):
    """`warder run` to its end, and what it left: result, events, verdict of verify."""

    def __init__(self, done, folder):
        super().__init__(done.argv, done.code, done.out, done.err)
        self.folder = folder
        self.dir = os.path.join(folder, "session")
        self.result_path = os.path.join(folder, "result.json")
        self._events = None

    @property
    def result(self):
        with open(self.result_path) as f:
            return json.load(f)

    @property
    def events(self):
        """All events of the journal, in order, as `warder events` prints them."""
        if self._events is None:
            done = cmd(WARDER, "events", self.dir)
            if done.code:
                raise AssertionError("warder events failed: %s\nafter %s" % (done, self))
            self._events = [json.loads(line) for line in done.out.splitlines()]
        return self._events

    def kinds(self, *kinds, **where):
        """Events of these kinds; where=value by field name with __ for the dot."""
        return [e for e in self.events if e["kind"] in kinds
                and all(field(e, k.replace("__", ".")) == v for k, v in where.items())]

    def verify(self, *options):
        return cmd(WARDER, "verify", *options, self.dir)

    def segments(self):
        return sorted(os.path.join(self.dir, f) for f in os.listdir(self.dir)
                      if f.startswith("events.") and f.endswith(".seg"))


class TestCase(unittest.TestCase):
    """Each test has a folder of its own, state included: nothing of the host's is touched."""

    def setUp(self):
        self.tmp = tempfile.mkdtemp(prefix="t-")
        self.addCleanup(shutil.rmtree, self.tmp, ignore_errors=True)
        self.env = dict(os.environ)
        for name in ("STATE", "RUN", "CONFIG"):
            self.env["WARDER_" + name] = os.path.join(self.tmp, name.lower())
        self.count = 0

    def path(self, name, text=None):
        path = os.path.join(self.tmp, name)
        if text is not None:
            with open(path, "wb") as f:
                f.write(text if isinstance(text, bytes) else text.encode())
        return path

    def warder(self, *argv, **kw):
        """Any command of the binary."""
        return cmd(WARDER, *argv, env=kw.pop("env", self.env), **kw)

    def session_argv(self, command, options=()):
        self.count += 1
        folder = self.path("s%d" % self.count)
        os.mkdir(folder)
        # Quiet: the closing line would be in the way of what the command itself says.
        return folder, [WARDER, "run", "--quiet", "--session-dir", os.path.join(folder, "session"), "--result",
                        os.path.join(folder, "result.json"), *options, "--", *command]

    def session(self, *command, options=(), netns=None, prefix=(), **kw):
        """`warder run options -- command` to its end. netns: a NetNS to start it in."""
        folder, argv = self.session_argv(command, options)
        argv = [*prefix, *argv]
        if netns:
            argv = netns.inside(argv)
        return Session(cmd(*argv, env=kw.pop("env", self.env), **kw), folder)

    def start_session(self, *command, options=(), netns=None, **kw):
        """The same, but still running: (Popen, finish) where finish() returns the Session."""
        folder, argv = self.session_argv(command, options)
        if netns:
            argv = netns.inside(argv)
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
              "env": self.env, **kw}
        proc = subprocess.Popen(argv, **kw)
        self.addCleanup(self._end, proc)

        def finish(input=None, timeout=TIMEOUT):
            out, err = proc.communicate(input, timeout)
            return Session(Done(argv, proc.returncode, out or b"", err or b""), folder)
        return proc, finish

    @staticmethod
    def _end(proc):
        if proc.poll() is None:
            proc.terminate()
            try:
                proc.wait(60 * SLOW)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.wait()
        for f in (proc.stdin, proc.stdout, proc.stderr):
            if f:
                f.close()

    # ---- assertions ----

    def assertCode(self, done, code):
        if done.code != code:
            self.fail("expected exit code %d: %s" % (code, done))

    def assertOneLine(self, done, *words):
        """One clear line on stderr, nothing on stdout, and it names what is wrong."""
        err = done.err.decode("utf-8", "replace")
        if err.count("\n") != 1 or not err.endswith("\n"):
            self.fail("expected one line on stderr: %s" % done)
        for word in words:
            if word.lower() not in err.lower():
                self.fail("expected '%s' in the message: %s" % (word, done))

    def assertIntact(self, session):
        done = session.verify()
        if done.code != 0:
            self.fail("expected an intact, sealed bundle: %s\nof %s" % (done, session))

    def assertContiguous(self, events):
        """Sequence numbers from 1 without holes, ids all different."""
        self.assertEqual([e["seq"] for e in events], list(range(1, len(events) + 1)))
        self.assertEqual(len({e["id"] for e in events}), len(events))

    def assertInOrder(self, events, *wanted):
        """The wanted events, each a dict of field names, are found one after the other."""
        at = 0
        for want in wanted:
            while at < len(events) and not all(field(events[at], k) == v for k, v in want.items()):
                at += 1
            if at == len(events):
                seen = "\n".join(json.dumps(e)[:300] for e in events)
                self.fail("no %s (in this place) among\n%s" % (want, seen))
            at += 1


# ---- network ----

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


class NetNS:
    """A network namespace with nothing but a loopback that is up."""
    made = 0

    def __init__(self):
        need("ip", "nsenter")
        NetNS.made += 1
        self.name = "warder-test-%d-%d" % (os.getpid(), NetNS.made)
        self.file = "/run/netns/" + self.name

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(self.inside(["ip", "link", "set", "lo", "up"]), check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "delete", self.name], check=True)

    def inside(self, argv):
        # Not `ip netns exec`: it mounts a new /sys, and the control groups are gone.
        return ["nsenter", "--net=" + self.file, "--", *argv]

    def socket(self, *args):
        """A socket of the namespace. Made by a thread that never comes back from there."""
        made = []

        def make():
            with open(self.file) as f:
                if libc.setns(f.fileno(), CLONE_NEWNET):
                    made.append(OSError(ctypes.get_errno(), "setns"))
                    return
            made.append(socket.socket(*args))
        t = threading.Thread(target=make)
        t.start()
        t.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]


class DnsServer:
    """A tiny authority on UDP: names -> addresses; others do not exist (NXDOMAIN)."""

    def __init__(self, names, netns=None, address="127.0.0.1", port=53):
        self.names, self.asked = names, []
        self.sock = (netns.socket if netns else socket.socket)(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((address, port))
        self.address = self.sock.getsockname()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.thread.join()
        self.sock.close()

    stop = False

    def serve(self):
        self.sock.settimeout(0.2)
        while not self.stop:
            try:
                query, peer = self.sock.recvfrom(2048)
            except (socket.timeout, BlockingIOError):
                continue
            except OSError:
                return
            self.sock.sendto(self.answer(query), peer)

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        question = query[12:at + 5]
        name, qtype = ".".join(labels), struct.unpack("!H", query[at + 1:at + 3])[0]
        self.asked.append(name)
        records = [a for a in self.names.get(name, []) if (":" in a) == (qtype == 28)]
        rcode = 0 if name in self.names else 3
        out = query[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, len(records), 0, 0) + question
        for a in records:
            data = socket.inet_pton(socket.AF_INET6 if ":" in a else socket.AF_INET, a)
            out += struct.pack("!HHHIH", 0xc00c, qtype, 1, 60, len(data)) + data
        return out


# ---- Kafka ----

class MockKafka:
    """librdkafka's mock cluster as a process (tests/helpers/mock-kafka.c); commands go to its stdin."""

    def __init__(self, *args):
        self.proc = subprocess.Popen([helper("mock-kafka"), *args], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        # First line: the bootstrap address.
        self.brokers = self.proc.stdout.readline().strip()
        if not self.brokers:
            raise AssertionError("mock-kafka did not start")

    def tell(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        try:
            self.proc.wait(5)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()


def kcat_read(brokers, topic):
    """All messages of a topic by an independent consumer: [(key, partition, offset, bytes)]."""
    need("kcat")
    done = cmd("kcat", "-b", brokers, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J")
    if done.code:
        raise AssertionError("kcat: %s" % done)
    rows = [json.loads(line) for line in done.out.splitlines()]
    return [(r["key"], r["partition"], r["offset"], r["payload"].encode()) for r in rows]
