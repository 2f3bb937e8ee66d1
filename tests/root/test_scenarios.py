# SPDX-License-Identifier: Apache-2.0
"""The corpus of attacks on a sandbox (userspace/scenarios/, tests/scenarios/README.md), judged by the default packs:
one test a scenario. All run at once, by `warder selftest`; that this judge finds holes where there are some is tested
below."""

import json
import os
import signal
import subprocess
import sys
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_egress


def selftest(env, *options):
    return cmd(WARDER, "selftest", "--json", *options, env=env, timeout=TIMEOUT_ALL)


TIMEOUT_ALL = 800 * SLOW


class Judged(TestCase):
    def setUp(self):
        need_root()
        super().setUp()

    def rows(self, done):
        try:
            return {r["id"]: r for r in json.loads(done.out)["scenarios"]}
        except ValueError:
            self.fail("no verdicts: %s" % done)


class Corpus(Judged):
    found = None  # of each class its own: inherited it would be another backend's

    @staticmethod
    def options():
        return []

    def row(self, name):
        cls = type(self)
        if not vars(cls).get("found"):
            cls.found = self.rows(selftest(self.env, *cls.options()))
        return cls.found[name]

    def judge(self, name):
        r = self.row(name)
        if r["verdict"] != "holds":
            self.fail("%s\n%s" % (r["why"], json.dumps(r, indent=1)))
        for letter, got in zip("BDK", ("blocked", "detected", "killed")):
            if letter in r["expected"]:
                self.assertTrue(r[got], r)
        self.assertIn(r["twin"], ("quiet", "none"))


def add_tests():
    done = cmd(WARDER, "selftest", "--list", "--json")
    for r in json.loads(done.out)["scenarios"]:
        def test(self, name=r["id"]):
            self.judge(name)
        test.__doc__ = r["title"]
        setattr(Corpus, "test_%s" % r["id"], test)


add_tests()


# Under gVisor in CI: one of each way in which its verdict is another one (userspace/scenarios/corpus_gvisor.c), of what
# goes over the walls of both, and of each kind of end. All of them: make check-gvisor-corpus.
GVISOR_SOME = ("P01", "P05", "P16", "P16b", "P19", "P19b", "P32", "P36", "P39", "P40b", "P48", "P49", "P54")


@unittest.skipIf(IN_VM, "gVisor's kernel is the same everywhere: tested on the host")
class GvisorCorpus(Corpus):
    """The same attacks with the verdicts that gVisor is to have."""

    @classmethod
    def setUpClass(cls):
        need("runsc")

    @staticmethod
    def options():
        some = [] if os.environ.get("WARDER_ALL_SCENARIOS") else ["--only", ",".join(GVISOR_SOME)]
        return ["--backend", "gvisor", *some]

    def test_these_are_gvisors_own(self):
        """What is judged here are gVisor's rows and not the host's."""
        self.assertEqual((self.row("P05")["expected"], self.row("P16b")["expected"]), ("-DK", "BD-"))
        self.assertIn("gVisor", self.row("P05")["remark"])


def choose_tests():
    for name in [n for n in dir(Corpus) if n.startswith("test_")]:
        if not os.environ.get("WARDER_ALL_SCENARIOS") and name[5:] not in GVISOR_SOME:
            setattr(GvisorCorpus, name, None)


choose_tests()


@unittest.skipIf(IN_VM, "the launcher and the judge are the same everywhere: tested on the host")
class Swapped(TestCase):
    def test_target_changes_while_it_is_bound(self):
        """P22 as a race (CVE-2021-30465): a directory and a link to /tmp change places all the time."""
        need_root()
        work = self.path("work")
        os.mkdir(work)
        os.chmod(work, 0o777)
        os.mkdir(work + "/out")
        os.symlink("/tmp", work + "/link")
        name = "warder-planted-%d" % os.getpid()
        swapper = subprocess.Popen([PYTHON_IN_SANDBOX, "-c", """
import ctypes, sys, time
libc = ctypes.CDLL(None)
a, b = (sys.argv[1] + n for n in ("/out", "/link"))
while True:
    libc.renameat2(-100, a.encode(), -100, b.encode(), 2)  # RENAME_EXCHANGE
    time.sleep(0.0001)
""", work])
        self.addCleanup(lambda: (swapper.kill(), swapper.wait()))
        for i in range(5):
            s = self.session("ls", "/tmp", options=["--no-default-rules", "--workspace", work, "--ro",
                                                    "/etc/hostname:/workspace/out/" + name])
            if s.code:
                self.assertCode(s, 125)  # refused
            self.assertNotIn(name.encode(), s.out)
            self.assertFalse(os.path.lexists("/tmp/" + name), "it went through the link on the host")


