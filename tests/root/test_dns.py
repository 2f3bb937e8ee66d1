# SPDX-License-Identifier: Apache-2.0
"""DNS on port 53 as resolvers and their clients do it, in a network namespace of the test's own."""

import os
import socket
import struct
import subprocess
import threading
import unittest

from warder import *

# What dig does, without dig: ask, print the addresses. How: datagram, connected, tcp (in pieces of n bytes).
CLIENT = r"""
import socket, struct, sys, time
server, how, names = sys.argv[1], sys.argv[2], sys.argv[3:]
family = socket.AF_INET6 if ":" in server else socket.AF_INET
def query(name, id):
    qtype = 1
    if "/" in name:
        name, qtype = name.split("/")
    return (struct.pack("!HHHHHH", id, 0x0100, 1, 0, 0, 1)
        + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack("!HH", int(qtype), 1)
        + b"\0" + struct.pack("!HHIH", 41, 4096, 0, 0))
q = [query(n, 0x1234 + i) for i, n in enumerate(names)]
if how.startswith("tcp"):
    s = socket.create_connection((server, 53), 10)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b"".join(struct.pack("!H", len(m)) + m for m in q)
    step = int(how[3:] or len(data))
    for i in range(0, len(data), step):
        s.sendall(data[i:i + step])
        time.sleep(0.002)
    f = s.makefile("rb")
    r = [f.read(struct.unpack("!H", f.read(2))[0]) for _ in q]
else:
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(10)
    r = []
    if how == "connected":
        s.connect((server, 53))
    for m in q:
        s.send(m) if how == "connected" else s.sendto(m, (server, 53))
        r.append(s.recv(65535))
print([len(m) for m in r], flush=True)
"""

CONNECT = r"""
for at in sys.argv[1].split(","):
    ip, port = at.rsplit(":", 1)
    s = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET)
    s.settimeout(5)
    try:
        s.connect((ip, int(port)))
    except OSError as e:
        print(e)
"""


def name(text):
    return b"".join(bytes([len(l)]) + l.encode() for l in text.split(".")) + b"\0"


def record(owner, type, data, ttl=60):
    return name(owner) + struct.pack("!HHIH", type, 1, ttl, len(data)) + data


