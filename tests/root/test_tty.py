# SPDX-License-Identifier: Apache-2.0
"""`run --tty` at a real pty: what a person at a terminal expects of it, and what a payload must not get from it."""

import base64
import hashlib
import json
import os
import re
import signal
import termios
import time
import unittest
import zlib

from terminal import Terminal
from warder import *

PY = PYTHON_IN_SANDBOX


class Tty(TestCase):
    def start(self, *command, options=(), rows=24, cols=80, env=None):
        folder, argv = self.session_argv(command, ["--tty", *options])
        t = Terminal(argv, rows, cols, {**self.env, "TERM": "xterm-256color", **(env or {})})
        self.addCleanup(t.__exit__)
        t.folder = folder
        return t

    def finish(self, t, code):
        """The session; and the terminal must be as it was."""
        got = t.end()
        s = Session(Done_like(t, got), t.folder)
        self.assertEqual(got, code, s)
        self.assertEqual(t.modes, t.before)
        return s

    def cast(self, s, form="cast"):
        done = self.warder("export", "--format", form, s.dir)
        self.assertCode(done, 0)
        rows = [json.loads(line) for line in done.out.splitlines()]
        return rows[0], rows[1:]


class Done_like:
    def __init__(self, t, code):
        self.argv, self.code, self.out, self.err = ["warder", "run", "--tty"], code, t.out, b""


