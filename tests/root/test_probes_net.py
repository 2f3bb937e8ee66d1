# SPDX-License-Identifier: Apache-2.0
"""Connections, datagrams and DNS, in a network namespace of the payload."""

import base64
import socket
import unittest

from probes import *


class Net(Probes):
    LISTEN = """
os.system("ip link set lo up")
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(5)
port = l.getsockname()[1]
def attempt(fam, addr, blocking=True, type=socket.SOCK_STREAM):
    s = socket.socket(fam, type)
    s.setblocking(blocking)
    try:
        s.connect(addr)
    except OSError as e:
        return s, -e.errno
    return s, 0
"""

    def addr(self, r, which):
        raw = base64.b64decode(r[which])
        return socket.inet_ntop(r["family"], raw[:4] if r["family"] == socket.AF_INET else raw)

    def net(self, body):
        need("ip")
        return self.script(self.LISTEN + body, via=["unshare", "-n"])

    def test_connect_and_bytes(self):
        d = self.net("""
s, r = attempt(socket.AF_INET, ("127.0.0.1", port))
a, _ = l.accept()
s.sendall(b"x" * 1000); got = 0
while got < 1000: got += len(a.recv(4096))
a.sendall(b"y" * 77); s.recv(100)
tell(port=port, own=s.getsockname()[1], pid=os.getpid())
s.shutdown(1); a.recv(1); a.close(); s.recv(1); s.close(); time.sleep(0.2)
""")
        t = d.told
        c = d.one("net.connect")
        self.assertEqual((c["ret"], c["family"], c["type"], c["proto"]), (0, 2, 1, 6))
        self.assertEqual((self.addr(c, "daddr"), c["dport"], self.addr(c, "saddr"), c["sport"]),
                         ("127.0.0.1", t["port"], "127.0.0.1", t["own"]))
        self.assertNotEqual(c["cookie"], 0)
        self.assertEqual((d.one("net.listen")["sport"], d.one("net.accept")["dport"]),
                         (t["port"], t["own"]))
        close = d.one("net.close", cookie=c["cookie"])
        self.assertEqual((close["bytes_out"], close["bytes_in"], close["tgid"]), (1000, 77, t["pid"]))

    def test_refused_v4_and_v6(self):
        d = self.net("""
tell(v4=attempt(socket.AF_INET, ("127.0.0.1", 1))[1], v6=attempt(socket.AF_INET6, ("::1", 2))[1],
     mapped=attempt(socket.AF_INET6, ("::ffff:127.0.0.1", 3))[1])
""")
        rows = d.kinds("net.connect")
        self.assertEqual([(self.addr(r, "daddr"), r["dport"], r["ret"]) for r in rows[:2]],
                         [("127.0.0.1", 1, -111), ("::1", 2, -111)])
        self.assertEqual((rows[2]["dport"], rows[2]["ret"]), (3, -111))
        self.assertIn(self.addr(rows[2], "daddr"), ("::ffff:127.0.0.1", "127.0.0.1"))

    def test_non_blocking(self):
        d = self.net("""
import select
s, r = attempt(socket.AF_INET, ("127.0.0.1", port), blocking=False)
t, r2 = attempt(socket.AF_INET, ("127.0.0.1", 1), blocking=False)
tell(r=[r, r2])
time.sleep(0.1)
""")
        self.assertEqual(d.told["r"], [-115, -115])
        # Over loopback both are decided by the time the call returns.
        self.assertEqual([r["ret"] for r in d.kinds("net.connect")], [0, -111])

    def test_pending_then_decided(self):
        d = self.net("""
os.system("ip link add v0 type veth peer name v1 && ip addr add 198.51.100.1/24 dev v0 && ip link set v0 up && ip link set v1 up")
os.system("ip neigh add 198.51.100.2 lladdr 02:00:00:00:00:01 dev v0")
s, r = attempt(socket.AF_INET, ("198.51.100.2", 80), blocking=False)
tell(r=r)
time.sleep(0.1)
s.close()
u, r = attempt(socket.AF_INET, ("198.51.100.3", 80), blocking=False)
time.sleep(4)
""")
        self.assertEqual(d.told["r"], -115)
        rows = d.kinds("net.connect", dport=80)
        first = [r for r in rows if self.addr(r, "daddr") == "198.51.100.2"]
        self.assertEqual(first[0]["ret"], -115)
        second = [r["ret"] for r in rows if self.addr(r, "daddr") == "198.51.100.3"]
        self.assertEqual(second, [-115, -113], "pending, then no route to host")

    def test_unix(self):
        d = self.script("""
def server(name):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(1)
    return s
def client(name):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name)
    except OSError as e:
        return -e.errno
    return 0
keep = [server("sock"), server(b"\\0abs\\xff")]
os.symlink("sock", "link")
tell(r=[client("sock"), client("link"), client(b"\\0abs\\xff"), client("none")])
""")
        rows = d.kinds("net.connect", family=1)
        got = [(r["ret"], base64.b64decode(r["path"])) for r in rows]
        sock = self.path("sock").encode()
        self.assertEqual(got, [(0, sock), (0, sock), (0, b"\0abs\xff"), (-2, b"none")])
        self.assertEqual([bool(r["flags"] & TOCTOU) for r in rows], [False, False, False, True],
                         "only what was not reached is the caller's word")

    def test_fast_open_has_no_connect_call(self):
        d = self.net("""
s = socket.socket()
try:
    s.sendto(b"x", 0x20000000, ("127.0.0.1", 1))
except OSError as e:
    tell(r=-e.errno)
""")
        rows = d.kinds("net.connect")
        self.assertEqual([(r["dport"], self.addr(r, "daddr"), r["ret"]) for r in rows],
                         [(1, "127.0.0.1", -115), (1, "127.0.0.1", -111)])

    def test_udp_once_a_second(self):
        d = self.net("""
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(50):
    u.sendto(b"x", ("127.0.0.1", 4444))
u.sendto(b"x", ("127.0.0.1", 4445))
tell(pid=os.getpid())
""")
        rows = d.kinds("net.send")
        self.assertEqual([(r["dport"], self.addr(r, "daddr"), r["proto"], r["tgid"]) for r in rows],
                         [(4444, "127.0.0.1", 17, d.told["pid"]), (4445, "127.0.0.1", 17, d.told["pid"])])

    def test_dns(self):
        query = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\3foo\4test\0\0\1\0\1"
        d = self.net("""
query = %r
def ask(fam, host, connect):
    srv = socket.socket(fam, socket.SOCK_DGRAM); srv.bind((host, 53))
    c = socket.socket(fam, socket.SOCK_DGRAM)
    if connect:
        c.connect((host, 53)); c.send(query)
    else:
        c.sendto(query, (host, 53))
    q, peer = srv.recvfrom(600)
    srv.sendto(q + b"answer" * 100, peer)
    c.recv(2000)
    srv.close()
    return c.getsockname()[1]
tell(pid=os.getpid(), v4=ask(socket.AF_INET, "127.0.0.1", False), v4c=ask(socket.AF_INET, "127.0.0.2", True),
     v6=ask(socket.AF_INET6, "::1", False))
srv = socket.socket(); srv.bind(("127.0.0.1", 53)); srv.listen(1)
c = socket.create_connection(("127.0.0.1", 53))
c.sendall(struct.pack("!H", len(query)) + query)
a, _ = srv.accept(); a.recv(100); a.sendall(b"\\0\\x10" + b"Z" * 16); c.recv(100)
""" % query)
        q, a = d.kinds("dns.query"), d.kinds("dns.answer")
        self.assertEqual([(self.addr(r, "daddr"), r["dport"], r["proto"]) for r in q],
                         [("127.0.0.1", 53, 17), ("127.0.0.2", 53, 17), ("::1", 53, 17),
                          ("127.0.0.1", 53, 6)])
        self.assertEqual([base64.b64decode(r["data"]) for r in q], [query] * 3 +
                         [bytes([0, len(query)]) + query])
        self.assertEqual([r["sport"] for r in q[:3]], [d.told[k] for k in ("v4", "v4c", "v6")])
        self.assertEqual({r["tgid"] for r in q + a}, {d.told["pid"]}, "the packet's process")
        self.assertEqual([r["cookie"] for r in a], [r["cookie"] for r in q])
        self.assertEqual([self.addr(r, "daddr") for r in a], [self.addr(r, "daddr") for r in q])
        whole = query + b"answer" * 100
        self.assertEqual([(base64.b64decode(r["data"]), r["total"]) for r in a[:3]],
                         [(whole, len(whole))] * 3)
        self.assertFalse(any(r["flags"] & TRUNC for r in a[:3]))
        self.assertEqual(base64.b64decode(a[3]["data"]), b"\0\x10" + b"Z" * 16)


if __name__ == "__main__":
    unittest.main()
