# SPDX-License-Identifier: Apache-2.0
"""The HTTP sinks (splunk, elastic, webhook, otlp) against servers of our own that give every sort of answer.
No real Splunk, Elasticsearch or collector is at hand: the fakes check what those check."""

import base64
import gzip
import hashlib
import hmac
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed, Journal, read_json_lines  # noqa: E402
from strange import (certificate, cut, deaf, half_closed, mute, noise, reset, says, slow,  # noqa: E402
                     strange_server, tls, untrusted)
from warder import TestCase, wait_for  # noqa: E402


class Server:
    """`answer(request)` returns (status, headers, body), or None to cut the connection."""

    def __init__(self, answer, context=None, port=0):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.connections.append(self.connection)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                self.body = body
                with outer.lock:
                    outer.requests += 1
                    self.number = outer.requests
                    reply = outer.answer(self)
                if reply is None:
                    self.close_connection = True
                    return
                status, headers, text = reply
                text = text.encode()
                self.answer_with(status, headers, text)

            def answer_with(self, status, headers, text):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                try:
                    self.wfile.write(text)
                except OSError:
                    self.close_connection = True  # the sink was killed: its test knows

            def log_message(self, *_):
                pass

        self.answer, self.requests, self.lock, self.connections = answer, 0, threading.Lock(), []
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        for c in self.connections:  # they are kept alive
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Indexers:
    """Splunk with indexer acknowledgement: `indexed(id, polls)` says whether an id is, when asked again and again.
    Ids count per channel; `forget` is a restart."""

    def __init__(self, indexed=lambda id, polls: True):
        self.indexed, self.batches, self.polls, self.asked = indexed, [], {}, []
        self.channels, self.urls, self.next_id, self.with_id = set(), set(), 0, True
        self.safe = []  # ids of events, in the order in which they were acknowledged

    def forget(self):
        self.polls, self.next_id, self.held = {}, 0, {}

    held = {}

    def __call__(self, request):
        self.channels.add(request.headers["X-Splunk-Request-Channel"])
        self.urls.add(request.path)
        if "/collector/ack?" not in request.path:
            text, decode, at, ids = request.body.decode(), json.JSONDecoder(), 0, []
            while at < len(text):
                event, at = decode.raw_decode(text, at)
                ids.append(event["fields"]["id"])
            self.batches.append(ids)
            if not self.with_id:
                return 200, {}, '{"text":"Success","code":0}'
            id, self.next_id = self.next_id, self.next_id + 1
            self.held = dict(self.held, **{str(id): ids})
            return 200, {}, '{"text":"Success","code":0,"ackId":%d}' % id
        assert "Content-Encoding" not in request.headers
        answer = {}
        for id in json.loads(request.body)["acks"]:
            self.asked.append(id)
            self.polls[id] = self.polls.get(id, 0) + 1
            answer[str(id)] = str(id) in self.held and self.indexed(id, self.polls[id])
            if answer[str(id)]:
                self.safe += self.held.pop(str(id))  # Splunk forgets what it told
        return 200, {}, json.dumps({"acks": answer})

    def sent(self):
        return [i for batch in self.batches for i in batch]


