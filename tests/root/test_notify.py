# SPDX-License-Identifier: Apache-2.0
"""Every call that the sandbox's filter never allows is one event: by a probe, or, where none looks, by user notification
of the filter. Who answers those can neither be kept busy for others nor be outlived."""

import json
import os
import signal
import sys
import unittest

from seccomp_profiles import docker
from test_agent import AgentCase
from test_escape_run import RunCase, SC
from warder import *

KCMP, USTAT, MOUNT, TIOCSTI, TIOCLINUX, IOCTL = 312, 136, 165, 0x5412, 0x541c, 16
EPERM, EBUSY, ENOSYS = 1, 16, 38

# A filter of the payload's own: returns `action` for call `nr`, with `flags`.
OWN_FILTER = """
import struct
def own_filter(nr, action, flags):
    prog = [(0x20, 0, 0, 0), (0x15, 0, 1, nr), (6, 0, 0, action), (6, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in prog))
    fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(prog), ctypes.addressof(code)))
    libc.prctl(38, 1, 0, 0, 0)
    return sc(317, 1, flags, ctypes.addressof(fprog))
USER_NOTIF, ALLOW, NEW_LISTENER = 0x7fc00000, 0x7fff0000, 8
"""


def arg(e, i):
    return int(field(e, "escape.arg%d" % i), 16)


def denied():
    return [json.loads(line) for line in cmd(helper("denied_calls")).out.splitlines()]


def plan(*options):
    return json.loads(cmd(WARDER, "run", "--dry-run", "--json", *options, "--", "true").out)


