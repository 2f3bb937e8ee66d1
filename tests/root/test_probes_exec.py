# SPDX-License-Identifier: Apache-2.0
"""Programs that begin, and those that could not: every field of an exec against what the test really did."""

import base64
import hashlib
import json
import os
import unittest

from probes import *

# How payload scripts run something in a child.
CHILD = """
def child(fn):
    pid = os.fork()
    if pid == 0:
        try:
            fn()
        except OSError as e:
            os._exit(e.errno)
        os._exit(99)
    os.waitpid(pid, 0)
    return pid
"""


def area(d, r, what):
    """The argv area (0) or environment (1) as it was sent: {offset: bytes} joined, with holes left out."""
    head = base64.b64decode(r["args" if what == 0 else "env"])
    pieces = [(0, head)] if head else []
    for c in d.records[:d.records.index(r)]:
        if c["kind"] == "chunk" and c["exec_id"] == r["exec_id"] and c["what"] == what:
            pieces.append((c["offset"], base64.b64decode(c["data"])))
    return sorted(pieces)


class Image(Probes):
    def test_environment_is_sent_whole(self):
        d = self.script(CHILD + """
env = {b"A": b"1", b"EMPTY": b"", b"BYTES": b"\\xff\\xfe", b"NL": b"a\\nb"}
tell(small=child(lambda: os.execve("/bin/true", ["true"], env)))
env.update({b"BIG%d" % i: b"x" * 900 for i in range(20)})
tell(big=child(lambda: os.execve("/bin/true", ["true"], env)))
env.update({b"MORE%d" % i: b"y" * 900 for i in range(40)})
tell(more=child(lambda: os.execve("/bin/true", ["true"], env)))
tell(none=child(lambda: os.execve("/bin/true", ["true"], {})))
""")
        small = d.one("exec", tgid=d.told["small"])
        base = b"A=1\0EMPTY=\0BYTES=\xff\xfe\0NL=a\nb\0"
        self.assertEqual((area(d, small, 1), small["env_total"]), ([(0, base)], len(base)))
        big = d.one("exec", tgid=d.told["big"])
        base += b"".join(b"BIG%d=%s\0" % (i, b"x" * 900) for i in range(20))
        self.assertEqual(b"".join(p for _, p in area(d, big, 1)), base)
        self.assertEqual(big["env_total"], len(base))
        more = d.one("exec", tgid=d.told["more"])
        base += b"".join(b"MORE%d=%s\0" % (i, b"y" * 900) for i in range(40))
        self.assertEqual(b"".join(p for _, p in area(d, more, 1)), base[:32 * 1024])
        self.assertEqual(more["env_total"], len(base))
        none = d.one("exec", tgid=d.told["none"])
        self.assertEqual((area(d, none, 1), none["env_total"]), ([], 0))

    def test_times_owner_and_mode_of_the_executable(self):
        d = self.script(CHILD + """
open("prog", "wb").write(open("/bin/true", "rb").read())
os.chown("prog", 11, 12)
os.chmod("prog", 0o6755)
os.utime("prog", ns=(5, 1234567890123456789))
s = os.stat("prog")
tell(pid=child(lambda: os.execv("prog", ["prog"])), ino=s.st_ino, mtime=s.st_mtime_ns, ctime=s.st_ctime_ns)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
tell(user=child(lambda: os.execv("prog", ["prog"])))
""")
        t, r = d.told, d.one("exec", tgid=d.told["pid"])
        self.assertEqual((r["ino"], r["exe_mtime"], r["exe_ctime"], r["exe_uid"], r["mode"] & 0o7777),
                         (t["ino"], t["mtime"], t["ctime"], 11, 0o6755))
        self.assertEqual(t["mtime"], 1234567890123456789)
        user = d.one("exec", tgid=t["user"])
        self.assertEqual((user["uid"], user["gid"], user["ruid"], user["secureexec"]), (11, 12, 65534, 1))

    def test_upper_layer_of_an_overlay(self):
        d = self.script(CHILD + """
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
# Not on the root, which may be one itself and is then no good as a layer.
import shutil
sc(165, b"none", os.getcwd().encode(), b"tmpfs", 0, 0)
os.chdir(os.getcwd())
for n in ("lower", "upper", "work", "merged"): os.mkdir(n)
for n in ("lower/base", "upper/added"): shutil.copy("/bin/true", n)
r = sc(165, b"overlay", b"merged", b"overlay", 0, b"lowerdir=lower,upperdir=upper,workdir=work")
tell(mounted=r, base=child(lambda: os.execv("merged/base", ["b"])), added=child(lambda: os.execv("merged/added", ["a"])))
""")
        if d.told["mounted"]:
            self.skipTest("no overlay can be mounted here: errno %d" % -d.told["mounted"])
        base, added = (d.one("exec", tgid=d.told[n]) for n in ("base", "added"))
        self.assertEqual((base["exe"], base["upper_layer"]), (self.path("merged/base"), 0))
        self.assertEqual((added["exe"], added["upper_layer"]), (self.path("merged/added"), 1))

    def test_command_text_is_an_argument(self):
        text = ": 'a\nb' \"$(:)\"; : \u00e9"
        d = self.dump("/bin/sh", "-c", text)
        self.assertEqual(area(d, d.kinds("exec")[0], 0), [(0, b"/bin/sh\0-c\0" + text.encode() + b"\0")])


