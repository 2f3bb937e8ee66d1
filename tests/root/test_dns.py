# SPDX-License-Identifier: Apache-2.0
"""DNS over UDP 53 as a resolver does it, in a network namespace of the test's own."""

import unittest

from warder import *

# What dig does, without dig: ask, print the addresses.
CLIENT = r"""
import socket, struct, sys
name, server = sys.argv[1], sys.argv[2]
family = socket.AF_INET6 if ":" in server else socket.AF_INET
q = struct.pack("!HHHHHH", 0x1234, 0x0100, 1, 0, 0, 0)
q += b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack("!HH", 1, 1)
s = socket.socket(family, socket.SOCK_DGRAM)
s.settimeout(10)
if len(sys.argv) > 3:
    s.connect((server, 53))
    s.send(q)
else:
    s.sendto(q, (server, 53))
r = s.recv(2048)
n = struct.unpack("!H", r[6:8])[0]
print([socket.inet_ntoa(r[len(r) - 4:])] if n else [])
"""


class Dns(TestCase):
    def lookup(self, name, *how):
        with NetNS() as ns, DnsServer({"good.example.test": ["192.0.2.7"]}, ns):
            return self.session(PYTHON_IN_SANDBOX, "-c", CLIENT, name, "127.0.0.1", *how,
                                options=["--net", "host"], netns=ns)

    def test_query_and_answer(self):
        for how in ((), ("connected",)):
            with self.subTest(how):
                s = self.lookup("good.example.test", *how)
                self.assertCode(s, 0)
                self.assertEqual(s.out, b"['192.0.2.7']\n")
                self.assertInOrder(
                    s.events,
                    {"kind": "dns.query", "dns.name": "good.example.test", "dns.type": "A", "dns.id": 0x1234},
                    {"kind": "dns.answer", "dns.name": "good.example.test", "dns.rcode": "NOERROR"})
                answer = s.kinds("dns.answer")[0]["dns"]["answers"]
                self.assertEqual([(a["name"], a["type"], a["data"]) for a in answer],
                                 [("good.example.test", "A", "192.0.2.7")])
                query = s.kinds("dns.query")[0]
                self.assertEqual((field(query, "net.dst.ip"), field(query, "net.dst.port")), ("127.0.0.1", 53))

    def test_a_name_that_is_not_there(self):
        s = self.lookup("bad.example.test")
        self.assertCode(s, 0)
        self.assertTrue(s.kinds("dns.answer", dns__name="bad.example.test", dns__rcode="NXDOMAIN"), s.events)


if __name__ == "__main__":
    unittest.main()
