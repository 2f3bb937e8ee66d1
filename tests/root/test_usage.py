# SPDX-License-Identifier: Apache-2.0
"""Sampled use of a sandbox as a condition: a spike fires, and without such a rule nothing is sampled."""

import os
import unittest

from warder import *

RULES = "".join("""- rule: %s
  desc: d
  condition: kind = usage and usage.%s
  output: "%%usage.cpu_pct %%usage.mem_growth %%usage.net_bps"
  priority: NOTICE
  throttle: 1h
""" % r for r in [("busy", "cpu_pct > 2"), ("grows", "mem_growth > 40000000"), ("talks", "net_bps > 1000000")])

BUSY = """
import time, socket
time.sleep(0.5)
end = time.process_time() + 0.3
while time.process_time() < end: pass
x = b'x' * (96 << 20)
time.sleep(0.4)
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()
for i in range(64):
    c.sendall(bytes(16384)); n = 0
    while n < 16384: n += len(a.recv(65536))
time.sleep(0.4)
"""


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Usage(TestCase):
    def test_spikes_fire(self):
        rules = self.path("rules.yaml", RULES)
        s = self.session(PYTHON_IN_SANDBOX, "-c", BUSY, options=["--no-default-rules", "--rules", rules,
                                                                 "--usage-period", "200ms"])
        self.assertCode(s, 0)
        samples = s.kinds("usage")
        self.assertGreater(len(samples), 3)
        self.assertGreaterEqual(min(field(u, "usage.period_ms") for u in samples), 200)
        self.assertEqual({field(a, "rule.name") for a in s.kinds("rule.alert")}, {"busy", "grows", "talks"})
        # The first one: before anything happened.
        self.assertLess(field(samples[0], "usage.net_bps"), 1000000)

    def test_nobody_asks_nothing_is_sampled(self):
        s = self.session("sleep", "0.4", options=["--usage-period", "50ms"])
        self.assertEqual(s.kinds("usage"), [])

    def test_a_reload_begins_it(self):
        rules = self.path("rules.yaml", "- list: nothing\n  items: [a]\n")
        proc, finish = self.start_session("sleep", "2", options=["--no-default-rules", "--rules", rules,
                                                                "--usage-period", "100ms"])
        wait_for("the session", lambda: b'"exec"' in self.warder("events", self.path("s1/session")).out)
        os.rename(self.path("new.yaml", RULES), rules)
        s = finish()
        self.assertCode(s, 0)
        changed = [e["seq"] for e in s.kinds("audit.rules", outcome="success")]
        self.assertEqual(len(changed), 1, s)
        self.assertTrue(s.kinds("usage"))
