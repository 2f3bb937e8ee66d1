# SPDX-License-Identifier: Apache-2.0
"""Golden cases: <case>/in.txt (records in mkrec's text form) must become <case>/expect.jsonl.

GOLDEN_UPDATE=1 writes the expectations instead; read the difference as carefully as code. The lines are
also read by Python's JSON parser, which knows nothing of our writer: UTF-8, no repeated member, and "raw"
holds the bytes that its string was made from."""

import base64
import json
import os
import re
import subprocess
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("WARDER_BUILD") or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
MKREC = os.path.join(BUILD, "tests", "helpers", "mkrec")
UPDATE = os.environ.get("GOLDEN_UPDATE")


def no_repeats(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("repeated member in %s" % keys)
    return dict(pairs)


def lossy(raw):
    """One U+FFFD for each byte that belongs to no well-formed sequence."""
    out, i = "", 0
    while i < len(raw):
        for n in (1, 2, 3, 4):
            try:
                out += raw[i:i + n].decode("utf-8")
                i += n
                break
            except UnicodeDecodeError:
                continue
        else:
            out += "\ufffd"
            i += 1
    return out


def look_up(event, path):
    at = event
    for part in path.split("."):
        at = at[int(part)] if isinstance(at, list) else at[part]
    return at


class Golden(unittest.TestCase):
    maxDiff = None

    def check_line(self, line):
        event = json.loads(line.decode("utf-8"), object_pairs_hook=no_repeats)
        self.assertNotRegex(line, rb"[\x00-\x1f\x7f]")
        for path, text in event.get("raw", {}).items():
            raw = base64.b64decode(text, validate=True)
            self.assertEqual(look_up(event, path), lossy(raw), path)
            with self.assertRaises(UnicodeDecodeError):
                raw.decode("utf-8")

    def run_case(self, case):
        done = subprocess.run([MKREC, "--json", os.path.join(HERE, case, "in.txt")], capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        lines = done.stdout.splitlines()
        for line in lines:
            self.check_line(line)
        expect = os.path.join(HERE, case, "expect.jsonl")
        if UPDATE:
            with open(expect, "wb") as f:
                f.write(done.stdout)
            return
        with open(expect, "rb") as f:
            want = f.read().splitlines()
        for n, (a, b) in enumerate(zip(lines, want), 1):
            self.assertEqual(a, b, "line %d" % n)
        self.assertEqual(len(lines), len(want))


def kinds_of_header():
    """Kinds for which wire.h has a record: all but those that user space makes."""
    made = {"package.install", "rule.alert", "action", "approval", "gap", "review", "audit.start", "audit.stop",
            "audit.degraded", "audit.rules", "terminal"}
    with open(os.path.join(HERE, "..", "..", "bpf", "abi", "wire.h"), encoding="utf-8") as f:
        text = f.read()
    table = text[text.index("#define WIRE_KINDS"):text.index("#define WIRE_CHUNK")]
    return set(re.findall(r'X\(\w+, \w+, "([^"]+)", \w+\)', table)) - made


class Coverage(unittest.TestCase):
    def test_every_kind_has_a_case(self):
        with open(os.path.join(HERE, "kinds", "expect.jsonl"), encoding="utf-8") as f:
            seen = {json.loads(line).get("kind") for line in f}
        self.assertEqual(kinds_of_header() - seen, set())


for name in sorted(os.listdir(HERE)):
    if os.path.isfile(os.path.join(HERE, name, "in.txt")):
        setattr(Golden, "test_" + name, lambda self, case=name: self.run_case(case))
