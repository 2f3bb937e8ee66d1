# SPDX-License-Identifier: Apache-2.0
"""The journal arrives in Kafka: mock cluster, and kcat as a consumer that is not ours."""

import base64
import json
import os
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

    def check_checkpoints(self, s, rows):
        with open(os.path.join(s.dir, "checkpoints.log"), "rb") as f:
            log = f.read()
        mine = [json.loads(r[3]) for r in sorted(rows, key=lambda r: r[2]) if r[0] == s.result["session"]]
        got = {r["id"]: r for r in mine}
        self.assertEqual([r["seq"] for r in got.values()], list(range(1, len(got) + 1)))
        self.assertEqual(b"".join(base64.b64decode(r["entry"]) for r in got.values()), log)
        types = [r["checkpoint"]["type"] for r in got.values()]
        self.assertEqual((types[0], types[-1], set(types[1:-1]) - {"frame"}), ("genesis", "seal", set()))
        # The witness' last head is the record's: what verify says of the bundle, without the bundle.
        verdict = json.loads(s.verify("--json").out)
        self.assertEqual(list(got.values())[-1]["checkpoint"]["head"], verdict["head"])
        return got

    def test_checkpoints_of_a_signed_record(self):
        self.assertCode(self.warder("keys", "init"), 0)
        with MockKafka() as kafka:
            s = self.session("sh", "-c", "for i in 1 2 3 4 5; do /bin/true; sleep 0.3; done",
                             options=["--sign=always", "--kafka", kafka.brokers])
            self.assertCode(s, 0)
            self.check_arrived(s, kafka.brokers)
            got = self.check_checkpoints(s, kcat_read(kafka.brokers, "warder.checkpoints"))
            self.assertGreater(len(got), 3)
            # Later, by another way, to another topic: the same entries.
            done = self.warder("export", s.dir, "kafka:%s,topic=again,checkpoints-topic=witness" % kafka.brokers)
            self.assertCode(done, 0)
            self.assertEqual(list(self.check_checkpoints(s, kcat_read(kafka.brokers, "witness"))), list(got))

    def test_no_checkpoints_when_not_wanted(self):
        self.assertCode(self.warder("keys", "init"), 0)
        with MockKafka() as kafka:
            s = self.session("true", options=["--sign=always", "--export", "kafka:%s,checkpoints-topic=" % kafka.brokers])
            self.assertCode(s, 0)
            self.check_arrived(s, kafka.brokers)
            self.assertEqual(s.result["sinks"], 1)
            self.assertEqual(kcat_read(kafka.brokers, "warder.checkpoints"), [])

    def test_dead_broker_costs_nothing_but_a_word(self):
        s = self.session("sh", "-c", "exit 3", options=["--kafka", "127.0.0.1:1"])
        self.assertCode(s, 3)
        self.assertIn(b"kafka", s.err.lower())
        self.assertContiguous(s.events)
        self.assertIntact(s)


if __name__ == "__main__":
    unittest.main()
