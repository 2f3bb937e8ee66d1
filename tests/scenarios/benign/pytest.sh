#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that fork, use pools, subprocesses, sockets and temporary folders; alone and by two workers.
set -eu
mkdir -p proj/tests && cd proj
echo 'def twice(x): return 2 * x' >code_.py
touch conftest.py
cat >tests/test_much.py <<'END'
import multiprocessing, os, socket, subprocess, sys, threading, time
import pytest
from code_ import twice

@pytest.mark.parametrize("n", range(40))
def test_twice(n, tmp_path):
    (tmp_path / "x").write_text(str(n))
    assert twice(n) == n + n

def test_fork():
    pid = os.fork()
    if not pid:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3

@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_pool(way):
    with multiprocessing.get_context(way).Pool(3) as p:
        assert p.map(twice, range(10)) == [2 * i for i in range(10)]

def test_subprocess():
    assert subprocess.run("echo a | tr a b", shell=True, capture_output=True).stdout == b"b\n"
    assert subprocess.run([sys.executable, "-c", "import sys; sys.exit(4)"]).returncode == 4
    p = subprocess.Popen(["sleep", "60"])
    p.terminate()
    assert p.wait() == -15

def test_socket():
    with socket.create_server(("127.0.0.1", 0)) as s:
        t = threading.Thread(target=lambda: s.accept()[0].sendall(b"hi"))
        t.start()
        with socket.create_connection(s.getsockname()) as c:
            assert c.recv(9) == b"hi"
        t.join()
END
python3 -m pytest -q
python3 -m pytest -q -n 2
rm -rf .pytest_cache
