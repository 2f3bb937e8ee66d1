#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dns.py ADDRESS NAME=IP...: a small name server for the demo; ends when its standard input does.
   dns.py --ask ADDRESS NAME: one lookup, as dig does it, for hosts without dig."""

import os
import socket
import struct
import sys

if sys.argv[1] == "--ask":
    _, _, server, name = sys.argv
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    s.sendto(struct.pack("!HHHHHH", os.getpid() & 0xffff, 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1", (server, 53))
    reply = s.recv(2048)
    if not struct.unpack("!H", reply[6:8])[0]:
        sys.exit("no such name: " + name)
    print(socket.inet_ntoa(reply[-4:]))
    sys.exit(0)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from warder import DnsServer  # noqa: E402

names = {}
for pair in sys.argv[2:]:
    name, _, ip = pair.partition("=")
    names.setdefault(name, []).append(ip)
with DnsServer(names, address=sys.argv[1]):
    print("ready", flush=True)
    sys.stdin.read()
