# SPDX-License-Identifier: Apache-2.0
"""What the kernel denies and kills by itself, from the enforcement maps: each act is tried, its effect looked
for, and the record must say what was done and which entry decided."""

import os
import unittest

from probes import *

DENIED = 0x80

# Each act in a child: "9" = killed, "0" = it worked, else the errno.
TRIES = r"""
def attempt(what, fn):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            fn()
            os.write(w, b"0")
        except OSError as e:
            os.write(w, str(e.errno).encode())
        os._exit(0)
    st = os.waitpid(pid, 0)[1]
    os.close(w)
    said = os.read(r, 9).decode() or "0"
    tell(**{what: -os.WTERMSIG(st) if os.WIFSIGNALED(st) else int(said), what + "_pid": pid})
"""
KILLED_BY_9, EPERM = -9, 1


def exe_key(path):
    """As the kernel numbers the device: where a layer of an overlay has another number in stat."""
    path = os.path.realpath(path)
    major, minor = map(int, mounted_dev(path).split(":"))
    return "%d/%d" % (major << 20 | minor, os.stat(path).st_ino)


class Enforce(Probes):
    def tried(self, body, *entries, wrap=()):
        options = [x for e in entries for x in ("--enforce", e)]
        return self.script(TRIES + body, options=options, wrap=wrap)

    def decided(self, d, who, entry, flags, kind=None):
        """The record by which `who` was denied or killed."""
        found = [r for r in d.records if r["tgid"] == d.told[who + "_pid"] and r.get("enforced")
                 and kind in (None, r["kind"])]
        self.assertTrue(found, "nothing decided for %s among %s" % (who, d.records))
        for r in found:
            self.assertEqual(r["enforced"], entry, r)
            self.assertEqual(r["flags"] & (DENIED | KILLED) & flags, flags, r)
        return found[0]


class Addresses(Enforce):
    def test_connect_and_send_by_network_and_port(self):
        with NetNS() as ns:
            d = self.tried(r"""
srv = socket.create_server(("127.0.0.1", 80))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 81))
udp.setblocking(False)
other = socket.create_server(("127.0.0.1", 8080))
six = socket.create_server(("::1", 80), family=socket.AF_INET6)
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", 80)))
attempt("other_port", lambda: socket.create_connection(("127.0.0.1", 8080)))
attempt("other_net", lambda: socket.create_connection(("::1", 80)))
attempt("mapped", lambda: socket.socket(socket.AF_INET6).connect(("::ffff:127.0.0.1", 80)))
def send(flags=0):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(3):
        s.sendto(b"x", ("127.0.0.1", 81))
attempt("udp", send)
def nonblocking():
    s = socket.socket()
    s.setblocking(False)
    s.connect(("127.0.0.1", 80))
attempt("nonblocking", nonblocking)
def fastopen():
    socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", 80))
attempt("fastopen", fastopen)
srv.settimeout(0.05)
try:
    srv.accept()
    tell(accepted=1)
except OSError:
    tell(accepted=0)
try:
    tell(received=len(udp.recv(9)))
except OSError:
    tell(received=0)
""", "deny:addr:127.0.0.0/8,80-81", wrap=ns.inside([]))
        t = d.told
        self.assertEqual([t[k] for k in ("tcp", "udp", "mapped", "nonblocking", "fastopen")], [EPERM] * 5)
        self.assertEqual([t["other_port"], t["other_net"]], [0, 0])
        self.assertEqual([t["accepted"], t["received"]], [0, 0], "denied, yet it got through")
        for who in ("tcp", "mapped", "nonblocking", "fastopen"):
            r = self.decided(d, who, 1, DENIED, "net.connect")
            self.assertEqual((r["dport"], r["ret"]), (80, -EPERM))
        self.assertEqual(self.decided(d, "udp", 1, DENIED, "net.send")["dport"], 81)

    def test_every_refused_datagram_counts(self):
        with NetNS() as ns:
            d = self.tried(r"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def send(port, n):
    for i in range(n):
        try: s.sendto(b"x", ("127.0.0.1", port))
        except PermissionError: refused[port] = refused.get(port, 0) + 1
refused = {}
send(81, 50)
send(82, 3)
for i in range(4): send(81, 1); send(80, 2)
send(90, 5)
time.sleep(1.1)
send(80, 7)
tell(refused=refused)
s.close()
""", "deny:addr:127.0.0.0/8,80-82", wrap=ns.inside([]))
        self.assertEqual(d.told["refused"], {"81": 54, "82": 3, "80": 15})
        counted = {}
        for r in d.kinds("net.send"):
            if r["flags"] & DENIED:
                self.assertEqual((r["ret"], r["enforced"]), (-EPERM, 1))
                counted[str(r["dport"])] = counted.get(str(r["dport"]), 0) + r["count"]
        self.assertEqual(counted, d.told["refused"])
        self.assertEqual(d.one("net.close")["packets_out"], 5)

    def test_a_kill_ends_the_process_and_nothing_was_sent(self):
        with NetNS() as ns:
            d = self.tried(r"""
srv = socket.create_server(("127.0.0.1", 80))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 81))
udp.setblocking(False)
def go_on(fn):
    fn()
    open("went_on", "w")
