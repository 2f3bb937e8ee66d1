# SPDX-License-Identifier: Apache-2.0
"""`warder consume`, the reference consumer, and `warder sink`, against the mock cluster and small fakes."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed, Journal  # noqa: E402
from warder import WARDER, MockKafka, TestCase, kcat_read, need, wait_for  # noqa: E402


class Consume(TestCase):
    def setUp(self):
        super().setUp()
        self.kafka = MockKafka()
        self.addCleanup(self.kafka.__exit__)

    def consume(self, *options):
        done = self.warder("consume", self.kafka.brokers, *options)
        return done, json.loads(done.err.decode().splitlines()[-1])

    def put(self, key, seq, body="{}", id=None, topic="warder.events"):
        need("kcat")
        subprocess.run(["kcat", "-b", self.kafka.brokers, "-P", "-t", topic, "-k", key, "-H",
                        "id=" + (id or "%s-%d" % (key, seq)), "-H", "seq=%d" % seq],
                       input=body, text=True, check=True, timeout=60)

    def test_whole_sessions(self):
        journals = []
        for name in ("S1", "S2", "S3"):
            j = Journal(self.path(name), name)
            j.add(2000)
            journals.append(j)
            feed = Feed(j.path, self.tmp, name, "kafka:%s,name=k" % self.kafka.brokers)
            feed.drain()
            feed.kill()
            os.unlink(self.path(name + ".k.cursor"))
        feed = Feed(journals[0].path, self.tmp, "S1", "kafka:%s,name=k" % self.kafka.brokers)
        feed.drain()  # all of it once more
        feed.kill()
        done, total = self.consume("--end")
        self.assertCode(done, 0)
        self.assertEqual(total, {"records": 8000, "events": 6000, "duplicates": 2000, "late": 0, "missing": 0, "gone": 0,
                                 "altered": 0, "sessions": 3})
        ids = [json.loads(line)["id"] for line in done.out.splitlines()]
        for j in journals:
            self.assertEqual([i for i in ids if i.startswith(j.session + "-")], j.ids)

    def test_what_is_wrong_is_told(self):
        for seq in (1, 2, 5, 4, 8):
            self.put("S1", seq)
        self.put("S1", 2, body='{"other": 1}')
        self.put("S\x1b[31m", 2)
        done, total = self.consume("--end")
        self.assertCode(done, 1)
        self.assertEqual(total, {"records": 7, "events": 6, "duplicates": 1, "late": 1, "missing": 4, "gone": 0, "altered": 1,
                                 "sessions": 2})
        self.assertIn(b"session S1: 2 events before seq 5 are missing", done.err)
        self.assertIn(b"session S1: seq 4 came late", done.err)
        self.assertNotIn(b"\x1b", done.err)
        done, total = self.consume("--end", "--partial", "--quiet")
        self.assertEqual((done.out, total["events"], total["missing"]), (b"", 6, 0))

    def test_group_goes_on(self):
        for seq in (1, 2, 3):
            self.put("S1", seq)
        # The mock forgets a member that left only when its time is over.
        group = ("--group", "g", "-X", "session.timeout.ms=6000", "--count")
        done, total = self.consume(*group, "3")
        self.assertEqual(total["events"], 3)
        self.put("S1", 4)
        done, total = self.consume(*group, "1")
        self.assertCode(done, 0)
        self.assertEqual(total["records"], 1)

    def test_group_ends(self):
        """Where the group left off may be the end already."""
        for seq in (1, 2, 3):
            self.put("S1", seq)
        for events in (3, 0):
            done, total = self.consume("--group", "g", "-X", "session.timeout.ms=6000", "--end")
            self.assertCode(done, 0)
            self.assertEqual(total["events"], events)

    def test_topic_that_is_not_there(self):
        """Nothing was read: that is not "whole", and nobody's topic is made by asking."""
        for _ in range(2):
            for options in ((), ("-g", "g"), ("--end",), ("--end", "-g", "g")):
                done = self.warder("consume", self.kafka.brokers, "-t", "no-such", *options)
                self.assertCode(done, 125)
                self.assertOneLine(done, "no-such", "none of that name")
        for name in ("a b", "", "..", "x" * 250):
            done = self.warder("consume", self.kafka.brokers, "-t", name, "--end")
            self.assertCode(done, 125)
            self.assertOneLine(done, "is no topic name")

    def test_no_broker(self):
        """--idle bounds the wait for one."""
        for options in ((), ("-g", "g")):
            began = time.monotonic()
            done = self.warder("consume", "127.0.0.1:1", "--idle", "1s", *options)
            self.assertCode(done, 125)
            self.assertOneLine(done, "no answer from '127.0.0.1:1'")
            self.assertLess(time.monotonic() - began, 20)  # and not the 30 s of the default

    def test_brokers_go_away(self):
        """What is left unread is not known: no sum says "whole"."""
        self.put("S1", 1)
        proc = subprocess.Popen([WARDER, "consume", self.kafka.brokers, "--idle", "4s"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        self.addCleanup(proc.kill)
        self.assertEqual(proc.stdout.readline(), b"{}\n")
        self.kafka.tell("down")
        out, err = proc.communicate(timeout=60)
        self.assertEqual(proc.returncode, 125, err)
        self.assertIn(b"no broker can be reached", err)

    def test_bad_use(self):
        for argv, words in ((("consume",), ("brokers",)), (("consume", "a", "b"), ("commas",)),
                            (("consume", "h:1", "-X", "no.such=1"), ("no.such",)),
                            (("consume", "h:1", "-X", "sasl.password=@/nonexistent"), ("/nonexistent",)),
                            (("sink",), ("test",)), (("sink", "test"), ("test",)),
                            (("sink", "test", "kafak:x"), ("kafka",)),
                            (("sink", "test", "syslog:tcp://127.0.0.1:99999"), ("is no port",)),
                            (("sink", "test", "syslog:tcp://127.0.0.1:-1"), ("is no port",))):
            done = self.warder(*argv)
            self.assertCode(done, 125)
            self.assertOneLine(done, *words)


class Sink(TestCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.env["WARDER_CONFIG"])

    def sinks(self, **sinks):
        with open(os.path.join(self.env["WARDER_CONFIG"], "sinks.yaml"), "w") as f:
            f.write("".join("%s: '%s'\n" % (k.replace("_", "-"), v) for k, v in sinks.items()))

    def ask(self, *argv):
        done = self.warder("sink", "test", "--json", *argv)
        return done.code, json.loads(done.out)

    def test_kafka_by_name(self):
        with MockKafka() as kafka:
            self.sinks(soc="kafka:%s,topic=mine" % kafka.brokers, disk="file:" + self.path("out"))
            code, said = self.ask("soc")
            self.assertEqual((code, said["sink"], said["taken"]), (0, "soc", True))
            self.assertRegex(said["said"], "^topic mine, partition [0-9]+, offset 0$")
            (key, _, _, body), = kcat_read(kafka.brokers, "mine")
            event = json.loads(body)
            self.assertEqual((event["id"], event["session"], event["sandbox"]), (said["id"], key, "sink-test"))
            self.assertIn("sink test", event["audit"]["message"])
        done = self.warder("sink", "list")
        self.assertEqual(done.out.split(), [b"soc", b"kafka", b"disk", b"file"])

    def test_file_and_filter(self):
        code, said = self.ask("file:" + self.path("out"))
        self.assertEqual((code, said["said"]), (0, "on the disk: " + self.path("out")))
        done = self.warder("sink", "test", "file:%s,filter=kind = exec" % self.path("other"))
        self.assertCode(done, 1)
        self.assertIn(b"filter", done.out)

    def serve(self, answer):
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.bind(("127.0.0.1", 0))
        sock.listen(8)

        def run():
            while True:
                try:
                    conn, _ = sock.accept()
                except OSError:
                    return
                with conn:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += conn.recv(65536)
                    n = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                    body = head.partition(b"\r\n\r\n")[2]
                    while len(body) < n:
                        body += conn.recv(65536)
                    conn.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        return "http://127.0.0.1:%d/" % sock.getsockname()[1]

    def test_what_a_server_says(self):
        for answer, code, words in (
                (b"HTTP/1.1 202 OK\r\nContent-Length: 7\r\n\r\nwelcome", 0, "HTTP status 202: welcome"),
                (b"HTTP/1.1 400 Bad\r\nContent-Length: 6\r\n\r\nno way", 1, "HTTP status 400: no way"),
                (b"HTTP/1.1 401 Who\r\nContent-Length: 3\r\n\r\nwho", 1, "HTTP status 401: who")):
            url = self.serve(answer)
            got, said = self.ask("--wait", "2s" if code else "60s", "webhook:" + url)
            self.assertEqual((got, said["taken"], said["said"]), (code, not code, words))

    def test_nobody_there(self):
        code, said = self.ask("--wait", "500ms", "syslog:tcp://127.0.0.1:1")
        self.assertEqual((code, said["taken"]), (1, False))
        self.assertIn("refused", said["said"])

    def test_secrets_leave_the_command_line(self):
        """`ps` shows it to everybody on the host."""
        for argv in (("sink", "test", "--wait", "1h", "splunk:http://127.0.0.1:1,token=geheim,timeout=1s"),
                     ("consume", "127.0.0.1:1", "-X", "sasl.password=geheim")):
            proc = subprocess.Popen([WARDER, *argv], env=self.env, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            self.addCleanup(proc.wait)
            self.addCleanup(proc.kill)

            def shown():
                with open("/proc/%d/cmdline" % proc.pid, "rb") as f:
                    return f.read()

            wait_for("stars", lambda: b"=******" in shown())
            self.assertNotIn(b"geheim", shown())

    def test_list(self):
        self.assertEqual(self.warder("sink", "list").out, b"")  # no file: no names
        self.assertEqual(json.loads(self.warder("sink", "list", "--json").out), [])
        self.sinks(soc="kafka:h:1,kafka.sasl.password=s3cret", disk="file:/dev/null")
        done = self.warder("sink", "list", "--json")
        self.assertCode(done, 0)
        self.assertEqual(json.loads(done.out), [{"name": "soc", "class": "kafka"}, {"name": "disk", "class": "file"}])
        with open(os.path.join(self.env["WARDER_CONFIG"], "sinks.yaml"), "w") as f:
            f.write("soc: ['file:/dev/null', 'file:/dev/zero']\n")
        self.assertOneLine(self.warder("sink", "test", "soc"), "sinks.yaml:1:7", "one value, not a list")
        with open(os.path.join(self.env["WARDER_CONFIG"], "sinks.yaml"), "w") as f:
            f.write("[")
        self.assertCode(self.warder("sink", "list", "--json"), 125)

    def test_what_a_server_says_is_no_command(self):
        """C0, C1 as bytes and as UTF-8, and what turns the text round."""
        text = b"a\x1b[2Jb\x9b31mc\xc2\x9b32md\xe2\x80\xaee\xe2\x81\xa6f"
        for status, code in ((b"202 OK", 0), (b"400 Bad", 1), (b"503 Busy", 1)):
            url = self.serve(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text))
            for form in ((), ("--json",)):
                done = self.warder("sink", "test", *form, "--wait", "2s" if code else "60s", "webhook:" + url)
                self.assertCode(done, code)
                said = done.out.decode()
                self.assertIn("e", said)
                self.assertNotRegex(said.replace("\n", ""), "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

    def test_unknown_name(self):
        self.sinks(soc="file:/dev/null")
        done = self.warder("sink", "test", "sok")
        self.assertCode(done, 125)
        self.assertOneLine(done, "did you mean 'soc'")


if __name__ == "__main__":
    unittest.main()
