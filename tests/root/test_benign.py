# SPDX-License-Identifier: Apache-2.0
"""Everyday work under the default packs: it ends as it would outside, nothing is stopped, nothing lost, nobody woken.

The workloads are in tests/scenarios/benign. Each test names every alert of it, those of low priority too: what
comes besides is a rule to be mended.
"""

import os
import subprocess
import sys
import unittest

from warder import *

BENIGN = os.path.join(SRC, "tests", "scenarios", "benign")
sys.path.insert(0, BENIGN)
import registry  # noqa: E402  (needs the path above)

LOUD = ("EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING")
GCC = "/usr/bin/gcc"


def python_modules(*names):
    """Skip when the distribution's Python, the one in the sandbox, lacks one."""
    done = cmd(PYTHON_IN_SANDBOX, "-c", "import " + ", ".join(names))
    if done.code:
        raise unittest.SkipTest("make deps: %s" % done.err.decode().strip().rsplit("\n", 1)[-1])


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Benign(TestCase):
    def work(self, *command, quiet=(), options=()):
        """Runs a workload to its end; quiet: the rules that may tell of it, once or more, in a low voice."""
        # Room for all events of a workload at once: how fast they are taken is not the matter here.
        s = self.session(*command, options=["--ro", BENIGN + ":/opt/benign", "--memory", "2G", "--bulk-ring", "64M",
                                            "--urgent-ring", "16M", *options], timeout=600)
        self.assertCode(s, 0)
        self.assertEqual((s.result["reason"], s.result["rule"], s.result["gaps"]), ("exit", None, 0))
        self.assertEqual(s.kinds("action", "gap"), [])
        told = [(field(a, "rule.priority"), field(a, "rule.name"), field(a, "rule.output")) for a in s.kinds("rule.alert")]
        self.assertEqual([t for t in told if t[0].upper() in LOUD], [])
        self.assertEqual(sorted({t[1] for t in told}), sorted(quiet), told)
        return s

    def execs(self, s, comm):
        return len([e for e in s.kinds("exec", outcome="success") if field(e, "proc.comm") == comm])

    def packages(self, s):
        """{(manager, name, version, registry, from)}"""
        return {tuple(field(e, "package." + f) for f in ("manager", "name", "version", "registry", "from"))
                for e in s.kinds("package.install")}


class Packages(Benign):
    def test_pip(self):
        need("openssl")
        python_modules("setuptools", "wheel", "pip", "venv", "ensurepip")
        say = "import grund\ndef main():\n    print('farbe on', grund.base)\n"
        setup = ("from setuptools import setup\nwith open('holz.py', 'w') as f:\n    f.write('made = 7\\n')\n"
                 "setup(name='holz', version='0.3', py_modules=['holz'])\n")
        pages = registry.pypi([registry.wheel("grund", "1.0", "base = 'grund'\n"),
                               registry.wheel("grund", "0.9", "base = 'old'\n"),
                               registry.wheel("farbe", "2.1", say, ["grund>=1.0"], "farbe-sagen"),
                               registry.sdist("holz", "0.3", setup, {"README": "x\n"})])
        cert, both = registry.certificate(self.tmp, "pypi.test")
        os.chmod(cert, 0o644)
        with registry.Server(pages, both) as server:
            s = self.work("/opt/benign/pip.sh", "https://pypi.test/simple", quiet=["Package from another registry"], options=[
                "--net", "allow", "--net-service", "pypi.test:443=127.0.0.1:%d" % server.port,
                "--ro", cert + ":/opt/ca.crt", "--env", "PIP_CERT=/opt/ca.crt", "--env", "SSL_CERT_FILE=/opt/ca.crt"])
        self.assertEqual(sorted(line.split() for line in s.out.decode().splitlines()[:3]),
                         [["farbe", "2.1"], ["grund", "1.0"], ["holz", "0.3"]])
        self.assertEqual(s.out.decode().splitlines()[3:5], ["farbe on grund", "7 grund"])
        seen = self.packages(s)
        self.assertLessEqual({("pip", "farbe", "2.1", "https://pypi.test/simple", "command"),
                              ("pip", "holz", "0.3", "https://pypi.test/simple", "command"),
                              ("pip", "farbe", "2.1", None, "files"), ("pip", "grund", "1.0", None, "files"),
                              ("pip", "holz", "0.3", None, "files")}, seen)
        self.assertNotIn("0.9", [p[2] for p in seen])
        self.assertEqual({field(e, "net.dst.name") for e in s.kinds("net.connect", outcome="success")
                          if field(e, "net.dst.name")}, {"pypi.test"})
        self.assertIntact(s)

    def test_npm(self):
        need("npm", "node")
        url = "http://npm.test"
        pages = registry.npm(url, {
            "@werk/uhr": {"1.4.0": ({"main": "i.js", "dependencies": {"feder": "^1.0.0"}},
                                    {"i.js": "module.exports = () => require('feder') + 1\n"})},
            "feder": {"1.0.2": ({"main": "i.js"}, {"i.js": "module.exports = 41\n"})},
            "zeiger": {"2.0.1": ({"main": "i.js", "scripts": {"postinstall": "node build.js && sh -c 'echo ok >> built'"}},
                                 {"i.js": "exports.version = require('./package.json').version\n",
                                  "build.js": "require('fs').writeFileSync('built', 'built ')\n"})}})
        with registry.Server(pages) as server:
            s = self.work("/opt/benign/npm.sh", url, quiet=["Package from another registry"], options=[
                "--net", "allow", "--net-service", "npm.test:80=127.0.0.1:%d" % server.port])
        self.assertIn("42 2.0.1 built ok\n", s.out.decode())
        seen = self.packages(s)
        self.assertLessEqual({("npm", "@werk/uhr", "1.4.0", url, "command"), ("npm", "zeiger", "2.0.1", url, "command")}, seen)
        # What is in a package.json is not seen, so those that came along have a name only.
        self.assertLessEqual({"@werk/uhr", "feder", "zeiger"}, {p[1] for p in seen if p[4] == "files"})
        self.assertEqual(self.execs(s, "sh") >= 4, True)  # npm starts each script by a shell