attempt("tcp", lambda: go_on(lambda: socket.create_connection(("127.0.0.1", 80))))
attempt("udp", lambda: go_on(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 81))))
attempt("pass", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.2", 81)))
tell(went_on=os.path.exists("went_on"))
srv.settimeout(0.05)
try:
    srv.accept()
    tell(accepted=1)
except OSError:
    tell(accepted=0)
try:
    tell(received=len(udp.recv(9)))
except OSError:
    tell(received=0)
""", "kill:addr:127.0.0.0/8", "pass:addr:127.0.0.2/32", wrap=ns.inside([]))
        t = d.told
        self.assertEqual([t["tcp"], t["udp"], t["pass"]], [KILLED_BY_9, KILLED_BY_9, 0])
        self.assertEqual([t["accepted"], t["received"], t["went_on"]], [0, 0, False])
        self.decided(d, "tcp", 1, DENIED | KILLED, "net.connect")
        self.decided(d, "udp", 1, DENIED | KILLED, "net.send")

    def test_the_whole_kind_and_by_executable(self):
        with NetNS() as ns:
            d = self.tried(r"""
srv = socket.create_server(("127.0.0.1", 80))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", 80)))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 81)))
""", "deny:kind:net.connect", "kill:exe:%s@net.send" % exe_key(PY), wrap=ns.inside([]))
        self.assertEqual([d.told["tcp"], d.told["udp"]], [EPERM, KILLED_BY_9])
        self.decided(d, "tcp", 1, DENIED)
        self.decided(d, "udp", 2, KILLED)


class Privileged(Enforce):
    def test_device_nodes_sysctls_and_raw_sockets(self):
        with NetNS() as ns:
            d = self.tried(r"""
path = "/proc/sys/kernel/core_pattern"
text = open(path).read()
def sysctl():
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, text.encode())
attempt("sysctl", sysctl)
attempt("mknod", lambda: os.mknod("node", 0o20600, os.makedev(1, 3)))
attempt("mknod_fifo", lambda: os.mknod("fifo", 0o10600))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("raw6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58))
attempt("dgram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt("mem", lambda: os.open("/dev/mem", os.O_RDONLY))
attempt("null", lambda: os.open("/dev/null", os.O_RDONLY))
tell(node=os.path.exists("node"))
""", "deny:escape:kernel_file", "deny:escape:mknod", "deny:escape:socket_family", "deny:escape:device",
                wrap=ns.inside([]))
        t = d.told
        self.assertEqual([t[k] for k in ("sysctl", "mknod", "raw", "raw6")], [EPERM] * 4)
        self.assertEqual([t[k] for k in ("mknod_fifo", "dgram", "null")], [0, 0, 0])
        self.assertFalse(t["node"])
        self.assertEqual(self.decided(d, "sysctl", 1, DENIED)["detail"], "/proc/sys/kernel/core_pattern")
        self.assertEqual(self.decided(d, "mknod", 2, DENIED)["args"][1], 1 << 20 | 3)
        self.assertEqual(self.decided(d, "raw", 3, DENIED)["args"][:3], [2, 3, 1])
        self.assertEqual(self.decided(d, "raw6", 3, DENIED)["args"][:3], [10, 3, 58])
        if t["mem"] == EPERM:
            self.assertEqual(self.decided(d, "mem", 4, DENIED)["type"], "device")

    def test_an_escape_type_kills_and_its_mask_still_does(self):
        d = self.tried(r"""
attempt("unshare", lambda: (sc(272, 0x20000), open("went_on", "w")))
attempt("chroot", lambda: os.chroot("."))
attempt("setns", lambda: sc(308, -1, 0))
tell(went_on=os.path.exists("went_on"))
""", "kill:escape:unshare", "deny:escape:chroot", "kill:escape:setns")
        self.assertEqual([d.told["unshare"], d.told["setns"]], [KILLED_BY_9] * 2)
        self.assertFalse(d.told["went_on"])
        self.decided(d, "unshare", 1, KILLED)
        self.decided(d, "setns", 3, KILLED)


class Files(Enforce):
    def test_by_path_with_an_exception(self):
        os.makedirs(self.path("secret/open"))
        self.path("secret/old", "x")
        self.path("plain", "x")
        d = self.tried(r"""
attempt("open", lambda: open("secret/new", "w"))
attempt("exception", lambda: open("secret/open/new", "w"))
attempt("near", lambda: open("secretary", "w"))
attempt("delete", lambda: os.unlink("secret/old"))
attempt("rename_into", lambda: os.rename("plain", "secret/plain"))
attempt("mkdir", lambda: os.mkdir(os.getcwd() + "/secret/dir"))
""", "kill:path:%s/secret" % self.tmp, "pass:path:%s/secret/open" % self.tmp)
        t = d.told
        self.assertEqual([t[k] for k in ("open", "delete", "rename_into", "mkdir")], [KILLED_BY_9] * 4)
        self.assertEqual([t["exception"], t["near"]], [0, 0])
        self.decided(d, "open", 1, KILLED, "file.open")
        self.decided(d, "delete", 1, KILLED, "file.delete")
        self.decided(d, "rename_into", 1, KILLED, "file.rename")
        self.decided(d, "mkdir", 1, KILLED, "file.mkdir")

    def test_through_links_dots_and_mounts(self):
        os.makedirs(self.path("real"))
        os.symlink(self.path("real"), self.path("link"))
        d = self.tried(r"""
attempt("link", lambda: open("link/x", "w"))
attempt("dots", lambda: open("link/../real/./y", "w"))
attempt("elsewhere", lambda: open("real_not", "w"))
""", "kill:path:%s/real" % self.tmp)
        self.assertEqual([d.told[k] for k in ("link", "dots", "elsewhere")], [KILLED_BY_9, KILLED_BY_9, 0])

    def test_a_path_that_was_cut_counts_as_the_strictest(self):
        d = self.tried(r"""
deep = "d" * 250
for i in range(18):
    os.mkdir(deep)
    os.chdir(deep)
os.symlink("x", "e")
attempt("cut", lambda: open("x", "w"))
attempt("name", lambda: os.unlink("e"))
os.chdir(sys.argv[1])
attempt("whole", lambda: open("y", "w"))
attempt("whole_name", lambda: os.unlink("y"))
""", "kill:path:/nonexistent@file.open", "kill:path:/nonexistent@file.delete")
        self.addCleanup(os.system, "rm -rf %s/ddd*" % self.tmp)
        self.assertEqual([d.told[k] for k in ("cut", "name", "whole", "whole_name")], [KILLED_BY_9, KILLED_BY_9, 0, 0])
        for who, kind in (("cut", "file.open"), ("name", "file.delete")):
            r = self.decided(d, who, 1, KILLED, kind)
            self.assertTrue(r["flags"] & TRUNC)


class Programs(Enforce):
    def test_exec_by_inode_path_and_kind(self):
        true, echo = os.path.realpath("/bin/true"), os.path.realpath("/bin/echo")
        d = self.tried(r"""
attempt("inode", lambda: os.execv("/bin/true", ["true"]))
attempt("path", lambda: os.execv("/bin/echo", ["echo", "-n", ""]))
attempt("other", lambda: os.execv("/bin/false", ["false"]))
""", "kill:exe:" + exe_key(true), "kill:path=:%s@exec" % echo)
        self.assertEqual([d.told["inode"], d.told["path"], d.told["other"]], [KILLED_BY_9, KILLED_BY_9, 0])
        # Where it is prevented there is only the name that was asked for.
        exe = lambda who, entry: os.path.realpath(self.decided(d, who, entry, KILLED, "exec")["exe"])
        self.assertEqual((exe("inode", 1), exe("path", 2)), (true, echo))

    def test_another_sandbox_is_not_meant(self):
        d = self.tried("""
attempt("open", lambda: open("x", "w"))
""", "deny:kind:file.delete")
        self.assertEqual(d.told["open"], 0)
        self.assertEqual([r for r in d.records if r.get("enforced")], [])


if __name__ == "__main__":
    unittest.main()
