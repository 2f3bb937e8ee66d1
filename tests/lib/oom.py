# SPDX-License-Identifier: Apache-2.0
"""Runs a command once for each of its allocations, which then fails (tests/helpers/oom.c).

Every run has to end by itself, with an exit code of its own and words about it, or do all of its work in spite of it."""

import mmap
import os
import struct

from warder import cmd, helper

FIELDS = ("fail", "after", "n", "failed", "crashes")
FORM = "<%dQ" % len(FIELDS)
# All of them: `make check-oom`. Else the first ones, where each is another path, and some of the rest.
ALL = bool(os.environ.get("OOM_ALL"))
FIRST, SAMPLES = 12, 20


class Orders:
    """What helper and test have in common."""

    def __init__(self, path, mode=0o600):
        self.path = path
        with open(path, "wb") as f:
            f.write(bytes(struct.calcsize(FORM)))
        os.chmod(path, mode)
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 0)

    def give(self, fail, after=False):
        self.map[:] = struct.pack(FORM, fail, after, 0, 0, 0)

    def read(self):
        return dict(zip(FIELDS, struct.unpack(FORM, self.map[:])))

    def env(self, env):
        return dict(env, LD_PRELOAD=helper("oom"), OOM=self.path)


def chosen(n):
    """Which of n allocations fail, one a run."""
    if ALL or n <= FIRST + SAMPLES:
        return list(range(1, n + 1))
    step = (n - FIRST) / SAMPLES
    return list(range(1, FIRST + 1)) + [FIRST + 1 + int(i * step) for i in range(SAMPLES)]


def each_failure(test, argv, orders, env, good_codes=(0,), bad_codes=(1, 2, 125), check=None):
    """`check(done, nth)` looks at what a run left."""
    env = orders.env(env)
    orders.give(0)
    good = cmd(*argv, env=env)
    test.assertIn(good.code, good_codes, good)
    total = orders.read()["n"]
    test.assertGreater(total, 0, "nothing was counted: %s" % good)
    for after in (False, True):
        for nth in chosen(total):
            with test.subTest(argv=argv[1:3], nth=nth, after=after):
                orders.give(nth, after)
                done = cmd(*argv, env=env)
                seen = orders.read()
                test.assertEqual(seen["crashes"], 0, "allocation %d of %d: %s" % (nth, total, done))
                test.assertIn(done.code, (*good_codes, *bad_codes), "allocation %d of %d: %s" % (nth, total, done))
                if done.code in good_codes:
                    # It did without: then it has said all of it.
                    test.assertEqual(done.out, good.out, "allocation %d of %d: %s" % (nth, total, done))
                elif done.code not in good_codes:
                    test.assertTrue(done.err, "allocation %d of %d: no word: %s" % (nth, total, done))
                if check:
                    check(done, nth)
    return total
