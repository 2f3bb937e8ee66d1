# SPDX-License-Identifier: Apache-2.0
"""The metrics sink, scraped over a socket like Prometheus does it. promtool checks the text where it is
installed; a parser of our own always does. Dashboards and alerts may use only metrics that exist."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed, Journal  # noqa: E402
from warder import SRC, TestCase, wait_for  # noqa: E402

LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\d+(?:\.\d+)?)')


class Metrics(TestCase):
    def setUp(self):
        super().setUp()
        self.journal = Journal(self.path("journal"), "S1")
        self.sock = self.path("sock")

    def add(self, kind, **members):
        """One record of this kind with these members."""
        seq = len(self.journal.ids) + 1
        self.journal.ids.append("S1-%d" % seq)
        with open(self.journal.path, "a") as f:
            f.write(json.dumps({"id": self.journal.ids[-1], "seq": seq, "time": "2026-01-31T12:34:56.500000000Z",
                                "kind": kind, "session": "S1", **members}) + "\n")

    def feed(self, *more, session="S1", journal=None):
        feed = Feed((journal or self.journal).path, self.tmp, session, "metrics:unix:" + self.sock + ",name=m",
                    *more)
        self.addCleanup(feed.kill)
        return feed

    def ask(self, request=b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", pieces=1):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(self.sock)
            step = max(1, len(request) // pieces)
            for i in range(0, len(request), step):
                s.sendall(request[i:i + step])
            data = b""
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        return head.split(b"\r\n")[0].decode(), body.decode()

    def scrape(self):
        status, text = self.ask()
        self.assertEqual(status, "HTTP/1.1 200 OK")
        values, typed, seen = {}, {}, []
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.assertNotIn(name, typed)
                typed[name] = kind
                continue
            if line.startswith("# HELP "):
                continue
            got = LINE.fullmatch(line)
            self.assertTrue(got, line)
            name = re.sub("_(bucket|sum|count)$", "", got[1]) if got[1] not in typed else got[1]
            self.assertIn(name, typed)
            if not seen or seen[-1] != name:
                self.assertNotIn(name, seen)  # all lines of a metric stand together
                seen.append(name)
            key = got[1] + "{%s}" % got[2] if got[2] else got[1]
            self.assertNotIn(key, values)
            values[key] = float(got[3])
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True)
        return values

    def test_counts(self):
        for _ in range(5):
            self.add("exec")
        self.add("rule.alert", rule={"name": 'say "hi" \\ now', "priority": "WARNING"})
        self.add("action", rule={"name": "x"}, action={"type": "kill", "result": "done", "latency_ns": 700000})
        self.add("action", rule={"name": "x"}, action={"type": "kill", "result": "failed: why", "latency_ns": 2 * 10**9})
        self.add("escape", escape={"type": "setns"})
        self.add("limit", limit={"type": "pids"})
        self.add("gap", gap={"count": 41, "reason": "ring_full"})
        self.add("exec", proc={"kind": "escape", "escape": {"type": "forged"}, "args": ['"kind":"escape"']})
        self.feed().drain()
        v = self.scrape()
        for key, expected in {
                'warder_events_total{kind="exec"}': 6,
                'warder_rule_alerts_total{rule="say \\"hi\\" \\\\ now",priority="WARNING"}': None,
                'warder_actions_total{type="kill",result="done"}': 1,
                'warder_actions_total{type="kill",result="failed"}': 1,
                'warder_action_latency_seconds_bucket{le="0.001"}': 1,
                'warder_action_latency_seconds_bucket{le="1"}': 1,
                'warder_action_latency_seconds_bucket{le="5"}': 2,
                'warder_action_latency_seconds_count': 2,
                'warder_event_delay_seconds_bucket{le="+Inf"}': 12,
                'warder_action_latency_seconds_sum': 2.0007,
                'warder_escapes_total{type="setns"}': 1,
                'warder_limits_total{type="pids"}': 1,
                'warder_lost_events_total{reason="ring_full"}': 41,
                'warder_sink_up{sink="m",class="metrics",session="S1"}': 1,
                'warder_sink_lag_records{sink="m",class="metrics",session="S1"}': 0,
                'warder_last_event_time_seconds': 1769862896.5}.items():
            if expected is not None:
                self.assertEqual(v.get(key), expected, key)
        self.assertEqual(sum(n for k, n in v.items() if k.startswith("warder_rule_alerts_total")), 1)
        self.assertEqual([k for k in v if "forged" in k], [])
        self.assertGreater(v["process_resident_memory_bytes"], 1 << 20)

    def test_another_sink_is_behind(self):
        self.journal.add(500)
        self.feed("kafka:127.0.0.1:1,name=k")
        v = wait_for("the lag", lambda: self.lag())
        self.assertEqual(v, 500)

    def lag(self):
        if not os.path.exists(self.sock):
            return None
        return self.scrape().get('warder_sink_lag_records{sink="k",class="kafka",session="S1"}')

    def test_series_are_bounded(self):
        for i in range(3000):
            self.add("rule.alert", rule={"name": "rule %d" % i, "priority": "NOTICE"})
        self.feed().drain()
        v = self.scrape()
        rules = {k: n for k, n in v.items() if k.startswith("warder_rule_alerts_total")}
        self.assertLess(len(rules), 1100)
        self.assertEqual(sum(rules.values()), 3000)

    def test_odd_clients(self):
        self.journal.add(1)
        feed = self.feed()
        feed.drain()
        self.assertIn("404", self.ask(b"GET / HTTP/1.0\r\n\r\n")[0])
        self.assertIn("405", self.ask(b"POST /metrics HTTP/1.1\r\n\r\n")[0])
        self.assertIn("431", self.ask(b"GET /metrics HTTP/1.1\r\nX: ".ljust(4096, b"x"))[0])
        self.assertIn("200", self.ask(pieces=5)[0])
        silent = [socket.socket(socket.AF_UNIX) for _ in range(8)]  # take all places and say nothing
        for s in silent:
            self.addCleanup(s.close)
            s.connect(self.sock)
        for _ in range(20):  # who says nothing gives way to who does
            self.assertIn("200", self.ask()[0])
        self.journal.add(10)
        self.assertEqual(feed.drain()["acked"], 11)

    def is_served(self):
        try:
            return "200" in self.ask()[0]
        except OSError:
            return False

    def test_socket_of_a_crash(self):
        self.journal.add(1)
        feed = self.feed()
        feed.drain()
        feed.kill()
        self.assertTrue(os.path.exists(self.sock))
        self.feed().drain()
        self.assertTrue(self.is_served())

    def test_bad_settings(self):
        for sink, words in (("metrics:0.0.0.0:9464", ("loopback", "anywhere=yes")),
                            ("metrics:[::]:9464", ("loopback",)),
                            ("metrics:localhost:9464", ("numeric",)),
                            ("metrics:127.0.0.1:http", ("port",)),
                            ("metrics:unix:/nonexistent/dir/sock", ("/nonexistent/dir/sock",))):
            done = subprocess.run(Feed.argv(self.journal.path, self.tmp, "S1", sink), capture_output=True,
                                  text=True, timeout=60, input="end\n")
            self.assertEqual(done.returncode, 2, sink)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_alerting_rules(self):
        """By promtool where it is (Debian has it only together with the server, which would be started)."""
        path = os.path.join(SRC, "exporters", "dashboards", "alerts.yaml")
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "rules", path], check=True)
        with open(path) as f:
            text = f.read()
        alerts = re.findall(r"^ *- alert: (\S+)$", text, re.M)
        self.assertGreater(len(alerts), 3)
        self.assertEqual(len(set(alerts)), len(alerts))
        for part in text.split("- alert: ")[1:]:
            for key in ("expr:", "severity:", "summary:"):
                self.assertIn(key, part)

    def test_dashboards_use_what_there_is(self):
        self.add("exec")
        self.add("action", action={"type": "kill", "result": "done", "latency_ns": 1})
        self.feed().drain()
        names = set(re.findall(r"^# TYPE (\S+)", self.ask()[1], re.M))
        with open(os.path.join(SRC, "userspace", "pipeline", "engine_gauges.c")) as f:  # see root/test_metrics.py
            names |= set(re.findall(r'"(warder_[a-z_]+)"', f.read()))
        folder = os.path.join(SRC, "exporters", "dashboards")
        for file in ("grafana.json", "alerts.yaml"):
            with open(os.path.join(folder, file)) as f:
                text = f.read()
            if file.endswith(".json"):
                json.loads(text)
            used = set(re.findall(r"\b((?:warder|process)_[a-z_]+[a-z])\b", text))
            used = {re.sub("_bucket$", "", u) for u in used}
            self.assertEqual(used - names, set(), file)
            self.assertGreater(len(used), 5)


if __name__ == "__main__":
    unittest.main()
