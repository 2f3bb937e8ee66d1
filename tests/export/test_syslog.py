# SPDX-License-Identifier: Apache-2.0
"""The syslog sink against receivers of our own that cut, stall and lie, and against rsyslog. Syslog has no
acknowledgements: what the receiver's program took from its socket must be all, in order, once or more."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed, Journal  # noqa: E402
from strange import (certificate, cpu_seconds, cut, deaf, half_closed, mute, noise, reset, says,  # noqa: E402
                     slow, strange_server, tls, untrusted)
from warder import TestCase, wait_for  # noqa: E402

MESSAGE = re.compile(r'<(\d+)>1 (\S+) (\S+) (\S+) - (\S+) \[warder@32473 id="([^"]+)" session="([^"]+)" '
                     r'seq="(\d+)" sandbox="box"\] (\{.*\})', re.S)


def unframe(data):
    """Octet counting: the messages, and what is left over."""
    out = []
    while True:
        head, space, rest = data.partition(b" ")
        if not space or len(rest) < int(head):
            return out, data
        out.append(rest[:int(head)])
        data = rest[int(head):]


class Receiver:
    """Takes connections one after another; `plan(n, connection)` may do something else with the n-th."""

    def __init__(self, context=None, plan=None, port=0):
        self.context, self.plan = context, plan
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("127.0.0.1", port))
        self.sock.listen(8)
        self.port = self.sock.getsockname()[1]
        self.messages, self.left, self.connections, self.open = [], b"", 0, []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            self.connections += 1
            try:
                if self.context:
                    conn = self.context.wrap_socket(conn, server_side=True)
                self.open.append(conn)
                if self.plan and self.plan(self, self.connections, conn):
                    continue
                self.take(conn)
            except (OSError, ValueError):
                pass  # cut off, or no syslog at all: what the sink makes of it is tested
            conn.close()

    def take(self, conn, limit=None):
        """Reads to the end, or until so many bytes; half a message at the end is nobody's."""
        data, n = b"", 0
        while limit is None or n < limit:
            piece = conn.recv(65536)
            if not piece:
                break
            n += len(piece)
            got, data = unframe(data + piece)
            self.messages += got
        self.left = data

    def close(self):
        for s in self.open + [self.sock]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # gone before
            s.close()
        self.thread.join(10)


