# SPDX-License-Identifier: Apache-2.0
"""Rules by the program that acts, decided in the kernel: exactly for the path that its exec led to, as the record has
it. What became of the name, and what else the file is called, changes nothing; a new file there is that program."""

import errno
import json
import os
import subprocess
import unittest

from probes import mounted_dev
from test_actions import Actions, rule
from warder import *

KILLED = "137"


class Programs(Actions):
    def told(self, s, name):
        """How often the rule fired; each time in the kernel."""
        alerts = s.kinds("rule.alert", rule__name=name)
        self.assertEqual({field(a, "rule.enforced") for a in alerts} - {self.at_a_file()}, set(), alerts)
        return len(alerts)

    def begin(self, rules, script, fifos, *options):
        """A session whose programs wait for what comes out of /opt/w/NAME. Nothing in it is writable outside: for that
        not every file system that tests run on has id-mapped mounts."""
        self.rules = self.path("rules.yaml", rules)
        os.mkdir(self.path("w"))
        for name in fifos.split():
            os.mkfifo(self.path("w/" + name))
        return self.start_session("sh", "-c", script, options=[
            "--no-default-rules", "--rules", self.rules, "--ro", self.path("w") + ":/opt/w", *options])[1]

    def waits(self, name):
        """Until somebody reads there; what comes back lets him go on."""
        def is_read():
            try:
                return os.fdopen(os.open(self.path("w/" + name), os.O_WRONLY | os.O_NONBLOCK), "w")
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
        f = wait_for("a reader of " + name, is_read)
        self.addCleanup(f.close)

        def go():
            f.write("\n")
            f.close()
        return go

    def results(self, s):
        return dict(line.split() for line in s.out.decode().splitlines())


