# SPDX-License-Identifier: Apache-2.0
"""Many events for a long time, into sinks that fail at random: nothing lost, memory flat. `make soak` is the long
form: SOAK_SECONDS=600 SOAK_RATE=20000 (events a second, all sessions together)."""

import gzip
import http.server
import json
import os
import random
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed  # noqa: E402
from warder import MockKafka, TestCase, WARDER, wait_for  # noqa: E402

SECONDS = int(os.environ.get("SOAK_SECONDS", "15"))
RATE = int(os.environ.get("SOAK_RATE", "4000"))
SESSIONS = 4
GROWTH = 24 << 20  # bytes: buffers that fill in an outage are bounded, and far below what is sent
NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS = 6, 7, 19


class Hook:
    """A webhook in bad health. Counts what it took: the next seq of each session, and what never came."""

    def __init__(self):
        outer = self
        self.next, self.twice, self.missing, self.requests, self.sick = {}, 0, 0, 0, 0.0
        self.random = random.Random(7)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.take(body)
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # a killed sender's connection breaks
        self.lock = threading.Lock()
        self.url = "http://127.0.0.1:%d/" % self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, body):
        with self.lock:
            self.requests += 1
            fate = self.random.random()
            if fate < self.sick / 2:
                return self.random.choice((503, 429, 500, None))
            for r in json.loads(gzip.decompress(body)):
                want = self.next.get(r["session"], 1)
                if r["seq"] < want:
                    self.twice += 1
                    continue
                self.missing += r["seq"] - want
                self.next[r["session"]] = r["seq"] + 1
            # Taken, but the answer never comes: the batch comes again.
            return None if fate < self.sick else 204


class Soak(TestCase):
    def tell(self, line):
        self.kafka.tell(line)
        self.assertEqual(self.kafka.proc.stdout.readline().strip(), "ok")

    def trouble(self, dice):
        """One thing breaks for a moment."""
        what = dice.randrange(5)
        if what == 0:
            self.tell("down")
            time.sleep(dice.uniform(0.2, 2))
            self.tell("up")
        elif what == 1:
            self.tell("rtt %d" % dice.randrange(20, 300))
            time.sleep(dice.uniform(0.2, 1))
            self.tell("rtt 0")
        elif what == 2:
            self.tell("err 0 %d %d" % (dice.choice((NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS)), dice.randrange(1, 8)))
        else:
            self.hook.sick = dice.uniform(0.1, 0.7)
            time.sleep(dice.uniform(0.2, 1.5))
            self.hook.sick = 0.0

    def memory(self):
        with open("/proc/%d/status" % self.feed.proc.pid) as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))

    def start(self):
        names = ",".join("S%d" % i for i in range(SESSIONS))
        self.feed = Feed(",".join([self.made] * SESSIONS), self.tmp, names,
                         # The mock takes what a broker refuses as out of order, so one request at a time.
                         "kafka:%s,name=k,kafka.max.in.flight=1" % self.kafka.brokers,
                         "webhook:%s,name=h,timeout=5s" % self.hook.url)
        self.addCleanup(self.feed.kill)

    def test_soak(self):
        dice = random.Random(int(os.environ.get("SOAK_SEED", "1")))
        self.kafka, self.hook = MockKafka(), Hook()
        self.addCleanup(self.kafka.__exit__)
        self.addCleanup(self.hook.http.server_close)
        self.addCleanup(self.hook.http.shutdown)
        self.tell("topic warder.events 8")
        each = RATE // SESSIONS
        total = each * SECONDS * SESSIONS
        self.made = "made:%d:%d:%d" % (each, each * SECONDS, time.monotonic_ns() + 10**9)
        # The mock keeps little: what arrives is read at once, by a client that is allowed to see duplicates.
        consumer = subprocess.Popen([WARDER, "consume", self.kafka.brokers, "--quiet", "--count", str(total)],
                                    stderr=subprocess.PIPE, env=self.env, text=True)
        self.addCleanup(consumer.kill)
        self.start()
        began, samples, kills = time.monotonic(), [], 0
        while time.monotonic() < began + SECONDS + 1:
            self.feed.proc.stdin.write("notify\n")
            self.feed.proc.stdin.flush()
            if dice.random() < 0.25:
                self.trouble(dice)
            if dice.random() < 0.02 and kills * 60 < SECONDS:
                kills += 1
                self.feed.kill()
                self.start()
                samples.append(None)
            samples.append(self.memory())
            time.sleep(0.1)
        answer = self.feed.ask("drain 250000")
        self.assertEqual((answer["behind"], sum(r["poison"] for r in answer["sinks"])), (0, 0), answer)
        _, err = consumer.communicate(timeout=250)
        got = json.loads(err.splitlines()[-1])
        print("soak: %d events at %d/s, %d kills, consumer %s, webhook %d requests, %d twice" % (
            total, RATE, kills, got, self.hook.requests, self.hook.twice))
        self.assertEqual((consumer.returncode, got["events"], got["missing"], got["late"], got["altered"]),
                         (0, total, 0, 0, 0))
        wait_for("the webhook", lambda: sum(self.hook.next.values()) == total + SESSIONS)
        self.assertEqual(self.hook.missing, 0)
        # Memory of the last process, from when it was warm.
        last = samples[len(samples) - samples[::-1].index(None):] if None in samples else samples
        half = len(last) // 2
        if half > 20:
            print("soak: memory %d KiB at most in the first half, %d in the second" % (
                max(last[:half]) >> 10, max(last[half:]) >> 10))
            self.assertLess(max(last[half:]), max(last[:half]) + GROWTH)


if __name__ == "__main__":
    unittest.main()
