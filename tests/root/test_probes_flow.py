# SPDX-License-Identifier: Apache-2.0
"""What went through sockets, and the sockets that are no TCP connection: bound, refused, raw, vsock, passed in."""

import base64
import os
import socket
import unittest

from probes import *


class Flows(Probes):
    SETUP = """
os.system("ip link set lo up")
udp = lambda fam=socket.AF_INET: socket.socket(fam, socket.SOCK_DGRAM)
def errno_of(fn, *args):
    try:
        fn(*args)
    except OSError as e:
        return -e.errno
    return 0
"""

    def addr(self, r, which):
        raw = base64.b64decode(r[which])
        return socket.inet_ntop(r["family"], raw[:4] if r["family"] == socket.AF_INET else raw)

    def net(self, body, **kw):
        need("ip")
        return self.script(self.SETUP + body, via=["unshare", "-n"], **kw)

    def counts(self, r):
        return tuple(r[k] for k in ("packets_out", "bytes_out", "packets_in", "bytes_in"))

    # ---- TCP ----

    def test_a_killed_process_has_its_bytes_told(self):
        d = self.net("""
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(5)
pid = os.fork()
if pid == 0:
    s = socket.create_connection(l.getsockname())
    s.sendall(b"x" * 12345)
    s.recv(100)
    os.kill(os.getpid(), 9)
a, _ = l.accept()
a.sendall(b"y" * 99)
got = 0
while got < 12345: got += len(a.recv(65536))
os.waitpid(pid, 0)
tell(pid=pid, me=os.getpid())
os.kill(os.getpid(), 9)
""")
        rows = {r["tgid"]: (r["bytes_out"], r["bytes_in"]) for r in d.kinds("net.close")}
        self.assertEqual(rows, {d.told["pid"]: (12345, 99), d.told["me"]: (99, 12345)})

    def test_what_waits_in_the_queue_counts(self):
        """The peer reads nothing and is then gone: what the payload wrote is what it tried to send."""
        d = self.net("""
l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096); l.bind(("127.0.0.1", 0)); l.listen(5)
s = socket.create_connection(l.getsockname())
s.setblocking(False)
n = 0
while True:
    try:
        n += s.send(b"z" * 4096)
    except BlockingIOError:
        break
tell(n=n)
s.close()
""")
        self.assertEqual([r["bytes_out"] for r in d.kinds("net.close") if r["dport"]][:1], [d.told["n"]])

    def test_each_connection_ends_once(self):
        d = self.net("""
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(5)
for how in range(4):
    s = socket.create_connection(l.getsockname()); a, _ = l.accept()
    if how == 0: s.close(); a.recv(1); a.close()
    elif how == 1: s.shutdown(1); a.recv(1); a.shutdown(1); s.recv(1); time.sleep(0.1); s.close(); a.close()
    elif how == 2:
        a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); a.close()
        time.sleep(0.1); s.close()
    else: b = s.dup(); s.close(); time.sleep(0.1); b.close(); a.close()
""")
        connects, accepts = d.kinds("net.connect"), d.kinds("net.accept")
        self.assertEqual((len(connects), len(accepts)), (4, 4))
        cookies = sorted(r["cookie"] for r in connects + accepts)
        self.assertEqual(len(set(cookies)), 8)
        self.assertEqual(sorted(r["cookie"] for r in d.kinds("net.close")), cookies)

    def test_a_second_call_to_connect_is_no_second_connection(self):
        d = self.net("""
import select
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(5)
s = socket.socket(); s.setblocking(False)
r = [s.connect_ex(l.getsockname())]
select.select([], [s], [])
r += [s.connect_ex(l.getsockname()), s.connect_ex(l.getsockname())]
tell(r=r)
""")
        self.assertEqual(d.told["r"], [115, 0, 106])
        d.one("net.connect")

    def test_mptcp(self):
        d = self.net("""
try:
    l = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
except OSError:
    tell(skip=1); sys.exit()
l.bind(("127.0.0.1", 0)); l.listen(5)
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(l.getsockname())
a, _ = l.accept(); s.sendall(b"m" * 321); a.recv(1000)
tell(port=l.getsockname()[1])
s.close(); a.close(); time.sleep(0.1)
""")
        if "skip" in d.told:
            self.skipTest("this kernel has no MPTCP")
        c = d.kinds("net.connect")
        self.assertEqual([(r["dport"], r["ret"]) for r in c], [(d.told["port"], 0)])
        ends = [r for r in d.kinds("net.close") if r["dport"] == d.told["port"]]
        # The kernel counts from 6.5 on; of those before, some point releases do (6.1.192).
        if ends or tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 5):
            self.assertEqual([(r["bytes_out"], r["cookie"]) for r in ends], [(321, c[0]["cookie"])])

    def test_io_uring_connect_has_outcome_and_end(self):
        l = socket.socket()
        l.bind(("127.0.0.1", 0))
        l.listen(5)
        self.addCleanup(l.close)
        port = l.getsockname()[1]
        for how in ("plain", "worker", "sqpoll"):
            with self.subTest(how):
                d = self.dump(helper("try_uring"), how, "connect:%d" % port, "connect:1")
                if b"io_uring_setup" in d.done.err:
                    self.skipTest("no io_uring: %s" % d.done.err)
                good = d.kinds("net.connect", dport=port)
                self.assertEqual([r["ret"] for r in good], [-115, 0])
                self.assertTrue(all(r["flags"] & IOURING for r in good))
                self.assertEqual(good[1]["sport"] > 0, True)
                self.assertEqual([r["ret"] for r in d.kinds("net.connect", dport=1)], [-115, -111])
                self.assertEqual(d.one("net.close")["cookie"], good[0]["cookie"])

    def uring(self, how, *ops):
        """The results of the operations, as try_uring prints them, and what was seen."""
        d = self.dump(helper("try_uring"), how, *ops, wrap=["env", "-C", self.tmp])
        if b"io_uring_setup" in d.done.err:
            self.skipTest("no io_uring: %s" % d.done.err)
        return [int(x) for x in d.done.err.split() if x.lstrip(b"-").isdigit()], d

    def test_io_uring_accept(self):
        for how in ("plain", "worker", "sqpoll"):
            for kind in ("fd", "direct", "any", "multi"):
                if (how, kind) == ("worker", "multi"):
                    continue  # refused by the kernel
                with self.subTest(how=how, kind=kind):
                    (port, client, res), d = self.uring(how, "accept:" + kind)
                    self.assertGreaterEqual(res, 0)
                    a = d.one("net.accept")
                    self.assertEqual((self.addr(a, "saddr"), a["sport"], self.addr(a, "daddr"), a["dport"], a["ret"]),
                                     ("127.0.0.1", port, "127.0.0.1", client, 0))
                    self.assertEqual((a["family"], a["type"], a["proto"], a["flags"] & IOURING), (2, 1, 6, IOURING))
                    self.assertEqual(a["tgid"], d.one("net.listen")["tgid"])
                    if kind in ("fd", "multi"):  # direct ones end with the ring, some time after the process
                        d.one("net.close", cookie=a["cookie"])

    def test_io_uring_accept_unix(self):
        (_, _, res), d = self.uring("plain", "accept:unix")
        self.assertGreaterEqual(res, 0)
        a = d.one("net.accept")
        self.assertEqual((a["family"], base64.b64decode(a["path"]), a["ret"]), (1, self.path("uring.sock").encode(), 0))

    def test_io_uring_accept_without_completion_is_told_as_pending(self):
        for how in ("plain", "sqpoll"):
            with self.subTest(how):
                (port, _, res), d = self.uring(how, "accept:skip")
                self.assertEqual(res, 0)
                a = d.one("net.accept")
                self.assertEqual((a["sport"], a["dport"], a["ret"], a["flags"] & IOURING), (port, 0, -115, IOURING))

    def test_io_uring_datagrams_count(self):
        for how in ("plain", "worker", "sqpoll"):
            with self.subTest(how):
                res, d = self.uring(how, *["send:4711"] * 1, *["sendmsg:4712"] * 1)
                self.assertEqual(res, [4, 4])
                s = d.one("net.send")
                self.assertEqual((s["dport"], s["flags"] & IOURING, s["count"]), (4712, IOURING, 1))
                ends = {r["dport"]: self.counts(r)[:2] for r in d.kinds("net.close")}
                self.assertEqual(ends, {4711: (1, 4), 4712: (1, 4)})

    def test_interrupted_connect_is_pending_and_told_once_when_decided(self):
        """Nobody answers at 198.51.100.3: the wait is interrupted, the kernel goes on, then finds no route."""
        d = self.net("""
import signal
os.system("ip link add v0 type veth peer name v1 && ip addr add 198.51.100.1/24 dev v0 && ip link set v0 up && ip link set v1 up")
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, True)
s = socket.socket()
signal.setitimer(signal.ITIMER_REAL, 0.2)
addr = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 80) + socket.inet_aton("198.51.100.3") + b"\\0" * 8
r = sc(42, s.fileno(), addr, len(addr))
again = sc(42, s.fileno(), addr, len(addr)) if r == -4 else None
tell(r=r, again=again)
""")
        self.assertEqual((d.told["r"], d.told["again"]), (-4, -113))
        self.assertEqual([r["ret"] for r in d.kinds("net.connect", dport=80)], [-115, -113])

    # ---- UDP ----

    def test_udp_totals(self):
        d = self.net("""
a = udp(); a.bind(("127.0.0.1", 0)); b = udp(socket.AF_INET6)
for i in range(300):
    b.sendto(b"x" * 100, ("::ffff:127.0.0.1", a.getsockname()[1]))
for i in range(10):
    data, peer = a.recvfrom(1000)
    a.sendto(b"y" * 7, peer)
    b.recv(100)
c = udp(); c.connect(a.getsockname())
for i in range(5): c.send(b"z" * 11)
tell(a=a.getsockname()[1], b=b.getsockname()[1], c=c.getsockname()[1])
b.close(); c.close(); a.close()
udp().close()
""")
        ends = {r["sport"]: r for r in d.kinds("net.close")}
        self.assertEqual(set(ends), {d.told[k] for k in "abc"}, "a socket that was never used has no end")
        self.assertEqual(self.counts(ends[d.told["a"]]), (10, 70, 305, 30055))
        self.assertEqual(self.counts(ends[d.told["b"]]), (300, 30000, 10, 70))
        self.assertEqual(self.counts(ends[d.told["c"]]), (5, 55, 0, 0))
        self.assertEqual(ends[d.told["c"]]["dport"], d.told["a"])
        sends = {r["cookie"]: r["dport"] for r in d.kinds("net.send")}
        self.assertEqual(sends[ends[d.told["b"]]["cookie"]], d.told["a"])
        self.assertEqual(len(d.kinds("net.send")), 2)
        self.assertEqual([(r["dport"], r["proto"], r["ret"]) for r in d.kinds("net.connect")], [(d.told["a"], 17, 0)])

    def test_connect_to_nobody_is_a_disconnect(self):
        """connect(AF_UNSPEC): the socket lives on without a peer. Of TCP it is the end of the connection."""
        d = self.net("""
libc.connect.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
leave = lambda s: libc.connect(s.fileno(), bytes(16), 16)
a = udp(); a.bind(("127.0.0.1", 0)); b = udp()
b.connect(a.getsockname()); b.send(b"x" * 10)
r = [leave(b)]
b.sendto(b"y" * 20, a.getsockname())
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(1)
c = socket.create_connection(l.getsockname()); c.sendall(b"z" * 30)
r.append(leave(c))
tell(r=r, a=a.getsockname()[1], b=b.getsockname()[1], l=l.getsockname()[1])
b.close()
""")
        self.assertEqual(d.told["r"], [0, 0])
        self.assertEqual([(r["proto"], r["dport"], r["ret"]) for r in d.kinds("net.connect")],
                         [(17, d.told["a"], 0), (6, d.told["l"], 0)], "no third connection")
        left = d.one("net.close", proto=17, bytes_out=2**64 - 1)
        _, end = d.kinds("net.close", cookie=left["cookie"])
        self.assertEqual(self.counts(end)[:2], (2, 30))
        self.assertEqual([r["bytes_out"] for r in d.kinds("net.close", proto=6) if r["dport"] == d.told["l"]], [30])

    def test_100000_datagrams_nothing_lost(self):
        d = self.net("""
u = udp()
for i in range(100000): u.sendto(b"12345678", ("127.0.0.1", 9))
""")
        self.assertEqual(d.gaps, [])
        r = d.one("net.close")
        # Each is answered by an ICMP error, which makes the next send fail on its way.
        told = sum(s["count"] for s in d.kinds("net.send"))
        self.assertLess(len(d.kinds("net.send")), 100)
        self.assertEqual(told + r["count"], 100000, "all are in one of the merged counts")
        self.assertEqual((r["bytes_out"], r["bytes_in"]), (8 * r["packets_out"], 0))
        self.assertGreater(r["packets_out"], 49999)

    def test_sendmmsg_is_as_many_datagrams(self):
        d = self.net("""
u = udp()
class Iov(ctypes.Structure): _fields_ = [("p", ctypes.c_char_p), ("n", ctypes.c_size_t)]
class Msg(ctypes.Structure): _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_int), ("iov", ctypes.POINTER(Iov)),
    ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_long),
    ("len", ctypes.c_long)]
m = (Msg * 4)()
keep = []
for i in range(4):
    name = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 7000 + i % 2) + socket.inet_aton("127.0.0.2") + b"\\0" * 8
    iov = Iov(b"abcd", 4); keep += [name, iov]
    m[i].name = name; m[i].namelen = 16; m[i].iov = ctypes.pointer(iov); m[i].iovlen = 1
libc.sendmmsg.restype = ctypes.c_int
tell(n=libc.sendmmsg(u.fileno(), m, 4, 0))
""")
        self.assertEqual(d.told["n"], 4)
        self.assertEqual([(r["dport"], self.addr(r, "daddr")) for r in d.kinds("net.send")],
                         [(7000, "127.0.0.2"), (7001, "127.0.0.2")])
        self.assertEqual(self.counts(d.one("net.close"))[:2], (4, 16))

    def test_ping_and_raw(self):
        d = self.net("""
import select
r = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
echo = struct.pack("!BBHHH", 8, 0, 0xf7fd, 1, 1)
for i in range(3): r.sendto(echo, ("127.0.0.1", 0))
r.sendto(echo, ("127.0.0.2", 0))
r.connect(("127.0.0.1", 0))
tell(pid=os.getpid())
time.sleep(0.1)
""")
        s = d.one("net.socket")
        self.assertEqual((s["family"], s["type"], s["proto"], s["ret"]), (2, 3, 1, 0))
        sends = d.kinds("net.send")
        self.assertEqual([(r["type"], r["proto"], self.addr(r, "daddr"), r["tgid"]) for r in sends],
                         [(3, 1, "127.0.0.1", d.told["pid"]), (3, 1, "127.0.0.2", d.told["pid"])])
        c = d.one("net.connect")
        self.assertEqual((c["type"], c["proto"], self.addr(c, "daddr"), c["ret"]), (3, 1, "127.0.0.1", 0))
        end = d.one("net.close")
        self.assertEqual((end["packets_out"], end["cookie"]), (4, sends[0]["cookie"]))
        self.assertGreaterEqual(end["packets_in"], 4)

    # ---- sockets ----

    def test_bind_listen_accept(self):
        d = self.net("""
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(5)
c = socket.create_connection(l.getsockname()); a, _ = l.accept()
m = socket.socket()
r = [errno_of(m.bind, l.getsockname()), errno_of(m.bind, ("192.0.2.9", 80)), errno_of(a.listen, 1)]
v6 = socket.socket(socket.AF_INET6); v6.bind(("::1", 0)); v6.listen(1)
u = udp(); u.bind(("127.0.0.3", 5353))
p = socket.socket(socket.AF_UNIX); p.bind("srv"); p.listen(1)
q = socket.socket(socket.AF_UNIX); q.connect("srv"); w, _ = p.accept()
x = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); x.bind(b"\\0name\\xfe")
r.append(errno_of(socket.socket(socket.AF_UNIX).bind, "srv"))
tell(l=l.getsockname()[1], c=c.getsockname()[1], v6=v6.getsockname()[1], r=r)
""")
        t = d.told
        self.assertEqual(t["r"], [-98, -99, -22, -98])
        binds = [(self.addr(r, "saddr"), r["sport"], r["ret"]) for r in d.kinds("net.bind") if r["family"] != 1]
        self.assertEqual(binds, [("127.0.0.1", t["l"], 0), ("127.0.0.1", t["l"], -98), ("192.0.2.9", 80, -99),
                                 ("::1", t["v6"], 0), ("127.0.0.3", 5353, 0)])
        listens = [(r["sport"], r["ret"]) for r in d.kinds("net.listen") if r["family"] != 1]
        self.assertEqual(listens, [(t["l"], 0), (t["l"], -22), (t["v6"], 0)])
        a = d.one("net.accept", family=2)
        self.assertEqual((self.addr(a, "saddr"), a["sport"], self.addr(a, "daddr"), a["dport"], a["ret"]),
                         ("127.0.0.1", t["l"], "127.0.0.1", t["c"], 0))
        srv = self.path("srv").encode()
        unix = [(r["kind"], base64.b64decode(r["path"]), r["ret"]) for r in d.records
                if r["kind"].startswith("net.") and r["family"] == 1]
        self.assertEqual(unix, [("net.bind", srv, 0), ("net.listen", srv, 0), ("net.connect", srv, 0),
                                ("net.accept", srv, 0), ("net.bind", b"\0name\xfe", 0), ("net.bind", b"srv", -98)])

    def test_refused_families(self):
        d = self.net("""
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
ok = errno_of(n.bind, (0, 0))
os.setresuid(65534, 65534, 65534)
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)
tell(r=[errno_of(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1), errno_of(socket.socket, 17, 3, 3),
        errno_of(n.bind, (0, 1)), errno_of(n.connect, (0, 1)), errno_of(socket.socket, 12, 1, 0)])
""")
        raw, packet, bind, connect, nothing = d.told["r"]
        self.assertEqual((raw, packet, nothing), (-1, -1, -97))
        self.assertEqual([(r["family"], r["type"], r["ret"]) for r in d.kinds("net.socket")],
                         [(2, 3, -1), (17, 3, -1), (12, 1, -97)])
        self.assertEqual([(r["args"][0]) for r in d.escapes("socket_family")], [17])
        self.assertEqual([r["ret"] for r in d.kinds("net.bind", family=16)], [bind] if bind else [])
        self.assertEqual([r["ret"] for r in d.kinds("net.connect", family=16)], [connect])

    def test_vsock(self):
        d = self.net("""
try:
    v = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
except OSError:
    tell(skip=1); sys.exit()
v.settimeout(1)
tell(r=errno_of(v.connect, (4711, 70000)))
""")
        if "skip" in d.told:
            self.skipTest("this kernel has no vsock")
        r = d.one("net.connect", family=40)
        self.assertEqual(base64.b64decode(r["daddr"])[:8], (4711).to_bytes(4, "little") + (70000).to_bytes(4, "little"))
        self.assertLess(r["ret"], 0)

    def test_made_outside_and_passed_in(self):
        """No cgroup program sees these: the calls do."""
        l = socket.socket()
        l.bind(("127.0.0.1", 0))
        l.listen(5)
        outside = [l, socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        for s in outside:
            self.addCleanup(s.close)
            os.set_inheritable(s.fileno(), True)
        client = socket.create_connection(l.getsockname())
        self.addCleanup(client.close)
        fds = [s.fileno() for s in outside]
        d = self.script("""
l, t, u = [socket.socket(fileno=int(fd)) for fd in sys.argv[2:5]]
a, _ = l.accept(); a.sendall(b"q" * 50); a.close()
t.connect(l.getsockname()); t.sendall(b"w" * 60)
u.connect(l.getsockname())
""", *map(str, fds), pass_fds=fds)
        port = l.getsockname()[1]
        self.assertEqual([(r["proto"], r["dport"], r["ret"]) for r in d.kinds("net.connect")],
                         [(6, port, 0), (17, port, 0)])
        self.assertEqual(d.one("net.accept")["sport"], port)


if __name__ == "__main__":
    unittest.main()