class Kill(Programs):
    RULE = rule("T", "kind = file.open and file.path startswith /tmp/out/ and proc.exe = /tmp/bin/t", "kill",
                "scope: process")
    PRELUDE = r"""
mkdir /tmp/bin /tmp/other /tmp/out
new() { cp /bin/dash /tmp/bin/t.new; mv /tmp/bin/t.new /tmp/bin/t; }
new
try() { name=$1; shift; "$@"; echo $name $?; }
touches() { try $1 $2 -c ': > /tmp/out/'$1; }
"""

    def test_names_of_the_file(self):
        s = self.judged([self.RULE], "sh", "-c", self.PRELUDE + r"""
touches itself /tmp/bin/t
ln -s /tmp/bin/t /tmp/other/soft; touches soft /tmp/other/soft
cd /tmp/other; touches dots ../bin/./t
ln /tmp/bin/t /tmp/other/hard; touches hard /tmp/other/hard
cp /tmp/bin/t /tmp/other/copy; touches copy /tmp/other/copy
cp /tmp/bin/t /tmp/bin/tt; touches longer /tmp/bin/tt
try elsewhere /tmp/bin/t -c ': > /tmp/elsewhere'
new; touches replaced /tmp/bin/t
rm /tmp/bin/t; cp /bin/bash /tmp/bin/t; touches another /tmp/bin/t
rm /tmp/bin/t; mv /tmp/other/hard /tmp/bin/t; touches renamed_to /tmp/bin/t
""")
        self.assertEqual(self.results(s), {
            "itself": KILLED, "soft": KILLED, "dots": KILLED, "hard": "0", "copy": "0", "longer": "0",
            "elsewhere": "0", "replaced": KILLED, "another": KILLED, "renamed_to": KILLED})
        self.assertEqual(self.told(s, "T"), 6)
        self.assertIntact(s)

    def test_what_becomes_of_it_while_it_runs(self):
        s = self.judged([self.RULE], "sh", "-c", self.PRELUDE + r"""
try moved /tmp/bin/t -c 'mv /tmp/bin/t /tmp/other/moved; : > /tmp/out/1'
touches by_its_new_name /tmp/other/moved
new; try removed /tmp/bin/t -c 'rm /tmp/bin/t; : > /tmp/out/2'
new; try replaced /tmp/bin/t -c 'cp /bin/bash /tmp/x; mv /tmp/x /tmp/bin/t; : > /tmp/out/3'
new; ln /tmp/bin/t /tmp/other/link
try taken_the_name /tmp/other/link -c 'mv -f /tmp/other/link /tmp/bin/t2; : > /tmp/out/4'
try child /tmp/bin/t -c '( : > /tmp/out/5 ); exit $?'
try childs_child /tmp/bin/t -c '( ( : > /tmp/out/6 ); exit $? ); exit $?'
try another_program /tmp/bin/t -c 'exec touch /tmp/out/7'
try its_child_runs_another /tmp/bin/t -c 'touch /tmp/out/8; exit $?'
try runs_it dash -c 'exec /tmp/bin/t -c ": > /tmp/out/9"'
""")
        self.assertEqual(self.results(s), {
            "moved": KILLED, "by_its_new_name": "0", "removed": KILLED, "replaced": KILLED,
            "taken_the_name": "0", "child": KILLED, "childs_child": KILLED, "another_program": "0",
            "its_child_runs_another": "0", "runs_it": KILLED})
        self.assertEqual(self.told(s, "T"), 6)

    def test_one_file_mounted_twice(self):
        """The same device and inode, two programs."""
        text = rule("T", "kind = file.open and file.path startswith /tmp/out and proc.exe = /opt/a/dash", "kill",
                    "scope: process")
        s = self.judged([text], "sh", "-c", """
/opt/b/dash -c ': > /tmp/out2'; echo b $?
/opt/a/dash -c ': > /tmp/out1'; echo a $?
""", options=["--ro", "/bin/dash:/opt/a/dash", "--ro", "/bin/dash:/opt/b/dash"])
        self.assertEqual(self.results(s), {"a": KILLED, "b": "0"})
        self.assertEqual(self.told(s, "T"), 1)

    def test_copied_up_in_an_overlay(self):
        os.mkdir(self.path("layers"))
        # What the machine has may be an overlay itself, which is no upper layer.
        subprocess.check_call(["mount", "-t", "tmpfs", "tmpfs", self.path("layers")])
        self.addCleanup(subprocess.check_call, ["umount", self.path("layers")])
        for d in ("lower", "upper", "work", "merged"):
            os.mkdir(self.path("layers/" + d))
        subprocess.check_call(["cp", "/bin/dash", self.path("layers/lower/t")])
        merged = self.path("layers/merged")
        subprocess.check_call(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s" % tuple(
            self.path("layers/" + d) for d in ("lower", "upper", "work")), merged])
        self.addCleanup(subprocess.check_call, ["umount", merged])
        finish = self.begin(rule("T", "kind = file.open and file.path startswith /tmp/out and proc.exe = /opt/m/t",
                                 "kill", "scope: process"), r"""
/opt/m/t -c ': > /tmp/out1'; echo lower $?
/opt/m/t -c 'read x < /opt/w/go; : > /tmp/out2'; echo runs $?
/opt/m/t -c ': > /tmp/out3'; echo upper $?
/opt/m/u -c ': > /tmp/out3'; echo other $?
""", "go", "--ro", merged + ":/opt/m")
        go = self.waits("go")
        os.chmod(os.path.join(merged, "t"), 0o711)  # copied up
        self.assertTrue(os.path.exists(self.path("layers/upper/t")))
        subprocess.check_call(["cp", "/bin/dash", os.path.join(merged, "u")])
        go()
        s = finish()
        self.assertEqual(self.results(s), {"lower": KILLED, "runs": KILLED, "upper": KILLED, "other": "0"})
        self.assertEqual(self.told(s, "T"), 3)

    def test_programs_without_a_name(self):
        text = rule("M", "kind = file.open and file.path startswith /tmp/out and proc.exe startswith \"memfd:\"", "kill",
                    "scope: process")
        s = self.judged([text], "/usr/bin/python3", "-c", r"""
import os
fd = os.memfd_create("x")
os.write(fd, open("/bin/dash", "rb").read())
for how in ("/proc/self/fd/%d" % fd, "/bin/dash"):
    pid = os.fork()
    if pid == 0:
        os.execv(how, ["dash", "-c", ": > /tmp/out"])
    print("dash" if "dash" in how else "memfd", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""")
        self.assertEqual(self.results(s), {"memfd": "-9", "dash": "0"})
        self.assertEqual(self.told(s, "M"), 1)