class EveryCall(RunCase):
    def attempt_all(self, calls, **kw):
        """Each of them with numbers of its own; a call that only asks is none, so those ask for something."""
        return self.python("""
import json
calls = json.loads('''%s''')
modes = ctypes.create_string_buffer(b"\\1\\0\\0\\0" + bytes(512))
special = {"unshare": [0x20000], "adjtimex": [ctypes.addressof(modes)], "clock_adjtime": [0, ctypes.addressof(modes)],
           "clone3": [ctypes.addressof(ctypes.create_string_buffer(bytes(4) + b"\\2" + bytes(90)))]}
out = []
for c in calls:
    args = special.get(c["name"], [1000 * c["nr"] + i for i in range(6)])
    out.append([c["name"], [a & 0xffffffffffffffff for a in args], sc(c["nr"], *args)])
print(json.dumps([os.getpid(), out]))
""" % json.dumps(calls), **kw)

    def check(self, s, notified):
        self.assertCode(s, 0)
        nspid, tried = json.loads(s.out)
        got = {}
        for e in s.kinds("escape"):
            got.setdefault(e["syscall"], []).append(e)
        for name, args, result in tried:
            if name == "clone3":  # its answer is ENOSYS, for libc; its flags are in memory
                self.assertEqual(result, -ENOSYS)
                continue
            self.assertEqual(result, -EPERM, name)
            self.assertEqual(len(got.get(name, [])), 1, (name, got.get(name)))
            e = got[name][0]
            self.assertEqual((e["vantage"], e["outcome"], e["errno"], field(e, "proc.nspid"), field(e, "proc.comm")),
                             ("runtime" if name in notified else "kernel", "denied", "EPERM", nspid, "python3"), e)
            self.assertEqual([arg(e, i) for i in range(len(args[:3]))], args[:3], e)
            exec_ = s.kinds("exec", proc__comm="python3")[0]
            for f in ("proc.pid", "proc.start", "proc.exe", "proc.uid", "proc.ppid"):
                self.assertEqual(field(e, f), field(exec_, f), (f, e))
        self.assertEqual(s.kinds("gap"), [])
        self.assertIntact(s)

    def test_one_event_each(self):
        calls = denied()
        notified = {c["name"] for c in calls if c["notified"]}
        self.assertTrue({"kcmp", "io_uring_enter", "statmount"} <= notified, notified)
        shown = plan()["layers"]["seccomp_notified"]
        self.assertEqual({n for n in shown if "(" not in n}, notified)
        self.check(self.attempt_all(calls), notified)

    def test_where_the_probes_are_blind(self):
        """The handler of escape calls never fires here: the self-test says so, and they are notified. Sockets have
        another one."""
        env = {**self.env, "LD_PRELOAD": helper("no_fire"), "NO_FIRE": "sys_escape", "WARDER_TIER": "portable"}
        s = self.session(PYTHON_IN_SANDBOX, "-c", SC + "print(sc(165, 1, 2, 3, 4), sc(135, 8), sc(41, 40, 1, 0))",
                         options=("--no-default-rules",), env=env)
        self.assertCode(s, 0)
        self.assertEqual(s.out.split(), [b"-1"] * 3)
        self.assertIn("probe.escape", s.result["degraded"])
        self.assertEqual([(e["syscall"], e["vantage"], field(e, "escape.type"), arg(e, 0)) for e in s.kinds("escape")],
                         [("mount", "runtime", "mount", 1), ("personality", "runtime", "personality", 8),
                          ("socket", "kernel", "socket_family", 40)])

    def test_where_the_probes_are_blind_for_sockets_too(self):
        env = {**self.env, "LD_PRELOAD": helper("no_fire"), "NO_FIRE": "sys_escape,sys_net", "WARDER_TIER": "portable"}
        s = self.session(PYTHON_IN_SANDBOX, "-c", SC + "print(sc(165, 1, 2, 3, 4), sc(41, 40, 1, 0))",
                         options=("--no-default-rules",), env=env)
        self.assertCode(s, 0)
        self.assertEqual(s.out.split(), [b"-1"] * 2)
        self.assertTrue({"probe.escape", "probe.net"} <= set(s.result["degraded"]), s.result)
        self.assertEqual([(e["syscall"], e["vantage"], field(e, "escape.type"), arg(e, 0)) for e in s.kinds("escape")],
                         [("mount", "runtime", "mount", 1), ("socket", "runtime", "socket_family", 40)])

    def test_without_the_hook_behind_filters(self):
        """Full tier: where nothing shows what a filter refused, sockets are notified, too."""
        tier = json.loads(cmd(WARDER, "doctor", "--json", env=self.env).out)["tier"]
        if tier != "full":
            raise unittest.SkipTest("in the portable tier the hook that sees all calls sees those, too")
        env = {**self.env, "LD_PRELOAD": helper("no_fire"), "NO_FIRE": "on_seccomp"}
        s = self.session(PYTHON_IN_SANDBOX, "-c", SC + "print(sc(165, 1, 2, 3, 4), sc(41, 40, 1, 0), sc(312, 9))",
                         options=("--no-default-rules",), env=env)
        self.assertCode(s, 0)
        self.assertEqual(s.out.split(), [b"-1"] * 3)
        self.assertEqual([(e["syscall"], e["vantage"], arg(e, 0)) for e in s.kinds("escape")],
                         [("mount", "runtime", 1), ("socket", "runtime", 40), ("kcmp", "runtime", 9)])

    def test_terminal_requests(self):
        s = self.python("print([sc(%d, fd, r | 7 << 40, 99) for fd in range(3) for r in (%d, %d)])" % (IOCTL, TIOCSTI, TIOCLINUX))
        self.assertCode(s, 0)
        self.assertEqual(eval(s.out), [-EPERM] * 6)
        self.assertEqual([(e["syscall"], field(e, "escape.type"), field(e, "escape.detail"), arg(e, 0),
                           arg(e, 1)) for e in s.kinds("escape")],
                         [("ioctl", "seccomp_violation", name, fd, r | 7 << 40)
                          for fd in range(3) for name, r in (("TIOCSTI", TIOCSTI), ("TIOCLINUX", TIOCLINUX))])

    def test_ordinary_ioctls_are_not(self):
        s = self.python("import fcntl, termios; os.isatty(0); os.get_inheritable(0)\n"
                        "print(sc(16, 0, 0x5413, b' ' * 8), sc(135, 0xffffffff) >= 0)")
        self.assertCode(s, 0)
        self.assertEqual(s.kinds("escape"), [])

    def test_threads_and_children(self):
        s = self.python("""
import threading, json
out = []
def act(): out.append((os.getpid(), threading.get_native_id(), sc(%d, 5)))
t = threading.Thread(target=act); t.start(); t.join()
if os.fork() == 0:
    libc.prctl(15, b"a) b\\nTgid:")
    act(); print(json.dumps(out[-1:])); sys.stdout.flush(); os._exit(0)
os.wait()
print(json.dumps(out))
""" % KCMP)
        self.assertCode(s, 0)
        child, mine = [json.loads(line)[0] for line in s.out.splitlines()]
        events = s.kinds("escape")
        self.assertEqual([field(e, "proc.nspid") for e in events], [mine[0], child[0]])
        self.assertNotEqual(field(events[0], "proc.pid"), field(events[0], "proc.tid"))
        self.assertEqual(field(events[1], "proc.pid"), field(events[1], "proc.tid"))
        self.assertEqual(field(events[1], "proc.comm"), "a) b\nTgid:")
        self.assertEqual(field(events[1], "proc.pcomm"), "python3")

    def test_a_rule_kills_before_the_call_returns(self):
        s = self.python("sc(174, 0, 0); open('after', 'w').close(); print('alive')", rules=True)  # create_module
        self.assertCode(s, 137)
        self.assertEqual((s.result["reason"], s.out), ("rule", b""))
        e, = s.kinds("escape")
        self.assertEqual((e["vantage"], field(e, "escape.type"), e["syscall"]), ("runtime", "module", "create_module"))
        self.assertEqual(s.kinds("file.open", file__path="/workspace/after"), [])
        alert, = s.kinds("rule.alert")
        self.assertEqual((field(alert, "rule.trigger"), field(alert, "rule.enforced")), (e["id"], "killed-after"))

    def test_stopped_at_the_attempt(self):
        """Frozen while it waits for its answer: it is given that, and stops before it runs on."""
        rules = self.path("r.yaml", "- rule: Ask\n  desc: d\n  output: o\n  priority: ALERT\n"
                                    "  condition: kind = escape and syscall = kcmp\n  action: hold\n")
        s = self.python("print(sc(%d, 1), sc(%d, 2))" % (KCMP, USTAT),
                        options=("--rules", rules, "--hold-timeout", "300ms", "--hold-default", "approve"))
        self.assertCode(s, 0)
        self.assertEqual(s.out.split(), [b"-1", b"-1"])
        self.assertEqual([(e["syscall"], arg(e, 0)) for e in s.kinds("escape")], [("kcmp", 1), ("ustat", 2)])
        self.assertEqual([field(e, "action.result") for e in s.kinds("action")], ["done"])
        self.assertEqual([field(e, "action.by") for e in s.kinds("approval")], ["timeout"])

    def test_by_default_it_only_alerts(self):
        s = self.python("print(sc(%d, 1))" % KCMP, rules=True)
        self.assertCode(s, 0)
        self.assertEqual([a["rule"]["name"] for a in s.kinds("rule.alert")], ["Kernel interface probed"])


