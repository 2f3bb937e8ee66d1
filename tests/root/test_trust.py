# SPDX-License-Identifier: Apache-2.0
"""Files that decide what is watched and stopped: one that somebody else may change is not gone by, at start and later."""

import os
import shutil
import signal
import unittest

from warder import *

RULE = """- rule: R%d
  desc: d
  condition: kind = exec and proc.comm = true
  output: o
  priority: NOTICE
"""
STRANGER = 54321


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Trust(TestCase):
    FILES = (("--rules", "r.yaml", RULE % 1, "rule file"), ("--baseline", "b.baseline", "# warder baseline 1\n", "baseline"),
             ("--policy", "p.yaml", "limits:\n  pids: 50\n", "policy"),
             ("--redact", "x.yaml", "- rule: x\n  keywords: [abcdefgh]\n  regex: 'abcdefgh[0-9]{8}'\n", "redaction rules"))

    def setUp(self):
        super().setUp()
        self.conf = self.path("conf")
        os.mkdir(self.conf, 0o755)

    def refused(self, option, path, *words):
        done = self.warder("run", "--quiet", "--session-dir", self.path("none"), option, path, "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, *words)
        self.assertFalse(os.path.exists(self.path("none")))

    def test_each_kind_of_file(self):
        for option, name, text, what in self.FILES:
            path = self.path(os.path.join("conf", name), text)
            os.chmod(path, 0o666)
            self.refused(option, path, what, name, "can be written by everybody (mode 0666): chmod o-w")
            os.chmod(path, 0o664)
            os.chown(path, 0, STRANGER)
            self.refused(option, path, what, name, "by others of a group (mode 0664): chmod g-w")
            os.chmod(path, 0o644)
            os.chown(path, STRANGER, 0)
            self.refused(option, path, what, name, "belongs to user %d, neither root nor who runs this" % STRANGER)
            os.chown(path, 0, 0)
            os.chmod(self.conf, 0o777)
            self.refused(option, path, what, name, "everybody may replace it, by its directory '%s' (mode 0777)" % self.conf)
            os.chmod(self.conf, 0o755)
            os.chown(self.conf, STRANGER, 0)
            self.refused(option, path, what, name, "its directory '%s' belongs to user %d" % (self.conf, STRANGER))
            os.chown(self.conf, 0, 0)

    def test_whom_the_agent_serves(self):
        os.mkdir(self.env["WARDER_CONFIG"], 0o755)
        path = self.path("config/agent.yaml", "groups: []\n")
        os.chmod(path, 0o666)
        done = self.warder("agent", "--check")
        self.assertCode(done, 125)
        self.assertOneLine(done, "agent.yaml", "can be written by everybody (mode 0666): chmod o-w")
        os.chmod(path, 0o644)
        self.assertCode(self.warder("agent", "--check"), 0)
        os.chown(self.env["WARDER_CONFIG"], STRANGER, 0)
        self.assertCode(self.warder("agent", "--check"), 125)

    def test_where_records_go(self):
        """The list of sinks, and what their settings read: a password, and whom to believe."""
        os.mkdir(self.env["WARDER_CONFIG"], 0o755)
        sinks = self.path("config/sinks.yaml", "out: file:%s\n" % self.path("out.jsonl"))
        os.chmod(sinks, 0o666)
        self.refused("--export", "out", "sinks.yaml", "can be written by everybody (mode 0666): chmod o-w")
        os.chmod(sinks, 0o644)
        self.assertCode(self.session("true", options=["--export", "out"]), 0)
        loose = self.path("conf/loose", "x\n")
        os.chmod(loose, 0o666)
        for sink in ("splunk:https://127.0.0.1:1,token=@" + loose, "splunk:https://127.0.0.1:1,token=x,ca=" + loose,
                     "syslog:tls://127.0.0.1:1,ca=" + loose):
            with self.subTest(sink):
                done = self.warder("run", "--quiet", "--session-dir", self.path("none"), "--export", sink, "--", "true")
                self.assertCode(done, 125)
                self.assertOneLine(done, "loose", "can be written by everybody (mode 0666): chmod o-w")
                shutil.rmtree(self.path("none"), ignore_errors=True)

    def test_a_directory_of_rules_and_a_link_into_a_strangers(self):
        self.path("conf/r.yaml", RULE % 1)
        os.chmod(self.conf, 0o777)
        self.refused("--rules", self.conf, "r.yaml", "everybody may replace it")
        link = self.path("link.yaml")
        os.symlink(os.path.join(self.conf, "r.yaml"), link)
        self.refused("--rules", link, "link.yaml", self.conf, "everybody may replace it")

    def test_good_ones(self):
        """All four at once, of who called by sudo, in a place like /tmp; and checking needs no trust."""
        options = ["--no-default-rules"]
        for option, name, text, _ in self.FILES:
            path = self.path(os.path.join("conf", name), text)
            os.chown(path, STRANGER, STRANGER)
            os.chmod(path, 0o664)
            options += [option, path]
        os.chmod(self.conf, 0o1777)
        env = dict(self.env, SUDO_UID=str(STRANGER), SUDO_GID=str(STRANGER))
        s = self.session("true", options=options, env=env)
        self.assertCode(s, 0)
        self.assertEqual([field(a, "rule.name") for a in s.kinds("rule.alert")], ["R1"])
        self.refused("--rules", options[2], "belongs to user")
        self.assertCode(self.warder("rules", "check", options[2]), 0)

    def test_while_it_runs(self):
        """What was good at the start and is not any more changes nothing."""
        work = self.path("work")
        os.mkdir(work)
        path = self.path("conf/r.yaml", RULE % 1)
        proc, finish = self.start_session("sh", "-c", "touch up; while [ ! -e go ]; do sleep 0.05; done; true; exec true",
                                          options=["--no-default-rules", "--rules", path, "--workspace", work])
        wait_for("the payload", lambda: os.path.exists(os.path.join(work, "up")))
        os.chown(path, STRANGER, 0)
        self.path("conf/r.yaml", RULE % 2)
        proc.send_signal(signal.SIGHUP)
        wait_for("the refusal", lambda: b"belongs to user 54321" in self.warder("events", self.path("s1/session")).out)
        open(os.path.join(work, "go"), "w").close()
        s = finish()
        self.assertCode(s, 0)
        self.assertEqual({field(a, "rule.name") for a in s.kinds("rule.alert")}, {"R1"})
        self.assertIn("failure", {e["outcome"] for e in s.kinds("audit.rules")})


if __name__ == "__main__":
    unittest.main()
