# SPDX-License-Identifier: Apache-2.0
"""`warder run` from the outside: what it shows, its exit codes, the result record, stdio and signals."""

import json
import os
import re
import signal
import unittest

from warder import *

ULID = re.compile(r"^[0-9A-HJKMNP-TV-Z]{26}$")


def strip(path):
    """/bin/x and /usr/bin/x are one file where /bin is a link."""
    return path[4:] if path.startswith("/usr/") else path


class Events(TestCase):
    def test_a_file_s_life_in_order_with_absolute_paths(self):
        command = "echo hi > /workspace/a; mv /workspace/a /workspace/b; rm /workspace/b"
        s = self.session("sh", "-c", command)
        self.assertCode(s, 0)
        self.assertContiguous(s.events)
        self.assertEqual(s.events[0]["kind"], "session.start")
        self.assertEqual(s.events[-1]["kind"], "session.stop")
        self.assertInOrder(
            s.events,
            {"kind": "exec", "proc.args": ["sh", "-c", command]},
            {"kind": "file.open", "file.path": "/workspace/a", "file.write": True,
             "outcome": "success"},
            {"kind": "exec", "proc.args": ["mv", "/workspace/a", "/workspace/b"]},
            {"kind": "file.rename", "file.old_path": "/workspace/a", "file.path": "/workspace/b"},
            {"kind": "exec", "proc.args": ["rm", "/workspace/b"]},
            {"kind": "file.delete", "file.path": "/workspace/b"})
        self.assertIntact(s)

    def test_relative_names_come_out_absolute(self):
        s = self.session("sh", "-c", "mkdir d; cd d; echo x > f; mv f ../g; rm ../g")
        self.assertCode(s, 0)
        self.assertInOrder(
            s.events,
            {"kind": "file.open", "file.path": "/workspace/d/f"},
            {"kind": "file.rename", "file.old_path": "/workspace/d/f", "file.path": "/workspace/g"},
            {"kind": "file.delete", "file.path": "/workspace/g"})

    def test_exec_tells_who_where_and_from_what(self):
        s = self.session("sh", "-c", "cd /tmp; /bin/sh -c 'exec /bin/true one two'")
        self.assertCode(s, 0)
        last = s.kinds("exec", proc__args=["/bin/true", "one", "two"])
        self.assertEqual(len(last), 1, s.events)
        proc = last[0]["proc"]
        self.assertEqual(strip(proc["exe"]), "/bin/true")
        self.assertEqual(proc["cwd"], "/tmp")
        self.assertEqual(proc["comm"], "true")
        for number in ("pid", "ppid", "uid", "gid", "nspid", "start"):
            self.assertIsInstance(proc[number], int, number)
        self.assertNotEqual(proc["pid"], proc["nspid"])
        self.assertTrue(proc["ancestors"], proc)
        self.assertEqual(proc["ancestors"][0]["pid"], proc["ppid"])

    def test_exit_tells_code_and_signal(self):
        s = self.session("sh", "-c", "sh -c 'exit 5'; sh -c 'kill -USR1 $$'; exit 0")
        self.assertCode(s, 0)
        self.assertTrue(s.kinds("exit", exit__code=5), s.events)
        signals = [field(e, "exit.signal") for e in s.kinds("exit")]
        self.assertTrue({"SIGUSR1", "USR1"} & set(signals), signals)

    def test_100_kib_of_arguments_arrive_whole(self):
        for args in (["x" * 100 * 1024],
                     ["%08d" % i for i in range(100 * 1024 // 9)],
                     ["", "a b", "tab\t", 'quote"', "new\nline", "\u00e4\u20ac"]):
            argv = ["/bin/true", *args]
            s = self.session(*argv)
            self.assertCode(s, 0)
            seen = [e["proc"] for e in s.kinds("exec") if e["proc"]["args"][0] == "/bin/true"]
            self.assertEqual(len(seen), 1)
            self.assertEqual(seen[0]["args"], argv)
            self.assertEqual(seen[0]["args_len"], sum(len(a.encode()) + 1 for a in argv))
            self.assertFalse(seen[0].get("args_truncated"))

    def test_1000_execs_are_1000_events(self):
        s = self.session("sh", "-c",
                         "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done")
        self.assertCode(s, 0)
        self.assertEqual(len(s.kinds("exec", proc__args=["/bin/true"])), 1000)
        self.assertEqual(s.kinds("gap"), [])
        self.assertContiguous(s.events)
        self.assertEqual(s.result["gaps"], 0)
        self.assertIntact(s)

    def test_time_does_not_run_backwards_for_a_process(self):
        s = self.session("sh", "-c", "for i in 1 2 3 4 5; do /bin/true & done; wait")
        self.assertCode(s, 0)
        by_pid = {}
        for e in s.kinds("exec", "exit"):
            by_pid.setdefault(e["proc"]["pid"], []).append((e["mono"], e["kind"]))
        for pid, events in by_pid.items():
            self.assertEqual(events, sorted(events), pid)

    def test_connect_with_its_outcome(self):
        code = ("import socket; s = socket.socket(); s.settimeout(2)\n"
                "try: s.connect(('127.0.0.1', 9))\nexcept OSError: pass\n"
                "u = socket.socket(socket.AF_UNIX)\n"
                "try: u.connect('/tmp/none')\nexcept OSError: pass\n")
        s = self.session(PYTHON_IN_SANDBOX, "-c", code)
        self.assertCode(s, 0)
        tcp = s.kinds("net.connect", net__dst__ip="127.0.0.1", net__dst__port=9)
        self.assertTrue(tcp, s.events)
        self.assertNotEqual(tcp[0]["outcome"], "success")
        self.assertTrue(s.kinds("net.connect", net__path="/tmp/none", outcome="failure"), s.events)

    def test_events_of_another_session_are_not_mixed_in(self):
        one, finish_one = self.start_session("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true one; done")
        two, finish_two = self.start_session("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true two; done")
        for finish, word, other in ((finish_one, "one", "two"), (finish_two, "two", "one")):
            s = finish()
            self.assertCode(s, 0)
            self.assertEqual(len(s.kinds("exec", proc__args=["/bin/true", word])), 8)
            self.assertEqual(s.kinds("exec", proc__args=["/bin/true", other]), [])
            self.assertContiguous(s.events)


class ExitCodes(TestCase):
    def test_the_command_s_own(self):
        for code in (0, 1, 42, 255):
            s = self.session("sh", "-c", "exit %d" % code)
            self.assertCode(s, code)
            self.assertEqual((s.result["reason"], s.result["exit_code"]), ("exit", code))

    def test_128_and_the_signal(self):
        for sig in (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL):
            s = self.session("sh", "-c", "kill -%d $$" % sig)
            self.assertCode(s, 128 + sig)
            self.assertEqual(s.result["reason"], "signal")
            self.assertIn(s.result["signal"], (int(sig), sig.name))

    def test_timeout(self):
        s = self.session("sleep", "300", options=["--timeout", "500ms"])
        self.assertCode(s, 124)
        self.assertEqual(s.result["reason"], "timeout")
        self.assertTrue(s.kinds("limit", limit__type="timeout"), s.events)
        self.assertIntact(s)

    def test_cannot_execute(self):
        for path in ("/etc/passwd", "/usr"):
            s = self.session(path)
            self.assertCode(s, 126)
            self.assertOneLine(s, path)

    def test_not_found(self):
        for path in ("no-such-command", "/no/such/command"):
            s = self.session(path)
            self.assertCode(s, 127)
            self.assertOneLine(s, path)


class ResultRecord(TestCase):
    MEMBERS = {"session", "backend", "reason", "exit_code", "signal", "rule", "action", "started",
               "ended", "cpu_usec", "mem_peak", "pids_peak", "stdout_bytes", "stderr_bytes",
               "truncated", "events", "gaps", "alerts", "degraded", "bundle"}

    def test_members(self):
        s = self.session("sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertCode(s, 3)
        r = s.result
        self.assertEqual(self.MEMBERS - set(r), set())
        self.assertRegex(r["session"], ULID)
        self.assertEqual(r["backend"], "ns")
        self.assertEqual((r["reason"], r["exit_code"]), ("exit", 3))
        self.assertEqual((r["gaps"], r["alerts"]), (0, 0))
        self.assertEqual(r["events"], len(s.events))
        self.assertIsInstance(r["degraded"], list)
        self.assertLess(r["started"], r["ended"])
        self.assertGreater(r["cpu_usec"], 0)
        self.assertGreaterEqual(r["pids_peak"], 1)
        self.assertEqual(os.path.realpath(r["bundle"]), os.path.realpath(s.dir))
        for e in s.events:
            self.assertEqual(e["session"], r["session"])

    def test_it_is_one_json_object(self):
        s = self.session("true")
        with open(s.result_path) as f:
            text = f.read()
        self.assertTrue(text.endswith("}\n"), text)
        json.loads(text)

    def test_without_session_dir_the_state_directory_has_it(self):
        result = self.path("r.json")
        done = self.warder("run", "--result", result, "--", "true")
        self.assertCode(done, 0)
        with open(result) as f:
            r = json.load(f)
        self.assertEqual(os.path.realpath(r["bundle"]), os.path.realpath(
            os.path.join(self.env["WARDER_STATE"], "sessions", r["session"])))
        self.assertCode(self.warder("verify", r["session"]), 0)
        events = self.warder("events", r["session"])
        self.assertCode(events, 0)
        self.assertEqual(len(events.out.splitlines()), r["events"])


class Stdio(TestCase):
    def test_bytes_pass_unchanged(self):
        blob = os.urandom(1 << 20)
        s = self.session("cat", input=blob)
        self.assertCode(s, 0)
        self.assertEqual(len(s.out), len(blob))
        self.assertEqual(s.out, blob)

    def test_stdout_and_stderr_stay_apart(self):
        s = self.session("sh", "-c", "echo to-out; echo to-err >&2")
        self.assertCode(s, 0)
        self.assertEqual((s.out, s.err), (b"to-out\n", b"to-err\n"))

    def test_end_of_input_reaches_the_command(self):
        s = self.session("wc", "-c", input=b"12345")
        self.assertCode(s, 0)
        self.assertEqual(s.out.strip(), b"5")

    def test_a_closed_output_ends_the_command(self):
        proc, finish = self.start_session("yes", stderr=None)
        proc.stdout.read(1)
        proc.stdout.close()
        self.assertEqual(proc.wait(60), 128 + signal.SIGPIPE)

    def test_no_descriptor_of_ours_leaks_in(self):
        with open(self.path("secret", "s")) as f:
            os.set_inheritable(f.fileno(), True)
            s = self.session("sh", "-c", "echo /proc/self/fd/*", close_fds=False)
        self.assertCode(s, 0)
        fds = {int(w.rpartition("/")[2]) for w in s.out.decode().split()}
        # The shell's own descriptor on the directory may be there.
        self.assertLessEqual(len(fds - {0, 1, 2}), 1, s.out)

    def test_closed_descriptors_are_not_filled_with_ours(self):
        """The next file that warder opens must not become the payload's stdin, stdout or stderr."""
        for n in range(3):
            with self.subTest(n):
                told = 1 if n == 2 else 2
                # By a shell of its own: the first would redirect the very descriptor.
                s = self.session("sh", "-c", "sh -c \"readlink /proc/$$/fd/%d >&%d\"; exit 0" % (n, told),
                                 prefix=["sh", "-c", 'exec "$@" %d>&-' % n, "sh"])
                self.assertCode(s, 0)
                # What it says goes to a pipe always, where it is counted.
                self.assertRegex(s.out if told == 1 else s.err, rb"^pipe:\[\d+\]\n$" if n else rb"^/dev/null\n$")
        s = self.session("sh", "-c", "readlink /proc/$$/fd/[012] > /workspace/a; sort -u /workspace/a | grep -x /dev/null",
                         prefix=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
        self.assertCode(s, 0)
        self.assertIntact(s)


class Inherited(TestCase):
    """What a caller may have set for its children."""

    def test_umask_that_masks_the_owner(self):
        sink = self.path("sink")
        s = self.session("sh", "-c", "umask", options=["--export", "file:" + sink],
                         prefix=["sh", "-c", 'umask 0777; exec "$@"', "sh"])
        self.assertCode(s, 0)
        self.assertEqual((s.out, s.err), (b"0022\n", b""))
        self.assertEqual(os.stat(s.result_path).st_mode & 0o777, 0o600)
        with open(sink) as f:
            self.assertEqual(len(f.readlines()), s.result["events"])

    def test_file_size_limit(self):
        """Hit in the middle of set-up: an error in words, not a dead warder beside half a sandbox."""
        s = self.session("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sh -c : ; done",
                         prefix=["sh", "-c", 'ulimit -f 4; exec "$@"', "sh"])
        self.assertCode(s, 125)
        self.assertIn(b"File too large", s.err)


class ClosingLine(TestCase):
    def test_one_line_says_how_it_ended(self):
        done = self.warder("run", "--session-dir", self.path("dir"), "--", "sh", "-c", "exit 4")
        self.assertCode(done, 4)
        self.assertOneLine(done, "exit code 4", self.path("dir"))


class Signals(TestCase):
    def test_forwarded_and_answered(self):
        for sig in ("TERM", "INT", "HUP"):
            with self.subTest(sig):
                proc, finish = self.start_session(
                    "sh", "-c", "trap 'echo got; exit 7' %s; echo ready; while :; do sleep 0.05; done"
                    % sig)
                self.assertEqual(proc.stdout.readline(), b"ready\n")
                proc.send_signal(getattr(signal, "SIG" + sig))
                s = finish()
                self.assertCode(s, 7)
                self.assertEqual(s.out, b"got\n")
                self.assertEqual(s.result["reason"], "exit")
                self.assertIntact(s)

    def test_unhandled_ends_the_command(self):
        proc, finish = self.start_session("sh", "-c", "echo ready; exec sleep 300")
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        proc.terminate()
        s = finish()
        self.assertCode(s, 128 + signal.SIGTERM)
        self.assertEqual(s.result["reason"], "signal")

    def test_killed_warder_leaves_no_process(self):
        """SIGKILL of warder itself: what it ran must not go on unwatched."""
        before = own_cgroups()
        proc, _ = self.start_session("sh", "-c", "echo ready; exec sleep 300.25")
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        proc.kill()
        proc.wait()

        def gone():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open("/proc/%s/cmdline" % pid, "rb") as f:
                        if f.read() == b"sleep\x00300.25\x00":
                            return False
                except OSError:
                    pass
            return True
        wait_for("the sandbox to end with its keeper", gone)
        # Its control groups are swept when the next one starts.
        self.assertCode(self.session("true"), 0)
        wait_for("no control group of ours", lambda: not own_cgroups() - before)


class Isolation(TestCase):
    def test_the_host_is_out_of_reach(self):
        secret = self.path("host-secret", "x")
        s = self.session("sh", "-c",
                         "test ! -e %s && ! touch /usr/x && ! touch /etc/x && test $(ls /proc | grep -c '^[0-9]') "
                         "-lt 6" % secret)
        self.assertCode(s, 0)

    def test_no_privilege(self):
        s = self.session("sh", "-c", "grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status")
        self.assertCode(s, 0)
        got = dict(line.split(":") for line in s.out.decode().split("\n") if line)
        got = {k: v.strip() for k, v in got.items()}
        zero = "0" * 16
        self.assertEqual(got, {"CapEff": zero, "CapPrm": zero, "CapBnd": zero, "NoNewPrivs": "1",
                               "Seccomp": "2"})

    def test_no_network_but_loopback(self):
        s = self.session("sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1")
        self.assertCode(s, 0)
        self.assertEqual(s.out.split(), [b"lo"])

    def test_a_bound_directory(self):
        os.mkdir(self.path("in"))
        os.mkdir(self.path("out"))
        os.chmod(self.path("out"), 0o777)
        os.chmod(self.tmp, 0o755)
        self.path("in/data", "given\n")
        s = self.session("sh", "-c", "cat %s/data > %s/copy && ! touch %s/x"
                         % (self.path("in"), self.path("out"), self.path("in")),
                         options=["--ro", self.path("in"), "--rw", self.path("out")])
        self.assertCode(s, 0)
        with open(self.path("out/copy")) as f:
            self.assertEqual(f.read(), "given\n")

    def test_environment_is_not_inherited(self):
        env = dict(self.env, AWS_SECRET_ACCESS_KEY="leak")
        s = self.session("env", env=env, options=["--env", "GIVEN=yes"])
        self.assertCode(s, 0)
        self.assertIn(b"GIVEN=yes\n", s.out)
        self.assertNotIn(b"leak", s.out)


if __name__ == "__main__":
    unittest.main()
