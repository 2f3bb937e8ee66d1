# SPDX-License-Identifier: Apache-2.0
"""Named upstream routes, against a real TLS server: the header is added outside, and nothing tells it inside or in the
record."""

import json
import os
import ssl
import subprocess
import threading
import unittest

from warder import *

need_root()

VALUE = "Bearer sk-1234567890-very-secret"
# METHOD target [header...] [body]; prints status, headers and body of the answer.
CLIENT = r"""
import http.client, json, sys
for line in sys.argv[1:]:
    q = json.loads(line)
    c = http.client.HTTPConnection(q.get("host", "api.egress"), 80, timeout=60)
    c.putrequest(q.get("method", "GET"), q.get("target", "/"), skip_host="Host" in q.get("headers", {}),
                 skip_accept_encoding=True)
    body = q.get("body", "").encode() * q.get("times", 1)
    for k, v in q.get("headers", {}).items():
        c.putheader(k, v)
    if body:
        c.putheader("Content-Length", str(len(body)))
    c.endheaders(body or None)
    r = c.getresponse()
    print(json.dumps([r.status, {k.lower(): v for k, v in r.getheaders()}, r.read().decode()]), flush=True)
"""
SSE = r"""
import http.client
c = http.client.HTTPConnection("api.egress", 80, timeout=60)
c.request("GET", "/stream")
r = c.getresponse()
print(r.readline().decode(), end="", flush=True)   # before the server has sent the rest
input()
print(r.read().decode(), end="", flush=True)
"""


class Upstream(threading.Thread):
    """An HTTPS server in a namespace. Tells each request that it got."""

    def __init__(self, netns, folder, name="api.example", address="127.0.0.1", port=8443):
        super().__init__(daemon=True)
        self.pem = os.path.join(folder, name + ".pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:" + name, "-keyout",
                        self.pem + ".key", "-out", self.pem], check=True, stderr=subprocess.DEVNULL)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.pem, self.pem + ".key")
        import socket
        self.sock = netns.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((address, port))
        self.sock.listen(64)
        self.requests, self.go_on = [], threading.Event()
        self.start()

    def run(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(s,), daemon=True).start()

    def one(self, raw):
        try:
            with self.context.wrap_socket(raw, server_side=True) as s:
                self.answer(s)
        except (OSError, ssl.SSLError, ValueError):
            raw.close()

    def answer(self, s):
        f = s.makefile("rb")
        method, target, _ = f.readline().decode("latin-1").split()
        headers = []
        while True:
            line = f.readline().decode("latin-1").rstrip("\r\n")
            if not line:
                break
            headers.append(tuple(line.split(": ", 1)) if ": " in line else (line.rstrip(":"), ""))
        length = int(dict((k.lower(), v) for k, v in headers).get("content-length", 0))
        body = f.read(length)
        self.requests.append((method, target, headers, body))
        if target.startswith("/stream"):
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"5\r\none\n\n\r\n")
            self.go_on.wait(60)
            s.sendall(b"5\r\ntwo\n\n\r\n0\r\n\r\n")
        elif target.startswith("/moved"):
            s.sendall(b"HTTP/1.1 302 Found\r\nLocation: https://api.example:8443/there\r\nContent-Length: 0\r\n\r\n")
        elif target.startswith("/away"):
            s.sendall(b"HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\n\r\n")
        elif target.startswith("/large"):
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n" +
                      b"l" * 3000000)
        elif target.startswith("/cut"):
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
        else:
            s.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\n\r\nok")

    def close(self):
        self.go_on.set()
        self.sock.close()