class Inode(Programs):
    """An exec of a file, by device and inode: whatever it is called."""

    def test_exec_by_each_of_its_names(self):
        for name in ("prog", "twin"):
            subprocess.check_call(["cp", "/bin/dash", self.path(name)])
        os.link(self.path("prog"), self.path("link"))
        ino = os.stat(self.path("prog")).st_ino
        text = rule("I", "kind = exec and proc.exe_ino = %d and proc.exe_dev = %s" % (
            ino, mounted_dev(self.path("prog"))), "kill", "scope: process")
        other = rule("O", "kind = exec and proc.exe_ino = %d and proc.exe_dev = 4095:7" % ino, "kill")
        s = self.judged([text, other], "sh", "-c", """
for n in prog link twin mount; do /opt/$n -c true; echo $n $?; done
ln -s /opt/prog /tmp/soft; /tmp/soft -c true; echo soft $?
""", options=[x for n, to in (("prog", "prog"), ("link", "link"), ("twin", "twin"), ("prog", "mount"))
              for x in ("--ro", "%s:/opt/%s" % (self.path(n), to))])
        self.assertEqual(self.results(s), {"prog": KILLED, "link": KILLED, "mount": KILLED, "soft": KILLED,
                                           "twin": "0"})
        self.assertEqual(self.told(s, "I"), 4)

    def test_of_any_device(self):
        subprocess.check_call(["cp", "/bin/dash", self.path("prog")])
        text = rule("I", "kind = exec and proc.exe_ino in (1, %d)" % os.stat(self.path("prog")).st_ino, "kill",
                    "scope: process")
        s = self.judged([text], "sh", "-c", "/opt/prog -c true; echo prog $?; dash -c true; echo dash $?",
                        options=["--ro", self.path("prog") + ":/opt/prog"])
        self.assertEqual(self.results(s), {"prog": KILLED, "dash": "0"})
        self.assertEqual(self.told(s, "I"), 1)


class Connect(Programs):
    """A deny that holds in both tiers."""

    def test_together_with_addresses(self):
        text = rule("C", "kind = net.connect and net.dst.ip in (127.0.0.0/8) and net.dst.port != 81 and "
                         "proc.exe startswith /tmp/bin/ and not proc.exe in (/tmp/bin/fine)", "deny")
        s = self.judged([text], "sh", "-c", r"""
mkdir /tmp/bin; for n in b fine; do cp /bin/bash /tmp/bin/$n; done; ln /tmp/bin/b /tmp/hard
to() { $1 -c 'exec 3<>/dev/tcp/127.0.0.1/'$2 2>&1 | grep -q "not permitted" && echo $1:$2 denied || echo $1:$2 let; }
to bash 80; to /tmp/bin/b 80; to /tmp/bin/b 81; to /tmp/bin/fine 80; to /tmp/hard 80
rm /tmp/bin/b; cp /bin/bash /tmp/bin/b; to /tmp/bin/b 82
/tmp/bin/b -c 'rm /tmp/bin/b; (exec 3<>/dev/tcp/127.0.0.1/83) 2>&1' | grep -q "not permitted" && echo gone denied
""")
        self.assertEqual(self.results(s), {
            "bash:80": "let", "/tmp/bin/b:80": "denied", "/tmp/bin/b:81": "let", "/tmp/bin/fine:80": "let",
            "/tmp/hard:80": "let", "/tmp/bin/b:82": "denied", "gone": "denied"})
        alerts = s.kinds("rule.alert", rule__name="C")
        self.assertEqual([field(a, "rule.enforced") for a in alerts], ["prevented"] * 3)

    def test_explained(self):
        path = self.path("r.yaml", rule("C", "kind = net.connect and net.family in (inet, inet6) and proc.exe = "
                                             "/usr/bin/curl", "deny"))
        for tier in ("portable", "full"):
            done = self.warder("rules", "explain", "--json", "--tier", tier, path)
            row = json.loads(done.out)
            self.assertEqual((row["where"], row["guarantee"]), ("kernel", "prevented (net.connect)"), row)