class Person(Tty):
    def test_a_terminal_of_its_own(self):
        t = self.start(PY, "-c", r"""
import os
print([os.ttyname(fd) for fd in range(3)], os.get_terminal_size(), os.environ["TERM"])
print(os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpgrp(), os.ttyname(os.open("/dev/tty", os.O_RDWR)))
os.write(2, b"to stderr\n")
""", rows=33, cols=99)
        s = self.finish(t, 0)
        self.assertIn(b"['/dev/pts/0', '/dev/pts/0', '/dev/pts/0'] os.terminal_size(columns=99, lines=33) "
                      b"xterm-256color\r\nTrue True /dev/tty\r\nto stderr\r\n", t.out)
        self.assertEqual((s.result["stdout_bytes"], s.result["stderr_bytes"]), (len(t.out), 0))
        self.assertEqual(s.kinds("exec")[0]["proc"]["tty"], "pts0")
        self.assertIntact(s)
        head, rows = self.cast(s)
        self.assertEqual((head["width"], head["height"]), (99, 33))
        self.assertEqual("".join(r[2] for r in rows if r[1] == "o").encode(), t.out)

    def test_not_at_a_terminal(self):
        s = self.session("true", options=["--tty"])
        self.assertCode(s, 125)
        self.assertOneLine(s, "--tty", "not a terminal")
        self.assertFalse(os.path.exists(s.dir))

    def test_a_word_that_is_no_terminal_type(self):
        t = self.start("sh", "-c", "echo $TERM", env={"TERM": "$(id)"})
        self.finish(t, 0)
        self.assertEqual(t.out, b"xterm\r\n")

    def test_typed_and_ended(self):
        t = self.start("cat")
        t.type("hello\r")
        t.expect(b"hello\r\nhello\r\n")
        self.assertNotEqual(t.modes, t.before)
        t.type("\x04")
        self.finish(t, 0)

    def test_interrupt(self):
        t = self.start("sh", "-c", "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.1; done")
        t.expect(b"ready")
        t.type("\x03")
        t.expect(b"caught")
        self.finish(t, 7)
        t = self.start("cat")
        t.type("x\r")
        t.expect(b"x\r\nx")
        t.type("\x1c")
        s = self.finish(t, 131)
        self.assertEqual((s.result["reason"], s.result["signal"]), ("signal", signal.SIGQUIT))

    def test_job_control(self):
        # One process: a shell that is stopped between vfork and exec of a child waits for that and does not stop.
        job = ("import os, signal\nsignal.signal(signal.SIGCONT, lambda *_: os.write(1, b'woken'))\n"
               "os.write(1, b'started')\nwhile True:\n    signal.pause()")
        t = self.start("sh", "-i", options=["--env", "PS1=ready> ", "--env", "JOB=" + job])
        t.expect(b"ready> ")
        t.type('python3 -c "$JOB"\r')
        t.expect(b"started")
        t.type("\x1a")
        t.expect(b"Stopped")
        t.expect(b"ready> ")
        t.type("fg\r")
        t.expect(b"woken")
        t.type("\x03")
        t.expect(b"ready> ")
        t.type("echo $((40 + 2)); exit 5\r")
        t.expect(b"42")
        self.finish(t, 5)

    def test_size(self):
        t = self.start("sh", "-c", "trap 'stty size' WINCH; echo ready; while :; do read x && exit; done", rows=20, cols=60)
        t.expect(b"ready")
        t.resize(41, 123)
        t.expect(b"41 123")
        t.type("\r")
        s = self.finish(t, 0)
        head, rows = self.cast(s)
        self.assertEqual((head["width"], head["height"]), (60, 20))
        self.assertIn("123x41", [r[2] for r in rows if r[1] == "r"])

    def test_the_screen_is_given_back_however_it_ends(self):
        for code, command, options, reason in (
                (0, "exit 0", [], "exit"),
                (137, "kill -9 $$", [], "signal"),
                (139, "kill -SEGV $$", [], "signal"),
                (124, "exec sleep 1000", ["--timeout", "2s"], "timeout"),
                (137, "unshare -m true; sleep 1000", [], "rule"),
                (137, "cat /dev/zero", ["--max-output", "100k", "--kill-output"], "output_limit")):
            with self.subTest(command):
                t = self.start("sh", "-c", "printf '\\033[?1049h\\033[?25l'; " + command, options=options)
                s = self.finish(t, code)
                self.assertEqual(s.result["reason"], reason)
                if code:
                    self.assertIn(b"\x1b[?1047l", t.out)
                    self.assertIn(b"\x1b[?25h", t.out)
        t = self.start("/no/such/command")
        self.finish(t, 127)

    def test_signals_from_outside(self):
        for sig, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            t = self.start("sh", "-c", "echo ready; exec sleep 1000")
            t.expect(b"ready")
            os.kill(t.pid, sig)
            self.finish(t, code)

    def test_continued(self):
        """Stopped and continued, by a shell that has set its own modes in between."""
        t = self.start("cat")
        t.type("a\r")
        t.expect(b"a\r\na\r\n")
        raw = t.modes
        os.kill(t.pid, signal.SIGSTOP)
        os.waitpid(t.pid, os.WUNTRACED)
        termios.tcsetattr(t.slave, termios.TCSANOW, t.before)
        os.kill(t.pid, signal.SIGCONT)
        t.until("raw modes", lambda: t.modes == raw)
        t.type("b\r\x04")
        t.expect(b"b\r\nb")
        self.finish(t, 0)

    def test_hung_up(self):
        t = self.start("sh", "-c", "echo ready; exec cat")
        t.expect(b"ready")
        t.hang_up()
        wait_for("the end", lambda: os.path.exists(os.path.join(t.folder, "result.json")))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]), 128 + signal.SIGHUP)
        t.code = 0
        s = Session(Done_like(t, 129), t.folder)
        self.assertEqual((s.result["reason"], s.result["signal"]), ("signal", signal.SIGHUP))
        self.assertIntact(s)

    def test_a_stopped_sandbox_can_be_left(self):
        rules = self.path("r.yaml", "- rule: Stop it\n  desc: d\n  output: o\n  priority: ALERT\n"
                                    "  condition: kind = exec and proc.exe endswith /id\n  action: freeze\n")
        t = self.start("sh", "-c", "echo ready; id; sleep 1000", options=["--no-default-rules", "--rules", rules])
        t.expect(b"is stopped")
        t.type("\x03")
        s = self.finish(t, 137)
        self.assertIntact(s)


