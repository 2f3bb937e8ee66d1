# SPDX-License-Identifier: Apache-2.0
"""A name server that never answers: whoever waits for it, it is neither the other sinks nor the end of a session."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed, Journal, read_json_lines  # noqa: E402
from strange import dead_names  # noqa: E402
from warder import TestCase, need, need_root, wait_for  # noqa: E402


class Names(TestCase):
    def feed(self, *sinks):
        need_root()
        need("unshare")
        self.journal = Journal(self.path("journal"), "S1")
        self.journal.add(10)
        out = self.path("out")
        feed = Feed(self.journal.path, self.tmp, "S1", "file:%s,name=f" % out, *sinks, prefix=dead_names(self.tmp))
        self.addCleanup(feed.kill)
        return feed

    def assertOthersGoOn(self, feed):
        self.journal.add(10)
        wait_for("the file", lambda: feed.row("f")["acked"] == len(self.journal.ids))
        feed.stop()  # within a minute: the name server is asked for two and a half
        self.assertEqual([r["id"] for r in read_json_lines(self.path("out"))], self.journal.ids)

    def test_http(self):
        """The time-out of a request ends it, though its look-up goes on."""
        feed = self.feed("webhook:http://web.example:1,name=w,timeout=200ms", "otlp:http://web.example:1,name=o")
        row = wait_for("the time-out", lambda: feed.row("w") if feed.row("w")["text"] else None)
        self.assertEqual((row["acked"], row["up"]), (0, False))
        self.assertOthersGoOn(feed)

    def test_kafka(self):
        feed = self.feed("kafka:broker.example:9092,name=k")
        self.assertFalse(feed.row("k")["up"])
        self.assertOthersGoOn(feed)

    def test_syslog(self):
        feed = self.feed("syslog:tcp://log.example:514,name=s", "syslog:tls://log.example,name=t")
        self.assertFalse(feed.row("s")["up"])
        self.assertOthersGoOn(feed)


if __name__ == "__main__":
    unittest.main()
