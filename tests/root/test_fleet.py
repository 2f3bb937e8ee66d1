# SPDX-License-Identifier: Apache-2.0
"""Three hosts, 200 sessions, one broker: network namespaces, a relay each (the mock cluster listens on a loopback
only), and everything that breaks in turn. WARDER_FLEET_DOWN is how long the broker is away, in seconds: 60 is what
is promised, the default is shorter and breaks the same things."""

import json
import os
import socket
import subprocess
import threading
import time
import unittest

from feed import Feed, Journal, python_client_read
from warder import *

SESSIONS = (67, 67, 66)
DOWN = float(os.environ.get("WARDER_FLEET_DOWN", "8"))
PRODUCE, NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS = 0, 6, 7, 19


class Relay:
    """127.0.0.1:port of a namespace is the broker outside of it."""

    def __init__(self, netns, port):
        self.sock = netns.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("127.0.0.1", port))
        self.sock.listen(256)
        self.port, self.pairs, self.lock = port, [], threading.Lock()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                inner, _ = self.sock.accept()
            except OSError:
                return
            try:
                outer = socket.create_connection(("127.0.0.1", self.port), 5)
            except OSError:
                inner.close()
                continue
            with self.lock:
                self.pairs += [inner, outer]
            for a, b in ((inner, outer), (outer, inner)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(a, b):
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
        except OSError:
            pass  # cut: the other direction is told below
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Every connection of this host breaks at once."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for s in pairs:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.cut()


class Host:
    def __init__(self, test, number, sessions):
        self.test = test
        self.netns = NetNS()
        self.netns.__enter__()
        test.addCleanup(self.netns.__exit__)
        self.relay = Relay(self.netns, int(test.kafka.brokers.rpartition(":")[2]))
        test.addCleanup(self.relay.close)
        self.folder = test.path("host%d" % number)
        os.mkdir(self.folder)
        self.journals = []
        for i in range(sessions):
            name = "H%dS%d" % (number, i)
            self.journals.append(Journal(os.path.join(self.folder, name), name))
        self.start()

    def start(self):
        # One request in flight: the mock takes what a real broker refuses as out of order.
        sink = "kafka:127.0.0.1:%d,name=k,kafka.max.in.flight=1,kafka.compression.type=gzip,stall=20s" % self.relay.port
        self.feed = Feed(",".join(j.path for j in self.journals), self.folder,
                         ",".join(j.session for j in self.journals), sink, prefix=self.netns.inside([]))
        self.test.addCleanup(self.feed.kill)

    def write(self, n):
        for j in self.journals:
            j.add(n, pad=100)
        self.feed.proc.stdin.write("notify\n")
        self.feed.proc.stdin.flush()


class Fleet(TestCase):
    def tell(self, line):
        self.kafka.tell(line)
        self.assertEqual(self.kafka.proc.stdout.readline().strip(), "ok")

    def setUp(self):
        super().setUp()
        need_root()
        need("kcat")
        self.kafka = MockKafka()
        self.addCleanup(self.kafka.__exit__)
        self.tell("topic warder.events 12")
        self.hosts = [Host(self, i, n) for i, n in enumerate(SESSIONS)]

    def write(self, n):
        for h in self.hosts:
            h.write(n)

    def check(self, rows):
        """rows: (key, id) as they arrived."""
        seen = {}
        for key, id in rows:
            seen.setdefault(key, {})[id] = True  # a dict keeps the order of first arrival
        for h in self.hosts:
            for j in h.journals:
                self.assertEqual(list(seen.get(j.session, {})), j.ids, j.session)

    def test_fleet(self):
        self.write(20)
        for h in self.hosts:
            h.feed.drain()
        # The broker is slow, then away, while every host goes on.
        self.tell("rtt 150")
        self.write(20)
        self.tell("down")
        end = time.monotonic() + DOWN
        while time.monotonic() < end:
            self.write(2)
            time.sleep(min(1, DOWN / 8))
        # One agent is killed meanwhile and comes back, one host loses its network for a moment.
        self.hosts[1].feed.kill()
        self.tell("up")
        self.hosts[2].relay.cut()
        self.hosts[1].start()
        self.tell("rtt 0")
        for code in (NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS):
            self.tell("err %d %d 20" % (PRODUCE, code))
            self.write(10)
            time.sleep(0.5)
        for h in self.hosts:
            answer = h.feed.ask("drain 200000")
            self.assertEqual(answer["behind"], 0)
            self.assertEqual(sum(r["poison"] for r in answer["sinks"]), 0)

        rows = [(r[0], json.loads(r[3])["id"]) for r in kcat_read(self.kafka.brokers, "warder.events")]
        self.check(rows)
        done = self.warder("consume", self.kafka.brokers, "--end")
        self.assertCode(done, 0)
        total = json.loads(done.err.decode().splitlines()[-1])
        self.assertEqual((total["sessions"], total["events"], total["records"]),
                         (sum(SESSIONS), sum(len(j.ids) for h in self.hosts for j in h.journals), len(rows)))
        self.python_client()

    def python_client(self):
        rows = python_client_read(self.kafka.brokers, "warder.events")
        if rows is not None:
            self.check(rows)


if __name__ == "__main__":
    unittest.main()