class Hostile(Tty):
    def test_nothing_of_the_host(self):
        """Its own devpts only: one pty; no way to the operator's terminal, or to the master."""
        t = self.start(PY, "-c", r"""
import os, stat
print("LIST", sorted(os.listdir("/dev/pts")))
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        fds = os.listdir("/proc/%s/fd" % pid)
    except OSError as e:
        print("FDS", pid, e.strerror)
        continue
    for fd in fds:
        try:
            st = os.stat("/proc/%s/fd/%s" % (pid, fd))
        except OSError:
            continue
        if stat.S_ISCHR(st.st_mode):
            print("FD", pid, fd, os.major(st.st_rdev), os.minor(st.st_rdev), st.st_dev == os.stat("/dev/pts").st_dev)
print("SELF", os.getpid())
""")
        self.finish(t, 0)
        text = t.out.decode()
        self.assertIn("LIST ['0', 'ptmx']", text)
        self.assertIn("FDS 1 Permission denied", text)
        me = re.search(r"SELF (\d+)", text).group(1)
        self.assertEqual(sorted(re.findall(r"FD (\d+) (\d+) (\d+) (\d+) (\w+)", text)),
                         [(me, str(fd), "136", "0", "True") for fd in range(3)])

    def test_keys_cannot_be_forged(self):
        t = self.start(PY, "-c", r"""
import fcntl, os, termios
for name, code, arg in (("TIOCSTI", 0x5412, b"x"), ("TIOCLINUX", 0x541c, b"\x06")):
    for high in (0, 1 << 32):
        try:
            fcntl.ioctl(0, (code | high) & 0xffffffff, arg)
            print(name, "worked")
        except OSError as e:
            print(name, e.strerror)
""")
        self.finish(t, 0)
        self.assertEqual(t.out, b"".join(n + b" Operation not permitted\r\n" for n in
                                         (b"TIOCSTI", b"TIOCSTI", b"TIOCLINUX", b"TIOCLINUX")))

    def test_questions_to_the_terminal_are_answered(self):
        """As they come, both ways: that is what a person at a terminal wants."""
        t = self.start("sh", "-c", r"stty -icanon -echo; printf '\033[6n\033]52;c;aGk=\007'; head -c 6 | od -c")
        t.expect(b"\x1b[6n\x1b]52;c;aGk=\x07")
        t.type("\x1b[9;7R")
        t.expect(b"033   [   9   ;   7   R")
        s = self.finish(t, 0)
        done = self.warder("replay", "--tty", s.dir)
        self.assertNotIn(b"[6n", done.out)
        self.assertNotIn(b"]52", done.out)

    def test_a_flood(self):
        t = self.start("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo done")
        t.expect(b"done")
        s = self.finish(t, 0)
        self.assertEqual(t.out, b"x" * 3000000 + b"\r\ndone\r\n")
        self.assertEqual(s.result["stdout_bytes"], len(t.out))
        self.assertFalse(s.result["truncated"])
        self.assertIntact(s)

    def test_a_cap(self):
        t = self.start("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x", options=["--max-output", "1000"])
        s = self.finish(t, 0)
        self.assertEqual(t.out, b"x" * 1000)
        self.assertEqual((s.result["stdout_bytes"], s.result["truncated"]), (300000, True))
        self.assertTrue(s.kinds("limit"))

    def test_who_reads_nothing_is_still_interrupted(self):
        """What the pty does not take waits, bounded; ^C goes past it."""
        t = self.start("sh", "-c", "stty -echo -icanon; echo ready; exec sleep 1000")
        t.expect(b"ready")
        t.type(b"y" * 100000)
        t.type("\x03")
        self.finish(t, 130)

    def test_all_of_a_long_paste_arrives(self):
        t = self.start("sh", "-c", "stty -echo -icanon; echo ready; head -c 500000 | sha256sum")
        t.expect(b"ready")
        text = b"".join(b"%06d\n" % n for n in range(500000 // 7 + 1))[:500000]
        t.type(text)
        t.expect(hashlib.sha256(text).hexdigest())
        self.finish(t, 0)

    def test_closed_and_opened_again(self):
        """Without a process that has it open the pty has no end: it can be opened again."""
        t = self.start(PY, "-c", r"""
import os, time
for fd in range(3):
    os.close(fd)
time.sleep(0.3)
os.write(os.open("/dev/pts/0", os.O_RDWR), b"again\n")
""")
        t.expect(b"again\r\n")
        self.finish(t, 0)

    def test_others_stay_behind(self):
        """A child with another session has the terminal open: it ends with the sandbox, and so does the run."""
        t = self.start("sh", "-c", "setsid sh -c 'echo child; >/tmp/told; sleep 1000' & "
                       "until test -e /tmp/told; do sleep 0.05; done; echo parent")
        self.finish(t, 0)
        self.assertIn(b"child\r\n", t.out)
        self.assertIn(b"parent\r\n", t.out)


class Input(Tty):
    def test_recorded_but_for_what_is_not_shown(self):
        t = self.start("sh", "-c", "read a; stty -echo; echo hidden; read p; stty echo; echo shown; read b; echo \"$a$b\"",
                       options=["--record", "input"])
        t.type("first\r")
        t.expect(b"hidden")
        t.type("s3cret\r")
        t.expect(b"shown")
        t.type("last\r")
        t.expect(b"firstlast")
        s = self.finish(t, 0)
        head, rows = self.cast(s)
        typed = "".join(r[2] for r in rows if r[1] == "i")
        self.assertEqual(re.sub("[\r\n]", "", typed), "firstlast")
        for root, _, files in os.walk(s.dir):
            for name in files:
                with open(os.path.join(root, name), "rb") as f:
                    self.assertNotIn(b"s3cret", f.read())
        for form in ("cast3", "text", "json"):
            self.assertNotIn(b"s3cret", self.warder("export", "--format", form, s.dir).out)
        self.assertIntact(s)

    def test_secrets_are_taken_out(self):
        """Typed key by key, with a slip that is rubbed out: in no record, and no export of one."""
        token = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ4sT6vW8yZ0cF2hJ4lM6"
        t = self.start("sh", "-c", "echo ready; read a; read b; echo done", options=["--record", "input"])
        t.expect(b"ready")
        for text in (token, token[:7] + "?\x7f" + token[7:]):
            for c in text:
                t.type(c)
                time.sleep(0.02)
            t.type("\r")
        t.expect(b"done")
        s = self.finish(t, 0)
        head, rows = self.cast(s)
        for kind in "io":
            text = "".join(r[2] for r in rows if r[1] == kind)
            self.assertEqual(text.count("[redacted:github-token:"), 2, kind)
            self.assertNotIn(token[-12:], text)
        page = self.path("page.html")
        self.assertCode(self.warder("report", s.dir, "-o", page), 0)
        with open(page, "rb") as f:
            data = f.read().split(b'id="data">', 1)[1].split(b"</script>", 1)[0]
        found = [zlib.decompress(base64.b64decode(b"".join(data.split())), -15)]
        for form in ("cast", "cast3", "text", "json"):
            found.append(self.warder("export", "--format", form, s.dir).out)
        for name in os.listdir(s.dir):
            if os.path.isfile(os.path.join(s.dir, name)):
                with open(os.path.join(s.dir, name), "rb") as f:
                    found.append(f.read())
        for data in found:
            self.assertNotIn(token[-12:].encode(), data)
        self.assertEqual(sum(e.get("redactions", 0) for e in s.kinds("terminal")), 4)
        self.assertIntact(s)

    def test_not_recorded_unless_told(self):
        t = self.start("sh", "-c", "stty -echo; echo ready; read a; echo got")
        t.expect(b"ready")
        t.type("unseen\r")
        t.expect(b"got")
        s = self.finish(t, 0)
        head, rows = self.cast(s)
        self.assertEqual([r for r in rows if r[1] == "i"], [])

    def test_only_with_a_terminal(self):
        s = self.session("true", options=["--record", "input"])
        self.assertCode(s, 125)
        self.assertIn(b"--tty", s.err)


if __name__ == "__main__":
    unittest.main()
