# SPDX-License-Identifier: Apache-2.0
"""The size of each program and the verifier's work on it, held against cost.tsv: growth is seen where it begins."""

import unittest

import cost
from warder import need_root

# On no kernel of the table: x32 is in the generic kernels only; what seccomp refuses of these calls is asked of nobody
# (capture/hooks.c: denied), so they are never loaded.
NOWHERE = {"on_x32_call"} | {"sys_%s_s" % name for name in ("close", "exec", "file", "limit", "mmap", "open", "write")}


class Cost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        cls.now = cost.measure()

    def test_below_the_hard_limits(self):
        """Wherever it is built and runs: a program near the kernel's limit fails to load on the next kernel."""
        for name, (verified, xlated, jited) in sorted(self.now.items()):
            with self.subTest(name):
                self.assertLessEqual(verified, cost.VERIFIED_MAX, "instructions that the verifier looks at")
                self.assertLessEqual(xlated, cost.XLATED_MAX, "bytes of the program")
                self.assertGreater(jited, 0, "not compiled to machine code: each event would cost ten times as much")
        self.assertLessEqual(sum(v for v, _, _ in self.now.values()), cost.VERIFIED_TOTAL_MAX,
                             "instructions of all programs: what loading takes")

    def test_no_unseen_growth(self):
        """Within a tenth of what is written down for this kernel and compiler; refreshed by `make bpf-cost`."""
        rows = cost.Table().rows(cost.place())
        if not rows:
            self.skipTest("cost.tsv has no figures for %s; `make bpf-cost` adds them" % cost.place())
        for name, (verified, xlated, _) in sorted(self.now.items()):
            with self.subTest(name):
                before = rows.get(name)
                if not before:
                    self.assertTrue(verified <= cost.NEW[0] and xlated <= cost.NEW[1],
                                    "new, and larger than most: if that is meant, make bpf-cost")
                    continue
                for what, value, was in (("verified", verified, before[0]), ("xlated", xlated, before[1])):
                    limit = was + max(was // 10, cost.SLACK[what])
                    self.assertLessEqual(value, limit, "%s grew from %d: if that is meant, make bpf-cost" % (what, was))

    def test_every_program_is_written_down(self):
        """For one kernel at least: what none of them loads has no figure, and nobody would see it grow."""
        told = {name for rows in cost.Table().lines.values() for name in rows}
        self.assertEqual(cost.names() - told, NOWHERE)
        self.assertEqual(told - cost.names(), set(), "there are no such programs: make bpf-cost")