class Ways(Probes):
    """Other ways to a new program than fork and execve by name."""

    def test_spawn_vfork_and_by_descriptor(self):
        d = self.script(CHILD + """
import subprocess
tell(spawn=os.posix_spawn("/bin/true", ["spawn"], {}), me=os.getpid())
os.wait()
p = subprocess.Popen(["vfork"], executable="/bin/true", close_fds=False); p.wait()
f = os.open("/bin/true", os.O_RDONLY)
tell(vfork=p.pid, byfd=child(lambda: os.execve(f, ["byfd"], {})))
""")
        true = os.path.realpath("/bin/true")
        for who in ("spawn", "vfork", "byfd"):
            r, fork = d.one("exec", tgid=d.told[who]), d.one("fork", ret=d.told[who])
            self.assertEqual((r["exe"], r["ppid"], r["memfd"], fork["tgid"]), (true, d.told["me"], 0, d.told["me"]), who)
            self.assertEqual(area(d, r, 0), [(0, who.encode() + b"\0")])
            self.assertEqual(d.one("exit", tgid=d.told[who])["status"], 0)

    def test_interpreters_of_interpreters(self):
        """As deep as the kernel goes, each a script of the one before; one deeper is refused, and told."""
        for i in range(1, 7):
            with open(self.path("s%d" % i), "w") as f:
                f.write("#!%s\n" % (self.path("s%d" % (i - 1)) if i > 1 else "/bin/true"))
            os.chmod(self.path("s%d" % i), 0o755)
        d = self.script(CHILD + """
for i in range(1, 7): tell(**{"s%d" % i: child(lambda: os.execv(sys.argv[1] + "/s%d" % i, ["s%d" % i, "arg"]))})
""")
        worked = 0
        for i in range(1, 7):
            r = d.one("exec", tgid=d.told["s%d" % i])
            if r["ret"] < 0:
                self.assertEqual((r["ret"], r["exe"]), (-40, self.path("s%d" % i)), "too many levels")
                continue
            worked += 1
            self.assertEqual((r["exe"], r["script"]), (os.path.realpath("/bin/true"), self.path("s%d" % i)))
            names = [b"/bin/true"] + [self.path("s%d" % k).encode() for k in range(1, i + 1)] + [b"arg"]
            self.assertEqual(base64.b64decode(r["args"]), b"".join(n + b"\0" for n in names))
        self.assertGreaterEqual(worked, 4)

    def test_from_a_thread_what_was_open_stays_known(self):
        """The thread takes the leader's number and place: still ours, and its files are still counted."""
        d = self.script("""
import threading
f = os.open("kept", os.O_CREAT | os.O_WRONLY); os.set_inheritable(f, True)
os.write(f, b"12345")
tell(pid=os.getpid(), fd=f)
code = "import os; f = %d; os.write(f, b'678'); os.close(f); open('after', 'w').close()" % f
t = threading.Thread(target=lambda: os.execv(sys.executable, [sys.executable, "-c", code]))
t.start(); t.join()
""")
        pid = d.told["pid"]
        self.assertEqual(len(d.kinds("exec", tgid=pid)), 2)
        opened = next(r for r in d.kinds("file.open") if r["path"] == self.path("kept"))
        wrote = [r for r in d.kinds("file.write", id=opened["id"]) if r["op"] == 2]
        self.assertEqual([(r["size"], r["count"], r["tgid"], r["fd"]) for r in wrote], [(8, 2, pid, d.told["fd"])])
        after = next(r for r in d.kinds("file.open") if r["path"] == self.path("after"))
        self.assertEqual((after["tgid"], after["tid"], after["start"], after["sandbox"]), (pid, pid, opened["start"], 7))
        self.assertEqual(d.one("exit", tgid=pid)["status"], 0)


