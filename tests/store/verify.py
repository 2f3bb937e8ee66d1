#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent verifier for session bundles, written from userspace/store/FORMAT.md alone.

    verify.py [--key FILE] DIR      exit code 0 intact, 1 altered, 2 open or cut, 3 intact with gaps, 4 no bundle
    verify.py --json DIR...

FILE holds host keys, a line each, as in the host's host.pub: then the bundle must be signed by one of them.

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
BLOB_MAX = 64 * 1024
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


class File:
    """A regular file as bytes that are read where they are looked at: one can be larger than memory."""
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        st = os.fstat(self.fd)
        self.size = st.st_size
        if not stat.S_ISREG(st.st_mode):
            raise OSError("no regular file")

    def __del__(self):
        if hasattr(self, "fd"):
            os.close(self.fd)

    def __len__(self):
        return self.size

    def __getitem__(self, part):
        start, stop, _ = part.indices(self.size)
        data = os.pread(self.fd, max(stop - start, 0), start)
        if len(data) < stop - start:
            raise Altered("a file was cut while it was read")
        return data


def read_regular(path, limit):
    """A file of at most that many bytes; of a longer one the beginning."""
    return File(path)[:limit]


# ---- Ed25519, RFC 8032 section 5.1.7; slow and simple ----

P = 2 ** 255 - 19
ORDER = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def _recover_x(y, sign):
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * SQRT_M1 % P
    if (x * x - x2) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def _point(b):
    y = int.from_bytes(b, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x = _recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def _add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _mul(n, p):
    r = (0, 1, 1, 0)
    while n:
        if n & 1:
            r = _add(r, p)
        p = _add(p, p)
        n >>= 1
    return r


_BY = 4 * pow(5, P - 2, P) % P
BASE = (_recover_x(_BY, 0), _BY, 1, _recover_x(_BY, 0) * _BY % P)


def ed25519_ok(key, message, sig):
    a, r = _point(key), _point(sig[:32])
    s = int.from_bytes(sig[32:], "little")
    if a is None or r is None or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(sig[:32] + key + message).digest(), "little") % ORDER
    left, right = _mul(s, BASE), _add(r, _mul(k, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# ---- Merkle trees ----

def node(left, right):
    return sha256(b"\x01", left, right)


class Tree:
    """RFC 6962 over a growing list: roots of complete subtrees, the largest first."""

    def __init__(self, other=None):
        self.peaks = list(other.peaks) if other else []

    def add(self, entry):
        size, h = 1, sha256(b"\0", entry)
        while self.peaks and self.peaks[-1][0] == size:
            h = node(self.peaks.pop()[1], h)
            size *= 2
        self.peaks.append((size, h))

    def root(self):
        if not self.peaks:
            return sha256(b"")
        h = self.peaks[-1][1]
        for _, left in reversed(self.peaks[:-1]):
            h = node(left, h)
        return h


# ---- the parts ----

def parse_segment_header(b, number, want=1):
    if b[:8] != b"WARDSEG\n":
        raise Altered("not a segment")
    if struct.unpack_from("<I", b, 188)[0] != crc32c(b[:188]):
        raise Altered("segment header checksum")
    version, length, kind, no, zero, first, created = struct.unpack_from("<HHIIIQQ", b, 8)
    if (version, length, kind, zero) != (1, SEGMENT_LEN, want, 0) or any(b[168:188]):
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
    known = ("format", "version", "state", "session", "records", "frames", "gaps", "bytes", "segment_count", "head", "redactions", "terminal")
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
            if type(m.get("redactions", 0)) is not int:
                return None
            if "terminal" in m and any(type(m["terminal"][k]) is not int or m["terminal"][k] < 0 for k in ("bytes", "segment_count")):
                return None
        return m
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class Log:
    """checkpoints.log, entry by entry."""

    def __init__(self, data, keys):
        self.data, self.keys = data, keys
        self.at = self.index = 0
        self.prev, self.key, self.host = b"\0" * 32, None, None
        self.ended = False
        self.entry = None

    def peek(self):
        """The next entry, checked; None at the end, "torn" inside one."""
        left = len(self.data) - self.at
        if self.entry or not left:
            return self.entry
        magic = self.data[self.at:self.at + 4]
        size = {b"WGEN": 1024, b"WCKP": 288}.get(magic)
        if size is None:
            if left < 4 and (b"WGEN".startswith(magic) or b"WCKP".startswith(magic)):
                return "torn"
            raise Altered("no entry begins here")
        if left < size:
            return "torn"
        self.entry = self.check(self.data[self.at:self.at + size])
        return self.entry

    def check(self, b):
        if self.ended:
            raise Altered("an entry behind the end")
        kind, zero, size, index, seq, segment, redactions, offset = struct.unpack_from("<BBHQQIIQ", b, 4)
        if zero or size != len(b) or kind > 2 or (kind == 0) != (len(b) == 1024):
            raise Altered("entry fields")
        if index != self.index or b[192:224] != self.prev:
            raise Altered("entry does not follow")
        next_key = b[160:192]
        if kind == 0:
            self.check_genesis(b)
        elif self.key is None:
            raise Altered("no genesis")
        elif not ed25519_ok(self.key, b[:224], b[224:]):
            raise Altered("signature")
        elif any(next_key) != (kind == 1):
            raise Altered("entry fields")
        return {"kind": kind, "seq": seq, "place": (segment, offset), "h": b[64:96], "f": b[96:128],
                "root": b[128:160], "redactions": redactions, "next": next_key, "bytes": b,
                "session": b[224:288].rstrip(b"\0") if kind == 0 else None}

    def check_genesis(self, b):
        epoch, depth = struct.unpack_from("<II", b, 352)
        if not SESSION.match(b[224:288].rstrip(b"\0")) or any(b[360:384]) or any(b[896:960]) or depth > 16:
            raise Altered("entry fields")
        if any(b[384 + 32 * depth:896]) or epoch >> depth:
            raise Altered("entry fields")
        host, key = b[288:320], b[320:352]
        h = sha256(b"\0", struct.pack("<I", epoch), key)
        for k in range(depth):
            other = b[384 + 32 * k:416 + 32 * k]
            h = node(other, h) if epoch >> k & 1 else node(h, other)
        if h != host or not ed25519_ok(key, b[:320], b[960:]):
            raise Altered("the host did not sign it")
        if self.keys and host not in self.keys:
            raise Altered("signed by none of the keys given")
        if not self.keys and self.host not in (None, host):
            raise Altered("signed by another host")
        self.host = host

    def take(self):
        e, self.entry = self.entry, None
        self.at += len(e["bytes"])
        self.index += 1
        self.prev, self.key, self.ended = sha256(e["bytes"]), e["next"], e["kind"] == 2


class Terminal:
    """tty.NNNN.seg, frame by frame."""

    def __init__(self, path, session, last):
        self.path, self.session, self.last = path, session, last
        self.number, self.data, self.at, self.next = 0, b"", 0, 1
        self.f = b"\0" * 32
        self.h = sha256(b"warder terminal 1\0", session.encode().ljust(64, b"\0"))

    def step(self):
        """True: one frame or segment header more; None: the end; "torn"."""
        if self.at == len(self.data):
            return self.enter()
        left = len(self.data) - self.at
        if left < FRAME_LEN and self.data[self.at:self.at + 4] != b"WFRM"[:min(4, left)]:
            raise Altered("tty: no frame begins here")
        h = parse_frame_header(self.data[self.at:self.at + FRAME_LEN]) if left >= FRAME_LEN else None
        if not h or left < FRAME_LEN + h["comp"]:
            if self.number < self.last:
                raise Altered("tty: cut")
            return "torn"
        whole = self.data[self.at:self.at + FRAME_LEN + h["comp"]]
        payload = whole[FRAME_LEN:]
        if crc32c(payload) != h["crc"] or h["prev"] != self.f or h["first"] != self.next or h["type"] == 2:
            raise Altered("tty: frame")
        chain, n = self.h, 0
        if h["type"] == 1:
            raw = payload if h["codec"] == 0 else unzstd(payload, h["raw"])
            if raw is None:
                raise Altered("tty: does not unpack")
            at = 0
            while at < len(raw):
                size = struct.unpack_from("<I", raw, at)[0] if len(raw) - at >= 4 else 0
                if not 1 <= size <= min(RECORD_MAX, len(raw) - at - 4):
                    raise Altered("tty: records do not fit")
                chain = sha256(chain, raw[at:at + 4 + size])
                at += 4 + size
                n += 1
        if n != h["n"] or h["head"] != chain:
            raise Altered("tty: records")
        self.f, self.h = sha256(whole), chain
        self.next += n
        self.at += len(whole)
        return True

    def enter(self):
        if self.number == self.last:
            return None
        self.number += 1
        try:
            data = File(os.path.join(self.path, "tty.%04d.seg" % self.number))
        except OSError as e:
            raise Altered("tty.%04d.seg: %s" % (self.number, e))
        if len(data) < SEGMENT_LEN:
            self.data, self.at = data, 0
            return "torn"
        head = parse_segment_header(data[:SEGMENT_LEN], self.number, 2)
        if (head["session"], head["first"], head["prev"], head["head"]) != (self.session, self.next, self.f, self.h):
            raise Altered("tty.%04d.seg does not follow" % self.number)
        self.data, self.at, self.f = data, SEGMENT_LEN, sha256(data[:SEGMENT_LEN])
        return True

    def reach(self, record):
        """What a `terminal` event says."""
        m = re.search(rb'"terminal":\{"first":(\d{1,19}),"last":(\d{1,19}),"bytes":\d{1,19},"head":"([0-9a-f]{64})"\}', record)
        if not m:
            raise Altered("a terminal event is malformed")
        first, last = int(m.group(1)), int(m.group(2))
        if first != self.next or last < first:
            raise Altered("a terminal event does not follow")
        while self.next <= last:
            if self.step() is not True:
                raise Altered("the terminal's end is missing")
        if self.next != last + 1 or self.h.hex() != m.group(3).decode():
            raise Altered("the terminal has another hash")

    def finish(self, seal):
        """All that is left; `seal`: its f, or None when there is no seal."""
        while True:
            got = self.step()
            if got == "torn" and seal is not None:
                raise Altered("the terminal is cut")
            if got is not True:
                break
        if seal is not None and seal != (self.f if self.number else b"\0" * 32):
            raise Altered("the terminal is not the one that was sealed")


class Bundle:
    def __init__(self, path, keys=()):
        self.path = path
        self.keys = keys
        self.log, self.tree = None, None
        self.checkpoints = self.signed = 0
        self.records = self.frames = self.bytes = 0
        self.next, self.h, self.f = 1, b"", b"\0" * 32
        self.session = None
        self.seal = None
        self.tty, self.tty_last = None, 0
        self.redactions = 0
        self.blobs = set()

    def report(self, state, text, first_bad=0, gaps=0):
        return {"state": state, "records": self.records, "frames": self.frames, "gaps": gaps,
                "first_bad": first_bad, "head": self.h.hex(), "text": text, "checkpoints": self.checkpoints,
                "signed": state in (OK, GAPS) and self.log is not None}

    def verify(self):
        names = os.listdir(self.path)
        numbers = []
        for name in names:
            if name.startswith("events.") and name.endswith(".seg"):
                m = re.match(r"\Aevents\.([0-9]{4})\.seg\Z", name)
                if not m or m.group(1) == "0000":
                    return self.report(ALTERED, "foreign file %r" % name)
                numbers.append(int(m.group(1)))
            if name.startswith("tty.") and name.endswith(".seg"):
                m = re.match(r"\Atty\.([0-9]{4})\.seg\Z", name)
                if not m or m.group(1) == "0000":
                    return self.report(ALTERED, "foreign file %r" % name)
                self.tty_last = max(self.tty_last, int(m.group(1)))
        self.load_manifest(names)
        if not numbers and self.manifest_text is None:
            return self.report(NO_BUNDLE, "no bundle")
        if not numbers:
            is_open = self.manifest and self.manifest["state"] == "open"
            return self.report(OPEN if is_open else ALTERED, "no segment")
        if "checkpoints.log" in names:
            try:
                self.log = Log(File(os.path.join(self.path, "checkpoints.log")), self.keys)
            except OSError as e:
                return self.report(ALTERED, "checkpoints.log: %s" % e)
            self.tree = Tree()
        elif self.keys:
            return self.report(ALTERED, "not signed")
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
            wrong = self.check_tty_end(None) if self.session else None
            if wrong:
                return wrong
            m = self.manifest
            if m and m["state"] == "sealed":
                if self.on_disk >= m["bytes"]:
                    return self.report(ALTERED, "%s, though nothing is missing" % e, self.next)
                return self.report(OPEN, "%s; the end is missing" % e, self.next)
            if self.log and self.log.entry:
                return self.report(OPEN, "%s; more was signed" % e, self.next)
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
            data = File(os.path.join(self.path, "events.%04d.seg" % number))
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
            self.tty = Terminal(self.path, self.session, self.tty_last)
        if self.manifest and self.manifest["session"] != head["session"]:
            raise Altered("another session than the manifest's")
        if (head["session"], head["first"], head["prev"], head["head"]) != (self.session, self.next, self.f, self.h):
            raise Altered("events.%04d.seg does not follow the one before" % number)
        self.f = sha256(data[:SEGMENT_LEN])
        at = SEGMENT_LEN
        self.reached(number, at)
        while at < len(data):
            if self.seal:
                raise Altered("bytes behind the seal")
            at = self.frame(data, at, last)
            self.reached(number, at)
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
        chain, n, tree = self.h, 0, self.tree
        if h["type"] == 1:
            raw = payload if h["codec"] == 0 else unzstd(payload, h["raw"])
            if raw is None:
                raise Altered("does not unpack")
            chain, n, tree = self.run_records(raw)
            if n != h["n"]:
                raise Altered("number of records")
        if h["head"] != chain:
            raise Altered("record hash")
        if h["type"] == 2:
            self.seal = self.parse_seal(payload)
        self.f, self.h, self.tree = f, chain, tree
        if h["type"] == 1:
            self.redactions = min(self.redactions + self.count_redactions(raw), 2 ** 32 - 1)
            self.run_marks(raw)
        self.records += n
        self.next += n
        self.frames += h["type"] == 1
        return at + FRAME_LEN + h["comp"]

    def reached(self, number, at):
        while self.log:
            try:
                e = self.log.peek()
                if e in (None, "torn") or e["place"] > (number, at):
                    return
                same = e["place"] == (number, at) and e["seq"] == self.records and e["h"] == self.h
                same = same and e["redactions"] == self.redactions
                same = same and e["f"] == self.f and e["root"] == self.tree.root()
                if e["kind"] == 0:
                    same = same and e["session"] == self.session.encode()
                else:
                    same = same and (e["kind"] == 2) == (self.seal is not None)
                if not same:
                    raise Altered("what was signed is not what is there")
                self.log.take()
            except Altered as why:
                raise Altered("checkpoints.log, entry %d: %s" % (self.log.index, why), self.signed + 1) from None
            self.checkpoints += 1
            self.signed = self.records

    def check_log_end(self):
        """None, or the report."""
        if not self.log:
            return self.report(ALTERED, "checkpoints.log is missing") if any(self.seal["root"]) else None
        if not any(self.seal["root"]):
            return self.report(ALTERED, "checkpoints.log was added")
        try:
            e = self.log.peek()
        except Altered as why:
            return self.report(ALTERED, "checkpoints.log: %s" % why, self.signed + 1)
        if e not in (None, "torn") or (e == "torn" and self.log.ended):
            return self.report(ALTERED, "checkpoints.log goes on", self.signed + 1)
        if not self.log.ended:
            return self.report(OPEN, "the last signature is missing", self.signed + 1)
        if self.tree.root() != self.seal["root"]:
            return self.report(ALTERED, "tree root", self.signed + 1)
        return None

    def torn(self, last):
        if last:
            raise Unsealed("the file ends inside a frame")
        raise Altered("cut inside a frame")

    def run_records(self, raw):
        chain, n, at = self.h, 0, 0
        tree = Tree(self.tree) if self.log else None
        while at < len(raw):
            if len(raw) - at < 4:
                raise Altered("records do not fit")
            size = struct.unpack_from("<I", raw, at)[0]
            if not 1 <= size <= min(RECORD_MAX, len(raw) - at - 4):
                raise Altered("records do not fit")
            chain = sha256(chain, raw[at:at + 4 + size])
            if tree:
                tree.add(chain)
            at += 4 + size
            n += 1
        return chain, n, tree

    def run_marks(self, raw):
        at, seq = 0, self.next
        while at < len(raw):
            size = struct.unpack_from("<I", raw, at)[0]
            record = raw[at + 4:at + 4 + size]
            if b'"kind":"terminal"' in record[:256]:
                try:
                    self.tty.reach(record)
                except Altered as e:
                    self.records = self.next + len(self.parse_lengths(raw)) - 1
                    self.frames += 1
                    raise Altered(str(e), seq) from None
            if b'"kind":"workspace.change"' in record[:256]:
                self.blobs.update(re.findall(rb'"text(?:_before)?":"([0-9a-f]{64})"', record))
            at += 4 + size
            seq += 1

    def check_blobs(self):
        """None, or the report."""
        for name in sorted(n.decode() for n in self.blobs):
            folder = os.path.join(self.path, "blobs")
            try:
                if os.path.islink(folder):
                    raise OSError("a link")
                text = read_regular(os.path.join(folder, name), BLOB_MAX + 1)
            except OSError as e:
                return self.report(ALTERED, "blobs/%s: %s" % (name, e))
            if len(text) > BLOB_MAX or sha256(text).hex() != name:
                return self.report(ALTERED, "blobs/%s was changed" % name)
        return None

    def count_redactions(self, raw):
        n = 0
        for at in self.parse_lengths(raw):
            size = struct.unpack_from("<I", raw, at)[0]
            m = re.search(rb'"kind":"[^"]*"(,"redactions":(\d{1,9}))?', raw[at + 4:at + 4 + min(size, 256)])
            n += int(m.group(2)) if m and m.group(2) else 0
        return n

    @staticmethod
    def parse_lengths(raw):
        at, found = 0, []
        while at < len(raw):
            found.append(at)
            at += 4 + struct.unpack_from("<I", raw, at)[0]
        return found

    def check_tty_end(self, seal):
        """None, or the report."""
        try:
            self.tty.finish(seal)
        except Altered as e:
            return self.report(ALTERED, str(e))
        return None

    @staticmethod
    def parse_seal(b):
        if b[:8] != b"WARDSEAL":
            raise Altered("seal fields")
        keys = ("records", "frames", "gaps", "bytes", "sealed", "segments", "redactions", "manifest_len")
        seal = dict(zip(keys, struct.unpack_from("<QQQQQIIQ", b, 8)))
        if seal["manifest_len"] > MANIFEST_MAX:
            raise Altered("seal fields")
        seal["hash"], seal["root"], seal["tty"] = b[64:96], b[96:128], b[128:160]
        return seal

    def check_seal(self):
        s, m, text = self.seal, self.manifest, self.manifest_text
        if (s["records"], s["frames"], s["bytes"], s["segments"], s["redactions"]) != (
                self.records, self.frames, self.bytes, self.last, self.redactions):
            return self.report(ALTERED, "the seal does not fit", self.next)
        if text is None:
            return self.report(ALTERED, "the manifest is missing")
        if len(text) != s["manifest_len"] or sha256(text) != s["hash"]:
            return self.report(ALTERED, "the manifest is another one")
        same = m and m["state"] == "sealed" and m["session"] == self.session and m["head"] == self.h.hex() and (
            m["records"], m["frames"], m["gaps"], m["bytes"], m["segment_count"], m.get("redactions", 0)) == (
            s["records"], s["frames"], s["gaps"], s["bytes"], s["segments"], s["redactions"])
        if not same:
            return self.report(ALTERED, "manifest and records contradict each other")
        wrong = self.check_log_end() or self.check_tty_end(s["tty"]) or self.check_blobs()
        if wrong:
            wrong["gaps"] = s["gaps"]
            return wrong
        if s["gaps"]:
            return self.report(GAPS, "intact, with gaps", 0, s["gaps"])
        return self.report(OK, "intact")


def verify(path, keys=()):
    return Bundle(path, keys).verify()


def read_keys(path):
    with open(path, encoding="ascii") as f:
        return [bytes.fromhex(line.removeprefix("warder-host-key-1 ")) for line in f.read().splitlines() if line]


def main(argv):
    keys = ()
    if len(argv) > 2 and argv[0] == "--key":
        keys, argv = read_keys(argv[1]), argv[2:]
    if not argv or argv == ["--json"] or (argv[0] != "--json" and len(argv) != 1):
        print(__doc__, file=sys.stderr)
        return 64
    if argv[0] == "--json":
        for path in argv[1:]:
            print(json.dumps(verify(path, keys)))
        return 0
    rep = verify(argv[0], keys)
    print("%s: %s; %d records, %s, head %s" % (argv[0], rep["text"], rep["records"],
                                               "signed" if rep["signed"] else "not signed", rep["head"]))
    return 4 if rep["state"] == NO_BUNDLE else rep["state"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
