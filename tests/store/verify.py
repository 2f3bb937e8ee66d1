#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent verifier for session bundles, written from userspace/store/FORMAT.md alone.

    verify.py DIR          exit code 0 intact, 1 altered, 2 open or cut, 3 intact with gaps, 4 no bundle
    verify.py --json DIR...

Python's own library and libzstd (or the zstd command); shares no line with Warder."""

import ctypes
import ctypes.util
import hashlib
import json
import os
import re
import stat
import struct
import subprocess
import sys

OK, ALTERED, OPEN, GAPS, NO_BUNDLE = 0, 1, 2, 3, -1
SEGMENT_LEN, FRAME_LEN, SEAL_LEN = 192, 128, 160
RECORD_MAX, FRAME_RAW_MAX, MANIFEST_MAX = 1 << 20, 256 << 10, 4 << 20
SESSION = re.compile(rb"\A[0-9A-Za-z._-]{1,63}\Z")


class Altered(Exception):
    def __init__(self, text, seq=0):
        super().__init__(text)
        self.seq = seq


class Unsealed(Exception):
    """The data ends here, whole or inside a frame."""


# ---- primitives ----

def _crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


CRC_TABLE = _crc_table()


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = CRC_TABLE[(c ^ b) & 255] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def sha256(*parts):
    h = hashlib.sha256()
    for p in parts:
        h.update(p)
    return h.digest()


def _load_zstd():
    try:
        lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    except OSError:
        return None
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    lib.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    lib.ZSTD_isError.argtypes = [ctypes.c_size_t]
    return lib


ZSTD = _load_zstd()