class Arguments(Probes):
    def words(self, d, words):
        whole = b"".join(w + b"\0" for w in words)
        r = d.kinds("exec")[-1]
        self.assertEqual((r["args_total"], r["argc"]), (len(whole), len(words)))
        return r, whole

    def test_empty_ones_newlines_and_any_byte(self):
        words = [b"/bin/true", b"", b"", b"a\nb", bytes(range(1, 256)), b"\xff\xfe", b""]
        d = self.dump(*words)
        r, whole = self.words(d, words)
        self.assertEqual(area(d, r, 0), [(0, whole)])

    def test_one_of_128_kib(self):
        """The longest that the kernel takes: more than is kept, but all of it crosses the ring, for its hash."""
        words = [b"/bin/true", b"\xfe" * (128 * 1024 - 1), b"end"]
        d = self.dump(*words)
        r, whole = self.words(d, words)
        self.assertEqual(b"".join(p for _, p in area(d, r, 0)), whole)
        self.assertEqual(r["flags"], TRUNC)

    def test_ten_thousand(self):
        words = [b"/bin/true"] + [b"%d" % i for i in range(10000)]
        d = self.dump(*words)
        r, whole = self.words(d, words)
        self.assertEqual(b"".join(p for _, p in area(d, r, 0)), whole)
        self.assertEqual(r["flags"], 0)

    def test_beyond_what_is_sent(self):
        """The first 224 KiB and the last 32 KiB, and how much there was."""
        words = [b"/bin/true"] + [bytes([97 + i]) * 100000 for i in range(5)]
        d = self.dump(*words)
        r, whole = self.words(d, words)
        pieces = area(d, r, 0)
        self.assertEqual(b"".join(p for at, p in pieces if at < 224 * 1024), whole[:224 * 1024])
        end = [(at, p) for at, p in pieces if at >= 224 * 1024]
        self.assertEqual(end[0][0], len(whole) - 32 * 1024)
        self.assertEqual(b"".join(p for _, p in end), whole[-32 * 1024:])
        self.assertTrue(r["flags"] & TRUNC)


class Failed(Probes):
    def failed(self, d):
        return [(r.get("exe"), r["ret"], r["tries"]) for r in d.kinds("exec") if r["ret"] < 0]

    def test_each_reason(self):
        self.path("text", "no program\n")
        self.path("broken", "#!/nonexistent/interpreter\n")
        self.path("locked", "#!/bin/sh\n")
        os.mkdir(self.path("dir"))
        for name, mode in (("text", 0o755), ("broken", 0o755), ("locked", 0o644)):
            os.chmod(self.path(name), mode)
        d = self.script(CHILD + """
e = os.execv
tell(pids=[child(lambda p=p: e(p, [p])) for p in ("./text", "dir", "locked", "broken", "none", "/none/" + "x" * 300)])
tell(long=child(lambda: e("y" * 5000, ["y"])))
dirfd = os.open("dir", os.O_RDONLY)
tell(at=child(lambda: sc(322, dirfd, b"../nothing", 0, 0, 0)))
tell(bad=child(lambda: sc(59, 8, 0, 0)))
""")
        self.assertEqual(self.failed(d), [
            ("./text", -8, 1), ("dir", -13, 1), ("locked", -13, 1), ("broken", -2, 1), ("none", -2, 1),
            ("/none/" + "x" * 300, -2, 1), ("y" * 4095, -36, 1), ("../nothing", -2, 1), (None, -14, 1)])
        rows = [r for r in d.kinds("exec") if r["ret"] < 0]
        self.assertEqual([r["tgid"] for r in rows],
                         d.told["pids"] + [d.told["long"], d.told["at"], d.told["bad"]])
        self.assertEqual([r["nr"] for r in rows], [59] * 7 + [322, 59])
        for r in rows:
            self.assertTrue(r["flags"] & TOCTOU)
            self.assertEqual((r["args_total"], r["ino"], r["ancestors"]), (0, 0, []))
            self.assertEqual(r["cwd"], self.path("dir") if r["tgid"] == d.told["at"] else self.tmp)
        self.assertTrue(rows[6]["flags"] & TRUNC)
        self.assertTrue(rows[8]["flags"] & 0x400, "the name could not be read")

    def test_a_search_is_told_once_and_only_in_vain(self):
        d = self.script(CHILD + """
import subprocess
os.environ["PATH"] = "/none1:/none2:/none3:/bin"
subprocess.run(["true"])
tell(vain=child(lambda: os.execvp("no-such-program", ["x"])))
def two():
    for p in ("first", "second"):
        try:
            os.execvp(p, [p])
        except OSError:
            pass
    os.execv("/bin/true", ["true"])
tell(two=child(two))
""")
        rows = [(r["tgid"], r["exe"], r["tries"]) for r in d.kinds("exec") if r["ret"] < 0]
        t = d.told
        self.assertEqual(rows, [(t["vain"], "/bin/no-such-program", 4), (t["two"], "/bin/first", 4),
                                (t["two"], "/bin/second", 4)])
        # The process goes on: what it could not run comes before what it ran instead.
        kinds = [(r["kind"], r.get("exe")) for r in d.kinds("exec", "exit", tgid=t["two"])]
        self.assertEqual(kinds, [("exec", "/bin/first"), ("exec", "/bin/second"),
                                 ("exec", os.path.realpath("/bin/true")), ("exit", None)])