class Listener(RunCase):
    def test_signals_do_not_make_more_of_one(self):
        """However many come while it waits, it is one attempt."""
        s = self.python("""
import signal
signal.signal(signal.SIGALRM, lambda *a: None); signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
print([sc(%d, i) for i in range(300)])
signal.setitimer(signal.ITIMER_REAL, 0)
""" % USTAT)
        self.assertCode(s, 0)
        self.assertEqual(eval(s.out), [-EPERM] * 300)
        self.assertEqual([arg(e, 0) for e in s.kinds("escape")], list(range(300)))

    def test_a_flood_waits_for_itself(self):
        """All are told, none faster than the bound; meanwhile another sandbox goes on, with attempts of its own."""
        out = self.path("out")
        os.mkdir(out)
        flood, finish = self.start_session(PYTHON_IN_SANDBOX, "-c", SC + """
import threading
count = [0] * 8
def run(k):
    while count[k] < 200 or not os.path.exists("/out/stop"):
        sc(%d, k, count[k]); count[k] += 1
print("go"); sys.stdout.flush()
t = [threading.Thread(target=run, args=(k,)) for k in range(8)]
[x.start() for x in t]; [x.join() for x in t]
print(*count)
""" % USTAT, options=("--no-default-rules", "--rw", out + ":/out"))
        self.assertEqual(flood.stdout.readline(), b"go\n")
        other = self.python("print([sc(%d, 7) for i in range(20)]); [os.stat('/') for i in range(10000)]" % USTAT)
        self.assertCode(other, 0)
        self.assertEqual(len(other.kinds("escape")), 20)
        self.assertIsNone(flood.poll(), "it flooded all the time")
        self.path("out/stop", "")
        s = finish()
        self.assertCode(s, 0)
        told = s.kinds("escape")
        self.assertEqual(len(told), sum(map(int, s.out.split())))
        for k in range(8):
            mine = [arg(e, 1) for e in told if arg(e, 0) == k]
            self.assertEqual(mine, list(range(len(mine))))
        # 2,000 a second after a burst of 256, by the times of the record.
        self.assertGreaterEqual(told[-1]["mono"] - told[0]["mono"], (len(told) - 300) * 500000)
        self.assertEqual((s.kinds("gap"), s.result["gaps"]), ([], 0))
        self.assertIntact(s)

    def test_when_its_supervisor_dies(self):
        """Nobody answers any more: the calls fail, and the sandbox is ended and its end is said."""
        out = self.path("out")
        os.mkdir(out)
        proc, finish = self.start_session(PYTHON_IN_SANDBOX, "-c", SC + """
sc(%d, 1)
print("ready"); sys.stdout.flush()
while not os.path.exists("/out/go"): time.sleep(0.01)
r = sc(%d, 2)
open("/out/part", "w").write(str(r)); os.rename("/out/part", "/out/result")
time.sleep(300.77)
""" % (USTAT, USTAT), options=("--no-default-rules", "--rw", out + ":/out"))
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        engine = engine_of(proc.pid)
        os.kill(proc.pid, signal.SIGSTOP)  # it would end the sandbox at once
        try:
            os.kill(engine, signal.SIGKILL)
            wait_for("the engine to be dead", lambda: not is_alive(engine))
            self.path("out/go", "")
            wait_for("the call's result", lambda: os.path.exists(out + "/result"))
        finally:
            os.kill(proc.pid, signal.SIGCONT)
        with open(out + "/result") as f:
            self.assertEqual(int(f.read()), -ENOSYS)
        s = finish()
        self.assertCode(s, 125)
        self.assertIn(b"engine died", s.err)
        self.assertEqual(s.result["reason"], "internal")
        self.assertFalse(has_argument(b"300.77"))

    def test_when_the_root_part_dies(self):
        proc, finish = self.start_session(PYTHON_IN_SANDBOX, "-c", SC + """
print("ready"); sys.stdout.flush()
while True: sc(%d, 3)
""" % USTAT, options=("--no-default-rules",))
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        engine = engine_of(proc.pid)
        proc.kill()
        s = finish()
        wait_for("the engine to end", lambda: not is_alive(engine))
        self.assertEqual(s.verify().code, 0)
        self.assertEqual((s.events[-1]["kind"], s.events[-1]["run"]["reason"]), ("session.stop", "internal"))
        self.assertCode(self.session("true"), 0)

    def test_a_payloads_own_listener(self):
        """There is one listener a tree of filters, and it is ours: a payload gets none, nor ours, nor its calls to us."""
        s = self.python(OWN_FILTER + """
print([os.readlink("/proc/self/fd/" + f) for f in os.listdir("/proc/self/fd") if os.path.islink("/proc/self/fd/" + f)
       and "seccomp" in os.readlink("/proc/self/fd/" + f)])
print(own_filter(110, USER_NOTIF, NEW_LISTENER), own_filter(110, USER_NOTIF, 0), sc(110), sc(%d, 4))
""" % KCMP)
        self.assertCode(s, 0)
        fds, results = s.out.splitlines()
        self.assertEqual(fds, b"[]")
        self.assertEqual([int(x) for x in results.split()], [-EBUSY, 0, -ENOSYS, -EPERM])
        self.assertEqual([(e["syscall"], arg(e, 0)) for e in s.kinds("escape")], [("kcmp", 4)])

    def test_behind_an_operators_profile(self):
        """One that allows no sendmsg does not keep the listener back; and what we notify it cannot take."""
        p = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
            {"names": ["sendmsg", "sendto", "getppid"], "action": "SCMP_ACT_ERRNO"},
            {"names": ["kcmp"], "action": "SCMP_ACT_KILL_PROCESS"}]}
        for profile in (p, docker()):
            s = self.python("print(sc(%d, 6), sc(46, -1, 0, 0))" % KCMP,
                            options=("--seccomp", self.path("p.json", json.dumps(profile))))
            self.assertCode(s, 0)
            self.assertEqual(s.out.split()[0], b"-1")
            self.assertEqual([(e["syscall"], e["vantage"]) for e in s.kinds("escape")], [("kcmp", "runtime")])
            self.assertEqual([e for e in s.events if e["kind"] == "audit.degraded"], [])

    def test_with_few_tasks(self):
        for options in ((), ("--seccomp", self.path("p.json", '{"defaultAction": "SCMP_ACT_ALLOW"}'))):
            s = self.session(PYTHON_IN_SANDBOX, "-c", SC + "print(sc(%d, 6))" % KCMP,
                             options=("--no-default-rules", "--pids", "2", *options))
            self.assertCode(s, 0)
            self.assertEqual(len(s.kinds("escape")), 1)

    def test_under_somebody_elses_listener(self):
        """There is none for us: the filter refuses by itself, and doctor, result and record say what is not seen."""
        code = SC + OWN_FILTER + """
os.set_inheritable(own_filter(9999, ALLOW, NEW_LISTENER), True)  # one that is closed is none
os.execv(sys.argv[1], sys.argv[1:])
"""
        prefix = (sys.executable, "-c", code)
        s = self.session(PYTHON_IN_SANDBOX, "-c", SC + "print(sc(%d, 6), sc(%d, 1, 2, 3))" % (KCMP, MOUNT),
                         options=("--no-default-rules",), prefix=prefix)
        self.assertCode(s, 0)
        self.assertEqual(s.out.split(), [b"-1", b"-1"])
        self.assertEqual([e["syscall"] for e in s.kinds("escape")], ["mount"])
        self.assertIn("seccomp.notify", s.result["degraded"])
        told, = s.kinds("audit.degraded")
        self.assertIn("under another listener already", field(told, "audit.message"))
        rows = {r["name"]: r for r in json.loads(cmd(*prefix, WARDER, "doctor", "--json", env=self.env).out)["features"]}
        self.assertFalse(rows["seccomp.notify"]["ok"], rows["seccomp.notify"])
        self.assertIn("somebody else", rows["seccomp.notify"]["detail"])
        rows = {r["name"]: r for r in json.loads(cmd(WARDER, "doctor", "--json", env=self.env).out)["features"]}
        self.assertTrue(rows["seccomp.notify"]["ok"], rows["seccomp.notify"])


class Further(AgentCase):
    def test_commands_that_come_later(self):
        """Their init has the filter, and the one listener, before any of them is there; a profile changes nothing."""
        profile = self.path("p.json", '{"defaultAction": "SCMP_ACT_ALLOW"}')
        self.start()
        for name, options in (("box", ()), ("walled", ("--seccomp", profile))):
            session = self.create("--name", name, "--no-default-rules", *options)
            for i in range(2):
                done = self.warder("exec", name, PYTHON_IN_SANDBOX, "-c", SC + "print(sc(%d, %d), sc(%d, 0))" % (KCMP, i, MOUNT))
                self.assertCode(done, 0)
                self.assertEqual(done.out.split(), [b"-1", b"-1"])
            self.assertCode(self.warder("kill", name), 0)
            self.wait_sealed(session)
            events = self.events(session)
            self.assertEqual([(e["syscall"], e["vantage"], arg(e, 0), e["proc"]["comm"]) for e in events if e["kind"] == "escape"],
                             [(c, v, n, "python3") for i in range(2) for c, v, n in (("kcmp", "runtime", i), ("mount", "kernel", 0))])


if __name__ == "__main__":
    unittest.main()
