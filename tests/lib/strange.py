# SPDX-License-Identifier: Apache-2.0
"""Servers that do what no server should, and certificates that nobody should believe: for every kind of sink."""

import os
import socket
import ssl
import subprocess
import sys
import threading
import time

from warder import need


# ---- what a server does with a connection ----

def half_closed(conn):
    """Listens, and will never say a word."""
    conn.shutdown(socket.SHUT_WR)
    while conn.recv(65536):
        pass


def mute(conn):
    while conn.recv(65536):
        pass


def deaf(conn):
    """Does not even read."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    time.sleep(3600)


def cut(conn):
    """Gone after the first bytes."""
    conn.recv(16)


def reset(conn):
    """Gone with a RST, what was sent is lost on the way."""
    conn.recv(16)
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def says(data, before=False):
    """Says this, at once or when it was spoken to, and goes."""
    def talk(conn):
        if not before:
            conn.recv(65536)
        conn.sendall(data)
        if before:
            conn.recv(65536)
    talk.__name__ = repr(data[:12])
    return talk


def slow(data, pause=0.1):
    """Says it byte by byte."""
    def talk(conn):
        conn.recv(65536)
        for byte in data:
            conn.sendall(bytes([byte]))
            time.sleep(pause)
    talk.__name__ = "slow"
    return talk


def noise(conn):
    """Says things without end."""
    conn.recv(65536)
    block = os.urandom(65536)
    while True:
        conn.sendall(block)


def strange_server(test, talk, context=None):
    """A server on loopback that does `talk(connection)` with whoever comes, all at once; ends with the test. Its port."""
    sock = socket.socket()
    test.addCleanup(sock.close)
    sock.bind(("127.0.0.1", 0))
    sock.listen(16)

    def one(conn):
        with conn:
            try:
                talk(context.wrap_socket(conn, server_side=True) if context else conn)
            except OSError:
                pass  # given up by the other side: that is what is tested

    def serve():
        while True:
            try:
                conn, _ = sock.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(conn,), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return sock.getsockname()[1]


# Run a program where the only name server never answers; it is asked for longer than any test waits.
DEAD_NAMES = """
import os, socket, sys
with open(sys.argv[1], "w") as f:
    f.write("nameserver 127.0.0.2\\noptions timeout:30 attempts:5\\n")
for line in ("ip link set lo up", "mount --make-rprivate /", "mount --bind %s /etc/resolv.conf" % sys.argv[1]):
    assert os.system(line) == 0, line
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.2", 53))
s.set_inheritable(True)
os.execv(sys.argv[2], sys.argv[2:])
"""


def dead_names(folder):
    """A prefix for a command: as root, in namespaces of its own."""
    return ("unshare", "-mn", sys.executable, "-c", DEAD_NAMES, os.path.join(folder, "resolv.conf"))


# ---- certificates ----

def certificate(folder, name="server", names="DNS:localhost"):
    """Self-signed: paths of (cert, key)."""
    need("openssl")
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", cert, "-subj", "/CN=" + name]
    argv += ["-addext", "subjectAltName=" + names] if names else []
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return cert, key


def expired(cert, key):
    """The same, of which the time is over: its path."""
    old = cert + ".old"
    subprocess.run(["openssl", "x509", "-in", cert, "-signkey", key, "-days", "-1", "-out", old],
                   check=True, capture_output=True, timeout=60)
    return old


def tls(cert, key, clients=None):
    """A server's context; `clients`: the CA of those who may come."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    return context


def untrusted(folder):
    """(what, server's context, CA that the client has or None, name that it calls): all to be refused."""
    cert, key = certificate(folder)
    old = expired(cert, key)
    other, _ = certificate(folder, "other")
    return (("no CA", tls(cert, key), None, "localhost"), ("another CA", tls(cert, key), other, "localhost"),
            ("another name", tls(cert, key), cert, "127.0.0.1"), ("expired", tls(old, key), old, "localhost"))


# ---- what a sink may cost meanwhile ----

def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
