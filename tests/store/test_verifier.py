# SPDX-License-Identifier: Apache-2.0
"""Two verifiers, written apart from each other, must agree on every bundle: tests/store/verify.py, which knows
only FORMAT.md, and store_verify. The C side runs in batches: one process for many bundles."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import verify as independent  # noqa: E402  (needs the path above)

TOOL = os.path.join(os.environ.get("WARDER_BUILD") or os.path.join(ROOT, "build"), "tests", "helpers", "bundle")
STATES = {0: "intact", 1: "altered", 2: "open", 3: "gaps", -1: "none"}


class Case(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.mkdtemp(prefix="warder-verify-")
        self.addCleanup(shutil.rmtree, self.tmp)
        self.pending = []

    def make(self, name, **options):
        path = os.path.join(self.tmp, name)
        os.mkdir(path)
        subprocess.run([TOOL, "make", path] + ["%s=%s" % kv for kv in options.items()], check=True)
        return path

    def copy(self, path, name):
        to = os.path.join(self.tmp, name)
        shutil.copytree(path, to, symlinks=True)
        return to

    def expect(self, path, state=None):
        self.pending.append((path, state))

    def settle(self):
        """Both verifiers over everything that is pending."""
        run = subprocess.run([TOOL, "verify"] + [p for p, _ in self.pending], check=True, stdout=subprocess.PIPE)
        ours = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(len(ours), len(self.pending))
        for (path, want), c in zip(self.pending, ours):
            py = independent.verify(path)
            where = "%s: C says %r, Python says %r" % (os.path.basename(path), c["text"], py["text"])
            for key in ("state", "records", "frames", "gaps", "first_bad", "checkpoints", "signed"):
                self.assertEqual(c[key], py[key], "%s: %s" % (key, where))
            if c["state"] in (0, 3):
                self.assertEqual(c["head"], py["head"], where)
            if want is not None:
                self.assertEqual(STATES[c["state"]], want, where)
        self.pending = []


def read(path, name="events.0001.seg"):
    with open(os.path.join(path, name), "rb") as f:
        return f.read()


def write(path, data, name="events.0001.seg"):
    with open(os.path.join(path, name), "wb") as f:
        f.write(data)


def frames(data):
    """Offsets of the frames, and the end."""
    at, found = 192, []
    while at < len(data):
        found.append(at)
        at += 128 + int.from_bytes(data[at + 24:at + 28], "little")
    return found + [len(data)]


class Shapes(Case):
    def test_all_kinds_of_bundles(self):
        self.expect(self.make("plain", records=100), "intact")
        self.expect(self.make("empty", records=0), "intact")
        self.expect(self.make("one", records=1), "intact")
        self.expect(self.make("gaps", records=50, gaps=9), "gaps")
        self.expect(self.make("segments", records=400, frame=7, segment=1500), "intact")
        self.expect(self.make("open", records=40, seal=0), "open")
        self.expect(self.make("open-segments", records=400, segment=1500, seal=0), "open")
        self.expect(self.make("stored", records=3, big=700000), "intact")
        self.expect(self.make("long-name", records=3, session="a" * 63), "intact")
        nothing = os.path.join(self.tmp, "nothing")
        os.mkdir(nothing)
        self.expect(nothing, "none")
        self.settle()

    def test_command_line(self):
        path = self.make("plain", records=5, gaps=1)
        run = subprocess.run([sys.executable, os.path.join(HERE, "verify.py"), path], stdout=subprocess.PIPE)
        self.assertEqual(run.returncode, 3)
        self.assertIn(b"5 records", run.stdout)

    def test_fallback_to_the_zstd_command(self):
        if not shutil.which("zstd"):
            self.skipTest("no zstd command")
        path = self.make("plain", records=30)
        saved, independent.ZSTD = independent.ZSTD, None
        try:
            self.assertEqual(independent.verify(path)["state"], 0)
        finally:
            independent.ZSTD = saved


class Tampered(Case):
    def setUp(self):
        super().setUp()
        self.good = self.make("good", records=60, frame=10)
        self.data = read(self.good)
        self.at = frames(self.data)

    def variant(self, name, data, state):
        path = self.copy(self.good, name)
        write(path, data)
        self.expect(path, state)

    def test_frames(self):
        d, at = self.data, self.at
        cut = [d[a:b] for a, b in zip(at, at[1:])]
        head = d[:at[0]]
        self.variant("deleted", head + b"".join(cut[:2] + cut[3:]), "altered")
        self.variant("swapped", head + b"".join(cut[:1] + [cut[2], cut[1]] + cut[3:]), "altered")
        self.variant("twice", head + b"".join(cut[:2] + cut[1:]), "altered")
        self.variant("sealed twice", d + cut[-1], "altered")
        self.variant("appended frame", d + cut[0], "altered")
        self.variant("appended byte", d + b"\0", "altered")
        self.variant("appended torn frame", d + cut[0][:100], "altered")
        self.variant("no seal", head + b"".join(cut[:-1]), "open")
        self.variant("half the seal", d[:-100], "open")
        self.variant("at a frame", head + b"".join(cut[:3]), "open")
        self.variant("in a header", d[:at[3] + 60], "open")
        self.variant("in the segment header", d[:100], "open")
        self.variant("empty", b"", "open")
        self.variant("no seal but a tail", head + b"".join(cut[:-1]) + b"x", "altered")
        self.variant("no seal but padding", head + b"".join(cut[:-1]) + b"\0" * len(cut[-1]), "altered")
        self.settle()

    def test_segments(self):
        many = self.make("many", records=400, frame=10, segment=1500)
        other = self.make("other", records=400, frame=10, segment=1500, session="01JOTHER")
        n = len([x for x in os.listdir(many) if x.endswith(".seg")])
        self.assertGreater(n, 4)
        last = "events.%04d.seg" % n
        self.expect(many, "intact")

        def edit(name, state, action):
            path = self.copy(many, "many " + name)
            action(path)
            self.expect(path, state)

        edit("first gone", "altered", lambda p: os.unlink(p + "/events.0001.seg"))
        edit("middle gone", "altered", lambda p: os.unlink(p + "/events.0003.seg"))
        edit("last gone", "open", lambda p: os.unlink(p + "/" + last))
        edit("middle cut", "altered", lambda p: write(p, read(p, "events.0002.seg")[:-1], "events.0002.seg"))
        edit("middle empty", "altered", lambda p: write(p, b"", "events.0002.seg"))
        edit("extra", "altered", lambda p: shutil.copy(p + "/events.0002.seg", p + "/events.0090.seg"))
        edit("foreign name", "altered", lambda p: write(p, b"", "events.x.seg"))
        edit("number zero", "altered", lambda p: write(p, b"", "events.0000.seg"))
        edit("other session", "altered", lambda p: write(p, read(other, "events.0002.seg"), "events.0002.seg"))
        edit("swapped", "altered", lambda p: (os.rename(p + "/events.0002.seg", p + "/x"), os.rename(
            p + "/events.0003.seg", p + "/events.0002.seg"), os.rename(p + "/x", p + "/events.0003.seg")))
        edit("all gone", "altered", lambda p: [os.unlink("%s/events.%04d.seg" % (p, i + 1)) for i in range(n)])
        edit("larger than memory", "altered", lambda p: os.truncate(p + "/" + last, 1 << 38))
        edit("log added", "altered", lambda p: write(p, b"", "checkpoints.log"))
        edit("link", "altered", lambda p: (os.rename(p + "/events.0002.seg", p + "/x"),
                                           os.symlink("x", p + "/events.0002.seg")))
        edit("ignored files", "intact", lambda p: (write(p, b"x", "index.bin"), write(p, b"x", "notes.txt")))
        self.settle()

    def test_manifest(self):
        text = read(self.good, "manifest.json").decode()

        def edit(name, state, new):
            path = self.copy(self.good, "manifest " + name)
            write(path, new.encode(), "manifest.json")
            self.expect(path, state)

        edit("records", "altered", text.replace('"records":60', '"records":61', 1))
        edit("state", "altered", text.replace('"sealed"', '"open"', 1))
        edit("session", "altered", text.replace("01JFIXTURE", "01JFIXTURF"))
        edit("summary", "altered", text.replace('"exec":1', '"exec":2'))
        edit("space", "altered", text + " ")
        edit("empty", "altered", "")
        path = self.copy(self.good, "manifest gone")
        os.unlink(path + "/manifest.json")
        self.expect(path, "altered")
        path = self.copy(self.good, "manifest and seal gone")
        os.unlink(path + "/manifest.json")
        write(path, self.data[:self.at[-2]])
        self.expect(path, "open")
        self.settle()

    def test_random_damage(self):
        rng = random.Random(7)
        for i in range(300):
            d = bytearray(self.data)
            kind = rng.randrange(4)
            if kind == 0:
                d[rng.randrange(len(d))] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del d[rng.randrange(len(d)):]
            elif kind == 2:
                a = rng.randrange(len(d))
                d[a:a] = rng.randbytes(1 + rng.randrange(200))
            else:
                a = rng.randrange(len(d))
                del d[a:a + 1 + rng.randrange(300)]
            self.variant("random %d" % i, bytes(d), "altered" if kind in (0, 2) else None)
        self.settle()

    def test_recomputed_by_somebody_who_knows_the_format(self):
        """The seal's own numbers, with all checksums and hashes right again: nothing inside the bundle speaks
        against it, which FORMAT.md section 8 admits; but one forgotten number does."""
        seal_at = self.at[-2]

        def reseal(name, state, offset, value):
            d = bytearray(self.data)
            d[seal_at + 128 + offset:seal_at + 128 + offset + 8] = value.to_bytes(8, "little")
            crc = independent.crc32c(bytes(d[seal_at + 128:]))
            d[seal_at + 28:seal_at + 32] = crc.to_bytes(4, "little")
            crc = independent.crc32c(bytes(d[seal_at:seal_at + 124]))
            d[seal_at + 124:seal_at + 128] = crc.to_bytes(4, "little")
            self.variant(name, bytes(d), state)

        reseal("same", "intact", 8, 60)
        reseal("records", "altered", 8, 59)
        reseal("frames", "altered", 16, 5)
        reseal("gaps", "altered", 24, 1)
        reseal("bytes", "altered", 32, 1)
        reseal("when", "intact", 40, 1)
        reseal("manifest length", "altered", 56, 1)
        reseal("manifest hash", "altered", 64, 1)
        reseal("reserved", "altered", 96, 1)
        self.settle()


class Terminal(Case):
    """The recording beside the events: bound by events and by the seal."""

    def setUp(self):
        super().setUp()
        self.good = self.make("good", records=8, frame=4, tty=40, segment=900)
        self.n = len([x for x in os.listdir(self.good) if x.startswith("tty.")])
        self.assertGreater(self.n, 3)

    def edit(self, name, state, action, base=None):
        path = self.copy(base or self.good, "tty " + name)
        action(path)
        self.expect(path, state)

    def test_files(self):
        last = "tty.%04d.seg" % self.n
        other = self.make("other", records=8, frame=4, tty=40, segment=900, session="01JOTHER")
        plain = self.make("plain", records=8)
        self.expect(self.good, "intact")
        self.expect(self.make("odd", records=3, tty=41), "intact")
        self.expect(self.make("open", records=3, tty=41, seal=0), "open")
        self.edit("first gone", "altered", lambda p: os.unlink(p + "/tty.0001.seg"))
        self.edit("middle gone", "altered", lambda p: os.unlink(p + "/tty.0002.seg"))
        self.edit("last gone", "altered", lambda p: os.unlink(p + "/" + last))
        self.edit("all gone", "altered", lambda p: [os.unlink("%s/tty.%04d.seg" % (p, i + 1)) for i in range(self.n)])
        self.edit("last cut", "altered", lambda p: write(p, read(p, last)[:-1], last))
        self.edit("appended", "altered", lambda p: write(p, read(p, last) + b"WFRM", last))
        self.edit("swapped", "altered", lambda p: (os.rename(p + "/tty.0002.seg", p + "/x"), os.rename(
            p + "/tty.0003.seg", p + "/tty.0002.seg"), os.rename(p + "/x", p + "/tty.0003.seg")))
        self.edit("events under that name", "altered", lambda p: write(p, read(p), "tty.0001.seg"))
        self.edit("foreign name", "altered", lambda p: write(p, b"", "tty.1.seg"))
        self.edit("other session", "altered", lambda p: write(p, read(other, "tty.0001.seg"), "tty.0001.seg"))
        self.edit("link", "altered", lambda p: (os.rename(p + "/tty.0001.seg", p + "/x"),
                                                os.symlink("x", p + "/tty.0001.seg")))
        self.edit("added", "altered", lambda p: shutil.copy(self.good + "/tty.0001.seg", p), plain)
        self.edit("other name of the same", "intact", lambda p: write(p, b"x", "tty.txt"))
        self.settle()

    def test_frames(self):
        good = self.make("one", records=4, tty=12)
        data = read(good, "tty.0001.seg")
        at = frames(data)
        head, cut = data[:192], [data[a:b] for a, b in zip(at, at[1:])]

        def variant(name, new):
            self.edit(name, "altered", lambda p: write(p, new, "tty.0001.seg"), good)

        variant("deleted", head + b"".join(cut[:2] + cut[3:]))
        variant("swapped", head + b"".join(cut[:1] + [cut[2], cut[1]] + cut[3:]))
        variant("twice", head + b"".join(cut[:2] + cut[1:]))
        variant("cut", head + b"".join(cut[:-1]))
        variant("more", data + cut[-1])
        rng = random.Random(11)
        for i in range(80):
            d = bytearray(data)
            d[rng.randrange(len(d))] ^= 1 << rng.randrange(8)
            variant("flip %d" % i, bytes(d))
        self.settle()

    def test_open(self):
        """Torn behind what events tell is a crash; before it, somebody was there."""
        good = self.make("running", records=4, tty=12, seal=0)
        data = read(good, "tty.0001.seg")
        at = frames(data)
        self.edit("tail torn", "open", lambda p: write(p, data + data[at[0]:at[0] + 50], "tty.0001.seg"), good)
        self.edit("end gone", "altered", lambda p: write(p, data[:at[-2]], "tty.0001.seg"), good)
        self.edit("gone", "altered", lambda p: os.unlink(p + "/tty.0001.seg"), good)
        self.edit("torn inside", "altered", lambda p: write(p, data[:-3], "tty.0001.seg"), good)
        self.settle()

    def test_events_that_lie(self):
        """The events recomputed, the terminal as it was."""
        lines = os.path.join(self.tmp, "lines")
        for i, text in enumerate((
                '"terminal":{"first":1,"last":2,"bytes":4,"head":"%s"}' % ("00" * 32),
                '"terminal":{"first":2,"last":2,"bytes":4,"head":"%s"}' % ("00" * 32),
                '"terminal":{"first":1,"last":0,"bytes":4,"head":"%s"}' % ("00" * 32),
                '"terminal":{"first":1,"last":99999,"bytes":4,"head":"%s"}' % ("00" * 32),
                '"terminal":{"first":1,"last":2}', '"terminal":7')):
            with open(lines, "w", encoding="ascii") as f:
                f.write('{"seq":1,"kind":"exec"}\n{"seq":2,"kind":"terminal",%s}\n' % text)
            self.expect(self.make("lie %d" % i, lines=lines), "altered")
            self.expect(self.make("lie beside %d" % i, lines=lines, tty=4), "altered")
        self.settle()


class Signed(Case):
    def setUp(self):
        super().setUp()
        self.keys, self.other_keys = os.path.join(self.tmp, "keys"), os.path.join(self.tmp, "other keys")
        for path in (self.keys, self.other_keys):
            os.mkdir(path)
            subprocess.run([TOOL, "keys", path], check=True)

    def test_shapes_and_keys(self):
        good = self.make("good", records=30, frame=7, keys=self.keys)
        many = self.make("many", records=60, frame=6, segment=1500, gaps=2, keys=self.keys)
        self.expect(good, "intact")
        self.expect(many, "gaps")
        self.expect(self.make("open", records=20, frame=5, seal=0, keys=self.keys), "open")
        self.expect(self.make("empty", records=0, keys=self.keys), "intact")
        self.settle()
        mine = independent.read_keys(self.keys + "/host.pub")
        theirs = independent.read_keys(self.other_keys + "/host.pub")
        plain = self.make("plain", records=5)
        for path, keys, folder, want in ((good, mine, self.keys, 0), (good, theirs, self.other_keys, 1),
                                         (many, mine, self.keys, 3), (plain, mine, self.keys, 1)):
            self.assertEqual(independent.verify(path, keys)["state"], want)
            run = subprocess.run([TOOL, "verify", path], env=dict(os.environ, KEY=folder), check=True,
                                 stdout=subprocess.PIPE)
            self.assertEqual(json.loads(run.stdout)["state"], want)

    def test_tampered_log(self):
        good = self.make("good", records=24, frame=8, keys=self.keys)
        other = self.make("other", records=24, frame=8, keys=self.keys)
        log, n = read(good, "checkpoints.log"), 288
        self.assertEqual(len(log), 1024 + 4 * n)

        def variant(name, new, state):
            path = self.copy(good, "log " + name)
            write(path, new, "checkpoints.log")
            self.expect(path, state)

        variant("same", log, "intact")
        variant("empty", b"", "open")
        variant("cut", log[:-1], "open")
        variant("no seal", log[:-n], "open")
        variant("added", log + b"W", "altered")
        variant("garbage", log[:-n] + b"x", "altered")
        variant("no genesis", log[1024:], "altered")
        variant("one out", log[:1024 + n] + log[1024 + 2 * n:], "altered")
        variant("twice", log + log[-n:], "altered")
        variant("genesis again", log[:-n] + log[:1024], "altered")
        variant("other's", read(other, "checkpoints.log"), "altered")
        rng = random.Random(3)
        for i in range(40):
            d = bytearray(log)
            d[rng.randrange(len(d))] ^= 1 << rng.randrange(8)
            variant("flip %d" % i, bytes(d), "altered")
        path = self.copy(good, "log gone")
        os.unlink(path + "/checkpoints.log")
        self.expect(path, "altered")
        path = self.copy(good, "log link")
        os.rename(path + "/checkpoints.log", path + "/x")
        os.symlink("x", path + "/checkpoints.log")
        self.expect(path, "altered")
        self.settle()

    def test_other_records_under_a_good_log(self):
        """Everything recomputed, but the signatures are about something else."""
        good = self.make("good", records=24, frame=8, keys=self.keys)
        forged = self.make("forged", records=24, frame=8)
        shutil.copy(good + "/checkpoints.log", forged)
        self.expect(forged, "altered")
        cut = self.make("cut", records=24, frame=8, seal=0, keys=self.keys)
        data = read(cut)
        write(cut, data[:frames(data)[2]])
        self.expect(cut, "open")
        self.settle()

    def test_ed25519_vectors(self):
        """RFC 8032 section 7.1, tests 1 to 3."""
        h = bytes.fromhex
        for key, msg, sig in (
            ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
             "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595"
             "bbe24655141438e7a100b"),
            ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
             "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb43"
             "02aeeb00d291612bb0c00"),
            ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
             "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716"
             "ed28dc027beceea1ec40a")):
            self.assertTrue(independent.ed25519_ok(h(key), h(msg), h(sig)))
            self.assertFalse(independent.ed25519_ok(h(key), h(msg) + b"x", h(sig)))


if __name__ == "__main__":
    unittest.main()
