# SPDX-License-Identifier: Apache-2.0
"""The table of connections under way that an agent's sandboxes share: of each only so many are kept, and what does not
fit is told as lost, nothing else."""

import os
import sys
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()

# A connection that is not decided, told each time that a signal interrupts its caller; in between more connections than
# FLOWS_EACH of bpf/abi/maps.h, of processes that do not need many descriptors each.
FILLED = r"""
import ctypes, os, signal, socket, struct

libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGALRM, lambda *a: None)

def interrupted(s, port):
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    r = libc.connect(s.fileno(), address, len(address))
    error = ctypes.get_errno()
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("connect", r, error, flush=True)

full = socket.socket()
full.bind(("127.0.0.1", 0))
full.listen(0)
first = socket.create_connection(full.getsockname())
pending = socket.socket()
interrupted(pending, full.getsockname()[1])
ready, told = os.pipe()
held, release = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        os.close(release)
        listener = socket.create_server(("127.0.0.1", 0))
        ends = []
        for _ in range(400):
            ends.append(socket.create_connection(listener.getsockname()))
            ends.append(listener.accept()[0])
        os.write(told, b"x")
        os.read(held, 1)
        os._exit(0)
n = 0
while n < 6:
    n += len(os.read(ready, 6))
interrupted(pending, full.getsockname()[1])
os.close(release)
for _ in range(6):
    os.wait()
"""


class Flows(AgentCase):
    def test_what_is_there_already_needs_no_room(self):
        self.start()
        session = self.create("--name", "box")
        done = self.warder("exec", "box", PYTHON_IN_SANDBOX, "-c", FILLED)
        self.assertCode(done, 0)
        self.assertEqual(done.out.split(b"\n")[:2], [b"connect -1 4"] * 2)
        self.assertCode(self.warder("rm", "box"), 0)
        self.wait_sealed(session)
        events = self.events(session)
        connects = [e for e in events if e["kind"] == "net.connect"]
        port = field(connects[0], "net.dst.port")
        self.assertEqual(len([e for e in connects if field(e, "net.dst.port") == port]), 3, "one, and another one twice")
        self.assertEqual({e["gap"]["kind"] for e in events if e["kind"] == "gap"}, {"net.close"},
                         "there are more than fit, and no connect was lost")


if __name__ == "__main__":
    unittest.main()