@unittest.skipIf(IN_VM, "the launcher and the judge are the same everywhere: tested on the host")
class Judge(Judged):
    """It says so when something does not hold."""

    def test_policies_with_holes(self):
        """Without rules nothing is detected or killed; what a sandbox blocks by itself still is."""
        policy = self.path("bare.yaml", "rules: { no_default: true }\n")
        done = selftest(self.env, "--policy", policy, "--only", "P01,P09,P19,P53")
        self.assertCode(done, 1)
        rows = self.rows(done)
        self.assertEqual({k: (r["verdict"], r["blocked"], r["detected"], r["killed"]) for k, r in rows.items()},
                         {"P01": ("hole", True, False, False), "P09": ("hole", True, False, False),
                          "P19": ("holds", True, False, False), "P53": ("hole", False, False, False)})
        self.assertEqual((rows["P01"]["why"], rows["P53"]["why"]), ("no alert", "the policy sets no such limit (timeout_ns)"))

    def test_hole_in_the_wall(self):
        """A directory of the host where P55 plants its files is given to the sandbox."""
        cron = self.path("cron.d")
        os.mkdir(cron)
        os.chmod(cron, 0o777)
        policy = self.path("open.yaml", "mounts: { rw: ['%s:/etc/cron.d'] }\nlimits: { timeout: 1h }\n" % cron)
        done = selftest(self.env, "--policy", policy, "--only", "P53,P55")
        self.assertCode(done, 1)
        rows = self.rows(done)
        self.assertEqual((rows["P55"]["verdict"], rows["P55"]["blocked"]), ("hole", False))
        self.assertIn("/etc/cron.d/warder-selftest", rows["P55"]["why"])
        self.assertEqual((rows["P53"]["verdict"], rows["P53"]["reason"]), ("holds", "timeout"))
        self.assertEqual(os.listdir(cron), [], "nothing is left of an attack that worked")

    def test_strict_policy(self):
        """One that comes with warder; its limits end what an attack of that kind would take."""
        done = selftest(self.env, "--policy", "strict", "--only", "P01,P39,P48,P50,P52,P53")
        self.assertCode(done, 0)
        self.assertEqual({k: r["reason"] for k, r in self.rows(done).items()},
                         {"P01": "rule", "P39": "rule", "P48": "", "P50": "", "P52": "output_limit", "P53": "timeout"})

    def test_what_a_policy_gives_up_is_said(self):
        """P45 under `dev`, whose network is open: it gets out, and the table says why that is."""
        need("ip", "nsenter")
        net = test_egress.Internet()
        net.__enter__()
        self.addCleanup(net.__exit__)
        subprocess.run(net.net.inside(["ip", "addr", "add", "1.1.1.1/32", "dev", "lo"]), check=True)
        net.listen("1.1.1.1", 853, test_egress.echo)
        done = cmd(*net.host.inside([WARDER, "selftest", "--json", "--policy", "dev", "--only", "P45"]), env=self.env,
                   timeout=TIMEOUT_ALL)
        self.assertCode(done, 1)
        row = self.rows(done)["P45"]
        self.assertEqual((row["verdict"], row["blocked"], row["detected"]), ("hole", False, True), row)
        self.assertRegex(row["why"], "it worked: .*1.1.1.1 port 853; the policy gives it up: its network is 'open'")

    def test_workspace_of_the_host_is_not_touched(self):
        work = self.path("work")
        os.mkdir(work)
        os.chmod(work, 0o777)
        policy = self.path("work.yaml", "workspace: %s\n" % work)
        done = selftest(self.env, "--policy", policy, "--only", "P42,P54")
        self.assertEqual([r["verdict"] for r in self.rows(done).values()], ["holds", "holds"], done)
        self.assertEqual(os.listdir(work), [])

    def test_bad_words(self):
        for words, said in ((["--only", "P61"], "there is no 'P61'"), (["--only", ""], "names no attack"), (["--only", "P01,,x"], "there is no 'x'"),
                            (["P01"], "unexpected word"), (["--policy", "strict", "--only", "P16b"], "nothing to try"),
                            (["--policy", self.path("nothing.yaml")], "nothing.yaml")):
            done = self.warder("selftest", *words)
            self.assertCode(done, 125)
            self.assertIn(said, done.err.decode())

    def test_stopped(self):
        """What is known is told at once, also to a pipe. By ^C what runs ends, the rest is not begun, nothing is left."""
        env = dict(self.env, TMPDIR=self.tmp)
        proc = subprocess.Popen([WARDER, "selftest", "-j", "1"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self._end, proc)

        def scratch():
            return [f for f in os.listdir(self.tmp) if f.startswith("warder-scenarios-")]
        lines = []
        while not lines or not lines[-1].startswith(b"P01 "):
            lines.append(proc.stdout.readline())
            self.assertTrue(lines[-1], lines)
        self.assertEqual(len(scratch()), 1)
        proc.send_signal(signal.SIGINT)
        out, err = proc.communicate(timeout=TIMEOUT_ALL)
        self.assertEqual(proc.returncode, 125, err)
        self.assertIn(b"stopped", err)
        self.assertNotIn(b"P60", out)
        self.assertEqual(scratch(), [])

    def test_table_for_people(self):
        done = self.warder("selftest", "--only", "P19")
        self.assertCode(done, 0)
        self.assertIn(b"P19b", done.out)
        self.assertTrue(done.out.endswith(b"2 attacks: 2 hold, 0 holes, 0 could not be tried\n"), done.out)


if __name__ == "__main__":
    unittest.main()
