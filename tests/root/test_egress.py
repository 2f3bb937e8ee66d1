# SPDX-License-Identifier: Apache-2.0
"""The way out of a sandbox, against real servers on addresses of an internet of the test's own."""

import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

from warder import *

WEB, WEB6, OTHER = "93.184.216.10", "2606:2800:220::10", "93.184.216.11"
RESOLVER = "93.184.215.1"
NAMES = {
    "good.example": [WEB], "a.wild.example": [WEB], "wild.example": [WEB], "six.example": [WEB6],
    "private.example": ["10.1.2.3"], "meta.example": ["169.254.169.254"], "meta6.example": ["fd00:ec2::254"],
    "loop.example": ["127.0.0.1"], "mapped.example": ["::ffff:10.1.2.3"], "self.example": ["93.184.215.2"],
    "mixed.example": ["10.1.2.3", WEB], "dead.example": [WEB],
}

# What a sandbox tries, one word each, and what came of it as a list of JSON.
CLIENT = r"""
import json, socket, ssl, sys
def tcp(host, port, data=b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", text=None):
    with socket.create_connection((host, int(port)), 10) as s:
        s.sendall(data % host.encode() if b"%s" in data else data)
        return s.makefile("rb").read().rsplit(b"\n", 1)[-1].decode()
def get(host, port=80): return tcp(host, port)
def host(at, name): return tcp(at, 80, b"GET / HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n")
def second(at, name):
    good = b"GET / HTTP/1.1\r\nHost: " + at.encode() + b"\r\n\r\n"
    with socket.create_connection((at, 80), 10) as s:
        s.sendall(good)
        first = s.recv(4096)
        s.sendall(b"GET / HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n")
        return [bool(first), s.recv(4096).decode()]
def tls(at, sni, port=443):
    c = ssl.create_default_context()
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((at, int(port)), 10) as raw, c.wrap_socket(raw, server_hostname=sni or None) as s:
        s.sendall(b"hello")
        return s.recv(100).decode()
def udp(ip, port):
    s = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.connect((ip, int(port)))
    s.send(b"x")
    return s.recv(10).decode()
def look_v4(name): return sorted({a[4][0] for a in socket.getaddrinfo(name, 1, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)})
def look(name): return sorted({a[4][0] for a in socket.getaddrinfo(name, 1, type=socket.SOCK_STREAM)})
def tcpdns(name, server="127.0.0.1"):
    q = b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0\0\1\0\1"
    with socket.create_connection((server, 53), 10) as s:
        s.sendall(len(q).to_bytes(2, "big") + q)
        f = s.makefile("rb")
        a = f.read(int.from_bytes(f.read(2), "big"))
    return [a[3] & 15, ".".join(map(str, a[-4:])) if a[7] else ""]
def half(host, port):
    with socket.create_connection((host, int(port)), 10) as s:
        s.sendall(b"x" * 100000)
        s.shutdown(socket.SHUT_WR)
        return s.makefile("rb").read().decode()
def serve(port):
    with socket.create_server(("", int(port))) as l, socket.create_connection(("127.0.0.1", int(port)), 5) as c:
        s = l.accept()[0]
        s.sendall(b"own")
        return c.recv(9).decode()
def many(host, port, n):
    socks, got = [], 0
    for _ in range(int(n)):
        try:
            s = socket.create_connection((host, int(port)), 5)
            s.sendall(b"x")
            got += s.recv(1) == b"x"
            socks.append(s)
        except OSError:
            pass
    return got
for word in sys.argv[1:]:
    what, *args = word.split(",")
    try:
        print(json.dumps(globals()[what](*args)), flush=True)
    except (OSError, ssl.SSLError) as e:
        print(json.dumps("%s: %s" % (type(e).__name__, e)), flush=True)
"""


class Echo(threading.Thread):
    """TCP servers in a namespace: each connection is given to fn(socket)."""

    def __init__(self, sock, fn):
        super().__init__(daemon=True)
        self.sock, self.fn, self.seen = sock, fn, []
        self.start()

    def run(self):
        while True:
            try:
                s, peer = self.sock.accept()
            except OSError:
                return
            self.seen.append(peer)
            threading.Thread(target=self.one, args=(s,), daemon=True).start()

    def one(self, s):
        try:
            with s:
                self.fn(s)
        except OSError:
            pass


