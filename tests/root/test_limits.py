# SPDX-License-Identifier: Apache-2.0
"""Limits as evidence: what was hit, its value, what was used, how often, what that did; and quiet when nothing
was hit."""

import os
import unittest

from warder import *


class Limits(TestCase):
    def setUp(self):
        need_root()
        super().setUp()

    def limits(self, s, type, **where):
        return s.kinds("limit", limit__type=type, **where)


class Counted(Limits):
    """By the counters of the sandbox's cgroups: v1 and v2 alike."""

    def test_pids(self):
        s = self.session("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 30 & done; wait; exit 0",
                         options=["--pids", "4"])
        e = self.limits(s, "pids", vantage="runtime")
        self.assertTrue(e, s.events)
        self.assertEqual({(x["limit"]["value"], x["limit"]["effect"]) for x in e}, {(4, "refused")})
        self.assertGreaterEqual(sum(x["limit"]["count"] for x in e), 1)
        self.assertEqual(s.result["limits_hit"], ["pids"])

    def test_cpu(self):
        s = self.session("timeout", "2", "sh", "-c", "while :; do :; done", options=["--cpus", "0.2"])
        e = self.limits(s, "cpu")
        self.assertTrue(e, s.events)
        for x in e:
            self.assertEqual((x["limit"]["value"], x["limit"]["effect"], x["vantage"]), (200, "throttled", "runtime"))
            self.assertGreater(x["limit"]["count"], 0)
            self.assertGreater(x["limit"]["used"], 1000, "microseconds held back")
        self.assertEqual(s.result["limits_hit"], ["cpu"])

    def test_memory(self):
        s = self.session(PYTHON_IN_SANDBOX, "-c", "b = bytearray(200 << 20)", options=["--memory", "64M"])
        self.assertEqual((s.code, s.result["reason"]), (137, "oom"))
        oom = s.kinds("oom")[0]
        self.assertEqual(oom["limit"], {"type": "memory", "value": 64 << 20})
        self.assertGreater(oom["oom"]["anon_rss"], 30 << 20)
        self.assertIn("file_rss", oom["oom"])
        self.assertIn("shmem_rss", oom["oom"])
        self.assertIn("python", oom["proc"]["comm"])
        e, = self.limits(s, "memory")
        self.assertEqual((e["limit"]["value"], e["limit"]["effect"]), (64 << 20, "killed"))
        self.assertGreaterEqual(e["limit"]["count"], 1)
        self.assertLessEqual(e["limit"]["used"], 64 << 20)

    def test_timeout(self):
        s = self.session("sleep", "100", options=["--timeout", "300ms"])
        self.assertEqual((s.code, s.result["reason"]), (124, "timeout"))
        e, = self.limits(s, "timeout")
        self.assertEqual((e["limit"]["value"], e["limit"]["effect"]), (300000000, "killed"))

    def test_what_the_kernel_tells_is_in_the_result(self):
        s = self.session("sh", "-c", "head -c 4000 /dev/zero >a; exit 0", options=["--fsize", "1K"])
        self.assertTrue(self.limits(s, "fsize"), s.events)
        self.assertEqual(s.result["limits_hit"], ["fsize"])

    def test_few_open_files(self):
        """The launcher needs more than a payload may."""
        s = self.session("sh", "-c", "ulimit -n", options=["--nofile", "16"])
        self.assertEqual((s.code, s.out), (0, b"16\n"))

    def test_nothing_hit_nothing_told(self):
        s = self.session("sh", "-c", "echo a; echo b >&2; dd if=/dev/zero of=/workspace/f bs=1M count=4 2>/dev/null",
                         options=["--pids", "20", "--memory", "256M", "--cpus", "100", "--max-output", "1M",
                                  "--disk", "16M", "--fsize", "8M", "--timeout", "60s"])
        self.assertCode(s, 0)
        self.assertEqual(s.kinds("limit", "oom"), [])
        self.assertEqual(s.result["limits_hit"], [])


class Output(Limits):
    def run_args(self, n, *options):
        return self.session("sh", "-c", "head -c %d /dev/zero; echo end >&2" % n, options=options)

    def test_counted_to_the_last_byte(self):
        s = self.run_args(300000, "--max-output", "1M")
        self.assertCode(s, 0)
        self.assertEqual((len(s.out), s.err), (300000, b"end\n"))
        r = s.result
        self.assertEqual((r["stdout_bytes"], r["stderr_bytes"], r["truncated"]), (300000, 4, False))
        stop = s.kinds("session.stop")[0]["run"]
        self.assertEqual((stop["stdout_bytes"], stop["stderr_bytes"]), (300000, 4))
        self.assertEqual(self.limits(s, "output"), [])

    def test_cut(self):
        s = self.run_args(3000000, "--max-output", "100K")
        self.assertCode(s, 0)
        self.assertEqual((s.out, s.err), (b"\0" * 102400, b"end\n"))
        r = s.result
        self.assertEqual((r["stdout_bytes"], r["stderr_bytes"], r["truncated"], r["reason"]), (3000000, 4, True, "exit"))
        e, = self.limits(s, "output")
        self.assertEqual((e["limit"]["value"], e["limit"]["effect"], e["limit"]["target"]), (102400, "cut", "stdout"))
        self.assertGreater(e["limit"]["used"], 102400)
        self.assertEqual(r["limits_hit"], ["output"])

    def test_exactly_the_cap_is_within(self):
        s = self.run_args(102400, "--max-output", "100K")
        self.assertEqual((len(s.out), s.result["truncated"], self.limits(s, "output")), (102400, False, []))

    def test_killed(self):
        s = self.session("yes", options=["--max-output", "10000", "--kill-output"])
        self.assertEqual((s.code, s.result["reason"], len(s.out)), (137, "output_limit", 10000))
        e, = self.limits(s, "output")
        self.assertEqual(e["limit"]["effect"], "killed")
        self.assertIntact(s)

    def test_a_closed_output_ends_the_command(self):
        proc, finish = self.start_session("yes", options=["--max-output", "100M"], stderr=None)
        proc.stdout.read(1)
        proc.stdout.close()
        self.assertEqual(proc.wait(60), 128 + 13)

    def test_stdout_can_be_opened_anew(self):
        s = self.session("sh", "-c", "echo a > /dev/stdout; echo b > /dev/stderr", options=["--max-output", "1K"])
        self.assertEqual((s.code, s.out, s.err), (0, b"a\n", b"b\n"))


if __name__ == "__main__":
    unittest.main()
