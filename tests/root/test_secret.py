# SPDX-License-Identifier: Apache-2.0
"""--secret: a file inside and for the payload alone, in nothing that is kept, and gone when its time is over."""

import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_redact

need_root()

VALUE = "aq7" + "-Vx2\"Tm/" + "Lw9"
# Until the file is gone, however long that takes here, then what is seen of it.
WAIT = r"""
import os, time
kept = open("/run/secrets/short")
while os.path.exists("/run/secrets/short"):
    time.sleep(0.05)
print(repr(kept.read().strip("\0")), os.listdir("/run/secrets"), open("/run/secrets/long").read().strip() != "")
"""


def unlimited_core():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Secret(TestCase):
    unpacked, tty_text, report = (getattr(test_redact.Redact, n) for n in ("unpacked", "tty_text", "report"))
    channels = test_redact.Redact.channels

    def secret(self, name="secret", text=VALUE + "\n", mode=0o600):
        path = self.path(name, text)
        os.chmod(path, mode)
        return path

    def sinks(self):
        return ["--export", "file:" + self.path("sink.jsonl"), "--export",
                "file:%s,format=ocsf" % self.path("sink.ocsf")]

    def test_inside_for_the_payload_alone(self):
        s = self.session("sh", "-c", "cat /run/secrets/token; stat -c '%a %U %F' /run/secrets/token; env; "
                         "for c in 'chmod 666' 'rm -f' 'cp /dev/null' 'truncate -s 0'; do $c /run/secrets/token; done; "
                         "mv /run/secrets /run/else; ln -s /workspace /run/secrets/x; cat /run/secrets/token",
                         options=["--secret", "token=" + self.secret()])
        lines = s.out.decode().split("\n")
        self.assertEqual(lines[:2], [VALUE, "400 sandbox regular file"])
        self.assertEqual(lines[-2], VALUE)  # still there, after all that
        self.assertNotIn(VALUE, "\n".join(lines[2:-2]))  # the environment
        for line in os.popen("cat /proc/self/mountinfo"):
            self.assertNotIn("/run/secrets ", line)

    def test_the_record_names_it(self):
        """And so do those who show one: the name, not the value."""
        self.assertCode(self.warder("run", "--quiet", "--secret", "token=" + self.secret(), "--secret",
                                    "other=" + self.secret() + ",ttl=1m", "--", "true"), 0)
        session, = os.listdir(self.path("state/sessions"))
        events = [json.loads(line) for line in self.warder("events", session).out.splitlines()]
        self.assertEqual([e["run"]["secrets"] for e in events if e["kind"] == "session.start"], [["token", "other"]])
        shown = json.loads(self.warder("sessions", "show", "--json", session).out)
        self.assertEqual([f["value"] for f in shown["did"] if f["kind"] == "secret"], ["other", "token"])
        self.assertIn(b"token", self.warder("sessions", "show", session).out)
        self.assertCode(self.warder("report", session, "-o", self.path("r.html")), 0)
        with open(self.path("r.html")) as f:
            page = f.read()
        self.assertIn("token", page)
        self.assertNotIn(VALUE, page)

    def test_in_nothing_that_is_kept(self):
        rules = self.path("own.yaml", test_redact.RULES)
        s = self.session("sh", "-c", "t=$(cat /run/secrets/token); echo \"$t\"; echo \"shown $t\" >&2; "
                         "env PASS=\"$t\" true planted \"$t\"; : > \"/workspace/planted-$(echo $t | tr / _)\"; "
                         "printf 'a\\n%s\\n' \"$t\" > kept.txt",
                         options=["--secret", "token=" + self.secret(), "--watch-env", "PASS", "--rules", rules,
                                  "--keep-texts", *self.sinks()])
        self.assertCode(s, 0)
        self.assertIn(VALUE.encode(), s.out)  # what the command writes goes to its caller as it is
        found = self.channels(s)
        found["messages"] = b"\n".join(l for l in s.err.splitlines() if l.startswith(b"warder"))
        found["argv"] = json.dumps(s.argv).encode()
        for where, data in found.items():
            for form in test_redact.forms(VALUE):
                self.assertFalse(form in data.lower(), "%s has %r" % (where, form))
        self.assertIn(b"[redacted:secret.token:", found["terminal"])
        self.assertTrue(any("[redacted:secret.token:" in a for e in s.kinds("exec") for a in e["proc"]["args"]))
        self.assertEqual([e["proc"]["comm"] for e in s.kinds("file.open", file__path="/run/secrets/token")], ["cat"])

    def test_gone_after_its_time(self):
        s = self.session(PYTHON_IN_SANDBOX, "-c", WAIT, options=[
            "--secret", "short=%s,ttl=300ms" % self.secret(), "--secret", "long=%s,ttl=2h" % self.secret("other")])
        self.assertEqual((s.code, s.out), (0, b"'' ['long'] True\n"))
        gone = [e["limit"] for e in s.kinds("limit")]
        self.assertEqual(gone, [{"type": "ttl", "value": 300 * 10**6, "used": 300 * 10**6, "count": 1,
                                 "effect": "removed", "target": "/run/secrets/short"}])
        self.assertNotIn("ttl", s.result.get("limits", []))

    def test_time_begins_with_the_payload(self):
        # Setting a sandbox up takes longer than that, and not a moment of it counts: first the payload runs.
        s = self.session(PYTHON_IN_SANDBOX, "-c", WAIT.replace("kept = open", "kept = None and open")
                         .replace("kept.read().strip(\"\\0\")", "kept"),
                         options=["--secret", "short=%s,ttl=1ms" % self.secret(), "--secret", "long=" + self.secret("other")])
        self.assertEqual((s.code, s.out), (0, b"None ['long'] True\n"))
        exec_at = [e["time"] for e in s.kinds("exec") if e["proc"]["args"][0] == PYTHON_IN_SANDBOX]
        self.assertEqual(len(exec_at), 1)
        self.assertLess(exec_at[0], s.kinds("limit")[0]["time"])

    def test_in_no_core_file(self):
        """Killed by a signal that dumps: the memory that has the value is left nowhere."""
        def how_it_ends(proc):
            proc.send_signal(signal.SIGABRT)
            return os.waitid(os.P_PID, proc.pid, os.WEXITED | os.WNOWAIT).si_code

        bare = subprocess.Popen(["sleep", "100"], cwd=self.tmp, preexec_fn=unlimited_core)
        self.addCleanup(bare.wait)
        if how_it_ends(bare) != os.CLD_DUMPED:
            self.skipTest("no process leaves a core file here (core_pattern)")
        proc, _ = self.start_session("sh", "-c", "cat /run/secrets/token; sleep 100", preexec_fn=unlimited_core,
                                     options=("--secret", "token=" + self.secret()), cwd=self.tmp)
        self.assertIn(VALUE.encode(), proc.stdout.readline())
        self.assertEqual(how_it_ends(proc), os.CLD_KILLED)

    def test_of_a_policy(self):
        policy = self.path("p.yaml", "secrets:\n  - token=%s,ttl=1h\n" % self.secret())
        s = self.session("cat", "/run/secrets/token", options=["--policy", policy])
        self.assertEqual((s.code, s.out.decode()), (0, VALUE + "\n"))
        done = self.warder("run", "--policy", policy, "--dry-run", "--json", "--", "true")
        self.assertCode(done, 0)
        self.assertNotIn(VALUE, done.out.decode())
        self.assertEqual(json.loads(done.out)["secrets"], [{"name": "token", "ttl_ns": 3600 * 10**9}])
        bad = self.path("bad.yaml", "name: x\nsecrets:\n  - token\n")
        self.assertOneLine(self.warder("run", "--policy", bad, "--", "true"), "bad.yaml:3:5", "NAME=FILE")

    def test_bad_input(self):
        good, link = self.secret(), self.path("link")
        os.symlink(good, link)
        others = self.secret("others")
        os.chown(others, 12345, 12345)
        os.mkdir(self.path("dir"), 0o700)
        os.mkdir(self.path("anybodys"))
        os.chmod(self.path("anybodys"), 0o777)
        replaced, led = self.secret("anybodys/secret"), self.path("led")
        os.symlink(replaced, led)
        cases = [
            (["token=" + replaced], "may replace it"), (["token=" + led], "may replace it"),
            (["token"], "NAME=FILE"), (["=" + good], "NAME=FILE"), (["token="], "NAME=FILE"),
            (["token=%s,ttl=soon" % good], "soon"), (["token=%s,ttl=0" % good], "no time at all"),
            (["token=%s,ttl=99999999d" % good], "too large"),
            (["token=" + self.path("absent")], "No such file"), (["token=" + self.path("dir")], "not a file"),
            (["token=" + self.secret("open", mode=0o640)], "yours alone"), (["token=" + others], "yours alone"),
            (["token=" + self.secret("long", "x" * 16385)], "longer than 16384"),
            (["token=" + self.secret("short", "abc\n")], "less than 6"),
            (["../x=" + good], "a name of letters"), ([".x=" + good], "a name of letters"),
            (["a=" + good, "a=" + good], "given twice"),
            (["s%d=%s" % (i, good) for i in range(17)], "more than 16"),
        ]
        for secrets, words in cases:
            with self.subTest(secrets[0]):
                options = [w for s in secrets for w in ("--secret", s)]
                done = self.warder("run", *options, "--", "true")
                self.assertCode(done, 125)
                self.assertOneLine(done, words)
                self.assertNotIn(VALUE.encode(), done.err)
        for options, words in ((["--redact", "off"], "value of '--secret'"), (["--ro", "%s:/run/secrets" % good], "secrets are there"),
                               (["--ro", "%s:/run" % self.path("dir")], "secrets are there")):
            done = self.warder("run", "--secret", "a=" + link, *options, "--", "true")
            self.assertCode(done, 125)
            self.assertOneLine(done, words)
        self.assertEqual(stat.S_IMODE(os.stat(good).st_mode), 0o600)

    def test_cut_lists_keep_no_part(self):
        mark = "SECRETMARK" + "-q7Zk2Lm9Xv4Tn8"
        script = ("import os,sys; s=open('/run/secrets/t').read().strip()\n"
                  "for pad in 4055, 4060, 4066, 4080, 4088: os.spawnv(0, '/bin/sh', ['sh', '-c', ': ; /bin/true', "
                  "'A'*(pad-17)+s])\n"
                  "tail = '.'*90000\n"
                  "for n in range(1, 25, 6): os.spawnv(0, '/bin/true', ['true', tail, s*40, '.'*(32768-n-1)])\n"
                  "for n in range(1, 25, 6): os.spawnv(0, '/bin/true', ['true', tail, '.'*(98304-90000-7-n)+s, '.'*60000])\n"
                  "e = {'LONG': '.'*32700+s*20, 'PATH': '/bin'}; os.spawnve(0, '/bin/true', ['true', 'env'], e)\n")
        s = self.session(PYTHON_IN_SANDBOX, "-c", script,
                         options=["--secret", "t=" + self.secret("t", mark + "\n"), "--watch-env", "LONG"])
        self.assertCode(s, 0)
        cut = [e for e in s.events if e.get("proc", {}).get("args_truncated")]
        self.assertTrue({"exec", "exit", "fork"} <= {e["kind"] for e in cut})
        self.assertTrue([e for e in cut if e["proc"].get("args_tail")])
        self.assertTrue([e for e in s.kinds("exec") if e["proc"].get("env_truncated")])
        for e in s.events:
            text = json.dumps(e)
            for i in range(len(mark) - 7):
                self.assertNotIn(mark[i:i + 8], text, e["kind"])

    def test_output_at_limits_keeps_no_part(self):
        mark = "SECRETMARK" + "-q7Zk2Lm9Xv4Tn8"
        script = ("import os,sys; s=open('/run/secrets/t','rb').read().strip()\n"
                  "d=(s+sys.argv[1].encode())*1000\n"
                  "while d: d=d[os.write(1,d):]\n")
        secret = self.secret("t", mark + "\n")
        for between, options in (("", []), ("xyz", []), (" ", ["--output-limit", "4K"]), ("", ["--max-output", "1010"])):
            with self.subTest(between=between, options=options):
                s = self.session(PYTHON_IN_SANDBOX, "-c", script, between, options=["--secret", "t=" + secret, *options])
                text = self.tty_text(s)
                self.assertIn(b"[redacted:", text)
                for i in range(len(mark) - 7):
                    self.assertNotIn(mark[i:i + 8].encode(), text)

    def test_what_stands_around_stays(self):
        mark = "SECRETMARK" + "-q7Zk2Lm9Xv4Tn8"
        s = self.session("sh", "-c", 'sh -c ": --token=$(cat /run/secrets/t); exit 3"',
                         options=["--secret", "t=" + self.secret("t", mark + "\n")])
        self.assertCode(s, 3)
        inner = [e["proc"]["args"] for e in s.kinds("exec") if e["proc"]["args"][-1].startswith(": --token")]
        self.assertRegex(inner[0][-1], r"^: --token=\[redacted:secret\.t:[0-9a-f]{12}\]; exit 3$")

    def test_as_programs_write_it(self):
        mark = "SECRET/MARK&q7Zk\"2Lm9'Xv4Tn8"
        account = '{"type": "service", "apikey": "apikey-q7Zk-2Lm9"}'
        script = ("import html,json,os,urllib.parse; s=open('/run/secrets/t').read().strip()\n"
                  "for f in (urllib.parse.quote(s), html.escape(s), json.dumps(s).replace('/','\\\\/'), repr(s), "
                  "json.load(open('/run/secrets/sa'))['apikey']):\n"
                  "    print('said:', f, flush=True)\n"
                  "    os.spawnv(0, '/bin/true', ['true', f])\n"
                  "os.write(1, ('wide: ' + s).encode('utf-16-le') + b'\\n')\n"
                  "open('/workspace/out', 'wb').write(open('/run/secrets/t', 'rb').read())\n"
                  "open('/workspace/else', 'w').write('x')\n")
        s = self.session(PYTHON_IN_SANDBOX, "-c", script, options=[
            "--secret", "t=" + self.secret("t", " " + mark + " \n"), "--secret", "sa=" + self.secret("sa", account)])
        self.assertCode(s, 0)
        text = self.tty_text(s)
        told = text + "".join(json.dumps(e["proc"].get("args")) for e in s.kinds("exec")
                              if e["proc"]["args"][0] == "true").encode()
        self.assertEqual(len(re.findall(rb"said: .?\[redacted:secret\.", text)), 5, text)
        for part in (b"q7Zk", b"2Lm9", b"Xv4Tn8", "q7Zk".encode("utf-16-le")):
            self.assertNotIn(part, told)
        changes = {e["file"]["path"]: e["file"] for e in s.kinds("workspace.change")}
        self.assertNotIn("sha256", changes["/workspace/out"])
        self.assertEqual(changes["/workspace/out"]["unhashed"], "redacted")
        self.assertIn("sha256", changes["/workspace/else"])


if __name__ == "__main__":
    unittest.main()
