# SPDX-License-Identifier: Apache-2.0
"""What is sent through sockets that were made outside the sandbox and passed in: no program of the sandbox's cgroup
sees it."""

import array
import base64
import fcntl
import os
import socket
import threading
import unittest

from probes import *
from test_enforce import DENIED, EPERM, KILLED_BY_9, TRIES

UDP = (socket.AF_INET, socket.SOCK_DGRAM)


class Passed(Probes):
    def setUp(self):
        super().setUp()
        self.full = families()["net"]["tier"] == "full"

    def made(self, *args, make=socket.socket):
        s = make(*args)
        # Out of the way of 9, which the payload tells facts on.
        s = socket.socket(s.family, s.type, s.proto, fcntl.fcntl(s.detach(), fcntl.F_DUPFD_CLOEXEC, 20))
        self.addCleanup(s.close)
        return s

    def receiver(self, family=socket.AF_INET):
        s = self.made(family, socket.SOCK_DGRAM)
        s.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        s.settimeout(TIMEOUT)
        return s, s.getsockname()[1]

    def passed(self, body, sockets, *args, options=()):
        """The payload has them as `given`, its other arguments as numbers in `args`."""
        fds = [s.fileno() for s in sockets]
        return self.script("""
given = [socket.socket(fileno=int(fd)) for fd in sys.argv[2].split(",")]
args = [int(a) for a in sys.argv[3:]]
""" + body, ",".join(map(str, fds)), *map(str, args), options=options, pass_fds=fds)

    def assertSent(self, d, port, address="127.0.0.1", proto=17, named=True, count=1):
        r = d.one("net.send", dport=port)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        raw = socket.inet_pton(family, address)
        self.assertEqual((r["family"], r["proto"], r["ret"], r["count"], base64.b64decode(r["daddr"])[:len(raw)]),
                         (family, proto, 0, count, raw))
        self.assertEqual(r["flags"] & TOCTOU, TOCTOU if named and not self.full else 0, r)
        return r

    def test_each_call(self):
        given = [self.made(*UDP), self.made(*UDP), self.made(socket.AF_INET6, socket.SOCK_DGRAM)]
        into = [self.receiver() for _ in range(6)]
        six, six_port = self.receiver(socket.AF_INET6)
        listener = self.made(("127.0.0.1", 0), make=socket.create_server)
        given.append(self.made(listener.getsockname(), make=socket.create_connection))
        end = self.made(make=lambda: listener.accept()[0])
        given[1].connect(into[4][0].getsockname())
        ports = [p for _, p in into]
        d = self.passed("""
u, c, six, t = given
to = lambda n: ("127.0.0.1", args[n])
u.sendto(b"a", to(0))
u.sendmsg([b"b"], [], 0, to(1))
# sendmmsg: three messages, to two of them
class Vec(ctypes.Structure): _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
class Msg(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_uint), ("iov", ctypes.POINTER(Vec)), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int), ("n", ctypes.c_uint), ("pad", ctypes.c_uint)]
vec = Vec(b"c", 1)
name = lambda n: struct.pack("=H", socket.AF_INET) + struct.pack("!H", args[n]) + socket.inet_aton("127.0.0.1") + bytes(8)
msgs = (Msg * 3)(*[Msg(name(n), 16, ctypes.pointer(vec), 1) for n in (2, 3, 2)])
r = libc.sendmmsg(u.fileno(), msgs, 3, 0)
os.write(c.fileno(), b"d")
os.writev(t.fileno(), [b"e", b"f"])
six.sendto(b"g", ("::1", args[6]))
six.sendto(b"h", ("::ffff:127.0.0.1", args[5]))
tell(r=r, nothing=u.sendto(b"", to(0)))
# its own is told as ever, once
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"i", ("127.0.0.1", 9))
""", given, *ports, six_port)
        self.assertEqual(d.told["r"], 3)
        for (s, port), text in zip(into, (b"a", b"b", b"c", b"c", b"d", b"h")):
            self.assertEqual(s.recv(10), text)
        self.assertEqual((six.recv(10), end.recv(10)), (b"g", b"ef"))
        for port in ports[:4]:
            self.assertSent(d, port)
        self.assertSent(d, ports[4], named=False)
        self.assertSent(d, listener.getsockname()[1], proto=6, named=False)
        self.assertSent(d, six_port, "::1")
        self.assertSent(d, ports[5], "::ffff:127.0.0.1")
        d.one("net.send", dport=9)
        self.assertEqual({r["tgid"] for r in d.kinds("net.send")}, {d.one("net.send", dport=9)["tgid"]})

    def test_repeats_are_counted(self):
        s, port = self.receiver()
        d = self.passed("""
for n in range(50): given[0].sendto(b"x", ("127.0.0.1", args[0]))
time.sleep(1.2)
given[0].sendto(b"x", ("127.0.0.1", args[0]))
""", [self.made(*UDP)], port)
        rows = [r["count"] for r in d.kinds("net.send", dport=port)]
        self.assertEqual((rows[0], sum(rows)), (1, 51))
        self.assertLessEqual(len(rows), 51)

    def test_handed_over_while_it_runs(self):
        """SCM_RIGHTS: what a helper outside gives away on a socket of a directory that both see."""
        s, port = self.receiver()
        server = self.made(socket.AF_UNIX)
        server.bind(self.path("server"))
        server.listen(1)

        def give():
            conn, _ = server.accept()
            with conn, socket.socket(*UDP) as gift:
                conn.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [gift.fileno()]))])
        giver = threading.Thread(target=give)
        giver.start()
        d = self.script("""
c = socket.socket(socket.AF_UNIX); c.connect("server")
_, more, _, _ = c.recvmsg(1, socket.CMSG_SPACE(4))
u = socket.socket(fileno=struct.unpack("i", more[0][2][:4])[0])
u.sendto(b"leak", ("127.0.0.1", int(sys.argv[2])))
""", str(port))
        giver.join()
        self.assertEqual(s.recv(10), b"leak")
        self.assertSent(d, port)

    def uring(self, how, ops, options=()):
        """ops: [(name, port, socket)]"""
        d = self.dump(helper("try_uring"), how, *("%s:%d,%d" % (op, port, s.fileno()) for op, port, s in ops), options=options,
                      pass_fds=[s.fileno() for _, _, s in ops])
        if b"io_uring_setup" in d.done.err:
            self.skipTest("no io_uring: %s" % d.done.err)
        return d

    def test_by_io_uring(self):
        """With a message, to the peer, from a registered file, with an address: by the task, a worker, the ring's thread."""
        for how in ("plain", "worker", "sqpoll"):
            into = [self.receiver() for _ in range(4)]
            names = ("sendmsg", "send", "fixed", "sendto")
            d = self.uring(how, [(op, port, self.made(*UDP)) for op, (_, port) in zip(names, into)])
            self.assertEqual(d.done.err.split()[-4:], [b"4"] * 4, how)
            for op, (s, port) in zip(names, into):
                self.assertEqual(s.recv(10), b"abcd")
                r = d.one("net.send", dport=port)
                self.assertEqual((r["family"], r["proto"], r["ret"], r["count"], base64.b64decode(r["daddr"])[:4]),
                                 (socket.AF_INET, 17, 0, 1, bytes((127, 0, 0, 1))), (how, op))
                self.assertEqual(r["flags"] & IOURING, IOURING, (how, op))
                self.assertFalse(r["flags"] & TOCTOU and (self.full or op == "send"), (how, op))

    def test_denied_by_io_uring(self):
        for how in ("plain", "worker", "sqpoll"):
            for what in ("deny", "kill"):
                if what == "deny" and not self.full:
                    continue
                s, port = self.receiver()
                d = self.uring(how, [("sendmsg", port, self.made(*UDP))],
                               options=["--enforce", "%s:addr:127.0.0.0/8,%d-%d" % (what, port, port)])
                r = d.one("net.send", dport=port)
                flags = (DENIED if self.full else 0) | (KILLED if what == "kill" else 0)
                self.assertEqual((r["enforced"], r["flags"] & (DENIED | KILLED | IOURING)), (1, flags | IOURING), (how, what))
                if what == "deny":
                    self.assertEqual(d.done.err.split()[-1], b"-1", how)
                else:
                    self.assertCode(d.done, 128 + 9)
                if self.full:
                    s.settimeout(0)
                    self.assertRaises(BlockingIOError, s.recv, 10)

    def test_metadata_services(self):
        need("ip")
        with NetNS() as ns:
            cmd(*ns.inside(["ip", "addr", "add", "169.254.169.254/32", "dev", "lo"]))
            u = self.made(*UDP, make=ns.socket)
            d = self.passed('given[0].sendto(b"x", ("169.254.169.254", 80))', [u])
        self.assertSent(d, 80, "169.254.169.254")
        e, = [r for r in d.kinds("escape") if r["type"] == "metadata"]
        self.assertEqual(e["args"][:4], [int.from_bytes(socket.inet_aton("169.254.169.254"), "little"), 0, 80, 2])

    def test_denied(self):
        """The full tier refuses it; elsewhere who does it is killed."""
        s, port = self.receiver()
        fine, fine_port = self.receiver()
        given = [self.made(*UDP), self.made(*UDP)]
        given[1].connect(s.getsockname())
        body = TRIES + """
attempt("named", lambda: given[0].sendto(b"named", ("127.0.0.1", args[0])))
attempt("connected", lambda: given[1].send(b"connected"))
attempt("other", lambda: given[0].sendto(b"other", ("127.0.0.1", args[1])))
"""
        for what, flags in (("deny", DENIED), ("kill", KILLED)):
            if what == "deny" and not self.full:
                continue
            d = self.passed(body, given, port, fine_port, options=["--enforce", "%s:addr:127.0.0.0/8,%d-%d" % (what, port, port)])
            result = EPERM if what == "deny" else KILLED_BY_9
            self.assertEqual([d.told[k] for k in ("named", "connected", "other")], [result, result, 0])
            for who in ("named", "connected"):
                rows = [r for r in d.kinds("net.send") if r["tgid"] == d.told[who + "_pid"]]
                self.assertTrue(rows or what == "deny", d.records)
                for r in rows:
                    self.assertEqual((r["enforced"], r["flags"] & flags, r["dport"]), (1, flags, port), r)
            self.assertEqual(fine.recv(10), b"other")
        if self.full:
            s.settimeout(0)
            self.assertRaises(BlockingIOError, s.recv, 10)


if __name__ == "__main__":
    unittest.main()