class Events(TestCase):
    """What a reader of the record sees."""

    def setUp(self):
        need_root()
        super().setUp()

    def run_words(self, words, **kw):
        s = self.session(*words, **kw)
        self.assertCode(s, 0)
        e = s.kinds("exec", proc__argc=len(words))[0]
        return s, e

    def recovered(self, e):
        """The argument bytes, whatever they were."""
        out = []
        for i, text in enumerate(e["proc"]["args"]):
            raw = e.get("raw", {}).get("proc.args.%d" % i)
            out.append(base64.b64decode(raw) if raw else text.encode())
        return out

    def test_any_argument_comes_back(self):
        for words in ([b"/bin/true", b"", b"a\nb\r\x1b[31m", bytes(range(1, 256)), b"\xff", b"\xc3\xa9", b""],
                      [b"/bin/true"] + [b"%d" % i for i in range(10000)],
                      [b"/bin/true", b"\xf0\x28\x8c\x28" * 30000]):
            with self.subTest(n=len(words)):
                s, e = self.run_words(words)
                self.assertEqual(self.recovered(e), words)
                self.assertEqual(e["proc"]["args_len"], sum(len(w) + 1 for w in words))
                self.assertNotIn("args_truncated", e["proc"])

    def test_beyond_the_cap(self):
        words = [b"/bin/true"] + [b"%03d" % i + b"x" * 996 for i in range(200)]
        whole = b"".join(w + b"\0" for w in words)
        s, e = self.run_words(words)
        p = e["proc"]
        self.assertTrue(p["args_truncated"] and e["truncated"])
        self.assertEqual(p["args_len"], len(whole))
        self.assertEqual(p["args_sha256"], hashlib.sha256(whole).hexdigest())
        self.assertEqual(p["args_hashed"], len(whole))
        self.assertEqual("\0".join(p["args"]).encode(), whole[:96 * 1024])
        self.assertEqual("\0".join(p["args_tail"]).encode(), whole[-32 * 1024:-1])

    def test_only_names_of_the_environment(self):
        options = ["--env", "API_KEY=s3cret-value", "--env", "LD_DEBUG=none", "--env", "SHOWN=yes"]
        s, e = self.run_words(["/bin/true"], options=options)
        self.assertLessEqual({"API_KEY", "LD_DEBUG", "SHOWN", "PATH"}, set(e["proc"]["env"]))
        s, e = self.run_words(["/bin/true"], options=options + ["--watch-env", "LD_*", "--watch-env", "SHOWN"])
        self.assertLessEqual({"API_KEY", "LD_DEBUG=none", "SHOWN=yes", "PATH"}, set(e["proc"]["env"]))
        for path in s.segments():
            with open(path, "rb") as f:
                self.assertNotIn(b"s3cret-value", f.read())
        self.assertNotIn("s3cret", json.dumps(s.events))

    def test_failed_exec(self):
        s = self.session("/bin/sh", "-c", "/no/such/thing; /etc/passwd; true")
        self.assertCode(s, 0)
        rows = [e for e in s.kinds("exec") if e["outcome"] != "success"]
        self.assertEqual([(e["outcome"], e["errno"], e["exec"]["path"], e["syscall"]) for e in rows],
                         [("failure", "ENOENT", "/no/such/thing", "execve"),
                          ("denied", "EACCES", "/etc/passwd", "execve")])
        # Who asked, not what was asked for.
        self.assertEqual({e["proc"]["exe"] for e in rows}, {os.path.realpath("/bin/sh")})
        self.assertEqual(rows[0]["proc"]["args"][0], "/bin/sh")

    def test_script_by_a_relative_name(self):
        s = self.session("/bin/sh", "-c", "printf '#!/bin/sh\\ntrue\\n' > s; chmod +x s; ./s")
        e, = [e for e in s.kinds("exec") if "script" in e["proc"]]
        self.assertEqual((e["proc"]["script"], e["proc"]["exe"]), ("/workspace/s", os.path.realpath("/bin/sh")))
        self.assertTrue(e["proc"]["dropped"])


if __name__ == "__main__":
    unittest.main()
