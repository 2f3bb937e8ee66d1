# SPDX-License-Identifier: Apache-2.0
"""The journal arrives in Kafka: mock cluster, and kcat as a consumer that is not ours."""

import json
import unittest

from warder import *

TOPIC = "warder.events"


class Kafka(TestCase):
    def check_arrived(self, s, brokers):
        rows = kcat_read(brokers, TOPIC)
        mine = [r for r in rows if r[0] == s.result["session"]]
        self.assertEqual(len({r[1] for r in mine}), 1, "one session, one partition")
        ids = []
        for _, _, _, payload in sorted(mine, key=lambda r: r[2]):
            event = json.loads(payload)
            # At least once: a consumer drops what it knows.
            if event["id"] not in ids:
                ids.append(event["id"])
        self.assertEqual(ids, [e["id"] for e in s.events])
        return rows

    def test_every_event_arrives_in_order(self):
        with MockKafka() as kafka:
            s = self.session("sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done",
                             options=["--kafka", kafka.brokers])
            self.assertCode(s, 0)
            self.check_arrived(s, kafka.brokers)

    def test_sessions_are_keyed(self):
        with MockKafka() as kafka:
            sessions = [self.session("true", options=["--kafka", kafka.brokers]) for _ in range(3)]
            for s in sessions:
                self.assertCode(s, 0)
                rows = self.check_arrived(s, kafka.brokers)
            self.assertEqual({r[0] for r in rows}, {s.result["session"] for s in sessions})

    def test_the_kill_arrives(self):
        with MockKafka() as kafka:
            s = self.session("unshare", "-m", "true", options=["--kafka", kafka.brokers])
            self.assertCode(s, 137)
            rows = self.check_arrived(s, kafka.brokers)
            kinds = {json.loads(r[3])["kind"] for r in rows}
            self.assertLessEqual({"escape", "rule.alert", "action", "session.stop"}, kinds)

    def test_dead_broker_costs_nothing_but_a_word(self):
        s = self.session("sh", "-c", "exit 3", options=["--kafka", "127.0.0.1:1"])
        self.assertCode(s, 3)
        self.assertIn(b"kafka", s.err.lower())
        self.assertContiguous(s.events)
        self.assertIntact(s)


if __name__ == "__main__":
    unittest.main()