def web(s):
    """A line for each request, kept alive as long as the client likes."""
    f = s.makefile("rb")
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = f.readline()
            if not line:
                return
            head += line
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\nweb")
        if b"Connection: close" in head:
            return


def echo(s):
    while True:
        data = s.recv(65536)
        if not data:
            return
        s.sendall(data)


def count(s):
    """Says how much came, once there is no more."""
    n = 0
    while True:
        data = s.recv(65536)
        if not data:
            break
        n += len(data)
    s.sendall(b"%d bytes" % n)


class Internet:
    """Two namespaces: `host`, where warder runs, and one with all the servers, behind a pair of devices."""

    def __enter__(self):
        self.host, self.net = NetNS(), NetNS()
        self.host.__enter__()
        self.net.__enter__()
        self.dev = "we%d" % (os.getpid() % 1000000)
        def inside(ns, *argv):
            subprocess.run(ns.inside(["ip", *argv]), check=True)
        subprocess.run(["ip", "link", "add", self.dev, "netns", self.host.name, "type", "veth", "peer", "name",
                        self.dev, "netns", self.net.name], check=True)
        for ns, v4, v6 in ((self.host, "93.184.215.2", "2606:2800:21f::2"), (self.net, RESOLVER, "2606:2800:21f::1")):
            inside(ns, "addr", "add", v4 + "/24", "dev", self.dev)
            inside(ns, "addr", "add", v6 + "/64", "dev", self.dev, "nodad")
            inside(ns, "link", "set", self.dev, "up")
        inside(self.host, "route", "add", "default", "via", RESOLVER)
        inside(self.host, "-6", "route", "add", "default", "via", "2606:2800:21f::1")
        for a in (WEB, OTHER, "10.1.2.3", "169.254.169.254"):
            inside(self.net, "addr", "add", a + "/32", "dev", "lo")
        for a in (WEB6, "fd00:ec2::254"):
            inside(self.net, "addr", "add", a + "/128", "dev", "lo", "nodad")
        self.dns = DnsServer(NAMES, self.net, RESOLVER)
        self.dns.__enter__()
        self.servers = {}
        return self

    def __exit__(self, *_):
        self.dns.__exit__()
        for s in self.servers.values():
            s.sock.close()
        self.host.__exit__()
        self.net.__exit__()

    def listen(self, address, port, fn, ns=None):
        sock = (ns or self.net).socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(128)
        self.servers[address, port] = Echo(sock, fn)
        return self.servers[address, port]


def certificate(folder):
    key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=good.example"],
                   check=True, stderr=subprocess.DEVNULL)
    return cert, key


