# SPDX-License-Identifier: Apache-2.0
"""The wall clock is set forth and back by a day and by years under sinks that run: nothing stalls, spins or is lost.
tests/helpers/clock_jump.c moves CLOCK_REALTIME for one process; CLOCK_MONOTONIC goes on, as the kernel's does."""

import email.utils
import json
import mmap
import os
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from feed import Feed, Journal, read_json_lines  # noqa: E402
from test_http import Indexers, Server  # noqa: E402
from test_syslog import Receiver  # noqa: E402
from warder import MockKafka, TestCase, helper, kcat_read, wait_for  # noqa: E402

DAY, YEAR = 86400, 365 * 86400
JUMPS = (DAY, -DAY, 3 * YEAR, -3 * YEAR, 0)


class Clock(TestCase):
    def setUp(self):
        super().setUp()
        self.journal = Journal(self.path("journal"), "S1")
        self.path("offset", "\0" * 8)
        f = open(self.path("offset"), "r+b")
        self.addCleanup(f.close)
        self.offset = mmap.mmap(f.fileno(), 8)
        self.addCleanup(self.offset.close)
        self.got = []

    def jump(self, seconds):
        self.offset[:] = struct.pack("=q", seconds)

    def feed(self, sink):
        feed = Feed(self.journal.path, self.tmp, "S1", sink + ",name=c", prefix=(
            "env", "LD_PRELOAD=" + helper("clock_jump"), "CLOCK_JUMP=" + self.path("offset"),
            "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"))
        self.addCleanup(feed.kill)
        return feed

    def server(self, answer):
        s = Server(answer)
        self.addCleanup(s.close)
        return s

    def hook(self, request):
        self.got += [r["id"] for r in json.loads(request.body)]
        return 204, {}, ""

    @staticmethod
    def cpu_s(feed):
        with open("/proc/%d/stat" % feed.proc.pid) as f:
            return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")

    def test_it_jumps(self):
        """The tool itself: the signature's time is that of the moved clock."""
        seen = []

        def answer(request):
            seen.append(int(request.headers["X-Warder-Signature"].split(",")[0][2:]))
            return self.hook(request)

        self.jump(-3 * YEAR)
        self.journal.add(1)
        self.feed("webhook:http://127.0.0.1:%d,secret=s" % self.server(answer).port).drain()
        self.assertAlmostEqual(seen[0], time.time() - 3 * YEAR, delta=DAY)

    def test_retries(self):
        """The clock jumps in every pause between two tries."""
        left = list(JUMPS)

        def answer(request):
            if not left:
                return self.hook(request)
            self.jump(left.pop(0))
            return 503, {}, "later"

        s = self.server(answer)
        self.journal.add(100)
        feed = self.feed("webhook:http://127.0.0.1:%d" % s.port)
        began, cpu = time.monotonic(), self.cpu_s(feed)
        self.assertEqual(feed.drain()["acked"], 100)
        self.assertEqual(self.got, self.journal.ids)
        self.assertEqual(s.requests, len(JUMPS) + 1)
        # 0.25, 0.5, 1, 2, 4 s less a quarter: the pauses were kept, and slept
        self.assertGreater(time.monotonic() - began, 5)
        self.assertLess(self.cpu_s(feed) - cpu, 2.5)

    def test_retry_after_date(self):
        """A date is so far off as the server's own clock says, whatever ours does."""
        for offset in (-DAY, DAY, 3 * YEAR, -3 * YEAR):
            with self.subTest(offset):
                told = []

                def answer(request):
                    if told:
                        return self.hook(request)
                    told.append(time.monotonic())
                    return 503, {"Retry-After": email.utils.formatdate(time.time() + 3, usegmt=True)}, ""

                self.jump(offset)
                s = self.server(answer)
                self.journal.add(1)
                feed = self.feed("webhook:http://127.0.0.1:%d" % s.port)
                feed.drain(60000)
                self.assertGreater(time.monotonic() - told[0], 1.5)  # dates are whole seconds
                feed.stop()
        self.assertEqual(self.got, self.journal.ids)

    def test_kafka(self):
        """In a mock cluster, through an outage."""
        with MockKafka() as kafka:
            feed = self.feed("kafka:%s,alerts-topic=" % kafka.brokers)
            for offset in JUMPS:
                self.journal.add(500)
                feed.status()
                kafka.tell("down")
                self.jump(offset)
                time.sleep(0.3)
                kafka.tell("up")
            began, cpu = time.monotonic(), self.cpu_s(feed)
            self.assertEqual(feed.drain()["acked"], 500 * len(JUMPS))
            self.assertLess(self.cpu_s(feed) - cpu, 0.5 * (time.monotonic() - began) + 1)
            got = [json.loads(r[3])["id"] for r in kcat_read(kafka.brokers, "warder.events")]
        self.assertEqual(list(dict.fromkeys(got)), self.journal.ids)

    def test_syslog(self):
        """A receiver that comes and goes while the clock jumps."""
        got = []
        for offset in JUMPS:
            self.jump(offset)
            r = Receiver()
            self.journal.add(100)
            n = len(got)
            feed = self.feed("syslog:tcp://127.0.0.1:%d,name=syslog" % r.port)
            feed.drain()
            feed.stop()
            wait_for("all messages", lambda: len(r.messages) >= 100 or None)
            got += [json.loads(m[m.index(b"{"):])["id"] for m in r.messages]
            self.assertEqual(len(got), n + 100)
            r.close()
        self.assertEqual(got, self.journal.ids)

    def test_rate(self):
        s = self.server(self.hook)
        self.journal.add(900)
        began = time.monotonic()
        feed = self.feed("webhook:http://127.0.0.1:%d,rate=300" % s.port)
        for offset in JUMPS:
            n = len(self.got)
            self.jump(offset)
            wait_for("more records", lambda: feed.status() and len(self.got) > n or len(self.got) == 900)
        feed.drain()
        self.assertGreater(time.monotonic() - began, 1.8)
        self.assertEqual(self.got, self.journal.ids)

    def test_file_age(self):
        """Forth: a file is not old at once, which would make a new one of every line. Back: lines go on."""
        out = self.path("out")
        feed = self.feed("file:%s,rotate-age=1h" % out)
        for offset in JUMPS:
            self.journal.add(50)
            feed.drain()
            self.jump(offset)
        self.journal.add(50)
        feed.drain()
        self.assertEqual([f for f in os.listdir(self.tmp) if f.startswith("out.")], [])
        self.assertEqual([r["id"] for r in read_json_lines(out)], self.journal.ids)

    def test_file_age_comes(self):
        """Set back by years, files still get old."""
        out = self.path("out")
        self.jump(-3 * YEAR)
        feed = self.feed("file:%s,rotate-age=1s" % out)
        self.journal.add(1)
        feed.drain()
        time.sleep(1.1)
        self.journal.add(1)
        feed.drain()
        self.journal.add(1)
        feed.drain()
        moved = [f for f in os.listdir(self.tmp) if f.startswith("out.")]
        self.assertGreaterEqual(len(moved), 1)
        got = [r["id"] for f in moved + ["out"] for r in read_json_lines(self.path(f))]
        self.assertEqual(sorted(got), sorted(self.journal.ids))

    def test_acknowledgements(self):
        """Splunk's: neither given up early nor waited for without end."""
        x = Indexers(lambda id, polls: polls > 4)
        s = self.server(x)
        self.journal.add(100)
        feed = self.feed("splunk:http://127.0.0.1:%d,token=t,ack=yes" % s.port)
        for offset in JUMPS:
            n = len(x.asked)
            self.jump(offset)
            wait_for("a question", lambda: feed.status() and len(x.asked) > n or len(x.safe) == 100)
        self.assertEqual(feed.drain()["acked"], 100)
        self.assertEqual(x.sent(), self.journal.ids)


if __name__ == "__main__":
    unittest.main()