class Building(Benign):
    def test_make(self):
        need(GCC, "make")
        s = self.work("/opt/benign/build.sh")
        # Twenty files and main, twice; the builds between had nothing to do.
        self.assertEqual(self.execs(s, "cc1"), 42)
        self.assertEqual(self.execs(s, "as"), 42)
        self.assertEqual(self.execs(s, "ar"), 2)
        self.assertEqual([field(e, "proc.dropped_by") for e in s.kinds("exec", outcome="success")
                          if field(e, "proc.exe").startswith("/workspace")], ["strip", "install"])

    def test_a_debian_package(self):
        need("dpkg-deb")
        s = self.work("/opt/benign/deb.sh")
        self.assertGreaterEqual(self.execs(s, "dpkg-deb"), 6)

    def test_git(self):
        need("git")
        s = self.work("/opt/benign/git.sh")
        self.assertEqual(s.out.decode().splitlines()[-1], "v1")
        self.assertGreaterEqual(self.execs(s, "git"), 30)

    def test_pytest(self):
        python_modules("pytest", "xdist")
        s = self.work("/opt/benign/pytest.sh")
        self.assertEqual(s.out.decode().count("45 passed"), 2)
        # The session's own, two runs and two workers at least.
        self.assertGreaterEqual(len([e for e in s.kinds("exec") if "python" in field(e, "proc.exe", "")]), 4)
        self.assertGreaterEqual(len(s.kinds("fork")), 20)


class Working(Benign):
    def test_node(self):
        need("node")
        s = self.work("node", "/opt/benign/node.js")
        self.assertEqual(s.out, b"served 20\n")
        self.assertEqual(self.execs(s, "node"), 3)
        self.assertGreaterEqual(len(s.kinds("net.connect", outcome="success")), 1)

    def test_archives_of_5000_files(self):
        s = self.work("/opt/benign/archive.sh")
        self.assertEqual(s.out, b"5000\n")
        self.assertEqual(self.execs(s, "tar"), 2)

    def test_a_script_of_pipes(self):
        s = self.work("/opt/benign/pipes.sh")
        self.assertEqual(s.out.decode().splitlines()[:3], ["7", "1", "some data"])
        self.assertEqual(self.execs(s, "gzip"), 8)  # zcat is one, too
        self.assertGreaterEqual(len([e for e in s.kinds("exec", outcome="success")]), 40)

    def test_a_database_job(self):
        need("sqlite3", "perl")
        s = self.work("/opt/benign/data.pl")
        self.assertRegex(s.out, rb"^total \d+, top \d+ \d+\n$")
        self.assertEqual(self.execs(s, "sqlite3"), 7)

    def test_an_agents_session(self):
        need("git")
        python_modules("pytest")
        repo = self.path("repo")
        for name, text in (("calc/__init__.py", ""), ("calc/core.py", "def add(a, b):\n    return a - b  # add\n"),
                           ("tests/test_core.py", "from calc.core import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"),
                           ("README.md", "calc adds wrongly\n"), ("conftest.py", ""),
                           (".gitignore", "__pycache__/\n.pytest_cache/\n")):
            os.makedirs(os.path.dirname(os.path.join(repo, name)), exist_ok=True)
            self.path(os.path.join(repo, name), text)
        git = ["git", "-C", repo, "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
        for step in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
            subprocess.run(git + step, check=True)
        # It writes a test after a run that failed, and a program that it starts: somebody should read both, nobody has to
        # get up.
        s = self.work("/opt/benign/agent.sh", quiet=["Tests changed after they failed", "Dropped program started"], options=["--workspace", repo])
        self.assertIn("2 passed", s.out.decode())
        log = cmd(*git, "-c", "safe.directory=*", "log", "--oneline", "mend")
        self.assertEqual(len(log.out.splitlines()), 2, log)
        alert, = s.kinds("rule.alert", rule__name="Tests changed after they failed")
        self.assertEqual(field(alert, "file.path"), "/workspace/tests/test_core.py")


if __name__ == "__main__":
    unittest.main()