class Resolver:
    """Answers out of a table name -> (flags, [records]) on UDP and TCP; TCP answers go in pieces of 7 bytes."""

    def __init__(self, netns, table, address="127.0.0.1"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.table, self.stop = table, False
        self.udp = netns.socket(family, socket.SOCK_DGRAM)
        self.udp.bind((address, 53))
        self.tcp = netns.socket(family, socket.SOCK_STREAM)
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((address, 53))
        self.tcp.listen(5)
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.serve_udp, self.serve_tcp)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        for s in (self.udp, self.tcp):
            s.settimeout(0.01)
        for t in self.threads:
            t.join(5)
        self.udp.close()
        self.tcp.close()

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        flags, records = self.table.get(".".join(labels), (3, []))
        if callable(records):
            return records(query)
        return query[:2] + struct.pack("!HHHHH", 0x8180 | flags, 1, len(records), 0, 0) + query[12:at + 5] + b"".join(records)

    def serve_udp(self):
        self.udp.settimeout(0.1)
        while not self.stop:
            try:
                query, peer = self.udp.recvfrom(8192)
            except OSError:
                continue
            if 17 < len(query) < 2000:
                self.udp.sendto(self.answer(query), peer)

    def serve_tcp(self):
        self.tcp.settimeout(0.1)
        while not self.stop:
            try:
                s, _ = self.tcp.accept()
            except OSError:
                continue
            with s, s.makefile("rb") as f:
                s.settimeout(5)
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                out = b""
                while True:
                    head = f.read(2)
                    query = f.read(struct.unpack("!H", head)[0]) if len(head) == 2 else b""
                    if len(query) < 17:
                        break
                    a = self.answer(query)
                    out = struct.pack("!H", len(a)) + a
                    for i in range(0, len(out), max(7, len(out) // 50)):
                        s.sendall(out[i:i + max(7, len(out) // 50)])


def ip(text):
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


TABLE = {
    "good.example.test": (0, [record("good.example.test", 1, ip("192.0.2.7"))]),
    "six.example.test": (0, [record("six.example.test", 28, ip("2001:db8::7"))]),
    "www.example.test": (0, [record("www.example.test", 5, name("cdn.example.net")),
                             record("cdn.example.net", 5, name("edge.example.net")),
                             record("edge.example.net", 1, ip("127.53.0.80")),
                             record("stranger.example.net", 1, ip("198.51.100.66"))]),
    "many.example.test": (0, [record("many.example.test", 16, bytes([200]) + b"t" * 200)] * 15),
    "cut.example.test": (0x200, []),
    "refused.example.test": (5, []),
    "mail.example.test": (0, [record("mail.example.test", 15, b"\0\x0a" + name("mx.example.test"))]),
    "srv.example.test": (0, [record("srv.example.test", 33, struct.pack("!HHH", 1, 2, 443) + name("host.example.test"))]),
    "web.example.test": (0, [record("web.example.test", 65, b"\0\1\0" + struct.pack("!HH", 1, 3) + b"\2h2"
                                    + struct.pack("!HH", 4, 4) + ip("192.0.2.44"))]),
    # hostile: a name that points to itself, counts that lie, half a record, nothing
    "loop.example.test": (0, lambda q: q[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + b"\xc0\x0c\0\1\0\1"),
    "lies.example.test": (0, lambda q: q[:2] + struct.pack("!HHHHH", 0x8180, 1, 65535, 65535, 65535) + q[12:-11]),
    "half.example.test": (0, lambda q: q[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + q[12:-11] + b"\xc0\x0c\0\1\0\1"),
    "none.example.test": (0, lambda q: q[:2] + b"\x81\x80" + b"\0" * 8),
}


def host_resolver():
    """With --net host its answers, and nobody else's, name addresses."""
    with open("/etc/resolv.conf") as f:
        for line in f:
            if line.startswith("nameserver ") and "." in line:
                return line.split()[1]
    raise unittest.SkipTest("this host names no resolver")


# The fuzzers' corpora as packets: each file as a datagram, as one message of a stream, and as a stream by itself. The
# other end sends back what it got. Then a query as it should be.
CORPUS = r"""
import os, socket, struct, sys
def data(path):
    with open(path, "rb") as f: return f.read()[:20000]
files = [data(os.path.join(d, f)) for d in sys.argv[1:] for f in sorted(os.listdir(d))]
bodies = [b for f in files for b in (f, f[1:]) if b]
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(60)
u.connect(("127.0.0.1", 53))
for b in bodies:
    u.send(b)
    assert u.recv(65535) == b
def stream(pieces):
    t = socket.create_connection(("127.0.0.1", 53), 60)
    for p in pieces: t.sendall(p)
    t.shutdown(socket.SHUT_WR)
    back = b"".join(iter(lambda: t.recv(65536), b""))
    assert back == b"".join(pieces)
    t.close()
stream([struct.pack("!H", len(b)) + b for b in bodies])
for b in bodies: stream([b])
good = struct.pack("!HHHHHH", 0x7777, 0x0100, 1, 0, 0, 0) + b"\4last\7example\4test\0\0\1\0\1"
u.send(good)
assert u.recv(65535) == good
print(len([b for b in bodies if len(b) >= 12]), len(bodies))
"""


class Echo(Resolver):
    """Sends back what comes."""

    def answer(self, query):
        return query

    def serve_udp(self):
        self.udp.settimeout(0.1)
        while not self.stop:
            try:
                data, peer = self.udp.recvfrom(65536)
                self.udp.sendto(data, peer)
            except OSError:
                continue

    def serve_tcp(self):
        self.tcp.settimeout(0.1)
        while not self.stop:
            try:
                s, _ = self.tcp.accept()
            except OSError:
                continue
            with s:
                s.settimeout(60)
                for data in iter(lambda: s.recv(65536), b""):
                    s.sendall(data)


class Dns(TestCase):
    def ask(self, how, *names, address="127.0.0.1", connect="", options=()):
        with NetNS() as ns, Resolver(ns, TABLE, address):
            script = CLIENT
            names = list(names)
            if connect:
                script += CONNECT.replace("sys.argv[1]", repr(connect))
            s = self.session(PYTHON_IN_SANDBOX, "-c", script, address, how, *names,
                             options=["--net", "host", *options], netns=ns)
        self.assertCode(s, 0)
        return s

    def answers(self, event):
        return [(a["name"], a["type"], a["data"]) for a in event["dns"].get("answers", [])]

    def test_query_and_answer(self):
        for how, address in (("datagram", "127.0.0.1"), ("connected", "127.0.0.1"), ("tcp", "127.0.0.1"),
                             ("datagram", "::1"), ("tcp", "::1")):
            with self.subTest(how=how, address=address):
                s = self.ask(how, "good.example.test", address=address)
                proto = "tcp" if how == "tcp" else "udp"
                self.assertInOrder(
                    s.events,
                    {"kind": "dns.query", "dns.name": "good.example.test", "dns.type": "A", "dns.id": 0x1234,
                     "dns.edns": 4096, "net.proto": proto, "net.dst.ip": address, "net.dst.port": 53},
                    {"kind": "dns.answer", "dns.name": "good.example.test", "dns.rcode": "NOERROR"})
                query, answer = s.kinds("dns.query")[0], s.kinds("dns.answer")[0]
                self.assertEqual(self.answers(answer), [("good.example.test", "A", "192.0.2.7")])
                self.assertNotIn("unsolicited", answer["dns"])
                self.assertEqual(query["proc"]["pid"], answer["proc"]["pid"])
                self.assertEqual(query["proc"]["exe"], os.path.realpath(PYTHON_IN_SANDBOX))

    def test_tcp_in_pieces_and_several_in_one(self):
        names = ["good.example.test", "many.example.test", "six.example.test/28", "absent.example.test"]
        for how in ("tcp", "tcp1", "tcp13"):
            with self.subTest(how):
                s = self.ask(how, *names)
                self.assertEqual([e["dns"]["name"] for e in s.kinds("dns.query")], [n.split("/")[0] for n in names])
                a = s.kinds("dns.answer")
                self.assertEqual([(e["dns"]["name"], e["dns"]["rcode"]) for e in a],
                                 [("good.example.test", "NOERROR"), ("many.example.test", "NOERROR"),
                                  ("six.example.test", "NOERROR"), ("absent.example.test", "NXDOMAIN")])
                self.assertEqual(len(a[1]["dns"]["answers"]), 15)
                self.assertEqual(self.answers(a[2]), [("six.example.test", "AAAA", "2001:db8::7")])
                self.assertFalse([e for e in s.kinds("dns.query", "dns.answer")
                                  if e.get("truncated") or "malformed" in e["dns"] or "unsolicited" in e["dns"]])

    def test_types_codes_and_large_answers(self):
        s = self.ask("datagram", "mail.example.test/15", "srv.example.test/33", "web.example.test/65",
                     "many.example.test/16", "cut.example.test", "refused.example.test")
        a = {e["dns"]["name"].split(".")[0]: e for e in s.kinds("dns.answer")}
        self.assertEqual(self.answers(a["mail"])[0][1:], ("MX", "10 mx.example.test"))
        self.assertEqual(self.answers(a["srv"])[0][1:], ("SRV", "1 2 443 host.example.test"))
        self.assertEqual(self.answers(a["web"])[0][1:], ("HTTPS", "1 . alpn=h2 ipv4hint=192.0.2.44"))
        self.assertEqual(len(a["many"]["dns"]["answers"]), 15, "more than 3 KiB in one datagram")
        self.assertNotIn("truncated", a["many"])
        self.assertTrue(a["cut"]["dns"]["tc"])
        self.assertEqual(a["refused"]["dns"]["rcode"], "REFUSED")

    def test_names_of_connects(self):
        s = self.ask("tcp9", "www.example.test", connect="127.53.0.80:1,198.51.100.66:80,203.0.113.5:853,1.1.1.1:443")
        to = {field(e, "net.dst.ip"): e["net"] for e in s.kinds("net.connect")}
        self.assertNotIn("name", to["127.0.0.1"]["dst"])
        self.assertNotIn("unresolved", to["127.0.0.1"], "the resolver itself")
        self.assertTrue(to["198.51.100.66"]["unresolved"])
        self.assertNotIn("opaque", to["198.51.100.66"])
        self.assertEqual((to["203.0.113.5"]["opaque"], to["1.1.1.1"]["opaque"]), ("dot", "doh"))

    def test_the_name_asked_for_through_aliases(self):
        """Of the host's resolver it is believed, of one that the payload picked it is not."""
        host = host_resolver()
        table = dict(TABLE, **{"www.example.test": (0, [
            record("www.example.test", 5, name("cdn.example.net")), record("cdn.example.net", 5, name("edge.example.net")),
            record("edge.example.net", 1, ip("198.51.100.80")), record("stranger.example.net", 1, ip("198.51.100.66"))])})
        for resolver in (host, "127.0.0.77"):
            with self.subTest(resolver), NetNS() as ns:
                if not host.startswith("127."):
                    subprocess.run(ns.inside(["ip", "addr", "add", host + "/32", "dev", "lo"]), check=True)
                with Resolver(ns, table, resolver):
                    s = self.session(
                        PYTHON_IN_SANDBOX, "-c",
                        CLIENT + CONNECT.replace("sys.argv[1]", "'198.51.100.80:80,198.51.100.66:80'"),
                        resolver, "tcp", "www.example.test", options=["--net", "host"], netns=ns)
                self.assertCode(s, 0)
                to = {field(e, "net.dst.ip"): e["net"] for e in s.kinds("net.connect")}
                believed = resolver == host
                self.assertEqual(to["198.51.100.80"]["dst"].get("name"), "www.example.test" if believed else None)
                self.assertEqual(to["198.51.100.80"].get("unresolved"), None if believed else True)
                self.assertTrue(to["198.51.100.66"]["unresolved"], "an owner that the question does not lead to")

    def test_hostile_answers(self):
        names = ["loop.example.test", "lies.example.test", "half.example.test", "none.example.test"]
        for how in ("datagram", "tcp"):
            with self.subTest(how):
                s = self.ask(how, *names, "good.example.test")
                a = s.kinds("dns.answer")
                self.assertEqual(len(a), 5)
                self.assertEqual([bool(e["dns"].get("malformed")) for e in a], [True, True, True, False, False])
                self.assertEqual(self.answers(a[4]), [("good.example.test", "A", "192.0.2.7")])
                self.assertIntact(s)

    def test_what_is_no_dns(self):
        """Port 53 with something else on it, also cut off in the middle: told, counted, nothing stalls."""
        with NetNS() as ns, Resolver(ns, TABLE):
            s = self.session(PYTHON_IN_SANDBOX, "-c", r"""
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.sendto(b"", ("127.0.0.1", 53)); u.sendto(b"\xff" * 5000, ("127.0.0.1", 53))
t = socket.create_connection(("127.0.0.1", 53)); t.sendall(b"SSH-2.0-x\r\n"); t.close()
t = socket.create_connection(("127.0.0.1", 53)); t.sendall(b"\0\0" * 1000); t.close()
""", options=["--net", "host"], netns=ns)
        self.assertCode(s, 0)
        q = s.kinds("dns.query")
        # 0x5353 bytes were promised; zeroes are told once a piece, not once for each pair.
        self.assertEqual([bool(field(e, "dns.malformed")) for e in q][:2], [True, False])
        self.assertTrue(q[0].get("truncated"))
        self.assertTrue(q[1].get("truncated"))
        self.assertTrue(field(q[2], "dns.malformed"))
        self.assertLess(len(q), 8)

    def test_the_corpora_of_the_fuzzers(self):
        """As real packets, there and back: each is told or counted, all lines are JSON, and what follows is understood."""
        corpora = [os.path.join(SRC, "tests", "fuzz", "corpus", c) for c in ("dns", "egress_dns")]
        options = [o for i, c in enumerate(corpora) for o in ("--ro", "%s:/corpus%d" % (c, i))]
        with NetNS() as ns, Echo(ns, {}):
            s = self.session(PYTHON_IN_SANDBOX, "-c", CORPUS, "/corpus0", "/corpus1",
                             options=["--net", "host", *options], netns=ns)
        self.assertCode(s, 0)
        datagrams, streams = map(int, s.out.split())
        self.assertGreater(datagrams, 100)
        self.assertEqual(s.result["gaps"], 0)
        for kind in ("dns.query", "dns.answer"):
            udp, tcp = (s.kinds(kind, net__proto=p) for p in ("udp", "tcp"))
            self.assertEqual(len(udp), datagrams + 1, kind)
            self.assertGreater(len(tcp), streams, "at least one of each stream")
            last = udp[-1]["dns"]
            self.assertEqual((last["id"], last["name"], last["type"]), (0x7777, "last.example.test", "A"))
            self.assertTrue(any(e["dns"].get("malformed") for e in udp))
        self.assertContiguous(s.events)
        self.assertIntact(s)


if __name__ == "__main__":
    unittest.main()