class Egress(TestCase):
    @classmethod
    def setUpClass(cls):
        need_root()
        need("ip", "nsenter", "openssl")

    def setUp(self):
        super().setUp()
        self.net = Internet()
        self.net.__enter__()
        self.addCleanup(self.net.__exit__)

    def go(self, net, *words, options=(), command=None, **kw):
        options = ["--no-default-rules", *(["--net", net] if net else []), "--net-dns", RESOLVER, *options]
        s = self.session(*(command or [PYTHON_IN_SANDBOX, "-c", CLIENT, *words]), options=options,
                         netns=self.net.host, **kw)
        try:
            s.said = [json.loads(line) for line in s.out.splitlines()]
        except ValueError:
            s.said = s.out
        return s

    def decisions(self, s, kind="net.connect"):
        """(name, port, outcome, reason) as the way out told them."""
        return [(field(e, "net.dst.name"), field(e, "net.dst.port"), e.get("outcome"), field(e, "net.reason"))
                for e in s.kinds(kind, vantage="runtime")]

    def test_allowed_names_and_no_others(self):
        """Without proxy variables: an allowed name answers, others do not exist, and no address is reachable."""
        self.net.listen(WEB, 80, web)
        self.net.listen(WEB6, 80, web)
        self.net.listen(WEB, 8080, web)
        s = self.go("allow=good.example,*.wild.example:80,six.example:80", "get,good.example", "get,a.wild.example",
                    "get,six.example", "look,other.example", "look,wild.example", "get,good.example,8080",
                    "get," + WEB, "get," + WEB6, "udp,%s,53" % RESOLVER, "look,good.example", "udp,198.18.1.0,443",
                    "serve,8080", "serve,443", "look,GOOD.example", "look_v4,good.example")
        self.assertEqual(s.code, 0, s)
        say = s.said
        self.assertEqual(say[:3], ["web"] * 3)
        self.assertIn("gaierror", say[3])
        self.assertIn("gaierror", say[4])
        for i in (5, 6, 7, 8, 10):
            self.assertRegex(say[i], "refused|unreachable|not permitted", s.said)
        self.assertEqual(say[9], ["198.18.1.0"])
        self.assertEqual(say[11:13], ["own", "own"])
        self.assertEqual(say[13:], [["198.18.1.0"]] * 2)
        # Nothing was asked outside about names that are not allowed.
        self.assertEqual({n.lower() for n in self.net.dns.asked}, {"good.example", "a.wild.example", "six.example"})
        self.assertEqual(self.decisions(s), [("good.example", 80, "success", None), ("a.wild.example", 80, "success", None),
                                             ("six.example", 80, "success", None)])
        self.assertEqual([field(e, "net.dst.ip") for e in s.kinds("net.connect", vantage="runtime")], [WEB, WEB, WEB6])
        denied = {(field(e, "dns.name"), field(e, "dns.rcode")) for e in s.kinds("dns.answer", vantage="runtime",
                                                                                 outcome="denied")}
        self.assertEqual(denied, {("other.example", "NXDOMAIN"), ("wild.example", "NXDOMAIN")})
        close = s.kinds("net.close", vantage="runtime")
        self.assertEqual(len(close), 3)
        self.assertGreater(field(close[0], "net.bytes_in"), 10)
        self.assertIntact(s)

    def test_names_by_tcp(self):
        """Warder's own resolver answers by TCP as by UDP; another one is not reached by either."""
        self.net.listen(RESOLVER, 53, echo)
        s = self.go("allow=good.example", "tcpdns,good.example", "tcpdns,other.example", "tcpdns,good.example,%s" % RESOLVER,
                    "udp,%s,53" % RESOLVER)
        self.assertEqual(s.code, 0, s)
        self.assertEqual(s.said[:2], [[0, "198.18.1.0"], [3, ""]])
        for said in s.said[2:]:
            self.assertRegex(said, "refused|unreachable|not permitted")

    def test_the_wall_stands_by_itself(self):
        """Whoever is in the sandbox's control group connects nowhere, whatever network namespace it is in."""
        web_server = self.net.listen(WEB, 80, web)
        proc, _ = self.start_session("sh", "-c", "echo up; cat", stdin=subprocess.PIPE, netns=self.net.host,
                                     options=["--no-default-rules", "--net", "allow=good.example", "--net-dns", RESOLVER])
        self.assertEqual(proc.stdout.readline(), b"up\n")
        session, = os.listdir(os.path.join(self.env["WARDER_RUN"], "sessions"))
        leaf = [c.partition(" ")[2] for c in own_cgroups() if c.endswith(session)]
        leaf = [c for c in leaf if os.path.exists(c + "/cgroup.freeze")][0]
        script = "import socket; print(socket.create_connection(('%s', 80), 10).send(b'x'))" % WEB
        outside = cmd(*self.net.host.inside([PYTHON_IN_SANDBOX, "-c", script]))
        self.assertEqual((outside.code, outside.out), (0, b"1\n"), outside)
        wait_for("the server to see it", lambda: len(web_server.seen) == 1)
        inside = cmd(*self.net.host.inside(["sh", "-c", 'echo $$ > "$0"; exec "$@"', leaf + "/cgroup.procs", PYTHON_IN_SANDBOX,
                                            "-c", script]))
        self.assertEqual(inside.code, 1, inside)
        self.assertIn(b"Operation not permitted", inside.err)
        self.assertEqual(len(web_server.seen), 1)
        proc.communicate(b"", 60)

    def test_curl(self):
        self.net.listen(WEB, 80, web)
        need("curl")
        s = self.go("allow=good.example", command=["curl", "-sS", "-m", "10", "http://good.example/"])
        self.assertEqual((s.code, s.out), (0, b"\nweb"), s)

    def test_first_bytes(self):
        """443 by server name, 80 by each Host: what is for another name is cut off and told."""
        cert, key = certificate(self.tmp)
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(cert, key)
        def secure(s):
            with ctx.wrap_socket(s, server_side=True) as t:
                echo(t)
        https = self.net.listen(WEB, 443, secure)
        plain = self.net.listen(WEB, 80, web)
        self.net.listen(WEB, 8443, secure)
        s = self.go("allow=good.example,good.example:8443", "tls,good.example,good.example", "tls,good.example,evil.example",
                    "tls,good.example,", "get,good.example,443", "host,good.example,evil.example",
                    "second,good.example,evil.example", "tls,good.example,evil.example,8443")
        self.assertEqual(s.code, 0, s)
        self.assertEqual(s.said[0], "hello")
        for i in (1, 2, 3, 4):
            self.assertRegex(s.said[i], "Connection|reset|EOF", s.said)
        self.assertRegex(str(s.said[5]), "Connection")
        self.assertEqual(s.said[6], "hello") # another port is opaque
        self.assertEqual(self.decisions(s), [
            ("good.example", 443, "success", None), ("good.example", 443, "denied", "sni"),
            ("good.example", 443, "denied", "no_sni"), ("good.example", 443, "denied", "tls"),
            ("good.example", 80, "denied", "host"), ("good.example", 80, "success", None),
            ("good.example", 80, "denied", "host"), ("good.example", 8443, "success", None)])
        self.assertEqual([field(e, "net.asked") for e in s.kinds("net.connect", vantage="runtime", outcome="denied")],
                         ["evil.example", None, None, "evil.example", "evil.example"])
        # Of what was refused the server has not seen a connection.
        self.assertEqual((len(https.seen), len(plain.seen)), (1, 1))

    def test_rebinding(self):
        """A name that resolves to a private, local, metadata or own address leads nowhere; a mixed one to the rest."""
        bad = [self.net.listen(a, 80, web) for a in ("10.1.2.3", "169.254.169.254", "fd00:ec2::254")]
        own = self.net.listen("127.0.0.1", 80, web, self.net.host)
        self2 = self.net.listen("93.184.215.2", 80, web, self.net.host)
        self.net.listen(WEB, 80, web)
        def port(name):
            return 81 if name == "dead" else 80
        names = ["private", "meta", "meta6", "loop", "mapped", "self", "mixed", "dead"]
        s = self.go("allow=" + ",".join("%s.example:%d" % (n, port(n)) for n in names),
                    *["get,%s.example,%d" % (n, port(n)) for n in names])
        self.assertEqual(s.code, 0, s)
        for said in s.said[:6]:
            self.assertIn("Connection", said)
        self.assertEqual(s.said[6], "web")
        self.assertEqual([d[2:] for d in self.decisions(s)], [
            ("denied", "private"), ("denied", "metadata"), ("denied", "metadata"), ("denied", "loopback"),
            ("denied", "private"), ("denied", "own_address"), ("success", None), ("failure", "dial")])
        self.assertEqual([len(x.seen) for x in (*bad, own, self2)], [0] * 5)

    def test_services(self):
        """What is named on purpose is reached, also on the host itself; nothing beside it."""
        self.net.listen("127.0.0.1", 8080, web, self.net.host)
        self.net.listen("10.1.2.3", 5432, echo)
        s = self.go("allow", "get,api,80", "get,api,8080", "half,db,5432", "get,db,80", "get,127.0.0.1,8080",
                    options=["--net-service", "api:80=127.0.0.1:8080", "--net-service", "db=10.1.2.3:5432"])
        self.assertEqual(s.code, 0, s)
        self.assertEqual(s.said[0], "web")
        self.assertIn("refused", s.said[1])
        self.assertEqual(len(s.said[2]), 100000)
        self.assertIn("Connection", s.said[3])
        self.assertIn("refused", s.said[4])
        self.assertEqual(self.decisions(s)[:2], [("api", 8080, "success", None), ("db", 5432, "success", None)])

    def test_half_close(self):
        """The server sees the end of the request and can still answer."""
        self.net.listen(WEB, 9000, count)
        s = self.go("allow=good.example:9000", "half,good.example,9000")
        self.assertEqual(s.said, ["100000 bytes"], s)

    def test_caps(self):
        self.net.listen(WEB, 9000, echo)
        s = self.go("allow=good.example:9000", "many,good.example,9000,6", options=["--net-limit", "connections=3"])
        self.assertEqual(s.said, [3], s)
        self.assertIn(("good.example", 9000, "denied", "limit.connections"), self.decisions(s))
        s = self.go("allow=good.example:9000", "many,good.example,9000,8", options=["--net-limit", "rate=1"])
        self.assertIn(s.said[0], (2, 3), s)
        self.assertIn("limit.rate", [d[3] for d in self.decisions(s)])
        s = self.go("allow=good.example:9000", "half,good.example,9000", "get,good.example,9000",
                    options=["--net-limit", "bytes=50K"])
        self.assertIn("limit.bytes", [d[3] for d in self.decisions(s)])
        self.assertTrue(all("Connection" in w or len(w) < 100000 for w in s.said), s)
        s = self.go("allow=good.example:9000", *["look,x%d.example" % i for i in range(8)], options=["--net-limit", "dns=1"])
        self.assertIn("REFUSED", [field(e, "dns.rcode") for e in s.kinds("dns.answer", vantage="runtime", outcome="denied")])

    def test_open(self):
        """Any name and address but private ones, IPv6 as well; no datagrams."""
        self.net.listen(WEB, 80, web)
        self.net.listen(OTHER, 7777, web)
        self.net.listen(WEB6, 80, web)
        bad = [self.net.listen(a, 80, web) for a in ("10.1.2.3", "169.254.169.254", "fd00:ec2::254")]
        own = self.net.listen("93.184.215.2", 80, web, self.net.host)
        s = self.go("open", "get,good.example", "get,six.example", "get,%s,7777" % OTHER, "get," + WEB6,
                    "get,10.1.2.3", "get,169.254.169.254", "get,fd00:ec2::254", "get,::ffff:10.1.2.3", "get,93.184.215.2",
                    "look,private.example", "look,mixed.example", "look,nowhere.example", "udp,%s,53" % RESOLVER,
                    "serve,8080", "get,127.0.0.1,22")
        self.assertEqual(s.code, 0, s)
        self.assertEqual(s.said[:4], ["web"] * 4, s)
        for said in s.said[4:9]:
            self.assertRegex(said, "Error")
        self.assertIn("gaierror", s.said[9])
        self.assertEqual(s.said[10], [WEB])
        self.assertIn("gaierror", s.said[11])
        self.assertRegex(s.said[12], "refused|not permitted")
        self.assertEqual(s.said[13], "own")
        self.assertIn("refused", s.said[14])
        self.assertEqual([len(x.seen) for x in (*bad, own)], [0] * 4)
        self.assertIn("own_address", [d[3] for d in self.decisions(s)])
        # By address, and yet the event has the name that was looked up before.
        self.assertEqual(self.decisions(s)[0][:3], ("good.example", 80, "success"))

    def test_helper_killed(self):
        """Without its way out a sandbox has no network, and the record says why."""
        self.net.listen(WEB, 80, web)
        script = CLIENT.split("for word in")[0] + r"""
print(get("good.example"), flush=True)
sys.stdin.readline()
try:
    print(get("good.example"), flush=True)
except OSError as e:
    print(type(e).__name__, flush=True)
"""
        proc, finish = self.start_session(
            PYTHON_IN_SANDBOX, "-c", script, stdin=subprocess.PIPE,
            options=["--net", "allow=good.example", "--net-dns", RESOLVER], netns=self.net.host)
        self.assertEqual(proc.stdout.readline(), b"web\n")
        helpers = [p for p in children(proc.pid) if comm_of(p) == "warder-net"]
        self.assertEqual(len(helpers), 1)
        with open("/proc/%d/status" % helpers[0]) as f:
            status = dict(line.split(":", 1) for line in f)
        self.assertEqual([status[k].strip() for k in ("CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp")],
                         ["0" * 16] * 3 + ["1", "2"])
        self.assertNotIn("0", status["Uid"].split())
        os.kill(helpers[0], signal.SIGKILL)
        wait_for("the helper's end", lambda: not is_alive(helpers[0]))
        s = finish(b"\n")
        self.assertIn(s.out.strip(), (b"gaierror", b"ConnectionRefusedError"), s)
        self.assertIn(b"helper ended", s.err)
        self.assertEqual(s.code, 0)
        self.assertEqual(len([e for e in s.kinds("audit.degraded") if "network helper" in json.dumps(e)]), 1)

    def test_host_is_marked_unsafe(self):
        s = self.go(None, command=["true"], options=["--net", "host", "--net-limit", "rate=1"])
        self.assertCode(s, 125)
        s = self.session("true", options=["--net", "host"], netns=self.net.host)
        self.assertCode(s, 0)
        self.assertIn(b"UNSAFE", s.err)
        self.assertIn("unsafe.net_host", s.result["degraded"])
        s = self.session("true", netns=self.net.host)
        self.assertNotIn(b"UNSAFE", s.err)

    def test_two_hundred_leave_nothing(self):
        """All alive at once, without probes."""
        before = own_cgroups()
        done = cmd(helper("egress_many"), "30" if IN_VM else "200", timeout=300 * SLOW)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(own_cgroups(), before)
        without, with_out = map(int, done.out.split())
        print("start without %d us, with %d us" % (without, with_out))

    def test_download(self):
        """100 MB arrive whole and are counted."""
        size = 100 << 20
        def send(s):
            s.recv(1)
            block = bytes(range(256)) * 1024
            for _ in range(size // len(block)):
                s.sendall(block)
        self.net.listen("127.0.0.1", 9000, send, self.net.host)
        script = r"""
import hashlib, socket, sys, time
def fetch(host):
    t = time.monotonic()
    with socket.create_connection((host, 9000)) as s:
        s.sendall(b"d")
        n, buf, h = 0, bytearray(1 << 18), hashlib.md5() if len(sys.argv) > 1 else None
        while True:
            k = s.recv_into(buf)
            if not k:
                break
            n += k
            if h:
                h.update(memoryview(buf)[:k])
    return n, time.monotonic() - t, h and h.hexdigest()
print(*fetch(HOST))
"""
        plain = cmd(*self.net.host.inside([PYTHON_IN_SANDBOX, "-c", script.replace("HOST", "'127.0.0.1'"), "sum"]))
        self.assertEqual(plain.code, 0, plain)
        s = self.go("allow", command=[PYTHON_IN_SANDBOX, "-c", script.replace("HOST", "'srv'"), "sum"],
                    options=["--net-service", "srv=127.0.0.1:9000"])
        self.assertEqual(s.code, 0, s)
        self.assertEqual(s.out.split()[::2], plain.out.split()[::2])
        self.assertEqual(int(s.out.split()[0]), size)
        print("100 MB: plain %s s, by the way out %s s" % (plain.out.split()[1], s.out.split()[1]))
        close = s.kinds("net.close", vantage="runtime")[-1]
        self.assertEqual((field(close, "net.bytes_in"), field(close, "net.bytes_out")), (size, 1))


class Usage(TestCase):
    """Wrong policies are refused before anything is made."""

    def test_bad_entries(self):
        for net, options, word in (
                ("allow=", (), "without a name"), ("allow", (), "without a name"), ("allow=*.com", (), "wildcard"),
                ("allow=10.0.0.1", (), "net-service"), ("allow=a.example:x", (), "port"), ("bridge", (), "bridge"),
                ("none", ("--net-allow", "a.example"), "allow"), ("open", ("--net-allow", "a.example"), "allow"),
                ("none", ("--net-limit", "rate=1"), "limits"), ("open", ("--net-limit", "rate=0"), "limit"),
                ("open", ("--net-dns", "x"), "net-dns"), ("open", ("--net-service", "x=y:1"), "IP:PORT")):
            done = self.warder("run", "--dry-run", "--net", net, *options, "--", "true")
            self.assertEqual(done.code, 125, done)
            self.assertIn(word, done.err.decode(), done)

    def test_policy_file(self):
        path = self.path("p.yaml", "network:\n  mode: allow\n  allow:\n    - a.example\n    - '*.b.example:22'\n"
                                   "  services:\n    - db=127.0.0.1:5432\n  limits: connections=7\n  resolver: 9.9.9.9\n")
        done = self.warder("run", "--dry-run", "--json", "--policy", path, "--", "true")
        self.assertEqual(done.code, 0, done)
        plan = json.loads(done.out)
        self.assertEqual([(r["name"], r["port"], r.get("check"), r.get("to")) for r in plan["egress"]["reach"]], [
            ("a.example", 443, "tls", None), ("a.example", 80, "http", None), ("*.b.example", 22, "opaque", None),
            ("db", 5432, None, "127.0.0.1:5432")])
        self.assertEqual((plan["egress"]["connections"], plan["egress"]["resolver"]), (7, "9.9.9.9:53"))
        self.assertEqual(plan["layers"]["net"], "allow")


if __name__ == "__main__":
    unittest.main()
