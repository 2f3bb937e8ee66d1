# SPDX-License-Identifier: Apache-2.0
"""Bad input and hosts that lack something: one clear line, exit code 125, nothing left behind, and the
command was not run. What is left behind is compared by the runner, and here where a path is named."""

import json
import os
import re
import shutil
import subprocess
import unittest

import leftovers
from warder import *


class Refusals(TestCase):
    def refused(self, argv, *words, code=125, prefix=(), **kw):
        # On this host's own files: a wrongly started command would leave a mark.
        before = leftovers.snapshot(BUILD)
        done = cmd(*prefix, kw.pop("binary", WARDER), *argv, env=self.env, **kw)
        self.assertCode(done, code)
        self.assertEqual(done.out, b"")
        self.assertOneLine(done, *words)
        self.assertEqual(leftovers.wait_clean(BUILD, before), [])
        self.assertFalse(os.path.exists(self.path("dir")), "a session directory was left")
        return done

    def run_argv(self, *options, command=("echo", "ran")):
        return ["run", "--session-dir", self.path("dir"), *options, "--", *command]


class BadInput(Refusals):
    def test_unknown_command(self):
        self.refused(["rnu", "--", "true"], "rnu")

    def test_unknown_option(self):
        self.refused(self.run_argv("--tiemout", "3s"), "--tiemout")

    def test_missing_command(self):
        self.refused(["run", "--session-dir", self.path("dir"), "--"], "command")
        self.refused(["run", "--session-dir", self.path("dir")], "command")

    def test_bad_values(self):
        for option, value in (("--memory", "12Q"), ("--timeout", "soon"), ("--pids", "-1"), ("--cpus", "many"),
                              ("--backend", "vmware"), ("--net", "maybe"), ("--env", "NOVALUE"), ("--watch-env", "A=B"),
                              ("--ro", "/no/such/path"), ("--kafka", ""), ("--pids", "0"), ("--memory", "0"),
                              ("--disk", "0"), ("--tmp", "0"), ("--nofile", "0")):
            with self.subTest(option + value):
                self.refused(self.run_argv(option, value), option.lstrip("-"))

    def test_absurd_values(self):
        """Refused by name, not wrapped around into something else."""
        for option, value, word in (("--pids", str(2**64 - 1), "pids"), ("--pids", "4194305", "pids"),
                                    ("--memory", "4096T", "memory"), ("--nofile", "2000000", "files"),
                                    ("--cpus", "100000", "cpus"), ("--timeout", "400d", "timeout"),
                                    ("--fsize", "2000T", "fsize"), ("--disk", "2000T", "disk"),
                                    ("--name", "a\nb", "control"), ("--name", "a\x1b[2J", "\\x1b"),
                                    ("--name", "", "name"), ("--tenant", "t\x7f", "control"),
                                    ("--name", "x" * 64, "name")):
            with self.subTest(option + " " + repr(value)):
                self.refused(self.run_argv(option, value), word)

    def test_option_without_value(self):
        self.refused(["run", "--memory"], "--memory")

    def test_broken_rules(self):
        rules = self.path("broken.yaml", "- rule: x\n  desc: d\n  condition: proc.nmae = sh\n"
                                         "  output: o\n  priority: ALERT\n")
        self.refused(self.run_argv("--rules", rules), rules + ":3:", "proc.nmae")
        rules = self.path("broken2.yaml", "- rule: [\n")
        self.refused(self.run_argv("--rules", rules), rules + ":")

    def test_rules_that_are_no_file(self):
        os.mkfifo(self.path("fifo.yaml"))
        self.refused(self.run_argv("--rules", self.path("fifo.yaml")), "fifo.yaml", "no regular file")

    def test_unreadable_rules(self):
        self.refused(self.run_argv("--rules", self.path("none.yaml")), "none.yaml")
        self.refused(self.run_argv("--rules", self.tmp), self.tmp)

    def test_result_that_cannot_be_written(self):
        """Said before the command runs, not after its work is done."""
        self.refused(self.run_argv("--result", "/no/such/dir/r.json"), "/no/such/dir/r.json")

    def test_result_that_the_sandbox_could_forge(self):
        os.mkdir(self.path("w"))
        os.symlink(self.path("w"), self.path("link"))
        for at in ("w", "link"):
            for option, value in (("--workspace", self.path("w")), ("--rw", self.path("w") + ":/mnt")):
                self.refused(self.run_argv("--result", self.path(at + "/r.json"), option, value), "forged")
        self.assertEqual(os.listdir(self.path("w")), [])

    def test_our_own_places_are_not_granted(self):
        state = self.env["WARDER_STATE"]
        os.makedirs(os.path.join(state, "sessions"))
        for place in (state, os.path.join(state, "sessions"), self.tmp, "/"):
            self.refused(self.run_argv("--rw", place + ":/mnt"), "would let the sandbox write")
        self.refused(self.run_argv("--workspace", state), "would let the sandbox write")

    def test_result_of_an_earlier_run_is_gone(self):
        """No file says: it did not end."""
        result = self.path("r.json", "{}\n")
        self.refused(self.run_argv("--result", result, "--rules", self.path("none.yaml")), "none.yaml")
        self.assertFalse(os.path.exists(result))

    def test_limits_that_would_be_none(self):
        self.refused(self.run_argv("--cpus", "0.0001"), "cpus")
        self.refused(["run", "--tenant", "--", "true"], "--tenant")

    def test_session_directory_that_cannot_be_made(self):
        self.path("file", "x")
        done = cmd(WARDER, "run", "--session-dir", self.path("file/dir"), "--", "echo", "ran", env=self.env)
        self.assertCode(done, 125)
        self.assertOneLine(done, "file/dir")
        self.assertEqual(done.out, b"")

    def test_session_directory_with_something_in_it(self):
        """It would be given to the engine's user: what somebody uses must stay as it is."""
        os.mkdir(self.path("mine"), 0o755)
        self.path("mine/letter", "x")
        done = cmd(WARDER, "run", "--session-dir", self.path("mine"), "--", "echo", "ran", env=self.env)
        self.assertCode(done, 125)
        self.assertOneLine(done, "mine", "letter")
        self.assertEqual(done.out, b"")
        st = os.stat(self.path("mine"))
        self.assertEqual((st.st_mode & 0o777, st.st_uid, os.listdir(self.path("mine"))), (0o755, os.geteuid(), ["letter"]))

    def test_policy_key_by_the_name_of_its_option(self):
        policy = self.path("policy.yaml", "memory: 64M\n")
        self.refused(self.run_argv("--policy", policy), policy + ":1:", "'limits.memory'")

    def test_policy_value_that_cannot_be_meant(self):
        for text, place, what in (("network:\n  mode: nonne\n", "2:9", "'nonne' is not none, allow="),
                                  ("evidence: { sign: maybe }\n", "1:19", "'maybe' is not auto, always or never"),
                                  ("evidence:\n  when_full: stop\n", "2:14", "not continue, pause or kill"),
                                  ("on_pressure: panic\n", "1:14", "not drop, stop or kill"),
                                  ("backend: vm\n", "1:10", "backend 'vm' does not exist"),
                                  ("env: [A=1, B]\n", "1:12", "'B' is not NAME=VALUE"),
                                  ("mounts:\n  ro: [a:b]\n", "2:8", "'a:b' is not PATH"),
                                  ("watch: { paths: ['/d/*x'] }\n", "1:18", "* may stand at the end only")):
            with self.subTest(text):
                policy = self.path("p.yaml", text)
                self.refused(self.run_argv("--policy", policy), "%s:%s:" % (policy, place), what)
        self.refused(self.run_argv("--watch", "/d/*x"), "option '--watch'", "'/d/*'", "'/DIR/'")
        self.refused(self.run_argv("--hold-default", "no"), "option '--hold-default'", "not deny or approve")

    def test_rules_of_a_policy_lie_beside_it(self):
        os.mkdir(self.path("sub"))
        policy = self.path("sub/p.yaml", "rules: { files: [r.yaml] }\n")
        self.path("sub/r.yaml", "- rule: broken\n  desc: d\n  output: o\n  priority: none\n  condition: kind = exec\n")
        self.refused(self.run_argv("--policy", policy), self.path("sub/r.yaml") + ":4:")

    def test_directory_that_is_not_there(self):
        done = cmd(WARDER, "run", "-q", "--cwd", "/nowhere", "--", "true", env=self.env)
        self.assertCode(done, 127)
        self.assertOneLine(done, "'true'", "'/nowhere'")


