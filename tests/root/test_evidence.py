# SPDX-License-Identifier: Apache-2.0
"""The bundle on disk: any change shows."""

import json
import os
import random
import shutil
import unittest

from terminal import Terminal
from warder import *


class Verify(TestCase):
    def setUp(self):
        super().setUp()
        self.s = self.session("sh", "-c", "echo hi > /workspace/a; rm /workspace/a")
        self.assertCode(self.s, 0)
        self.assertIntact(self.s)

    def test_any_flipped_byte(self):
        """Each byte of the head and the tail of each segment, and a sample between. Hashes don't depend on
        the kernel: a few bytes do where each process takes ten times as long."""
        edge, between = (10, 10) if IN_VM else (200, 200)
        for path in self.s.segments():
            with open(path, "rb") as f:
                data = f.read()
            places = list(range(len(data)))
            if len(places) > 2 * edge + between:
                middle = random.Random(1).sample(places[edge:-edge], between)
                places = places[:edge] + sorted(middle) + places[-edge:]
            for at in places:
                bit = 1 << (at % 8)
                with open(path, "r+b") as f:
                    f.seek(at)
                    f.write(bytes([data[at] ^ bit]))
                    f.flush()
                    done = self.s.verify()
                    f.seek(at)
                    f.write(data[at:at + 1])
                if done.code != 1:
                    self.fail("byte %d of %d, bit %#x: %s" % (at, len(data), bit, done))
        self.assertIntact(self.s)

    def test_cut_off_end(self):
        path = self.s.segments()[-1]
        size = os.path.getsize(path)
        for cut in (1, size // 2, size):
            os.truncate(path, size)
            shutil.copy(path, self.path("keep"))
            os.truncate(path, size - cut)
            done = self.s.verify()
            self.assertIn(done.code, (1, 2), done)
            shutil.copy(self.path("keep"), path)
        self.assertIntact(self.s)

    def test_missing_segment(self):
        os.rename(self.s.segments()[0], self.path("away"))
        self.assertIn(self.s.verify().code, (1, 2))

    def test_something_appended(self):
        with open(self.s.segments()[-1], "ab") as f:
            f.write(b"x")
        self.assertCode(self.s.verify(), 1)

    def test_not_a_bundle(self):
        os.mkdir(self.path("empty"))
        for path in (self.path("empty"), self.path("none")):
            done = self.warder("verify", path)
            self.assertNotEqual(done.code, 0)
            self.assertEqual(done.out, b"")
            self.assertOneLine(done, path)

    def test_a_bar_for_who_waits(self):
        """On a terminal, and gone when it is done; nothing of it elsewhere."""
        with Terminal([WARDER, "verify", self.s.dir], 24, 80, {**self.env, "TERM": "xterm"}) as t:
            self.assertEqual(t.end(), 0, t.out)
        self.assertIn(b"\rverifying [" + 30 * b"#" + b"] 100%\r\x1b[Kintact", t.out)
        done = self.warder("verify", self.s.dir)
        self.assertEqual(done.err, b"")

    def test_as_json(self):
        import json
        done = self.s.verify("--json")
        self.assertCode(done, 0)
        self.assertEqual(json.loads(done.out)["records"], len(self.s.events))

    def test_not_readable_by_others(self):
        for path in [self.s.dir] + [os.path.join(self.s.dir, f) for f in os.listdir(self.s.dir)]:
            self.assertEqual(os.stat(path).st_mode & 0o007, 0, path)

    def test_a_used_directory_is_not_written_again(self):
        done = self.warder("run", "--session-dir", self.s.dir, "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, self.s.dir)
        self.assertIntact(self.s)

    def test_a_directory_without_a_record_is_no_empty_record(self):
        os.mkdir(self.path("empty"))
        for command in ("events", "verify"):
            done = self.warder(command, self.path("empty"))
            self.assertCode(done, 125)
            self.assertOneLine(done, "no session bundle")
        done = self.warder("export", self.path("empty"), "file:" + self.path("out"))
        self.assertCode(done, 125)

    def test_the_host_s_sessions_come_before_directories_of_that_name(self):
        """What a payload wrote where the operator stands must not pass for the record."""
        done = self.warder("run", "--result", self.path("r.json"), "--", "true")
        self.assertCode(done, 0)
        with open(self.path("r.json")) as f:
            session = json.load(f)["session"]
        os.mkdir(self.path("here"))
        shutil.copytree(self.s.dir, os.path.join(self.path("here"), session))
        for word in (session, session.lower(), session[-8:]):
            done = self.warder("verify", "--json", word, cwd=self.path("here"))
            self.assertCode(done, 0)
            self.assertEqual(json.loads(done.out)["session"], session)

    def test_another_session_in_its_place(self):
        """Each proves itself; the one asked for is another."""
        ids = []
        for _ in range(2):
            self.assertCode(self.warder("run", "--result", self.path("r.json"), "--", "true"), 0)
            with open(self.path("r.json")) as f:
                ids.append(json.load(f)["session"])
        sessions = os.path.join(self.env["WARDER_STATE"], "sessions")
        shutil.rmtree(os.path.join(sessions, ids[0]))
        shutil.copytree(os.path.join(sessions, ids[1]), os.path.join(sessions, ids[0]))
        self.assertCode(self.warder("verify", ids[1]), 0)
        done = self.warder("verify", "--json", ids[0])
        self.assertCode(done, 1)
        for part in ids:
            self.assertIn(part, json.loads(done.out)["text"])

    def test_output_that_cannot_be_written(self):
        """Bytes that were lost are told, however early that was; a reader that has gone is no error."""
        for words in (["events"], ["replay", "--events"], ["report"], ["verify"], ["export", "--format", "ocsf"]):
            done = cmd("sh", "-c", '"$@" > /dev/full', "sh", WARDER, words[0], self.s.dir, *words[1:])
            self.assertCode(done, 125)
            self.assertIn(b"writing the output", done.err)
        done = cmd("sh", "-c", '"$0" events "$1" | true; "$0" events "$1" | head -n 1', WARDER, self.s.dir)
        self.assertEqual((done.code, done.err), (0, b""), done)

    READERS = (["events"], ["replay", "--events"], ["replay", "--tty"], ["replay", "--default-rules"], ["export", "--format", "json"],
               ["export", "--format", "cast"])

    def told_by_all(self, *words):
        """Whatever reads the record says that it is not whole, with the same exit code."""
        for command in self.READERS:
            done = self.warder(command[0], self.s.dir, *command[1:])
            self.assertCode(done, 125)
            for word in words:
                self.assertIn(word, done.err, done)
        done = self.warder("export", "--all", self.s.dir, "file:" + self.path("out"))
        self.assertCode(done, 125)
        for command in (["diff", self.s.dir], ["diff", "--workspace"]):
            self.assertCode(self.warder(*command, self.s.dir), 125)

    def test_cut_and_appended_are_told_by_all_readers(self):
        path = self.s.segments()[-1]
        with open(path, "rb") as f:
            good = f.read()
        for made, words in ((good + good, [b"added behind the seal"]), (good + b"x", [b"added behind the seal"]),
                            (good[:-1], [b"cut", b"warder verify"]), (good[:len(good) // 2], [b"cut", b"warder verify"])):
            with open(path, "wb") as f:
                f.write(made)
            self.told_by_all(*words)
        with open(path, "wb") as f:
            f.write(good)
        other = path.replace("0001", "0002")
        shutil.copy(path, other)
        self.told_by_all()
        os.unlink(other)
        self.assertIntact(self.s)
        for command in self.READERS:
            self.assertCode(self.warder(command[0], self.s.dir, *command[1:]), 0)

    def test_a_terminal_that_was_cut_or_added_to_is_told_by_all_readers(self):
        self.s = self.session("sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done; : > /workspace/a")
        path = os.path.join(self.s.dir, "tty.0001.seg")
        with open(path, "rb") as f:
            good = f.read()
        # Within a frame, of a frame and more, all of it; a byte, a frame and a segment behind it.
        for made, word in ((good[:-1], b"cut"), (good[:len(good) // 2], b"cut"), (b"", b"cut"), (None, b"cut"),
                           (good + b"x", b"added to"), (good + good[100:], b"added to")):
            if made is None:
                os.unlink(path)
            else:
                with open(path, "wb") as f:
                    f.write(made)
            self.assertCode(self.warder("verify", self.s.dir), 1)
            self.told_by_all()
            for command in (["events"], ["export", "--format", "json"]):
                self.assertIn(word, self.warder(command[0], self.s.dir, *command[1:]).err)
        with open(path, "wb") as f:
            f.write(good)
        for name in ("tty.0002.seg", "tty.0003.seg"):
            shutil.copy(path, os.path.join(self.s.dir, name))
            self.told_by_all()
            os.unlink(os.path.join(self.s.dir, name))
        self.assertIntact(self.s)
        for command in self.READERS:
            self.assertCode(self.warder(command[0], self.s.dir, *command[1:]), 0)

    def test_events_of_a_cut_record(self):
        path = self.s.segments()[-1]
        os.truncate(path, os.path.getsize(path) // 2)
        done = self.warder("events", self.s.dir)
        self.assertCode(done, 125)
        self.assertOneLine(done, "warder verify")


if __name__ == "__main__":
    unittest.main()
