# SPDX-License-Identifier: Apache-2.0
"""A person at a terminal: a program on a real pty, keys typed into it, and what is on the screen.

    with Terminal(["warder", "run", "--tty", "--", "cat"], env=env) as t:
        t.type("hello\\r")
        t.expect(b"hello")
        t.type("\\x04")
        self.assertEqual(t.end(), 0)
"""

import errno
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
import unittest

from warder import SLOW

LIMIT = 60 * SLOW  # seconds; ends a test that has failed anyway


class Terminal:
    def __init__(self, argv, rows=24, cols=80, env=None):
        self.out, self.seen, self.code = b"", 0, None
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                for fd in range(3):
                    os.dup2(self.slave, fd)
                os.closerange(3, 256)
                os.execve(argv[0], argv, env if env is not None else os.environ)
            finally:
                os._exit(99)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hang_up()
        if self.code is None:
            for sig, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 20)):
                os.kill(self.pid, sig)
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    if os.waitpid(self.pid, os.WNOHANG)[0]:
                        return
                    time.sleep(0.02)

    def hang_up(self):
        for name in ("slave", "master"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
            setattr(self, name, -1)

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    @property
    def modes(self):
        return termios.tcgetattr(self.slave)

    def type(self, keys):
        """All of it, while what comes back is read: a terminal does both."""
        left = keys.encode() if isinstance(keys, str) else keys
        os.set_blocking(self.master, False)
        end = time.monotonic() + LIMIT
        while left:
            if time.monotonic() > end:
                raise AssertionError("%d bytes could not be typed; shown: %r" % (len(left), self.out[-500:]))
            self.read(0)
            try:
                left = left[os.write(self.master, left[:4096]):]
            except BlockingIOError:
                time.sleep(0.01)
        os.set_blocking(self.master, True)

    def read(self, seconds):
        """What is shown within so many seconds. False: nothing, or the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            got = os.read(self.master, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            return False
        self.out += got
        return bool(got)

    def expect(self, text, timeout=LIMIT):
        """Wait until that is shown, after what the last call has found. Returns all up to there."""
        text = text.encode() if isinstance(text, str) else text
        end = time.monotonic() + timeout
        while text not in self.out[self.seen:]:
            if time.monotonic() > end:
                raise AssertionError("waited for %r; shown since: %r" % (text, self.out[self.seen:][-2000:]))
            self.read(0.1)
        at = self.out.index(text, self.seen) + len(text)
        found, self.seen = self.out[self.seen:at], at
        return found

    def until(self, what, fn, timeout=LIMIT):
        end = time.monotonic() + timeout
        while not fn():
            if time.monotonic() > end:
                raise AssertionError("waited for %s; shown: %r" % (what, self.out[-2000:]))
            self.read(0.05)

    def end(self):
        """Wait for the program's end; its exit code as a shell shows it. All it wrote is in .out."""
        limit = time.monotonic() + LIMIT
        while self.code is None:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code
            elif time.monotonic() > limit:
                raise AssertionError("still running; shown: %r" % self.out[-2000:])
        while self.read(0.05):
            pass
        return self.code


class Screen:
    """What the terminal of a Terminal shows, by an emulator of another make (pyte)."""

    def __init__(self, terminal, rows=24, cols=80):
        try:
            import pyte
        except ImportError:
            sys.path.append("/usr/lib/python3/dist-packages")  # the distribution's, for another Python
            try:
                import pyte
            except ImportError:
                raise unittest.SkipTest("python3-pyte is not installed (make deps)")
        self.terminal, self.fed = terminal, 0
        self.screen = pyte.Screen(cols, rows)
        self.stream = pyte.ByteStream(self.screen)

    @property
    def rows(self):
        self.stream.feed(self.terminal.out[self.fed:])
        self.fed = len(self.terminal.out)
        return [row.rstrip() for row in self.screen.display]

    def resize(self, rows, cols):
        self.screen.resize(rows, cols)
        self.terminal.resize(rows, cols)

    def until(self, fn):
        """Wait until fn(rows) is true."""
        try:
            self.terminal.until("that", lambda: fn(self.rows))
        except AssertionError:
            raise AssertionError("waited for it; on the screen:\n" + "\n".join(self.rows))