class Http(TestCase):
    def setUp(self):
        super().setUp()
        self.journal = Journal(self.path("journal"), "S1")
        self.got = []  # ids in order, as a well-behaved server took them

    def server(self, answer, **kw):
        s = Server(answer, **kw)
        self.addCleanup(s.close)
        return s

    def feed(self, sink, server=None, *options, scheme="http", host="127.0.0.1"):
        url = "%s://%s:%d" % (scheme, host, server.port) if server else ""
        feed = Feed(self.journal.path, self.tmp, "S1", ",".join(("%s:%s" % (sink, url), "name=h") + options))
        self.addCleanup(feed.kill)
        return feed

    def dead(self):
        return read_json_lines(self.path("S1.h.dlq.jsonl"))

    def with_text(self, feed, text):
        return wait_for("status '%s'" % text, lambda: self.row_if(feed, text))

    @staticmethod
    def row_if(feed, text):
        row = feed.status()
        return row if text in row["text"] else None

    def assertAllOnce(self):
        self.assertEqual(self.got, self.journal.ids)

    # ---- webhook: what all of them share ----

    def hook(self, request):
        self.got += [r["id"] for r in json.loads(request.body)]
        return 204, {}, ""

    def test_webhook(self):
        seen = []

        def answer(request):
            seen.append((request.path, dict(request.headers), request.body))
            return self.hook(request)

        self.path("secret", "s3cret\n")
        s = self.server(answer)
        self.journal.add(5000)
        self.feed("webhook", s, "secret=@" + self.path("secret"), "header=X-Mine: yes").drain()
        self.assertAllOnce()
        self.assertLess(s.requests, 20)  # batches
        for path, headers, body in seen:
            self.assertEqual(path, "/")
            self.assertEqual(headers["X-Mine"], "yes")
            self.assertEqual(headers["Content-Encoding"], "gzip")
            t, v1 = (part.split("=")[1] for part in headers["X-Warder-Signature"].split(","))
            self.assertEqual(v1, hmac.new(b"s3cret", t.encode() + b"." + body, hashlib.sha256).hexdigest())

    def test_plain_bodies(self):
        s = self.server(lambda r: (500, {}, "") if "Content-Encoding" in r.headers else self.hook(r))
        self.journal.add(10)
        self.feed("webhook", s, "gzip=no").drain()
        self.assertAllOnce()

    def test_answers_that_pass(self):
        """Busy, broken, cut: again, in order, nothing twice, since nothing was taken."""
        bad = [(429, {"Retry-After": "1"}, "slow down"), (503, {}, "<html>down</html>"), (500, {}, ""),
               (408, {}, ""), None, (502, {}, "bad gateway")]
        s = self.server(lambda r: bad.pop(0) if bad else self.hook(r))
        self.journal.add(100)
        feed = self.feed("webhook", s)
        began = time.monotonic()
        row = feed.drain()
        self.assertGreater(time.monotonic() - began, 1)  # Retry-After was heeded
        self.assertEqual((row["acked"], row["poison"]), (100, 0))
        self.assertAllOnce()
        self.assertGreaterEqual(s.requests, 7)

    def test_status_says_why(self):
        s = self.server(lambda r: (503, {}, "out to\x1b[31m lunch"))
        self.journal.add(1)
        feed = self.feed("webhook", s)
        row = self.with_text(feed, "HTTP status 503: out to [31m lunch")
        self.assertFalse(row["up"])
        time.sleep(0.5)
        n = s.requests
        time.sleep(1)
        self.assertLess(s.requests - n, 5)  # pauses grow
        self.assertEqual(feed.stop()["acked"], 0)

    def test_operator_must_mend(self):
        """Wrong path, wrong rights, redirects: nothing is given up, nothing goes elsewhere."""
        for status, headers in ((401, {}), (403, {}), (404, {}), (301, {"Location": "http://127.0.0.1:1/"})):
            with self.subTest(status):
                ok = []
                self.got.clear()
                s = self.server(lambda r: self.hook(r) if ok else (status, headers, "no"))
                for name in os.listdir(self.tmp):
                    if name.endswith(".cursor"):
                        os.unlink(self.path(name))
                self.journal.add(3)
                feed = self.feed("webhook", s)
                self.assertFalse(self.with_text(feed, "HTTP status %d" % status)["up"])
                ok.append(True)
                self.assertEqual(feed.drain()["poison"], 0)
                self.assertAllOnce()
                feed.stop()

    def test_bad_records_are_found(self):
        """400 for a batch that holds one of three: only those become dead letters."""
        bad = {"S1-17", "S1-18", "S1-900"}

        def answer(request):
            ids = [r["id"] for r in json.loads(request.body)]
            return (400, {}, "bad record") if bad & set(ids) else self.hook(request)

        self.journal.add(1000)
        row = self.feed("webhook", self.server(answer)).drain()
        self.assertEqual(row["poison"], 3)
        self.assertEqual({d["record"]["id"] for d in self.dead()}, bad)
        self.assertIn("bad record", self.dead()[0]["why"])
        self.assertEqual(self.got, [i for i in self.journal.ids if i not in bad])

    def test_a_wrong_server_refuses_everything(self):
        """A port that wants TLS, the page of a proxy: nothing of what they refuse is a dead letter."""
        for what, status, text in (("tls", 400, "Client sent an HTTP request to an HTTPS server."),
                                   ("page", 400, "<html><h1>400 Bad Request"), ("empty", 405 + 5, "")):
            for sink, options in self.each_sink():
                ok = []
                s = self.server(lambda r: self.accept(sink, r) if ok else (status, {}, text))
                self.journal = Journal(self.path("journal-%s-%s" % (sink, what)), "S1")
                self.journal.add(30)
                feed = Feed(self.journal.path, self.tmp, "S1", ",".join(
                    ["%s:http://127.0.0.1:%d" % (sink, s.port), "name=%s-%s" % (sink, what), *options]))
                self.addCleanup(feed.kill)
                wait_for("more than a round", lambda: s.requests > 25)
                row = self.with_text(feed, "HTTP status %d: %s" % (status, text))
                self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))
                ok.append(True)
                row = feed.drain()
                self.assertEqual((row["acked"], row["poison"], row["text"]), (30, 0, ""))
                feed.stop()

    def test_the_first_records_are_bad(self):
        """The next one is taken: so it was them."""
        bad = {"S1-1", "S1-2", "S1-3"}

        def answer(request):
            ids = [r["id"] for r in json.loads(request.body)]
            return (400, {}, "bad record") if bad & set(ids) else self.hook(request)

        self.journal.add(3)
        feed = self.feed("webhook", self.server(answer))
        self.assertEqual(self.with_text(feed, "bad record")["poison"], 0)
        self.journal.add(20)
        row = feed.drain()
        self.assertEqual((row["poison"], row["acked"]), (3, 23))
        self.assertEqual({d["record"]["id"] for d in self.dead()}, bad)
        self.assertIn("bad record", self.dead()[0]["why"])
        self.assertEqual(self.got, self.journal.ids[3:])

    def test_no_room_for_dead_letters(self):
        """It is told which record is in the journal only."""
        os.mkdir(self.path("S1.h.dlq.jsonl"))
        self.journal.add(20)
        s = self.server(lambda r: (400, {}, "{}") if b'"S1-7"' in r.body else self.hook(r))
        row = self.feed("webhook", s).drain()
        self.assertEqual((row["poison"], row["errors"], row["acked"]), (1, 1, 20))
        self.assertIn("record 7 and later ones may be in the journal only", row["text"])

    def test_endless_answers(self):
        """They are cut by their length, not by the time-out, and read no longer."""
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

        def endless(conn):
            conn.recv(65536)
            conn.sendall(head)
            while True:
                conn.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")

        self.journal.add(1)
        for sink, option in self.SINKS:
            feed = Feed(self.journal.path, self.tmp, "S1", "%s:http://127.0.0.1:%d,name=%s,timeout=1h%s" % (
                sink, strange_server(self, endless), sink, option and "," + option))
            self.addCleanup(feed.kill)
            row = self.with_text(feed, "longer than any should be")
            self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))
            feed.stop()

    def test_too_large(self):
        """413 above 64 KiB: smaller batches; one record alone is too large."""
        s = self.server(lambda r: (413, {}, "") if len(r.body) > 65536 else self.hook(r))
        self.journal.add(500)
        self.journal.add(1, pad=100000)
        self.journal.add(500)
        row = self.feed("webhook", s).drain()
        self.assertEqual((row["poison"], row["acked"]), (1, 1001))
        self.assertEqual(self.got, self.journal.ids[:500] + self.journal.ids[501:])

    def test_server_comes_and_goes(self):
        s = Server(self.hook)
        self.journal.add(100)
        feed = self.feed("webhook", s)
        feed.drain()
        s.close()
        self.journal.add(100)
        self.with_text(feed, "onnect")  # refused, or reset
        again = self.server(self.hook, port=s.port)
        self.assertTrue(feed.drain()["up"])
        self.assertEqual(list(dict.fromkeys(self.got)), self.journal.ids)
        self.assertGreater(again.requests, 0)

    def test_slow_loris(self):
        """An answer that never ends is cut by the timeout; the record comes again."""
        slow = []

        def answer(request):
            if not slow:
                slow.append(True)
                request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                for _ in range(20):
                    try:
                        request.wfile.write(b"x")
                        request.wfile.flush()
                    except OSError:
                        break
                    time.sleep(0.1)
                return None
            return self.hook(request)

        self.journal.add(5)
        feed = self.feed("webhook", self.server(answer), "timeout=500ms")
        feed.drain()
        self.assertAllOnce()

    def test_killed(self):
        for _ in range(3):
            self.journal.add(5000)
            answered, killed = [], threading.Event()

            def answer(request):
                answered.append(True)
                if len(answered) > 2:
                    killed.wait()
                return self.hook(request)

            feed = self.feed("webhook", self.server(answer))
            wait_for("work half done", lambda: len(answered) > 2)
            feed.kill()
            killed.set()
        self.feed("webhook", self.server(self.hook)).drain()
        self.assertEqual(list(dict.fromkeys(self.got)), self.journal.ids)

    # ---- Splunk ----

    def test_splunk(self):
        events = []

        def answer(request):
            if request.headers["Authorization"] != "Splunk t0ken":
                return 403, {}, '{"text":"Invalid token","code":4}'
            if request.path != "/services/collector/event":
                return 404, {}, ""
            text, decode, at = request.body.decode(), json.JSONDecoder(), 0
            while at < len(text):
                event, at = decode.raw_decode(text, at)
                events.append(event)
            return 200, {}, '{"text":"Success","code":0}'

        self.journal.add(1000)
        s = self.server(answer)
        self.feed("splunk", s, "token=t0ken", "index=sandboxes").drain()
        self.assertEqual([e["event"]["id"] for e in events], self.journal.ids)
        self.assertEqual({(e["source"], e["sourcetype"], e["index"], e["fields"]["session"]) for e in events},
                         {("warder", "warder:event", "sandboxes", "S1")})
        self.journal.add(1)
        row = self.with_text(Feed(self.journal.path, self.tmp, "S1", "splunk:http://127.0.0.1:%d,token=x,name=bad"
                                  % s.port), "Invalid token")
        self.assertEqual(row["acked"], 0)

    def test_splunk_settings(self):
        """Codes that are about the token, not about the records."""
        for code in (7, 10, 14):
            ok = []
            s = self.server(lambda r: self.accept("splunk", r) if ok else
                            (400, {}, '{"text":"no","code":%d}' % code))
            self.journal = Journal(self.path("journal-%d" % code), "S1")
            self.journal.add(1)  # of more, it would be halves that are tried, and not a record that is given up
            feed = self.feed("splunk", s, "token=t", "name=c%d" % code)
            self.assertEqual(self.with_text(feed, '"code":%d' % code)["poison"], 0)
            ok.append(True)
            self.assertEqual((feed.drain()["poison"], feed.stop()["acked"]), (0, 1))
            self.journal.add(20)
            feed = self.feed("splunk", s, "token=t", "name=c%d" % code)
            self.assertEqual((feed.drain()["poison"], feed.stop()["acked"]), (0, 21))

    def test_splunk_html_instead(self):
        """A login page with status 200 is not an acknowledgement."""
        ok = []
        s = self.server(lambda r: (200, {}, '{"text":"Success","code":0}' if ok else "<html>Please log in"))
        self.journal.add(5)
        feed = self.feed("splunk", s, "token=t")
        self.assertEqual(self.with_text(feed, "not an answer of Splunk")["acked"], 0)
        ok.append(True)
        self.assertEqual(feed.drain()["acked"], 5)

    # ---- Splunk, indexer acknowledgement ----

    def acked_feed(self, indexers, *options):
        return self.feed("splunk", self.server(indexers), "token=t", "ack=yes", *options)

    def test_splunk_ack(self):
        x = Indexers()
        self.journal.add(5000)
        row = self.acked_feed(x).drain()
        self.assertEqual((row["acked"], row["poison"], row["text"]), (5000, 0, ""))
        self.assertEqual(x.sent(), self.journal.ids)
        self.assertEqual(sorted(x.safe), sorted(self.journal.ids))
        (channel,) = x.channels
        self.assertRegex(channel, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.assertEqual(x.urls, {"/services/collector/event", "/services/collector/ack?channel=" + channel})

    def test_splunk_ack_late(self):
        """Several batches wait at once; the cursor stands until the first is acknowledged; no storm of questions."""
        ok = []
        x = Indexers(lambda id, polls: bool(ok) if id == 0 else polls > 1)
        self.journal.add(3000)
        feed = self.acked_feed(x)
        wait_for("all but the first batch", lambda: feed.status() and x.batches and
                 len(x.safe) >= 3000 - len(x.batches[0]))
        self.assertGreater(len(x.batches), 4)
        self.assertEqual(feed.status()["acked"], 0)
        n = len(x.asked)
        time.sleep(1)
        self.assertLess(len(x.asked) - n, 12)
        self.assertEqual((feed.status()["acked"], feed.status()["text"]), (0, ""))
        ok.append(True)
        self.assertEqual(feed.drain()["acked"], 3000)
        self.assertEqual(x.sent(), self.journal.ids)  # nothing twice

    def test_splunk_ack_never(self):
        """What is not acknowledged in time comes again with the same ids, and the status tells."""
        x = Indexers(lambda id, polls: id >= 3)
        self.journal.add(10)
        feed = self.acked_feed(x, "ack-timeout=400ms")
        self.assertEqual(self.with_text(feed, "not acknowledged by the indexers within 400 ms")["acked"], 0)
        row = feed.drain()
        self.assertEqual((row["acked"], row["up"]), (10, True))
        self.assertEqual(set(x.safe), set(self.journal.ids))
        self.assertGreater(len(x.sent()), 10)
        self.assertEqual(set(x.sent()), set(self.journal.ids))

    def test_splunk_ack_off_at_the_server(self):
        """Success without ackId proves nothing: for the operator, and no flood of copies meanwhile."""
        x = Indexers()
        x.with_id = False
        self.journal.add(100)
        feed = self.acked_feed(x)
        row = self.with_text(feed, "no ackId in the answer")
        self.assertEqual((row["acked"], row["up"], row["poison"]), (0, False, 0))
        wait_for("a second try", lambda: feed.status() and len(x.batches) > 1)
        self.assertEqual({len(b) for b in x.batches[1:]}, {1})
        x.with_id = True
        self.assertEqual(feed.drain()["acked"], 100)
        self.assertEqual(set(x.safe), set(self.journal.ids))

    def test_splunk_ack_restart(self):
        """A restarted server counts from 0 again: id 0 of a new batch must not stand for the old one."""
        x = Indexers(lambda id, polls: False)
        self.journal.add(10)
        feed = self.acked_feed(x)
        wait_for("a question", lambda: feed.status() and x.asked)
        self.assertEqual(x.sent(), self.journal.ids)
        x.forget()
        x.indexed = lambda id, polls: True
        self.journal.add(1)
        self.assertEqual(feed.drain(30000)["acked"], 11)  # long before the time of the old one is up
        self.assertEqual(set(x.safe), set(self.journal.ids))  # by the server that lives
        self.assertEqual(x.sent().count(self.journal.ids[0]), 2)

    def test_splunk_ack_killed(self):
        """kill -9 while batches wait: they come again on a channel of its own."""
        x = Indexers(lambda id, polls: False)
        self.journal.add(1000)
        feed = self.acked_feed(x)
        wait_for("a question", lambda: feed.status() and x.asked)
        feed.kill()
        x.indexed = lambda id, polls: True
        self.assertEqual(self.acked_feed(x).drain()["acked"], 1000)
        self.assertEqual(set(x.safe), set(self.journal.ids))
        self.assertEqual(len(x.channels), 2)

    def test_splunk_ack_broken_questions(self):
        """Questions that fail are told, and the batches wait."""
        x, bad = Indexers(), [(503, {}, "busy"), (400, {}, '{"text":"ACK is disabled","code":14}'),
                              (200, {}, "<html>log in"), None] * 2
        said = []

        def answer(request):
            if "/ack?" in request.path and bad:
                said.append(bad[0])
                return bad.pop(0)
            return x(request)

        self.journal.add(10)
        feed = self.feed("splunk", self.server(answer), "token=t", "ack=yes")
        self.assertEqual(self.with_text(feed, "asking for acknowledgement: HTTP status")["acked"], 0)
        self.assertEqual((feed.drain()["text"], bad), ("", []))
        self.assertEqual(x.sent(), self.journal.ids)

    # ---- Elasticsearch ----

    def elastic(self, request, status_of):
        lines = request.body.decode().split("\n")
        self.assertEqual(lines.pop(), "")  # the final line end that _bulk insists on
        items = []
        for action, doc in zip(lines[::2], lines[1::2]):
            action, doc = json.loads(action), json.loads(doc)
            self.assertEqual(list(action), ["create"])  # all that data streams take
            self.assertIn("@timestamp", doc)
            self.assertEqual(action["create"]["_id"], doc["id"])
            status = status_of(doc["id"])
            item = {"_index": "x", "_id": doc["id"], "status": status}
            if status >= 300:
                item["error"] = {"type": "some_exception", "reason": "because \"x\" {["}
            items.append({"create": item})
        errors = any(i["create"]["status"] >= 300 for i in items)
        return 200, {}, json.dumps({"took": 3, "errors": errors, "items": items})

    def test_elastic(self):
        """Items one by one: 409 is done, 429 comes again, 400 is a dead letter."""
        stored, tried = {}, {}

        def status_of(id):
            n = int(id[3:])
            tried[id] = tried.get(id, 0) + 1
            if id in stored or n % 50 == 1:
                stored[id] = True
                return 409
            if n % 50 == 2 and tried[id] < 3:
                return 429
            if n % 50 == 3:
                return 400
            stored[id] = True
            return 201

        paths = []

        def answer(request):
            paths.append((request.path, request.headers["Authorization"]))
            return self.elastic(request, status_of)

        self.journal.add(2000)
        row = self.feed("elastic", self.server(answer), "api-key=abc").drain()
        self.assertEqual((row["poison"], row["acked"]), (40, 2000))
        self.assertEqual(set(paths), {("/logs-warder-default/_bulk", "ApiKey abc")})
        self.assertEqual({int(d["record"]["id"][3:]) % 50 for d in self.dead()}, {3})
        self.assertIn("some_exception", self.dead()[0]["why"])
        self.assertEqual(set(stored) | {d["record"]["id"] for d in self.dead()}, set(self.journal.ids))
        # only the items that were told to come again did
        self.assertEqual({n for id, n in tried.items() if int(id[3:]) % 50 != 2}, {1})

    def test_elastic_says_much(self):
        """An error of 3 KiB for every item: smaller batches, until an answer is no longer than we read."""
        def answer(request):
            status, headers, text = self.elastic(request, lambda id: 400)
            return status, headers, text.replace("some_exception", "mapper_parsing_exception" + "x" * 3000)

        self.journal.add(4000)
        row = self.feed("elastic", self.server(answer), "api-key=abc").drain()
        self.assertEqual((row["poison"], row["acked"]), (4000, 4000))

    def test_elastic_index_is_missing(self):
        """Nobody's records are to blame."""
        for why in ("index_not_found_exception", "index_closed_exception"):
            ok = []

            def answer(request):
                status, headers, text = self.elastic(request, lambda id: 201 if ok else 404)
                return status, headers, text.replace("some_exception", why)

            self.journal = Journal(self.path("journal-" + why), "S1")
            self.journal.add(20)
            feed = self.feed("elastic", self.server(answer), "name=" + why)
            row = self.with_text(feed, why)
            self.assertEqual((row["acked"], row["poison"]), (0, 0))
            ok.append(True)
            self.assertEqual((feed.drain()["poison"], feed.stop()["acked"]), (0, 20))

    def test_elastic_basic_and_cut_answer(self):
        auth, cut, empty = [], [True], [True]

        def answer(request):
            auth.append(request.headers["Authorization"])
            status, headers, text = self.elastic(request, lambda id: 201)
            if empty:  # no errors, and no word of any record
                empty.pop()
                return status, headers, '{"took":1,"errors":false,"items":[]}'
            stored.append(len(json.loads(text)["items"]))
            if cut:
                cut.pop()
                return status, headers, text.replace('"errors": false', '"errors": true')[:-200]
            return status, headers, text

        stored = []
        self.journal.add(20)
        self.feed("elastic", self.server(answer), "user=u", "password=p,w", "index=i").drain()
        self.assertEqual(stored, [20, 20])
        self.assertEqual(set(auth), {"Basic " + base64.b64encode(b"u:p,w").decode()})

    # ---- OTLP ----

    def test_otlp(self):
        bad = {"S1-7"}

        def answer(request):
            records = json.loads(request.body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
            ids = []
            for r in records:
                self.assertTrue(r["timeUnixNano"].isdigit())
                inner = json.loads(r["body"]["stringValue"])
                attributes = {a["key"]: a["value"]["stringValue"] for a in r["attributes"]}
                self.assertEqual(attributes["warder.id"], inner["id"])
                ids.append((inner["id"], r["severityText"]))
            rejected = [i for i, _ in ids if i in bad]
            if rejected:
                return 200, {}, json.dumps({"partialSuccess": {"rejectedLogRecords": str(len(rejected)),
                                                               "errorMessage": "no"}})
            self.got += ids
            return 200, {}, "{}"

        self.journal.add(100)
        self.journal.add(1, kind="escape")
        s = self.server(answer)
        row = self.feed("otlp", s).drain()
        self.assertEqual(row["poison"], 1)
        self.assertEqual([i for i, _ in self.got], [i for i in self.journal.ids if i not in bad])
        self.assertEqual(self.got[-1][1], "FATAL")

    # ---- all of them ----

    SINKS = (("splunk", "token=t"), ("elastic", "api-key=k"), ("webhook", ""), ("otlp", ""))
    AGAIN, WAITS, REFUSED = "again", "waits", "refused"
    ANSWERS = {300: WAITS, 301: WAITS, 302: WAITS, 304: WAITS, 307: WAITS, 308: WAITS, 400: REFUSED, 401: WAITS,
               402: WAITS, 403: WAITS, 404: WAITS, 405: WAITS, 406: REFUSED, 407: WAITS, 408: AGAIN, 409: REFUSED,
               410: REFUSED, 411: REFUSED, 412: REFUSED, 413: REFUSED, 414: REFUSED, 415: WAITS, 422: REFUSED,
               425: AGAIN, 426: REFUSED, 429: AGAIN, 431: REFUSED, 451: REFUSED, 500: AGAIN, 501: AGAIN, 502: AGAIN,
               503: AGAIN, 504: AGAIN, 505: AGAIN, 507: AGAIN, 511: AGAIN, 599: AGAIN}

    def accept(self, sink, request):
        """What a server of this kind says when it takes everything."""
        if sink == "elastic":
            return self.elastic(request, lambda id: 201)
        return 200, {}, '{"text":"Success","code":0}' if sink == "splunk" else "{}"

    def each_sink(self):
        for sink, options in self.SINKS:
            with self.subTest(sink):
                yield sink, [o for o in (options,) if o]

    def test_every_answer(self):
        """One record at a time meets each code once: what is refused is a dead letter, all the rest is still there."""
        codes, tried, sinks = sorted(self.ANSWERS), {}, []
        for sink, options in self.SINKS:
            def answer(request, sink=sink):
                id = self.id_of(sink, request.body)
                tried[sink, id] = tried.get((sink, id), 0) + 1
                code = codes[int(id[3:]) - 1]
                if tried[sink, id] == 1 or self.ANSWERS[code] == self.REFUSED:
                    return code, {"Location": "http://127.0.0.1:1/"} if code < 400 else {}, "no %d" % code
                return self.accept(sink, request)

            sinks.append(",".join(["%s:http://127.0.0.1:%d" % (sink, self.server(answer).port), "name=" + sink]
                                  + [o for o in (options,) if o]))
        feed = Feed(self.journal.path, self.tmp, "S1", *sinks)
        self.addCleanup(feed.kill)
        for n, code in enumerate(codes, 1):
            self.journal.add(1)
            feed.drain()
            for sink, _ in self.SINKS:
                row = feed.row(sink)
                self.assertEqual((row["acked"], row["errors"]), (n, 0), (sink, code))
        for sink, _ in self.each_sink():
            dead = read_json_lines(self.path("S1.%s.dlq.jsonl" % sink))
            refused = [c for c in codes if self.ANSWERS[c] == self.REFUSED]
            self.assertEqual([codes[d["seq"] - 1] for d in dead], refused)
            for d in dead:
                self.assertIn("no %d" % codes[d["seq"] - 1], d["why"])
            for n, code in enumerate(codes, 1):
                want = 1 if code in refused else 2
                self.assertGreaterEqual(tried[sink, "S1-%d" % n], want, code)

    @staticmethod
    def id_of(sink, body):
        text = body.decode().replace('\\"', '"')
        return text.split('"id":', 1)[1].split('"')[1] if '"id":' in text else text.split('"id": "')[1].split('"')[0]

    def test_html_instead(self):
        """A login page with status 200 from everything whose protocol has an answer of its own."""
        for sink, options in self.each_sink():
            if sink == "webhook":
                continue  # 2xx is all that it asks for
            ok = []
            s = self.server(lambda r: self.accept(sink, r) if ok else (200, {}, "<html>Please log in"))
            self.journal = Journal(self.path("journal-" + sink), "S1")
            self.journal.add(5)
            feed = Feed(self.journal.path, self.tmp, "S1",
                        ",".join(["%s:http://127.0.0.1:%d" % (sink, s.port), "name=" + sink, *options]))
            self.addCleanup(feed.kill)
            row = self.with_text(feed, "Please log in")
            self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))
            ok.append(True)
            self.assertEqual(feed.drain()["acked"], 5)

    def test_wrong_host(self):
        for sink, options in self.each_sink():
            self.journal.add(1)
            feed = Feed(self.journal.path, self.tmp, "S1",
                        ",".join([sink + ":http://no-such-host.invalid:1", "name=" + sink, *options]))
            self.addCleanup(feed.kill)
            row = self.with_text(feed, "no-such-host.invalid")
            self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))

    def test_untrusted_certificates(self):
        """No sink says a word to such a server."""
        said = {"no CA": "certificate", "another CA": "certificate", "another name": "SSL: ", "expired": "expired"}
        for what, context, ca, host in untrusted(self.tmp):
            s = self.server(self.hook, context=context)
            for sink, options in self.each_sink():
                with self.subTest("%s, %s" % (sink, what)):
                    self.journal.add(1)
                    feed = Feed(self.journal.path, self.tmp, "S1",
                                ",".join(["%s:https://%s:%d" % (sink, host, s.port), "name=%s%d" % (sink, s.port),
                                          *options, *(["ca=" + ca] if ca else [])]))
                    self.addCleanup(feed.kill)
                    row = self.with_text(feed, said[what])
                    self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))
                    feed.stop()
            self.assertEqual((s.requests, self.got), (0, []))

    # ---- TLS ----

    def test_tls(self):
        cert, key = certificate(self.tmp)
        s = self.server(self.hook, context=tls(cert, key))
        self.journal.add(50)
        refused = self.feed("webhook", s, scheme="https", host="localhost")
        self.assertFalse(self.with_text(refused, "certificate")["up"])
        self.assertEqual(refused.stop()["acked"], 0)
        wrong = self.feed("webhook", s, "ca=" + cert, scheme="https")  # 127.0.0.1 is not in it
        self.assertEqual(self.with_text(wrong, "SSL: ")["acked"], 0)
        wrong.stop()
        self.assertEqual(self.got, [])
        self.feed("webhook", s, "ca=" + cert, scheme="https", host="localhost").drain()
        self.assertAllOnce()

    def test_bad_credentials(self):
        """Waits for the operator, says why, loses nothing, and does not hammer at the door."""
        for sink, option, good in (("elastic", "api-key=wrong", None), ("otlp", "header=Authorization: Bearer x", None),
                                   ("webhook", "header=Authorization: Bearer x", None)):
            with self.subTest(sink):
                s = self.server(lambda r: (401, {"WWW-Authenticate": "Basic"}, "who are you"))
                self.journal.add(1)
                feed = self.feed(sink, s, option)
                row = self.with_text(feed, "HTTP status 401: who are you")
                self.assertEqual((row["up"], row["poison"]), (False, 0))
                n = s.requests
                time.sleep(1)
                self.assertLess(s.requests - n, 5)
                self.assertEqual(feed.stop()["acked"], 0)

    def test_broken_servers(self):
        """Each is told, nothing counts as taken, nothing spins."""
        ok = b"HTTP/1.1 200 OK\r\n"
        endless = ok + b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + bytes(65536)
        for talk in (half_closed, mute, deaf, cut, reset, noise, says(ok + b"Content-Le"), says(endless),
                     says(ok + b"Content-Length: 100\r\n\r\n{}"), says(b"220 mail.example ESMTP\r\n", before=True),
                     slow(ok + b"Content-Length: 2\r\n\r\n{}"), slow(b"X" * 9000, 0.01)):
            with self.subTest(talk.__name__):
                self.journal.add(1)
                for sink, option in self.SINKS:
                    port = strange_server(self, talk)
                    feed = Feed(self.journal.path, self.tmp, "S1", "%s:http://127.0.0.1:%d,name=%s-%d,timeout=500ms%s" % (
                        sink, port, sink, port, option and "," + option))
                    self.addCleanup(feed.kill)
                    row = wait_for("a word about it", lambda: feed.status() if feed.status()["text"] else None)
                    self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))
                    self.assertEqual(feed.stop()["acked"], 0)

    def test_proxy(self):
        """The proxy gets the whole URL; the name is not looked up here."""
        seen = []

        def answer(request):
            seen.append(request.path)
            return self.hook(request)

        proxy = self.server(answer)
        self.journal.add(10)
        feed = Feed(self.journal.path, self.tmp, "S1",
                    "webhook:http://no-such-host.invalid/in,name=h,proxy=http://127.0.0.1:%d" % proxy.port)
        self.addCleanup(feed.kill)
        feed.drain()
        self.assertAllOnce()
        self.assertEqual(set(seen), {"http://no-such-host.invalid/in"})

    # ---- settings ----

    def test_bad_settings(self):
        for sink, words in (
                ("webhook:ftp://h/", ("ftp://h/", "https://HOST")),
                ("webhook:https://", ("https://",)),
                ("webhook:ftp://me:geheim@h/geheim?geheim", ("ftp://h/...",)),
                ("webhook:hooks.example/services/geheim", ("hooks.example/...",)),
                ("webhook:http://h,gzip=maybe", ("gzip", "maybe")),
                ("webhook:http://h,timeout=never", ("timeout", "never")),
                ("webhook:http://h,header=nonsense", ("header",)),
                ("webhook:http://h,ca=/nonexistent", ("CA file", "/nonexistent")),
                ("splunk:http://h", ("token", "must be given")),
                ("splunk:http://h,token=t,ack=perhaps", ("ack", "perhaps")),
                ("splunk:http://h,token=t,ack-timeout=soon", ("ack-timeout", "soon")),
                ("elastic:http://h,index=a/b", ("index", "a/b")),
                ("elastik:http://h", ("did you mean 'elastic'",))):
            done = subprocess.run(Feed.argv(self.journal.path, self.tmp, "S1", sink), capture_output=True,
                                  text=True, timeout=60, input="end\n")
            self.assertEqual(done.returncode, 2, sink)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertNotIn("geheim", done.stderr)


if __name__ == "__main__":
    unittest.main()