class Route(TestCase):
    def setUp(self):
        super().setUp()
        need("openssl")
        self.netns = NetNS().__enter__()
        self.addCleanup(self.netns.__exit__)
        self.up = Upstream(self.netns, self.tmp)
        self.addCleanup(self.up.close)
        self.value = self.path("value", VALUE + "\n")
        os.chmod(self.value, 0o600)

    def route(self, url="https://api.example:8443", ca=None, to="127.0.0.1", value=None):
        return "api.egress=%s,header=Authorization:%s,ca=%s,to=%s" % (url, value or self.value, ca or self.up.pem, to)

    def ask(self, *requests, route=None, options=()):
        s = self.session(PYTHON_IN_SANDBOX, "-c", CLIENT, *map(json.dumps, requests), netns=self.netns,
                         options=["--net", "allow", "--net-route", route or self.route(), *options])
        self.assertCode(s, 0)
        self.assertIntact(s)
        return s, [json.loads(line) for line in s.out.splitlines()]

    def requests(self, s):
        return [(e["http"]["method"], e["http"]["path"], e["http"].get("status"), e["net"].get("reason"))
                for e in s.kinds("net.request")]

    def test_the_header_is_added(self):
        s, answers = self.ask({"target": "/v1/x?token=q", "headers": {"X-Mine": "1", "authorization": "Bearer mine",
                                                                      "Connection": "x-hop", "X-Hop": "2"}},
                              {"method": "POST", "target": "/v1/y", "body": "b" * 1000})
        self.assertEqual([(a[0], a[2], a[1]["set-cookie"]) for a in answers], [(201, "ok", "a=b")] * 2)
        (method, target, headers, _), (method2, _, headers2, body2) = self.up.requests
        self.assertEqual((method, target), ("GET", "/v1/x?token=q"))
        self.assertEqual([v for k, v in headers if k.lower() == "authorization"], [VALUE])
        names = [k.lower() for k, _ in headers]
        self.assertIn(("X-Mine", "1"), headers)
        self.assertNotIn("x-hop", names)
        self.assertEqual([v for k, v in headers if k.lower() == "host"], ["api.example:8443"])
        self.assertEqual((method2, body2, [v for k, v in headers2 if k.lower() == "authorization"]),
                         ("POST", b"b" * 1000, [VALUE]))
        self.assertEqual(self.requests(s), [("GET", "/v1/x", 201, None), ("POST", "/v1/y", 201, None)])
        e = s.kinds("net.request")[1]
        self.assertEqual((e["net"]["dst"]["name"], e["net"]["dst"]["port"], e["net"]["bytes_out"], e["net"]["bytes_in"],
                          e["vantage"]), ("api.egress", 8443, 1000, 2, "runtime"))

    def test_the_value_is_nowhere(self):
        policy = self.path("p.yaml", "network:\n  mode: allow\n  routes: ['%s']\n" % self.route())
        s = self.session("sh", "-c", "echo %s; env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; true" % VALUE[7:],
                         netns=self.netns, options=["--policy", policy])
        self.assertCode(s, 0)
        for folder, _, files in os.walk(s.folder):
            for f in files:
                with open(os.path.join(folder, f), "rb") as file:
                    self.assertNotIn(VALUE[7:].encode(), file.read(), f)
        events = json.dumps(s.events)
        self.assertNotIn(VALUE[7:], events)
        self.assertIn("route.api.egress", events)  # what the payload wrote of it was taken out
        done = self.warder("run", "--dry-run", "--json", "--policy", policy, "--", "true")
        self.assertCode(done, 0)
        self.assertNotIn(VALUE.encode(), done.out)
        self.assertIn(b"https://api.example:8443", done.out)

    def test_streams_are_not_held(self):
        p, finish = self.start_session(PYTHON_IN_SANDBOX, "-c", SSE, netns=self.netns, stdin=subprocess.PIPE,
                                       options=["--net", "allow", "--net-route", self.route()])
        self.assertEqual(p.stdout.readline(), b"one\n")
        self.assertFalse(self.up.go_on.is_set())
        self.up.go_on.set()
        s = finish(b"\n")
        self.assertEqual((s.code, s.out), (0, b"\ntwo\n\n"))

    def test_answers(self):
        s, answers = self.ask({"target": "/moved"}, {"target": "/away"}, {"target": "/large"},
                              {"method": "HEAD", "target": "/large"})
        self.assertEqual([a[0] for a in answers], [302, 302, 200, 200])
        self.assertEqual(answers[0][1]["location"], "http://api.egress/there")
        self.assertEqual(answers[1][1]["location"], "https://evil.example/")  # for who asked to go or not
        self.assertEqual((len(answers[2][2]), answers[2][1].get("x-kept"), answers[2][1].get("x-hop")), (3000000, "2", None))
        self.assertEqual(answers[3][2], "")
        self.assertEqual(len(self.up.requests), 4)  # nobody followed

    def test_refused(self):
        s, answers = self.ask({"headers": {"Host": "other.example"}}, {"method": "TRACE"}, {"target": "http://api.egress/"},
                              {"method": "POST", "body": "x" * 1024, "times": 40 * 1024}, {"target": "/..%2f../x"},
                              route=self.route(url="https://api.example:8443/v1"))
        self.assertEqual([a[0] for a in answers], [421, 405, 400, 413, 400])
        self.assertEqual(self.up.requests, [])
        self.assertEqual([r[3] for r in self.requests(s)], ["host", "method", "target", "size", "target"])
        self.assertEqual({e["outcome"] for e in s.kinds("net.request")}, {"denied"})

    def test_the_upstream_is_verified(self):
        other = Upstream(self.netns, self.tmp, name="other.example", port=8444)
        self.addCleanup(other.close)
        # Somebody else's certificate; one that the host does not trust; nobody there.
        for route, reason in ((self.route(url="https://api.example:8444", ca=other.pem), "tls"),
                              (self.route(ca=other.pem), "tls"), (self.route(url="https://api.example:8445"), "dial")):
            s, answers = self.ask({}, route=route)
            self.assertEqual((answers[0][0], self.requests(s)[0][3]), (502, reason))
        self.assertEqual((self.up.requests, other.requests), ([], []))

    def test_smuggling(self):
        script = r"""
import socket
for data in (b"POST /a HTTP/1.1\r\nHost: api.egress\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: other\r\n\r\n",
             b"POST /b HTTP/1.1\r\nHost: api.egress\r\nContent-Length: 3\r\nContent-Length: 40\r\n\r\nabcGET /evil HTTP/1.1\r\nHost: other\r\n\r\n",
             b"GET /c HTTP/1.1\r\nHost: api.egress\r\nX: a\r\nX : b\r\n c\r\n\r\n",
             b"GET /d HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00", b"GET /" + b"e" * 100000 + b" HTTP/1.1\r\nHost: api.egress\r\n\r\n"):
    try:
        with socket.create_connection(("api.egress", 80), 10) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
    except OSError:
        pass
print("done")
"""
        s = self.session(PYTHON_IN_SANDBOX, "-c", script, netns=self.netns,
                         options=["--net", "allow", "--net-route", self.route()])
        self.assertEqual((s.code, s.out), (0, b"done\n"))
        # Nothing was asked but what was judged, and each with the header.
        for method, target, headers, body in self.up.requests:
            self.assertNotIn("/evil", target)
            self.assertEqual([v for k, v in headers if k.lower() == "authorization"], [VALUE])
            self.assertNotIn(b"evil", body)

    def test_other_ports_and_names_are_shut(self):
        s = self.session(PYTHON_IN_SANDBOX, "-c", r"""
import socket
for host, port in (("api.egress", 443), ("api.example", 8443), ("127.0.0.1", 8443)):
    try:
        socket.create_connection((host, port), 5)
        print("open", host)
    except OSError:
        print("shut")
""", netns=self.netns, options=["--net", "allow", "--net-route", self.route()])
        self.assertEqual((s.code, s.out), (0, b"shut\n" * 3))

    def test_bad_options(self):
        open_file = self.path("open", VALUE)
        os.chmod(open_file, 0o644)
        short = self.path("short", "x")
        os.chmod(short, 0o600)
        two = self.path("two", "first-line-here\nsecond-line-here\n")
        os.chmod(two, 0o600)
        for route, words in ((self.route(url="http://api.example"), "https"), (self.route(value=open_file), "yours alone"),
                             (self.route(value="/nowhere"), "No such file"), (self.route(value=short), "bytes"),
                             (self.route(value=two), "one line"), ("api.egress=https://a.example", "no header"),
                             (self.route(to="nowhere"), "to="), ("=x", "NAME="), (self.route(ca="/nowhere"), "nowhere")):
            with self.subTest(route):
                done = self.warder("run", "--net", "allow", "--net-route", route, "--", "true")
                self.assertCode(done, 125)
                self.assertOneLine(done, words)
                self.assertNotIn(VALUE[7:].encode(), done.err)
        done = self.warder("run", "--net-route", self.route(), "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "'allow' and 'open'")


if __name__ == "__main__":
    unittest.main()
