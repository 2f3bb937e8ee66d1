# SPDX-License-Identifier: Apache-2.0
"""The Kafka sink against a mock cluster, with kcat as a consumer that is not ours: whatever breaks, no
record is lost, a record that comes twice has the same id, and a session keeps its order. The mock stores
what a plain idempotent producer sends again (real brokers drop it), so order is that of first arrival."""

import base64
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed, Journal, python_client_read, read_json_lines  # noqa: E402
from strange import (cpu_seconds, cut, deaf, half_closed, mute, noise, reset, says, slow,  # noqa: E402
                     strange_server, untrusted)
from warder import MockKafka, TestCase, kcat_read, wait_for  # noqa: E402

EVENTS, ALERTS = "warder.events", "warder.alerts"
# Kafka's error codes
NOT_LEADER, TIMED_OUT, TOO_LARGE, NOT_ENOUGH_REPLICAS, OUT_OF_ORDER = 6, 7, 10, 19, 45
UNKNOWN_TOPIC, TOPIC_AUTHORIZATION, CLUSTER_AUTHORIZATION = 3, 29, 31
PRODUCE, INIT_PRODUCER_ID = 0, 22


class Kafka(TestCase):
    python = True  # python3-kafka looks as well; it knows gzip, but not zstd

    def setUp(self):
        super().setUp()
        self.kafka = MockKafka()
        self.addCleanup(self.kafka.__exit__)
        self.journal = Journal(self.path("journal"), "S1")

    def tell(self, line):
        self.kafka.tell(line)
        self.assertEqual(self.kafka.proc.stdout.readline().strip(), "ok")

    def feed(self, *options, session="S1", journal=None):
        codec = ("kafka.compression.type=gzip",) if self.python else ()
        sink = ",".join(("kafka:" + self.kafka.brokers, "name=k") + codec + options)
        feed = Feed((journal or self.journal).path, self.tmp, session, sink)
        self.addCleanup(feed.kill)
        return feed

    def arrived(self, topic=EVENTS, session="S1"):
        """ids in order of first arrival; equal ids must be equal records."""
        seen = {}
        for key, _, _, body in kcat_read(self.kafka.brokers, topic):
            if key != session:
                continue
            id = json.loads(body)["id"]
            self.assertEqual(seen.setdefault(id, body), body)
        return list(seen)

    def dead_letters(self):
        return read_json_lines(self.path("S1.k.dlq.jsonl"))

    def assertAllThere(self, journal=None, ordered=True):
        journal = journal or self.journal
        got = self.arrived(session=journal.session)
        self.assertEqual(sorted(set(journal.ids) - set(got))[:5], [], "lost")
        self.assertEqual(len(got), len(journal.ids))
        if ordered:
            self.assertEqual(got, journal.ids)
        # and by a client that is not made of librdkafka
        rows = python_client_read(self.kafka.brokers, EVENTS) if self.python else None
        if rows is not None:
            self.assertEqual(list(dict.fromkeys(id for key, id in rows if key == journal.session)), got)

    # ---- what arrives ----

    def test_keys_headers_topics(self):
        self.python = False  # zstd, the default
        self.journal.add(500, kind="exec")
        self.journal.add(3, kind="escape")
        self.journal.add(2, kind="session.stop")
        feed = self.feed()
        feed.drain()
        self.assertAllThere()
        self.assertEqual(self.arrived(ALERTS), self.journal.ids[500:])
        done = subprocess.run(["kcat", "-b", self.kafka.brokers, "-C", "-t", EVENTS, "-e", "-q",
                               "-f", "%p %k %h\n"], capture_output=True, text=True, timeout=60)
        rows = done.stdout.split("\n")
        part = rows[0].split()[0]
        self.assertEqual(rows[6], part + " S1 id=S1-7,schema=native/1,kind=exec,seq=7,"
                         "content-type=application/json,sandbox=box")
        self.assertEqual({r.split()[0] for r in rows if r}, {part})  # one session, one partition
        self.assertEqual(feed.stop()["errors"], 0)

    def test_no_alerts_topic(self):
        self.journal.add(5, kind="escape")
        self.feed("topic=mine", "alerts-topic=", "kafka.compression.type=lz4").drain()
        self.assertEqual(self.arrived("mine"), self.journal.ids)

    def test_sessions_at_the_same_time(self):
        journals = [Journal(self.path("j%d" % i), "T%d" % i) for i in range(5)]
        feeds = []
        for j in journals:
            j.add(2000)
            feeds.append(self.feed(session=j.session, journal=j))
        for f in feeds:
            f.drain()
        for j in journals:
            self.assertAllThere(j)

    # ---- what breaks ----

    def test_unreachable_at_start(self):
        self.tell("down")
        self.journal.add(100)
        feed = self.feed()
        row = wait_for("a status that says why", lambda: self.connect_error(feed))
        self.assertFalse(row["up"])
        self.assertEqual(feed.drain(500, behind=1)["acked"], 0)
        self.tell("up")
        self.assertTrue(feed.drain()["up"])
        self.assertAllThere()

    @staticmethod
    def connect_error(feed):
        row = feed.status()
        return row if "refused" in row["text"] or "own" in row["text"] else None

    def test_outage(self):
        feed = self.feed()
        self.journal.add(5000)
        feed.drain()
        for _ in range(2):
            self.journal.add(5000)
            feed.status()
            self.tell("down")
            for _ in range(10):
                self.journal.add(1500)
                self.assertEqual(feed.status()["poison"], 0)
                time.sleep(0.3)
            self.tell("up")
        row = feed.drain()
        self.assertEqual((row["acked"], row["poison"]), (len(self.journal.ids), 0))
        self.assertAllThere()

    def test_slow_broker_with_cuts(self):
        self.tell("rtt 200")
        feed = self.feed()
        for _ in range(3):
            self.journal.add(4000)
            feed.status()
            time.sleep(0.4)
            self.tell("down")
            time.sleep(0.3)
            self.tell("up")
        self.tell("rtt 0")
        feed.drain()
        self.assertAllThere()

    def test_errors_that_pass(self):
        feed = self.feed()
        for code in (NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS, OUT_OF_ORDER):
            self.tell("err %d %d 2" % (PRODUCE, code))
            self.journal.add(3000)
            feed.drain()
        self.assertEqual(feed.status()["poison"], 0)
        self.assertAllThere(ordered=False)  # the mock takes what a broker would refuse as out of order

    def test_refused_batch_loses_nothing(self):
        """One refused request is a batch of thousands: sent one by one, all of them are good."""
        self.tell("err %d %d 1" % (PRODUCE, TOO_LARGE))
        self.journal.add(3000)
        row = self.feed().drain()
        self.assertEqual((row["poison"], row["acked"]), (0, 3000))
        self.assertGreater(row["rewinds"], 0)
        self.assertEqual(self.dead_letters(), [])
        self.assertAllThere(ordered=False)

    def test_refused_record_is_dead_lettered(self):
        self.tell("err %d %d 40" % (PRODUCE, TOO_LARGE))
        self.journal.add(2000)
        row = self.feed().drain()
        dead = self.dead_letters()
        self.assertEqual(row["poison"], len(dead))
        self.assertTrue(0 < len(dead) < 40, len(dead))
        self.assertIn("too large", dead[0]["why"])
        ids = {d["record"]["id"] for d in dead}
        self.assertEqual(len(ids), len(dead))
        self.assertEqual(set(self.arrived()) | ids, set(self.journal.ids))
        self.assertFalse(set(self.arrived()) & ids)
        # and a copy for whoever watches the topic
        rows = [json.loads(r[3]) for r in kcat_read(self.kafka.brokers, "warder.dlq")]
        self.assertTrue(rows)  # some of the copies met the same error
        self.assertLessEqual({r["record"]["id"] for r in rows}, ids)
        self.assertEqual({(r["session"], r["sink"], r["id"] in ids) for r in rows}, {("S1", "k", True)})
        self.assertIn("too large", rows[0]["why"])

    def test_record_too_large_for_the_library(self):
        self.journal.add(10)
        self.journal.add(1, pad=1100000)
        self.journal.add(10)
        row = self.feed().drain()
        self.assertEqual((row["poison"], row["rewinds"], row["up"]), (1, 0, True))
        self.assertEqual([d["seq"] for d in self.dead_letters()], [11])
        copy, = kcat_read(self.kafka.brokers, "warder.dlq")
        copy = json.loads(copy[3])
        self.assertEqual((copy["id"], copy["seq"], copy["record"]), ("S1-11", 11, None))  # too large for it, too
        self.assertEqual(len(self.arrived()), 20)

    def test_missing_rights_wait_for_the_operator(self):
        """No right to the topic is no fault of the records: they wait."""
        self.tell("err %d %d 2" % (PRODUCE, TOPIC_AUTHORIZATION))
        self.journal.add(1000)
        feed = self.feed()
        row = feed.drain()
        self.assertEqual(row["poison"], 0)
        self.assertGreater(row["rewinds"], 0)
        self.assertAllThere(ordered=False)

    def test_fatal_error(self):
        self.tell("err %d %d 1" % (INIT_PRODUCER_ID, CLUSTER_AUTHORIZATION))
        self.journal.add(1000)
        feed = self.feed()
        row = feed.drain()
        self.assertGreater(row["rewinds"], 0)
        self.assertTrue(row["up"], row)
        self.assertAllThere()

    def test_stall(self):
        self.journal.add(100)
        feed = self.feed("stall=2s", "kafka.statistics.interval.ms=200")
        feed.drain()
        self.tell("rtt 30000")
        self.journal.add(1000)
        wait_for("the watchdog", lambda: feed.status()["rewinds"] > 0)
        self.tell("rtt 0")
        self.assertEqual(feed.drain()["acked"], 1100)
        self.assertAllThere()

    def test_killed_in_the_middle(self):
        self.tell("rtt 20")
        for _ in range(4):
            self.journal.add(4000)
            feed = self.feed("kafka.queue.buffering.max.messages=500")
            before = feed.status()["acked"]
            wait_for("some progress", lambda: feed.status()["acked"] > before)
            feed.kill()
        self.tell("rtt 0")
        feed = self.feed()
        self.assertEqual(feed.drain()["acked"], 16000)
        self.assertAllThere()
        # and once more: the cursor is at the end, nothing is sent again
        feed.stop()
        n = len(kcat_read(self.kafka.brokers, EVENTS))
        feed = self.feed()
        self.assertEqual(feed.drain()["acked"], 16000)
        feed.stop()
        self.assertEqual(len(kcat_read(self.kafka.brokers, EVENTS)), n)

    def test_damaged_cursor(self):
        self.journal.add(100)
        self.feed().drain()
        self.feed().stop()
        self.path("S1.k.cursor", "nonsense")
        row = self.feed().drain()
        self.assertEqual(row["errors"], 1)
        self.assertIn("cursor", row["text"])
        self.assertAllThere()

    def test_dead_broker_beside_a_file(self):
        self.tell("down")
        self.journal.add(50000)
        out = self.path("out.jsonl")
        feed = Feed(self.journal.path, self.tmp, "S1", "kafka:%s,name=k" % self.kafka.brokers,
                    "file:%s,name=f" % out)
        self.addCleanup(feed.kill)
        feed.drain(60000, behind=1, until=lambda: feed.row("f")["acked"] == 50000)
        self.assertEqual([r["id"] for r in read_json_lines(out)], self.journal.ids)
        self.assertEqual(feed.row("k")["acked"], 0)

    # ---- brokers that are none ----

    def refused(self, brokers, words, *options):
        """Told, nothing lost, nothing taken, no busy loop."""
        self.journal.add(1)
        feed = Feed(self.journal.path, self.tmp, "S1", ",".join(("kafka:" + brokers, "name=k") + options))
        self.addCleanup(feed.kill)

        def told():
            row = feed.status()
            return row if any(w in row["text"] for w in words) else None

        row = wait_for("a status with %s" % (words,), told)
        self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))
        before = cpu_seconds(feed.proc.pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(feed.proc.pid) - before, 0.5)
        self.assertEqual(feed.stop()["acked"], 0)

    def test_wrong_host(self):
        self.refused("no-such-host.invalid:9092", ("no-such-host.invalid",))

    def test_strange_servers(self):
        """Half-closed, mute, slow as a loris, another protocol, noise, gone at once."""
        http400 = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
        for talk in (half_closed, mute, slow(b"\0\0\1\0" + bytes(64), 0.2), says(http400), deaf, cut, reset, noise):
            with self.subTest(talk.__name__):
                self.refused("127.0.0.1:%d" % strange_server(self, talk), ("127.0.0.1", "own"),
                             "kafka.socket.timeout.ms=2000", "kafka.api.version.request.timeout.ms=1000")

    def test_untrusted_certificates(self):
        for what, context, ca, host in untrusted(self.tmp):
            with self.subTest(what):
                heard = []
                port = strange_server(self, lambda conn: heard.append(conn.recv(65536)), context)
                self.refused("%s:%d" % (host, port), ("certificate", "SSL"), "kafka.security.protocol=ssl",
                             "kafka.broker.address.family=v4", *(["kafka.ssl.ca.location=" + ca] if ca else []))
                self.assertEqual([h for h in heard if h], [])

    # ---- settings ----

    def test_bad_settings(self):
        self.journal.add(1)
        for option, words in (
                ("kafka.no.such.thing=1", ("kafka.no.such.thing", "No such configuration")),
                ("kafka.compression.type=best", ("compression", "best")),
                ("topic=a b", ("topic", "'a b'")),
                ("kafka.ssl.ca.location=/nonexistent.pem,kafka.security.protocol=ssl",
                 ("ca.location",)),
                ("topik=x", ("did you mean 'topic'",)),
                ("stall=never", ("stall", "never"))):
            done = subprocess.run(Feed.argv(self.journal.path, self.tmp, "S1",
                                            "kafka:127.0.0.1:1," + option),
                                  capture_output=True, text=True, timeout=60, input="end\n")
            self.assertEqual(done.returncode, 2, option)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_tls_and_sasl_properties_are_taken(self):
        """No broker here speaks TLS or SASL: this shows only that the settings reach the library."""
        self.journal.add(1)
        self.path("password", "secret\n")
        feed = self.feed("kafka.security.protocol=sasl_ssl", "kafka.sasl.mechanism=SCRAM-SHA-256",
                         "kafka.sasl.username=u", "kafka.sasl.password=@" + self.path("password"))
        row = wait_for("a refused handshake", lambda: self.handshake_error(feed))
        self.assertFalse(row["up"])
        self.assertEqual(feed.stop()["acked"], 0)

    def test_oauthbearer(self):
        """The token is asked for by OIDC, with the secret out of a file: seen at an endpoint of our own."""
        asked, got = [], threading.Event()

        class Endpoint(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append((self.headers["Authorization"], self.rfile.read(int(self.headers["Content-Length"]))))
                got.set()
                self.send_response(401)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Endpoint)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.path("secret", "s3cret\n")
        self.journal.add(1)
        options = ("kafka.security.protocol=sasl_plaintext", "kafka.sasl.mechanism=OAUTHBEARER",
                   "kafka.sasl.oauthbearer.method=oidc", "kafka.sasl.oauthbearer.client.id=warder",
                   "kafka.sasl.oauthbearer.client.secret=@" + self.path("secret"),
                   "kafka.sasl.oauthbearer.scope=events",
                   "kafka.sasl.oauthbearer.token.endpoint.url=http://127.0.0.1:%d/t" % server.server_address[1])
        done = subprocess.run(Feed.argv(self.journal.path, self.tmp, "S1", "kafka:127.0.0.1:1," + ",".join(options)),
                              capture_output=True, text=True, timeout=60, input="end\n")
        if done.returncode:  # Debian 12's librdkafka is built without OIDC: then that is what is said
            self.assertIn("not supported in this build", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            return
        feed = self.feed(*options)
        self.assertTrue(got.wait(60))
        self.assertEqual(asked[0][0], "Basic " + base64.b64encode(b"warder:s3cret").decode())
        self.assertIn(b"grant_type=client_credentials", asked[0][1])
        self.assertEqual(feed.stop()["acked"], 0)

    @staticmethod
    def handshake_error(feed):
        row = feed.status()
        return row if "SSL" in row["text"] or "handshake" in row["text"] else None


if __name__ == "__main__":
    unittest.main()