class PoorHost(Refusals):
    """Hosts that lack something, made in a mount namespace of the test's own."""

    def setUp(self):
        super().setUp()
        need("unshare", "setpriv")
        os.mkdir(self.path("empty"))

    def host(self, *mounts):
        """Prefix of a command that sees these mounts, each a shell command."""
        script = "set -e; " + "; ".join(mounts) + '; exec "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]

    def hide(self, path):
        return "if [ -e %s ]; then mount --bind %s %s; fi" % (path, self.path("empty"), path)

    def test_no_root(self):
        # The tree of a test run may lie where nobody may look.
        os.chmod(self.tmp, 0o755)
        shutil.copy(WARDER, self.path("warder"))
        self.refused(["run", "--", "echo", "ran"], "root", binary=self.path("warder"), prefix=[
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])

    def test_no_btf(self):
        release = os.uname().release
        self.refused(self.run_argv(), "BTF", prefix=self.host(
            self.hide("/sys/kernel/btf"), self.hide("/boot"), self.hide("/lib/modules/" + release),
            self.hide("/usr/lib/debug")))

    def test_no_cgroup_v2(self):
        self.refused(self.run_argv(), "cgroup", prefix=self.host("mount -t tmpfs none /sys/fs/cgroup"))

    def test_no_tracefs(self):
        """Nothing of ours needs it, so there is nothing to complain about."""
        s = self.session("/bin/true", prefix=self.host(
            "mount -t tmpfs none /sys/kernel/tracing", "mount -t tmpfs none /sys/kernel/debug"))
        self.assertCode(s, 0)
        self.assertEqual(s.err, b"")
        self.assertEqual(len(s.kinds("exec", proc__args=["/bin/true"])), 1)

    def test_no_space_for_the_journal(self):
        """A session that cannot be recorded is not started."""
        os.mkdir(self.path("full"))
        self.refused(["run", "--session-dir", self.path("full/dir"), "--", "echo", "ran"], "full/dir",
                     prefix=self.host("mount -t tmpfs -o size=4k,nr_inodes=1 none " + self.path("full")))

    def test_space_runs_out(self):
        """What is not on disk counts as lost, and the kill needs no disk."""
        os.mkdir(self.path("small"))
        self.path("flood.py", "import os\nfor i in range(8000):\n"
                  "    os.close(os.open('/tmp/f%d' % i, os.O_CREAT | os.O_WRONLY))\n    os.unlink('/tmp/f%d' % i)\n")
        done = cmd(*self.host("mount -t tmpfs -o size=100k none " + self.path("small")), WARDER, "run", "-q",
                   "--session-dir", self.path("small/dir"), "--result", self.path("r.json"), "--ro",
                   self.path("flood.py") + ":/flood.py", "--", "sh", "-c",
                   PYTHON_IN_SANDBOX + " /flood.py; unshare -m true; sleep 60; echo survived", env=self.env)
        self.assertCode(done, 125)
        self.assertNotIn(b"survived", done.out)
        self.assertIn(b"No space left", done.err)
        with open(self.path("r.json")) as f:
            result = json.load(f)
        self.assertEqual((result["reason"], result["error"]), ("internal", "record not sealed"))
        self.assertEqual(result["rule"], "Namespace changed from inside a sandbox")
        self.assertGreater(result["gaps"], 8000)


    def need_idmapped_tmpfs(self):
        """What fills the disk is shown in the sandbox."""
        if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 3):
            self.skipTest("tmpfs has no id-mapped mounts before 6.3")

    def full_disk(self, policy, script):
        """A run whose record lies on a small file system, where /fill makes it full. The result, and what was lost."""
        self.need_idmapped_tmpfs()
        os.mkdir(self.path("small"))
        done = cmd(*self.host("mount -t tmpfs -o size=64k none " + self.path("small"),
                              "mkdir " + self.path("small/fill")), WARDER, "run", "--quiet", "--when-full", policy,
                   "--session-dir", self.path("small/dir"), "--result", self.path("r.json"), "--rw",
                   self.path("small/fill") + ":/fill", "--", "sh", "-c", script, env=self.env)
        with open(self.path("r.json")) as f:
            return done, json.load(f)

    FILL = "dd if=/dev/zero of=/fill/x bs=4k count=100 2>/dev/null; "

    def test_full_and_killed(self):
        done, result = self.full_disk("kill", self.FILL + "for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done; echo survived")
        self.assertCode(done, 125)
        self.assertNotIn(b"survived", done.out)
        self.assertIn(b"sandbox killed", done.err)

    def test_full_paused_and_ended(self):
        """A signal ends what stands still."""
        self.need_idmapped_tmpfs()
        os.mkdir(self.path("small"))
        proc = subprocess.Popen(
            [*self.host("mount -t tmpfs -o size=64k none " + self.path("small"), "mkdir " + self.path("small/fill")),
             WARDER, "run", "--quiet", "--when-full", "pause", "--session-dir", self.path("small/dir"), "--rw",
             self.path("small/fill") + ":/fill", "--", "sh", "-c",
             self.FILL + "for i in $(seq 300); do touch /workspace/f$i; done; echo survived"],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self._end, proc)
        self.assertIn(b"paused until there is room", proc.stderr.readline())
        self.assertIn(b"no room for its record", proc.stderr.readline())
        proc.terminate()
        out, err = proc.communicate(timeout=TIMEOUT)
        self.assertNotIn(b"survived", out)
        self.assertIn(b"could not be sealed", err)

    def test_full_and_paused(self):
        """It stands still, and goes on when somebody makes room; nothing is lost."""
        self.need_idmapped_tmpfs()
        # The last page of the journal holds a few more events: many are made.
        script = self.FILL + ("touch /workspace/before; for i in $(seq 300); do touch /workspace/f$i; done; "
                              "touch /workspace/after; echo survived")
        os.mkdir(self.path("small"))
        proc = subprocess.Popen(
            [*self.host("mount -t tmpfs -o size=400k none " + self.path("small"), "mkdir " + self.path("small/fill")),
             WARDER, "run", "--quiet", "--when-full", "pause", "--session-dir", self.path("small/dir"), "--result",
             self.path("r.json"), "--export", "file:" + self.path("out.jsonl"), "--rw",
             self.path("small/fill") + ":/fill", "--", "sh", "-c", script],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self._end, proc)
        self.assertIn(b"paused until there is room", proc.stderr.readline())
        self.assertIn(b"no room for its record", proc.stderr.readline())
        done = cmd("nsenter", "--mount=/proc/%d/ns/mnt" % proc.pid, "rm", self.path("small/fill/x"))
        self.assertCode(done, 0)
        out, err = proc.communicate(timeout=TIMEOUT)
        self.assertEqual((proc.returncode, out), (0, b"survived\n"), err)
        self.assertIn(b"stood still", err)
        with open(self.path("out.jsonl")) as f:
            events = [json.loads(line) for line in f]
        told = [e["audit"]["message"] for e in events if e["kind"] == "audit.degraded"]
        self.assertTrue(any("stood still" in t for t in told), told)
        self.assertEqual([e for e in events if e["kind"] == "gap"], [])
        names = [e["file"]["path"] for e in events if e["kind"] == "file.open"]
        self.assertIn("/workspace/before", names)
        self.assertIn("/workspace/after", names)


