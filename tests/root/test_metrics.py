# SPDX-License-Identifier: Apache-2.0
"""Metrics of a session that runs: what only the engine knows."""

import re
import socket
import unittest

from warder import *


class Metrics(TestCase):
    def scrape(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            try:
                s.connect(self.path("sock"))
            except OSError:
                return None
            s.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            data = b""
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                data += piece
        body = data.partition(b"\r\n\r\n")[2].decode()
        values = dict(re.findall(r"^([a-z_]+(?:\{[^}]*\})?) ([0-9.]+)$", body, re.M))
        return {re.sub(r',?session="[^"]*"', "", k): float(v) for k, v in values.items()}

    def ready(self):
        v = self.scrape()
        return v if v and v.get("warder_probe_records_total{}", 0) > 0 and \
            v.get('warder_events_total{kind="exec"}', 0) > 0 else None

    def test_of_the_engine(self):
        proc, finish = self.start_session("sh", "-c", "/bin/true; sleep 120", options=[
            "--export", "metrics:unix:" + self.path("sock")])
        v = wait_for("the engine's numbers", self.ready)
        self.assertGreaterEqual(v['warder_ring_size_bytes{ring="urgent"}'], 1 << 16)
        self.assertGreaterEqual(v['warder_ring_size_bytes{ring="bulk"}'], 1 << 16)
        self.assertEqual(v["warder_rule_matches_suppressed_total{}"], 0)
        self.assertGreater(v['warder_event_delay_seconds_bucket{le="+Inf"}'], 0)
        # What the kernel's tables hold, counted by the root part.
        self.assertEqual(v['warder_map_entries{map="sandboxes"}'], 1)
        self.assertEqual(v['warder_map_max_entries{map="sandboxes"}'], 4096)
        self.assertGreater(v['warder_map_bytes{map="made"}'], 1 << 16)
        self.assertGreater(v['warder_kernel_memory_bytes{of="maps"}'], 12 << 20)
        self.assertLess(v['warder_kernel_memory_bytes{of="maps"}'] + v['warder_kernel_memory_bytes{of="programs"}'],
                        48 << 20)
        self.assertNotIn('warder_map_entries{map="bulk"}', v)
        proc.terminate()
        finish()

    def test_tables_are_counted_again(self):
        proc, finish = self.start_session("sh", "-c", "cd /tmp; sleep 1; for i in $(seq 400); do : > f$i; done; sleep 120",
                                          options=["--export", "metrics:unix:" + self.path("sock")])
        wait_for("the page", self.ready)
        wait_for("400 files made", lambda: self.scrape()['warder_map_entries{map="made"}'] >= 400, 60)
        proc.terminate()
        finish()


if __name__ == "__main__":
    unittest.main()