class Syslog(TestCase):
    def setUp(self):
        super().setUp()
        self.journal = Journal(self.path("journal"), "S1")

    def receiver(self, **kw):
        r = Receiver(**kw)
        self.addCleanup(r.close)
        return r

    def feed(self, address, *options):
        feed = Feed(self.journal.path, self.tmp, "S1", ",".join(("syslog:" + address, "name=s") + options))
        self.addCleanup(feed.kill)
        return feed

    def ids(self, messages):
        """In order of first arrival; what comes twice must be the same."""
        seen = {}
        for m in messages:
            got = MESSAGE.fullmatch(m.decode())
            self.assertTrue(got, m)
            self.assertEqual(json.loads(got[9])["id"], got[6])
            self.assertEqual(seen.setdefault(got[6], m), m)
        return list(seen)

    def assertAllThere(self, receiver):
        wait_for("the receiver's thread", lambda: len(set(receiver.messages)) >= len(self.journal.ids))
        self.assertEqual(self.ids(receiver.messages), self.journal.ids)

    # ---- TCP ----

    def test_tcp(self):
        r = self.receiver()
        self.journal.add(5000)
        self.journal.add(1, kind="escape", pad=200000)
        feed = self.feed("tcp://127.0.0.1:%d" % r.port, "facility=audit", "app-name=w", "hostname=h")
        self.assertEqual(feed.drain()["errors"], 0)
        self.assertAllThere(r)
        self.assertEqual(MESSAGE.fullmatch(r.messages[-1].decode()).groups()[:5],
                         ("105", "-", "h", "w", "escape"))
        self.assertEqual(len(r.messages), 5001)
        feed.stop()

    def test_newline_framing(self):
        got = []
        r = self.receiver(plan=lambda r, n, conn: got.append(conn.makefile("rb").read()) or True)
        self.journal.add(100)
        feed = self.feed("tcp://localhost:%d" % r.port, "framing=newline")
        feed.drain()
        feed.stop()
        wait_for("the end of the connection", lambda: got)
        self.assertEqual(self.ids(got[0].splitlines()), self.journal.ids)

    def test_not_there_yet(self):
        r = Receiver()
        port = r.port
        r.close()
        self.journal.add(10)
        feed = self.feed("tcp://127.0.0.1:%d" % port)
        row = wait_for("a status that says why", lambda: self.with_text(feed, "refused"))
        self.assertFalse(row["up"])
        self.assertEqual(row["acked"], 0)
        r = self.receiver(port=port)
        self.assertTrue(feed.drain()["up"])
        self.assertAllThere(r)

    @staticmethod
    def with_text(feed, text):
        row = feed.status()
        return row if text in row["text"] else None

    def test_unknown_host(self):
        self.journal.add(1)
        feed = self.feed("tcp://no-such-host.invalid:1")
        row = wait_for("a status that says why", lambda: self.with_text(feed, "no-such-host.invalid:1: "))
        self.assertFalse(row["up"])
        self.assertEqual(feed.stop()["acked"], 0)

    def test_cut_connections(self):
        """Four connections are reset in the middle; what their sockets still held is sent again."""
        def cut(r, n, conn):
            if n > 4:
                return False
            r.take(conn, 150000 * n)
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            conn.close()
            return True

        # The receiver's kernel acknowledges what its program never reads: a small buffer keeps that little,
        # but only a protocol with answers could make it nothing.
        r = self.receiver(plan=cut)
        r.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.journal.add(8000)
        row = self.feed("tcp://127.0.0.1:%d" % r.port).drain()
        self.assertGreaterEqual(row["rewinds"], 4)
        self.assertEqual(row["acked"], 8000)
        wait_for("the last message", lambda: b'"S1-8000"' in (r.messages or [b""])[-1])
        ids = [int(i[3:]) for i in self.ids(r.messages)]
        missing = sorted(set(range(1, 8001)) - set(ids))
        self.assertLess(len(missing), 4 * 200)
        self.assertEqual(ids, sorted(ids))

    def test_receiver_that_reads_nothing(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        r = self.receiver(plan=lambda r, n, conn: hold.wait() and False)
        self.journal.add(60000)
        feed = self.feed("tcp://127.0.0.1:%d" % r.port)
        wait_for("a full window", lambda: feed.status()["sent"] > 0)
        time.sleep(0.5)
        self.assertLess(feed.status()["sent"], 60000)
        hold.set()
        feed.drain()
        self.assertAllThere(r)

    # ---- TLS ----

    def test_tls(self):
        cert, key = certificate(self.tmp, names="DNS:localhost,IP:127.0.0.1")
        for host in ("localhost", "127.0.0.1"):
            with self.subTest(host):
                r = self.receiver(context=tls(cert, key))
                self.journal.add(3000)
                for name in os.listdir(self.tmp):
                    if name.endswith(".cursor"):
                        os.unlink(self.path(name))
                feed = self.feed("tls://%s:%d" % (host, r.port), "ca=" + cert)
                feed.drain()
                self.assertAllThere(r)
                feed.stop()

    def test_tls_client_certificate(self):
        cert, key = certificate(self.tmp)
        mine, my_key = certificate(self.tmp, "client", None)
        r = self.receiver(context=tls(cert, key, clients=mine))
        self.journal.add(100)
        self.feed("tls://localhost:%d" % r.port, "ca=" + cert, "cert=" + mine, "key=" + my_key).drain()
        self.assertAllThere(r)

    def refused(self, receiver, *options, host="localhost"):
        self.journal.add(1)
        feed = self.feed("tls://%s:%d" % (host, receiver.port), *options)
        row = wait_for("a refusal", lambda: self.with_text(feed, "certificate refused"))
        self.assertFalse(row["up"])
        self.assertEqual(feed.stop()["acked"], 0)
        self.assertEqual(receiver.messages, [])
        return row["text"]

    def test_tls_untrusted(self):
        said = {"no CA": "self", "another CA": "self", "another name": "mismatch", "expired": "expired"}
        for what, context, ca, host in untrusted(self.tmp):
            with self.subTest(what):
                options = ["name=" + what.replace(" ", "-")] + (["ca=" + ca] if ca else [])
                self.assertIn(said[what], self.refused(self.receiver(context=context), *options, host=host))

    def test_strange_servers(self):
        """Over TLS such a server is told of. Over TCP, which has no answers, one that goes away is, and what it had
        acknowledged was taken as far as anybody can know."""
        for talk in (half_closed, mute, deaf, cut, reset, noise, says(b"220 mail.example ESMTP\r\n", before=True),
                     slow(b"HTTP/1.1 200 OK\r\n\r\n")):
            with self.subTest(talk.__name__):
                self.journal.add(1)
                feed = self.feed("tls://127.0.0.1:%d" % strange_server(self, talk), "verify=no",
                                 "name=" + talk.__name__.strip("b'").replace(" ", ""))
                row = wait_for("a status", lambda: feed.status() if feed.status()["text"] else None)
                self.assertEqual((row["acked"], row["poison"], row["up"]), (0, 0, False))
                before = cpu_seconds(feed.proc.pid)
                time.sleep(0.5)
                self.assertLess(cpu_seconds(feed.proc.pid) - before, 0.25)
                self.assertEqual(feed.stop()["acked"], 0)

    def test_talks_without_end(self):
        """No receiver does: it is left, rather than listened to."""
        self.journal.add(1)
        feed = self.feed("tcp://127.0.0.1:%d" % strange_server(self, noise))
        self.assertFalse(wait_for("a status", lambda: self.with_text(feed, "talks without end"))["up"])

    def test_tls_to_a_plain_port(self):
        r = self.receiver(plan=lambda r, n, conn: conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        self.journal.add(1)
        feed = self.feed("tls://127.0.0.1:%d" % r.port, "verify=no")
        self.assertFalse(wait_for("a status", lambda: self.with_text(feed, "TLS with"))["up"])

    # ---- datagrams ----

    def test_unix_datagrams(self):
        path = self.path("log")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(sock.close)
        sock.bind(path)
        self.journal.add(50)
        self.journal.add(1, pad=2000000)  # no datagram is that large
        self.journal.add(2000)
        feed = self.feed("unix:" + path)
        feed.status()
        got = []
        while len(got) < 2050:
            got.append(sock.recv(1 << 20))
        row = feed.drain()
        self.assertEqual((row["poison"], row["acked"]), (1, 2051))
        self.assertEqual(self.ids(got), self.journal.ids[:50] + self.journal.ids[51:])

    def test_udp(self):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(sock.close)
        sock.bind(("127.0.0.1", 0))
        self.journal.add(20)
        self.feed("udp://127.0.0.1:%d" % sock.getsockname()[1], "lossy=yes").drain()
        self.assertEqual(self.ids(sock.recv(65536) for _ in range(20)), self.journal.ids)

    def test_journald(self):
        """Its own protocol: fields for `journalctl WARDER_SESSION=...`; what is too large for a datagram comes
        as a sealed memory file."""
        path = self.path("journald")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(sock.close)
        sock.bind(path)
        self.journal.add(20)
        self.journal.add(1, kind="escape", pad=900000)
        self.journal.add(5)
        feed = self.feed("journald:" + path, "facility=audit")
        feed.status()
        got = []
        while len(got) < 26:
            data, fds, _, _ = socket.recv_fds(sock, 1 << 20, 1)
            for fd in fds:
                with os.fdopen(fd, "rb") as f:
                    f.seek(0)
                    data = f.read()
                    self.assertRaises(OSError, os.write, fd, b"x")
            got.append(dict(line.split("=", 1) for line in data.decode().splitlines()))
        self.assertEqual(feed.drain()["poison"], 0)
        self.assertEqual([f["WARDER_ID"] for f in got], self.journal.ids)
        self.assertEqual([json.loads(f["MESSAGE"])["id"] for f in got], self.journal.ids)
        self.assertEqual({k: v for k, v in got[20].items() if k not in ("MESSAGE", "WARDER_ID")},
                         {"PRIORITY": "1", "SYSLOG_FACILITY": "13", "SYSLOG_IDENTIFIER": "warder", "WARDER_SEQ": "21",
                          "WARDER_KIND": "escape", "WARDER_SESSION": "S1", "WARDER_SANDBOX": "box"})

    # ---- rsyslog ----

    def rsyslog(self, listener, modules=""):
        program = os.environ.get("WARDER_RSYSLOGD") or shutil.which("rsyslogd", path=os.environ["PATH"] +
                                                                    ":/usr/sbin:/sbin")
        if not program:
            raise unittest.SkipTest("rsyslogd is not installed")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        out = self.path("received")
        config = self.path("rsyslog.conf", """
global(workDirectory="%s" maxMessageSize="1m" parser.escapeControlCharactersOnReceive="off" %s)
module(load="imtcp" %s)
input(type="imtcp" port="%d" address="127.0.0.1" maxFrameSize="1000000")
template(name="all" type="list") { property(name="rawmsg") constant(value="\\n") }
action(type="omfile" file="%s" template="all")
""" % (self.tmp, listener.get("global", ""), listener.get("module", ""), port, out))
        argv = [program, "-n", "-f", config, "-i", self.path("rsyslog.pid")]
        if "WARDER_RSYSLOG_MODULES" in os.environ:
            argv += ["-M", os.environ["WARDER_RSYSLOG_MODULES"]]
        proc = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        return port, out

    def check_rsyslog(self, address, out, *options):
        self.journal.add(2000)
        self.journal.add(1, kind="rule.alert", pad=100000)
        self.feed(address, *options).drain()
        lines = wait_for("rsyslog's file", lambda: self.lines(out, len(self.journal.ids)))
        self.assertEqual(self.ids(lines), self.journal.ids)

    @staticmethod
    def lines(path, n):
        if not os.path.exists(path):
            return None
        with open(path, "rb") as f:
            lines = f.read().split(b"\n")[:-1]
        return lines if len(lines) >= n else None

    def test_rsyslog_tcp(self):
        port, out = self.rsyslog({})
        self.check_rsyslog("tcp://127.0.0.1:%d" % port, out)

    @staticmethod
    def speaks(port, version):
        done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % port, version], input="",
                              capture_output=True, text=True, timeout=60)
        return done.returncode == 0 and "Cipher is TLS_" in done.stdout

    def test_rsyslog_tls(self):
        cert, key = certificate(self.tmp)
        port, out = self.rsyslog({
            "global": 'defaultNetstreamDriver="ossl" defaultNetstreamDriverCAFile="%s" '
                      'defaultNetstreamDriverCertFile="%s" defaultNetstreamDriverKeyFile="%s"'
                      % (cert, cert, key),
            "module": 'streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="anon" '
                      'gnutlsPriorityString="MinProtocol=TLSv1.3"'})
        wait_for("rsyslog", lambda: self.speaks(port, "-tls1_3"))
        self.assertFalse(self.speaks(port, "-tls1_2"))  # so it is 1.3 that follows
        self.check_rsyslog("tls://localhost:%d" % port, out, "ca=" + cert)

    # ---- settings ----

    def test_bad_settings(self):
        for sink, words in (
                ("syslog:127.0.0.1:514", ("127.0.0.1:514", "tcp://HOST:PORT")),
                ("syslog:tcp://", ("tcp://",)),
                ("syslog:tcp://[::1", ("']' is missing",)),
                ("syslog:tcp://h:1,facility=local9", ("facility", "local9")),
                ("syslog:tcp://h:1,framing=x", ("framing", "'x'")),
                ("syslog:tcp://h:1,ca=/x", ("tls://",)),
                ("syslog:udp://h:1", ("lossy=yes",)),
                ("syslog:tls://h:1,ca=/nonexistent", ("CA file", "/nonexistent")),
                ("syslog:tls://h:1,cert=/nonexistent", ("certificate", "/nonexistent")),
                ("syslog:tls://h:1,verify=maybe", ("verify", "maybe"))):
            done = subprocess.run(Feed.argv(self.journal.path, self.tmp, "S1", sink), capture_output=True,
                                  text=True, timeout=60, input="end\n")
            self.assertEqual(done.returncode, 2, sink)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