class DryRun(TestCase):
    def test_prints_the_plan_and_does_nothing(self):
        before = leftovers.snapshot(BUILD)
        done = self.warder("run", "--session-dir", self.path("dir"), "--memory", "64M", "--dry-run", "--", "touch",
                           "/workspace/x")
        self.assertCode(done, 0)
        self.assertIn(b"/workspace", done.out)
        self.assertIn(b"touch", done.out)
        self.assertFalse(os.path.exists(self.path("dir")))
        self.assertEqual(leftovers.wait_clean(BUILD, before), [])


    def test_as_json(self):
        done = self.warder("run", "--dry-run", "--json", "--", "true")
        self.assertCode(done, 0)
        self.assertIsInstance(json.loads(done.out), dict)


class Other(TestCase):
    def test_help(self):
        for argv in (["help"], ["help", "run"], ["--help"], ["run", "--help"], ["events", "--help"], ["verify", "--help"]):
            done = self.warder(*argv)
            self.assertCode(done, 0)
            self.assertEqual(done.err, b"")
            self.assertTrue(done.out)

    def test_no_arguments(self):
        done = self.warder()
        self.assertCode(done, 125)
        self.assertEqual(done.out, b"")

    def test_doctor(self):
        done = self.warder("doctor")
        self.assertIn(done.code, (0, 1, 2), done)
        self.assertIn(b"tier", done.out.lower())

    def test_rules_check(self):
        good = self.path("good.yaml", "- rule: x\n  desc: d\n  condition: proc.name = sh\n  output: o\n"
                                      "  priority: ALERT\n")
        self.assertCode(self.warder("rules", "check", good), 0)
        bad = self.path("bad.yaml", "- rule: x\n  desc: d\n  condition: proc.name = \n  output: o\n"
                                    "  priority: ALERT\n")
        done = self.warder("rules", "check", bad)
        self.assertCode(done, 1)
        self.assertRegex((done.out + done.err).decode(), r"(?m)^%s:\d+:\d+: " % bad)

    def test_all_errors_of_rule_files_at_once(self):
        """Whatever stage finds them, in the order of the files; what follows from another error is not told."""
        one = self.path("1.yaml", """- macro: broken
  condition: kind =
- macro: empty
  cond: x
- rule: a
  desc: d
  priority: nope
  condition: kind = exek and broken and empty
  output: "%no.such.field"
- rule: b
  desc: d
  priority: INFO
  condition: proc.cmm = x and undefined
""")
        two = self.path("2.yaml", "- rule: c\n  desc: d\n  priority: INFO\n  output: o\n  condition: (kind = exec\n"
                                  "  action: murder\n")
        done = self.warder("rules", "check", one, two)
        self.assertCode(done, 1)
        told = re.findall(r"(?m)^%s/(\d)\.yaml:(\d+):\d+: error: (\S+ \S+)" % self.tmp, done.err.decode())
        self.assertEqual([(int(f), int(line)) for f, line, _ in told],
                         [(1, 2), (1, 3), (1, 7), (1, 8), (1, 9), (1, 10), (1, 13), (1, 13), (2, 5), (2, 6)], done)

    def test_fields_with_the_names_of_falco(self):
        rows = [json.loads(line) for line in self.warder("fields", "--json").out.splitlines()]
        alias = {r["name"]: r["present"] for r in rows if r.get("alias") == "falco"}
        self.assertEqual((alias["evt.type"], alias["container.image.repository"]), ("yes", "never"))
        self.assertGreater(len(alias), 100)


if __name__ == "__main__":
    unittest.main()