class Reloaded(Programs):
    def test_programs_that_ran_before_the_rule_came(self):
        """By the path of their exec, whatever the file is called by now."""
        some = rule("Some", "kind = file.delete and proc.exe = /nowhere", "kill")
        finish = self.begin(some, r"""
mkdir /tmp/bin /tmp/res; for n in moved stays other; do cp /bin/dash /tmp/bin/$n; done
run() { /tmp/bin/$1 -c 'read x < /opt/w/'$1'; : > /tmp/out.'$1; echo $1 $? > /tmp/res/$1; }
for n in moved stays other; do run $n & done
read x < /opt/w/move; mv /tmp/bin/moved /tmp/bin/else; read x < /opt/w/wait; wait
cat /tmp/res/*
""", "moved stays other move wait")
        programs = [self.waits(n) for n in ("moved", "stays", "other")]
        self.waits("move")()
        end = self.waits("wait")
        os.rename(self.path("rules.new", some + rule("T", "kind = file.open and file.path startswith /tmp/out. and "
                                                          "proc.exe in (/tmp/bin/moved, /tmp/bin/stays)", "kill",
                                                     "scope: process")), self.rules)
        wait_for("the new rules", lambda: b'"audit.rules"' in self.warder("events", self.path("s1/session")).out)
        for go in programs + [end]:
            go()
        s = finish()
        self.assertEqual(self.results(s), {"moved": KILLED, "stays": KILLED, "other": "0"})
        self.assertEqual(self.told(s, "T"), 2)


class Full(Programs):
    """What only the full tier can refuse."""

    def setUp(self):
        super().setUp()
        if self.tier() != "full":
            raise unittest.SkipTest("this kernel cannot prevent what is done to files")

    def test_files_are_refused(self):
        text = rule("D", "kind in (file.open, file.mkdir, file.delete) and proc.exe = /tmp/bin/t and file.path "
                         "startswith /tmp/out/", "deny")
        s = self.judged([text], "sh", "-c", Kill.PRELUDE + r"""
touches itself /tmp/bin/t; ln /tmp/bin/t /tmp/other/hard; touches hard /tmp/other/hard
cp /bin/mkdir /tmp/bin/t; try mkdir /tmp/bin/t /tmp/out/d; try mkdir_elsewhere /tmp/bin/t /tmp/d
cp /bin/rm /tmp/bin/t; try rm /tmp/bin/t /tmp/out/hard; try rm_by_another rm /tmp/out/hard
ls /tmp/out | wc -l
""".replace("ls /tmp/out | wc -l", "echo left $(ls /tmp/out | wc -l)"))
        self.assertEqual(self.results(s), {"itself": "2", "hard": "0", "mkdir": "1", "mkdir_elsewhere": "0", "rm": "1",
                                           "rm_by_another": "0", "left": "0"})
        self.assertEqual({field(a, "rule.enforced") for a in s.kinds("rule.alert")}, {"prevented"})

    def test_a_kill_comes_before_the_act(self):
        s = self.judged([Kill.RULE], "sh", "-c", Kill.PRELUDE + "touches x /tmp/bin/t; echo left $(ls /tmp/out | wc -l)")
        self.assertEqual(self.results(s), {"x": KILLED, "left": "0"})


if __name__ == "__main__":
    unittest.main()
