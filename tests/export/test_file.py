# SPDX-License-Identifier: Apache-2.0
"""The file sink as a process: a disk that is really full, log rotation, stdout and pipes, kill -9."""

import fcntl
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed, Journal, read_json_lines  # noqa: E402
from warder import TestCase, need_root, wait_for  # noqa: E402


class File(TestCase):
    def setUp(self):
        super().setUp()
        self.journal = Journal(self.path("journal"), "S1")
        self.out = self.path("out.jsonl")

    def feed(self, *options, prefix=(), out=None):
        sink = ",".join(("file:" + (out or self.out), "name=f") + options)
        feed = Feed(self.journal.path, self.tmp, "S1", sink, prefix=prefix)
        self.addCleanup(feed.kill)
        return feed

    def ids(self, path=None, is_written_to=False):
        return [r["id"] for r in read_json_lines(path or self.out, is_written_to)]

    def test_whole_and_in_order(self):
        self.journal.add(20000)
        row = self.feed().drain()
        self.assertEqual((row["acked"], row["poison"], row["errors"]), (20000, 0, 0))
        self.assertEqual(self.ids(), self.journal.ids)

    def test_full_disk(self):
        need_root()
        disk = self.path("disk")
        os.mkdir(disk)
        mount = "mount -t tmpfs -o size=1m none '%s' && exec \"$@\"" % disk
        feed = self.feed(out=disk + "/out", prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
        self.journal.add(10000)
        row = wait_for("the disk to fill", lambda: self.is_full(feed))
        self.assertFalse(row["up"])
        inside = "/proc/%d/root%s/out" % (feed.proc.pid, disk)
        # It is tried again and again: what did not fit whole is there for a moment, and taken back.
        got = wait_for("file and status to agree", lambda: self.is_told(feed, inside))
        self.assertEqual(got, self.journal.ids[:len(got)])
        # The operator moves the file away and makes room: what was in it plus what comes is all. Not emptied and
        # removed: between the two it could be written to.
        os.rename(inside, inside + ".old")
        subprocess.run(["nsenter", "-t", str(feed.proc.pid), "-m", "mount", "-o",
                        "remount,size=64m", disk], check=True)
        row = feed.drain()
        self.assertTrue(row["up"])
        came = self.ids(inside) if os.path.exists(inside) else []
        self.assertEqual(self.ids(inside + ".old") + came, self.journal.ids)

    @staticmethod
    def is_full(feed):
        row = feed.status()
        return row if "No space left" in row["text"] else None

    def is_told(self, feed, path):
        got = self.ids(path, is_written_to=True)
        return got if feed.status()["acked"] == len(got) else None

    def test_rotated(self):
        self.journal.add(100)
        feed = self.feed()
        feed.drain()
        os.rename(self.out, self.out + ".1")
        self.journal.add(100)
        feed.ask("reopen")
        feed.drain()
        self.assertEqual(self.ids(self.out + ".1") + self.ids(), self.journal.ids)

    def test_rotation_with_two_writers(self):
        """By size, under another writer's hands: every line is in one file, whole; files stay small."""
        other = Journal(self.path("other"), "S2")
        options = ("rotate-size=200K", "sync=no")
        feeds = [self.feed(*options), Feed(other.path, self.tmp, "S2", ",".join(("file:" + self.out,) + options))]
        self.addCleanup(feeds[1].kill)
        for _ in range(20):
            self.journal.add(200)
            other.add(200)
            for f in feeds:
                f.drain()
        files = sorted(f for f in os.listdir(self.tmp) if f.startswith("out.jsonl"))
        self.assertGreater(len(files), 5)
        got = {"S1": [], "S2": []}
        for name in sorted(files[1:], key=self.age) + files[:1]:
            self.assertLess(os.path.getsize(self.path(name)), 500000, name)
            for id in self.ids(self.path(name)):
                got[id[:2]].append(id)
        self.assertEqual(sorted(got["S1"]), sorted(self.journal.ids))
        self.assertEqual(sorted(got["S2"]), sorted(other.ids))

    @staticmethod
    def age(name):
        stamp, _, n = name[len("out.jsonl."):].partition("-")
        return stamp, int(n or 0)

    def test_rotation_keeps_few(self):
        feed = self.feed("rotate-size=20K", "keep=3")
        for _ in range(12):
            self.journal.add(100)
            feed.drain()
        moved = sorted((f for f in os.listdir(self.tmp) if f.startswith("out.jsonl.")), key=self.age)
        self.assertEqual(len(moved), 3)
        got = [id for name in moved + ["out.jsonl"] for id in self.ids(self.path(name))]
        self.assertEqual(got, self.journal.ids[-len(got):])

    def test_rotation_that_is_not_allowed(self):
        """The directory is not ours: it is told, and nothing stops."""
        need_root()
        folder = self.path("theirs")
        os.mkdir(folder)
        os.chmod(self.tmp, 0o777)
        os.chmod(self.journal.path, 0o644)
        out = self.path("theirs/out.jsonl")
        with open(out, "w"):
            pass
        os.chmod(out, 0o666)
        feed = self.feed("rotate-size=1K", out=out, prefix=("setpriv", "--reuid", "65534", "--clear-groups"))
        self.journal.add(50)
        feed.drain()
        self.journal.add(50)
        row = feed.drain()
        self.assertIn("cannot rotate", row["text"])
        self.assertEqual(self.ids(out), self.journal.ids)

    def test_somebody_sits_on_the_lock(self):
        """Whoever may read the file can lock it: told, nothing else waits, and nothing is lost."""
        self.journal.add(10)
        feed = self.feed("name=f")
        feed.drain()
        feed.stop()
        with open(self.out) as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            feed = Feed(self.journal.path, self.tmp, "S1", "file:%s,name=f" % self.out, "file:%s,name=g" % self.path("g"))
            self.addCleanup(feed.kill)
            self.journal.add(10)
            row = wait_for("a word about the lock",
                           lambda: feed.row("f") if "locked by another" in feed.row("f")["text"] else None)
            self.assertEqual((row["acked"], row["up"]), (10, False))
            wait_for("the other sink", lambda: feed.row("g")["acked"] == 20)
        self.assertEqual(feed.drain()["text"], "")
        self.assertEqual(self.ids(), self.journal.ids)

    def test_bad_settings(self):
        for option in ("keep=0", "keep=-1", "keep=many", "rotate-size=large", "rotate-size=-1", "rotate-age=old",
                       "sync=maybe", "rate=0", "required=perhaps"):
            done = subprocess.run(Feed.argv(self.journal.path, self.tmp, "S1", "file:%s,%s" % (self.out, option)),
                                  capture_output=True, text=True, timeout=60, input="end\n")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), option)
            for word in option.split("="):
                self.assertIn("'%s'" % word, done.stderr)

    def test_two_writers_of_one_file(self):
        other = Journal(self.path("other"), "S2")
        feeds = [self.feed(), Feed(other.path, self.tmp, "S2", "file:" + self.out)]
        self.addCleanup(feeds[1].kill)
        for _ in range(20):
            self.journal.add(500)
            other.add(500)
            for f in feeds:
                f.status()
        for f in feeds:
            f.drain()
        got = self.ids()
        self.assertEqual([i for i in got if i.startswith("S1-")], self.journal.ids)
        self.assertEqual([i for i in got if i.startswith("S2-")], other.ids)

    def test_killed(self):
        """Nothing is lost, no half line stays; what was not acknowledged comes again."""
        for _ in range(5):
            self.journal.add(5000)
            feed = self.feed("sync=no")
            feed.status()
            wait_for("some progress", lambda: os.path.exists(self.out) and
                     os.path.getsize(self.out) > 0)
            feed.kill()
        self.feed().drain()
        seen = {}
        for r in read_json_lines(self.out):
            self.assertEqual(seen.setdefault(r["id"], r), r)
        self.assertEqual(list(seen), self.journal.ids)

    def test_slow_reader_on_stdout(self):
        self.journal.add(3000)
        read, write = os.pipe()
        argv = Feed.argv(self.journal.path, self.tmp, "S1", "file:-")
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=write) as proc:
            os.close(write)
            with os.fdopen(read) as f:  # asks for no status: the answer would share the pipe
                lines = [f.readline() for _ in range(3000)]
                proc.stdin.close()
                self.assertEqual(f.read(), "")
        self.assertEqual([json.loads(x)["id"] for x in lines], self.journal.ids)


if __name__ == "__main__":
    unittest.main()