def unzstd(data, size):
    """Exactly `size` bytes, or None."""
    if ZSTD:
        out = ctypes.create_string_buffer(size)
        got = ZSTD.ZSTD_decompress(out, size, data, len(data))
        return None if ZSTD.ZSTD_isError(got) or got != size else out.raw
    run = subprocess.run(["zstd", "-q", "-d", "-c"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return run.stdout if run.returncode == 0 and len(run.stdout) == size else None


def read_regular(path, limit):
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as f:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("no regular file")
        return f.read(limit) if limit else f.read()


# ---- the parts ----

def parse_segment_header(b, number):
    if b[:8] != b"WARDSEG\n":
        raise Altered("not a segment")
    if struct.unpack_from("<I", b, 188)[0] != crc32c(b[:188]):
        raise Altered("segment header checksum")
    version, length, kind, no, zero, first, created = struct.unpack_from("<HHIIIQQ", b, 8)
    if (version, length, kind, zero) != (1, SEGMENT_LEN, 1, 0) or any(b[168:188]):
        raise Altered("segment header fields")
    session = b[40:104].rstrip(b"\0")
    if not SESSION.match(session) or no != number or first < 1:
        raise Altered("segment header fields")
    return {"session": session.decode(), "first": first, "prev": b[104:136], "head": b[136:168]}


def parse_frame_header(b):
    if b[:4] != b"WFRM":
        raise Altered("no frame begins here")
    if struct.unpack_from("<I", b, 124)[0] != crc32c(b[:124]):
        raise Altered("frame header checksum")
    kind, codec, length, first, n, raw, comp, crc = struct.unpack_from("<BBHQIIII", b, 4)
    if length != FRAME_LEN or any(b[112:124]) or codec > 1 or (kind not in (1, 2) and kind < 128):
        raise Altered("frame header fields")
    if not 1 <= comp <= raw <= 4 + RECORD_MAX or (comp == raw) != (codec == 0):
        raise Altered("frame lengths")
    if kind == 1 and (n < 1 or raw < 5 * n or (raw > FRAME_RAW_MAX and n != 1)):
        raise Altered("frame lengths")
    if kind != 1 and n != 0:
        raise Altered("frame without records has some")
    if kind == 2 and (codec != 0 or raw != SEAL_LEN):
        raise Altered("seal length")
    return {"type": kind, "codec": codec, "first": first, "n": n, "raw": raw, "comp": comp, "crc": crc,
            "prev": b[48:80], "head": b[80:112]}


def no_doubles(pairs):
    known = ("format", "version", "state", "session", "records", "frames", "gaps", "bytes", "segment_count", "head")
    names = [k for k, _ in pairs]
    if any(names.count(k) > 1 for k in known):
        raise ValueError("a member twice")
    return dict(pairs)


def parse_manifest(text):
    """The object, or None when it is no manifest."""
    try:
        m = json.loads(text, object_pairs_hook=no_doubles)
        if m["format"] != "warder-bundle" or m["version"] != 1 or m["state"] not in ("open", "sealed"):
            return None
        if not SESSION.match(m["session"].encode()):
            return None
        if m["state"] == "sealed":
            for k in ("records", "frames", "gaps", "bytes", "segment_count"):
                if type(m[k]) is not int or m[k] < 0:
                    return None
        return m
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class Bundle:
    def __init__(self, path):
        self.path = path
        self.records = self.frames = self.bytes = 0
        self.next, self.h, self.f = 1, b"", b"\0" * 32
        self.session = None
        self.seal = None

    def report(self, state, text, first_bad=0, gaps=0):
        return {"state": state, "records": self.records, "frames": self.frames, "gaps": gaps,
                "first_bad": first_bad, "head": self.h.hex(), "text": text}

    def verify(self):
        names = os.listdir(self.path)
        numbers = []
        for name in names:
            if name.startswith("events.") and name.endswith(".seg"):
                m = re.match(r"\Aevents\.([0-9]{4})\.seg\Z", name)
                if not m or m.group(1) == "0000":
                    return self.report(ALTERED, "foreign file %r" % name)
                numbers.append(int(m.group(1)))
        self.load_manifest(names)
        if not numbers:
            if self.manifest_text is None:
                return self.report(NO_BUNDLE, "no bundle")
            is_open = self.manifest and self.manifest["state"] == "open"
            return self.report(OPEN if is_open else ALTERED, "no segment")
        self.last = max(numbers)
        self.on_disk = sum(os.stat(os.path.join(self.path, "events.%04d.seg" % n), follow_symlinks=False).st_size
                           for n in numbers)
        try:
            for number in range(1, self.last + 1):
                self.segment(number)
            return self.check_seal()
        except Altered as e:
            return self.report(ALTERED, str(e), e.seq or self.next)
        except Unsealed as e:
            m = self.manifest
            if m and m["state"] == "sealed":
                if self.on_disk >= m["bytes"]:
                    return self.report(ALTERED, "%s, though nothing is missing" % e, self.next)
                return self.report(OPEN, "%s; the end is missing" % e, self.next)
            return self.report(OPEN, "%s; not sealed" % e)

    def load_manifest(self, names):
        self.manifest_text = self.manifest = None
        if "manifest.json" in names:
            try:
                self.manifest_text = read_regular(os.path.join(self.path, "manifest.json"), MANIFEST_MAX + 1)
            except OSError:
                self.manifest_text = b""
            if len(self.manifest_text) <= MANIFEST_MAX:
                self.manifest = parse_manifest(self.manifest_text)

    def segment(self, number):
        try:
            data = read_regular(os.path.join(self.path, "events.%04d.seg" % number), 0)
        except OSError as e:
            raise Altered("events.%04d.seg: %s" % (number, e), self.next)
        last = number == self.last
        if len(data) < SEGMENT_LEN:
            if last:
                raise Unsealed("events.%04d.seg ends inside its header" % number)
            raise Altered("events.%04d.seg is cut" % number)
        head = parse_segment_header(data[:SEGMENT_LEN], number)
        if number == 1:
            self.session = head["session"]
            self.h = sha256(b"warder events 1\0", self.session.encode().ljust(64, b"\0"))
        if self.manifest and self.manifest["session"] != head["session"]:
            raise Altered("another session than the manifest's")
        if (head["session"], head["first"], head["prev"], head["head"]) != (self.session, self.next, self.f, self.h):
            raise Altered("events.%04d.seg does not follow the one before" % number)
        self.f = sha256(data[:SEGMENT_LEN])
        at = SEGMENT_LEN
        while at < len(data):
            if self.seal:
                raise Altered("bytes behind the seal")
            at = self.frame(data, at, last)
        self.bytes += len(data)
        if last and not self.seal:
            raise Unsealed("no seal")
        if self.seal and not last:
            raise Altered("a segment behind the seal")

    def frame(self, data, at, last):
        left = len(data) - at
        if left < FRAME_LEN and data[at:at + 4] == b"WFRM"[:min(4, left)]:
            return self.torn(last)
        if left < FRAME_LEN:
            raise Altered("no frame begins here")
        header = data[at:at + FRAME_LEN]
        h = parse_frame_header(header)
        if left < FRAME_LEN + h["comp"]:
            return self.torn(last)
        payload = data[at + FRAME_LEN:at + FRAME_LEN + h["comp"]]
        if crc32c(payload) != h["crc"]:
            raise Altered("payload checksum")
        if h["prev"] != self.f or h["first"] != self.next:
            raise Altered("frame does not follow")
        f = sha256(header, payload)
        chain, n = self.h, 0
        if h["type"] == 1:
            raw = payload if h["codec"] == 0 else unzstd(payload, h["raw"])
            if raw is None:
                raise Altered("does not unpack")
            chain, n = self.run_records(raw)
            if n != h["n"]:
                raise Altered("number of records")
        if h["head"] != chain:
            raise Altered("record hash")
        if h["type"] == 2:
            self.seal = self.parse_seal(payload)
        self.f, self.h = f, chain
        self.records += n
        self.next += n
        self.frames += h["type"] == 1
        return at + FRAME_LEN + h["comp"]

    def torn(self, last):
        if last:
            raise Unsealed("the file ends inside a frame")
        raise Altered("cut inside a frame")

    def run_records(self, raw):
        chain, n, at = self.h, 0, 0
        while at < len(raw):
            if len(raw) - at < 4:
                raise Altered("records do not fit")
            size = struct.unpack_from("<I", raw, at)[0]
            if not 1 <= size <= min(RECORD_MAX, len(raw) - at - 4):
                raise Altered("records do not fit")
            chain = sha256(chain, raw[at:at + 4 + size])
            at += 4 + size
            n += 1
        return chain, n

    @staticmethod
    def parse_seal(b):
        if b[:8] != b"WARDSEAL" or any(b[52:56]) or any(b[96:160]):
            raise Altered("seal fields")
        keys = ("records", "frames", "gaps", "bytes", "sealed", "segments", "zero", "manifest_len")
        seal = dict(zip(keys, struct.unpack_from("<QQQQQIIQ", b, 8)))
        if seal["manifest_len"] > MANIFEST_MAX:
            raise Altered("seal fields")
        seal["hash"] = b[64:96]
        return seal

    def check_seal(self):
        s, m, text = self.seal, self.manifest, self.manifest_text
        if (s["records"], s["frames"], s["bytes"], s["segments"]) != (self.records, self.frames, self.bytes, self.last):
            return self.report(ALTERED, "the seal does not fit", self.next)
        if text is None:
            return self.report(ALTERED, "the manifest is missing")
        if len(text) != s["manifest_len"] or sha256(text) != s["hash"]:
            return self.report(ALTERED, "the manifest is another one")
        same = m and m["state"] == "sealed" and m["session"] == self.session and m["head"] == self.h.hex() and (
            m["records"], m["frames"], m["gaps"], m["bytes"], m["segment_count"]) == (
            s["records"], s["frames"], s["gaps"], s["bytes"], s["segments"])
        if not same:
            return self.report(ALTERED, "manifest and records contradict each other")
        if s["gaps"]:
            return self.report(GAPS, "intact, with gaps", 0, s["gaps"])
        return self.report(OK, "intact")


def verify(path):
    return Bundle(path).verify()


def main(argv):
    if not argv or argv == ["--json"] or (argv[0] != "--json" and len(argv) != 1):
        print(__doc__, file=sys.stderr)
        return 64
    if argv[0] == "--json":
        for path in argv[1:]:
            print(json.dumps(verify(path)))
        return 0
    rep = verify(argv[0])
    print("%s: %s; %d records, head %s" % (argv[0], rep["text"], rep["records"], rep["head"]))
    return 4 if rep["state"] == NO_BUNDLE else rep["state"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
