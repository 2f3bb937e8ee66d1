# SPDX-License-Identifier: Apache-2.0
"""The HTML report, in a real browser: what it shows is what was recorded, and nothing in it runs."""

import json
import os
import re
import unittest

from browser import Browser
from warder import *

HOSTILE = ["<img src=x onerror=document.title='owned'>", "</script><script>document.title='owned'</script>",
           "</title><svg onload=alert(1)>", "\x1b[2J‮gpj.exe", "javascript:alert(1)", "{{7*7}}${7*7}",
           "-->]]></style><a href=javascript:alert(1)>x"]
SHOWN = ["<img src=x onerror=document.title='owned'>", "<script>document.title='owned'<", "<svg onload=alert(1)>",
         "\\x1b[2J\\u{202e}gpj.exe", "javascript:alert(1)", "{{7*7}}${7*7}", "-->]]>"]
KEPT = ("kind", "session", "id", "outcome", "time", "first", "last", "at", "until", "since")  # words of ours, times
TABS = ("alerts", "files", "network", "packages", "events")


class Page:
    """A report in a browser."""

    def __init__(self, test, b):
        self.test, self.b = test, b

    def open(self, path, fragment=""):
        self.b.open("/dev/null")
        self.b.open(path, fragment)
        ready = wait_for("the page", lambda: self.b.run(
            "const d = document.body && document.body.dataset; return d && (d.ready === 'error' ? 'error' : d.whole)"))
        self.test.assertEqual(ready, "1", self.b.run("return document.getElementById('state').textContent"))

    def text(self, name):
        return self.b.run("return document.getElementById(arguments[0]).textContent", name)

    def click(self, name):
        self.b.run("document.getElementById(arguments[0]).click()", name)

    def put(self, name, text):
        self.b.run("const f = document.getElementById(arguments[0]); f.value = arguments[1];"
                   "f.dispatchEvent(new Event('input'));", name, text)

    def filter(self, text):
        """What the page says to it, once it does."""
        self.b.run("document.getElementById('why').textContent = ''")
        self.put("filter", text)
        return wait_for("the filter", lambda: self.text("why"))

    def search(self, text):
        self.b.run("document.getElementById('hit-count').textContent = ''")
        self.put("search", text)
        return wait_for("the search", lambda: self.text("hit-count"))

    def rows(self):
        return self.b.run("return [...document.querySelectorAll('#rows .row')].map("
                          "r => [...r.querySelectorAll('.kind, .what')].map(e => e.textContent).join(' '))")

    def fields(self):
        return dict(self.b.run("return [...document.querySelectorAll('#fields dt')].map("
                               "d => [d.textContent, d.nextSibling ? d.nextSibling.textContent : ''])"))

    def now(self):
        return float(self.b.run("return document.getElementById('bar').getAttribute('aria-valuenow')"))

    def hash(self):
        return wait_for("the address", lambda: self.b.run("return location.hash"))

    def assertQuiet(self):
        """Nothing was asked of a network, and the browser has nothing to complain of."""
        self.test.assertEqual(self.b.requests(), [])
        self.test.assertEqual([r["message"] for r in self.b.log("browser") if r["level"] == "SEVERE"], [])


@unittest.skipIf(IN_VM, "a browser does not depend on the kernel, and takes minutes under emulation")
@unittest.skipIf(Browser.missing(), "%s is not installed" % Browser.missing())
class Report(TestCase):
    def report(self, s, *options, code=0):
        path = self.path("report%d.html" % self.count)
        self.assertCode(self.warder("report", s.dir, "-o", path, *options), code)
        return path

    def test_shows_the_session(self):
        s = self.session("sh", "-c", "echo hi > a; mv a b; sh -c 'ls /; true'; unshare -m true; true")
        self.assertCode(s, 137)
        path = self.report(s)
        with Browser() as b:
            p = Page(self, b)
            p.open(path)
            self.assertIn(s.result["session"], b.run("return document.title"))
            self.assertEqual(p.text("verdict"), "Intact")
            self.assertEqual(p.text("verify-command"), "warder verify " + s.result["session"])
            self.assertIn("Records%d" % len(s.events), p.text("strip"))
            # it begins at the alert; filters find as many as `warder events` does
            self.assertEqual(p.fields()["kind"], "rule.alert")
            for expr in ("kind = exec", "kind in (file.open, file.rename)", "proc.comm = mv or kind = escape",
                         "not kind = exec and proc.nspid > 2", "proc.args contains '; mv a'", "proc.name=mv",
                         "file.flags intersects (O_TRUNC, O_RDONLY)", "file.name = b", "file.path glob '/work*/?'",
                         "proc.args in (ls, /)", "basename(proc.exe) = mv and not exit.code exists",
                         "file.write = true or exit.code > 0", "proc.args[1] = -c and kind = exec", "proc.argc >= 3"):
                want = len(cmd(WARDER, "events", "--filter", expr, s.dir).out.splitlines())
                self.assertEqual(p.filter(expr), "%d of %d events" % (want, len(s.events)), expr)
                self.assertGreater(want, 0, expr)
            # an error is told at its place
            for expr, at, says in (("no.such = 1", 1, "unknown field"), ("proc.com = sh", 1, "did you mean 'proc.comm'"),
                                   ("kind =", 7, "needs a value"), ("kind = exec and (proc.pid > 1", 17, "no ')'"),
                                   ("kind = exek", 8, "no event kind"), ("proc.pid = x", 12, "is a number"),
                                   ("kind regex .*", 6, "warder events --filter")):
                answer = p.filter(expr)
                self.assertIn(says, answer)
                self.assertIn("column %d:" % at, answer)
            p.filter("kind = file.rename")
            self.assertEqual(p.rows(), ["file.rename /workspace/a to /workspace/b"])
            p.filter("")
            # by keys: alerts, and the trigger of one is a step away
            b.run("document.activeElement.blur()")
            b.press("p")
            self.assertEqual(p.fields()["kind"], "escape")
            b.press("n")
            fields = p.fields()
            self.assertIn("Namespace changed from inside a sandbox", fields["rule.name"])
            seq = int(fields["seq"])
            wait_for("the address", lambda: "seq=%d" % seq in b.run("return location.hash"))
            b.run("document.querySelector('#fields button').click()")
            self.assertEqual(p.fields()["kind"], "escape")
            # the tree: ls is below the inner sh, which is below the outer one
            tree = dict(b.run("return [...document.querySelectorAll('#tree .row')].map("
                              "r => [r.querySelector('code').textContent, r.getAttribute('aria-level')])"))
            self.assertEqual(int(tree["ls /"]), int(tree["sh -c 'ls /; true'"]) + 1)
            self.assertIn("/workspace/b", p.text("p-files"))
            # a link to one event
            p.open(path, "#seq=%d" % seq)
            self.assertEqual(p.fields()["seq"], str(seq))
            p.assertQuiet()

    def test_an_attempt_that_no_rule_told_of(self):
        """What stands under the tab Alerts is counted in the strip and on paper, too."""
        s = self.session("sh", "-c", "unshare -m true; true", options=["--no-default-rules"])
        self.assertFalse(s.kinds("rule.alert"))
        path = self.report(s)
        with Browser() as b:
            p = Page(self, b)
            p.open(path)
            n = len(s.kinds("escape")) + len(s.kinds("action"))
            self.assertGreater(n, 0)
            self.assertIn("Alerts0and %d of escapes, limits, actions" % n, p.text("strip"))
            self.assertIn("Escapes, limits and actions (%d)" % n, p.text("summary"))
            self.assertIn("Alerts: none", p.text("summary"))

    def test_one_clock(self):
        """Seeking in one part moves all."""
        s = self.session("sh", "-c", "true; sleep 0.3; sh -c 'exit 3'; sleep 0.2; kill -9 $$")
        path = self.report(s)
        with Browser() as b:
            p = Page(self, b)
            p.open(path)
            end = float(b.run("return document.getElementById('bar').getAttribute('aria-valuemax')"))

            def state(name):
                return b.run("return [...document.querySelectorAll('#tree .row')].filter(r => r.querySelector('code')"
                             ".textContent.startsWith(arguments[0])).map(r => r.querySelector('.state').textContent)[0]", name)
            # the end: all have ended, each as it did
            self.assertAlmostEqual(p.now(), end, places=3)
            self.assertEqual(state("sh -c 'true"), "SIGKILL")
            self.assertEqual(state("sh -c 'exit"), "exit 3")
            # the bar, by its key: the beginning
            b.run("document.getElementById('bar').focus()")
            b.press("\ue011")  # Home
            self.assertEqual(p.now(), 0)
            self.assertEqual(state("sh -c 'exit"), "not yet")
            # the list: an event later on
            exec3 = next(e for e in s.events if e["kind"] == "exec" and "exit 3" in field(e, "proc.args", [])[2:])
            p.filter("proc.args[2] = 'exit 3' and kind = exec")
            b.run("document.querySelector('#rows .row').click()")
            self.assertEqual(p.fields()["seq"], str(exec3["seq"]))
            at = (exec3["mono"] - s.events[0]["mono"]) / 1e9
            self.assertAlmostEqual(p.now(), at, places=2)
            self.assertEqual((state("sh -c 'exit"), state("sh -c 'true")), ("alive", "alive"))
            # the tree: the first program
            p.filter("")
            b.run("[...document.querySelectorAll('#tree .row')][0].querySelector('.pid').click()")
            self.assertLess(p.now(), at)
            # the pointer on the bar
            b.run("const r = document.getElementById('lanes').getBoundingClientRect();"
                  "const e = (t, x) => document.getElementById('bar').dispatchEvent(new PointerEvent(t,"
                  "{ clientX: r.left + r.width * x, clientY: r.top + 9, bubbles: true, pointerId: 1 }));"
                  "HTMLElement.prototype.setPointerCapture = () => {}; e('pointerdown', 0.5);")
            self.assertAlmostEqual(p.now(), end / 2, delta=end / 50)
            # and it plays to its end by itself, faster than it was
            b.run("document.activeElement.blur()")
            for _ in range(4):
                b.press("+")
            self.assertEqual(b.run("return document.getElementById('speed').value"), "16")
            b.press(" ")
            wait_for("the end", lambda: p.now() >= end - 0.001)
            p.assertQuiet()

    def test_hostile_session(self):
        """Every string of the sandbox that reaches the page tries to be markup or script."""
        code = "import os, socket, sys\nfor a in sys.argv[1:]:\n  try: open('/workspace/' + a.replace('/', '∕'), 'w')\n" \
               "  except OSError: pass\n  os.spawnv(os.P_WAIT, '/bin/true', [a, a])\n" \
               "  s = socket.socket(socket.AF_UNIX)\n  try: s.connect('/tmp/' + a.replace('/', '∕')[:60])\n" \
               "  except OSError: pass\n"
        rules = self.path("hostile.yaml")
        with open(rules, "w") as f:
            f.write("- rule: \"<b onmouseover=alert(1)>rule\"\n  desc: x\n  condition: kind = exec and proc.args contains onerror\n"
                    "  output: \"<iframe src=//x> %proc.args\"\n  priority: WARNING\n")
        s = self.session("python3", "-c", code, *HOSTILE,
                         options=["--name", "x", "--tenant", "acme", "--rules", rules])
        self.assertCode(s, 0)
        path = self.report(s)
        with open(path, encoding="utf-8") as f:
            page = f.read()
        for text in HOSTILE[:3]:
            self.assertNotIn(text, page)
        with Browser(dark=True) as b:
            p = Page(self, b)
            p.open(path)
            p.put("search", "onerror")
            for tab in TABS:
                p.click("t-" + tab)
            p.filter("<img")
            p.filter("kind = <img onerror=x>")
            p.filter("")
            b.run("document.getElementById('more').open = true")
            text = b.run("const all = []; for (const r of document.querySelectorAll('#rows')) { r.scrollTop = 0; }"
                         "return document.body.textContent")
            for shown in SHOWN:
                self.assertIn(shown, text)
            self.assertIn("<b onmouseover=alert(1)>rule", text)
            self.assertNotIn("‮", text)
            self.assertEqual(b.run("return document.querySelectorAll('img, svg, a, iframe, form, object, link, embed, b[onmouseover]').length"), 0)
            self.assertEqual(b.run("return document.scripts.length"), 2)
            self.assertEqual(b.run("return [...document.querySelectorAll('*')].filter(e => [...e.attributes].some("
                                   "a => a.name.startsWith('on') || /^\\s*javascript:/i.test(a.value))).length"), 0)
            self.assertNotIn("owned", b.run("return document.title"))
            p.assertQuiet()
            # and if something got in, the page's policy would stop it
            b.run("const s = document.createElement('script'); s.textContent = 'document.title = \"owned\"';"
                  "document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x'; document.body.append(i);")
            self.assertNotIn("owned", b.run("return document.title"))
            self.assertEqual([u for u in b.requests() if not u.startswith("http://127.0.0.1:9/")], [])
            self.assertTrue(any("Content Security Policy" in r["message"] for r in b.log("browser")))

    def test_files_and_their_texts(self):
        ws = self.path("ws")
        os.mkdir(ws)
        os.chmod(ws, 0o777)
        for name in ("kept", "gone"):
            with open(os.path.join(ws, name), "w") as f:
                f.write("first\nsecond <b>\nthird\n")
            os.chmod(os.path.join(ws, name), 0o666)
        s = self.session("sh", "-c", "sed -i 's/second/2nd/' kept; rm gone; echo '<img src=x onerror=alert(1)>' > new; chmod +x new",
                         options=["--workspace", ws, "--keep-texts"])
        self.assertCode(s, 0)
        with Browser() as b:
            p = Page(self, b)
            p.open(self.report(s), "#tab=files")
            files = p.text("p-files")
            for want in ("/workspace/kept", "/workspace/gone", "/workspace/new"):
                self.assertIn(want, files)
            b.run("for (const e of document.querySelectorAll('#p-files details')) e.open = true;"
                  "for (const e of document.querySelectorAll('#p-files button')) e.click();")
            files = wait_for("the texts", lambda: (lambda t: t if "2nd <b>" in t else None)(p.text("p-files")))
            for want in ("second <b>", "2nd <b>", "<img src=x onerror=alert(1)>"):
                self.assertIn(want, files)
            for c in s.kinds("workspace.change"):
                for name in ("sha256", "sha256_before"):
                    if name in c["file"]:
                        self.assertIn(c["file"][name][:8], files)
            self.assertEqual(b.run("return document.querySelectorAll('#p-files img, #p-files b').length"), 0)
            p.assertQuiet()

    def test_altered_record_says_so(self):
        s = self.session("sh", "-c", "echo hi > a; true")
        seg = s.segments()[0]
        with open(seg, "r+b") as f:
            f.seek(os.path.getsize(seg) // 2)
            byte = f.read(1)
            f.seek(-1, 1)
            f.write(bytes([byte[0] ^ 1]))
        path = self.path("altered.html")
        done = self.warder("report", s.dir, "-o", path)
        self.assertCode(done, 1)
        self.assertIn("the record is not whole: altered", done.err.decode())
        self.assertIn("could not be read", done.err.decode())
        with Browser() as b:
            p = Page(self, b)
            p.open(path)
            self.assertIn("altered", p.text("state"))
            self.assertEqual(p.text("verdict"), "Altered")
            self.assertIn("could not be read to its end", p.text("notes"))
            self.assertTrue(b.run("return document.getElementById('state').checkVisibility()"))


BASE = 36_000_000_000_000
ID = "01M8ND7YSQX6WVZ8CE7KEPXND5"


def made(kind, seq, t, **more):
    return {"v": 1, "id": "%s:%d" % (ID, seq), "seq": seq, "time": "2026-11-30T05:00:%012.9fZ" % t, "mono": BASE + int(t * 1e9),
            "kind": kind, "session": ID, "sandbox": "made", "host": "h", **more}


@unittest.skipIf(IN_VM, "a browser does not depend on the kernel, and takes minutes under emulation")
@unittest.skipIf(Browser.missing(), "%s is not installed" % Browser.missing())
class Made(TestCase):
    """Records that are made, for what a sandbox does not do at will."""

    def page(self, events, frames=None, *more):
        lines = self.path("events", "".join(json.dumps(e) + "\n" for e in events))
        args = [lines]
        if frames is not None:
            args.append(self.path("frames", "".join("%d %s %d %s\n" % (BASE + int(t * 1e9), kind, stream,
                        v.hex() if isinstance(v, bytes) else v) for t, kind, stream, v in frames)))
        done = cmd(helper("report_page"), *args, *more)
        self.assertCode(done, 0)
        return self.path("page.html", done.out)

    def events(self):
        curl = {"pid": 5001, "nspid": 2, "ppid": 5000, "comm": "curl", "exe": "/usr/bin/curl", "args": ["curl", "-sS", "x"],
                "start": BASE + int(1e9)}
        return [
            made("session.start", 1, 0, run={"backend": "ns", "command": ["agent", "go"], "tier": "full"}),
            made("exec", 2, 1, proc=curl, outcome="success"),
            made("net.connect", 3, 2, proc=curl, outcome="success", net={"proto": "tcp", "cookie": 7, "dst": {
                "ip": "93.184.216.34", "port": 443, "name": "api.example.com"}}),
            made("net.close", 4, 3, proc=curl, net={"proto": "tcp", "cookie": 7, "bytes_out": 2048, "bytes_in": 4096,
                                                    "dst": {"ip": "93.184.216.34", "port": 443}}),
            made("net.connect", 5, 4, proc=curl, outcome="denied", errno="EPERM", net={"proto": "tcp", "dst": {
                "ip": "10.0.0.9", "port": 22}}),
            made("gap", 6, 8, gap={"kind": "file.open", "count": 40, "reason": "ring_full",
                                   "first": "2026-11-30T05:00:05.000000000Z", "last": "2026-11-30T05:00:08.000000000Z"}),
            made("package.install", 7, 9, proc=curl, package={"manager": "pip", "name": "requests", "version": "2.32.3", "from": "command"}),
            made("rule.alert", 8, 20, proc=curl, rule={"name": "R1", "priority": "WARNING", "output": "curl [redacted:token:ab12] seen"}),
            made("exit", 9, 30, proc=curl, exit={"signal": "SIGKILL"}),
            made("session.stop", 10, 31, run={"reason": "rule"}, exit={"signal": "SIGKILL"}),
        ]

    def test_panels_filter_and_alert(self):
        with Browser() as b:
            p = Page(self, b)
            p.open(self.page(self.events()))
            self.assertEqual(p.filter("proc.name=curl and net.dst.port=443"), "2 of 10 events")
            self.assertEqual(p.filter("net.dst.ip in (93.184.216.0/24)"), "2 of 10 events")
            self.assertEqual(p.filter("net.dst.ip != 93.184.216.34"), "1 of 10 events")
            self.assertEqual(p.search("api.example"), "1 hit")
            net = p.text("p-network")
            for want in ("denied", "10.0.0.9", "allowed", "api.example.com", "2.0 KiB", "4.0 KiB"):
                self.assertIn(want, net)
            self.assertIn("requests2.32.3", p.text("p-packages"))
            # ten seconds before the alert, and back to it
            self.assertAlmostEqual(p.now(), 20, places=3)
            b.run("document.activeElement.blur()")
            b.press("b")
            self.assertAlmostEqual(p.now(), 10, places=3)
            b.press("n")
            self.assertEqual(p.fields()["rule.name"], "R1")
            # a gap is a band from its first to its last moment
            self.assertEqual(b.run("return document.querySelectorAll('#tree .killed').length"), 0)
            p.open(self.path("page.html"), "#t=30.5&tab=files")
            self.assertEqual(b.run("return document.querySelectorAll('#tree .killed').length"), 1)
            self.assertTrue(b.run("return !document.getElementById('p-files').hidden"))
            self.assertAlmostEqual(p.now(), 30.5, places=3)
            p.assertQuiet()

    def test_terminal(self):
        """The player on the page's clock; what it must not do, it is not told."""
        frames = [(0, "r", 0, "60 12"), (1, "o", 0, b"\x1b[32mhello\x1b[0m \xe2\x82"), (1.5, "o", 0, b"\xac end\r\n"),
                  (2, "o", 0, b"\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b]8;;http://127.0.0.1:9/\x1b\\li" b"nk\x1b]8;;\x1b\\"),
                  (3, "o", 0, b"<img src=x onerror=alert(1)></script>\xe2\x80\xaegpj\r\n\x1b]never ends"),
                  (12, "o", 0, b"\x1bc" + b"x" * 5000 + b"\r\nlast words\r\n"), (13, "w", 0, "9"), (14, "c", 0, "4096")]
        with Browser() as b:
            p = Page(self, b)
            p.open(self.page(self.events(), frames), "#t=2.5")
            screen = lambda: b.run("return document.getElementById('screen').textContent")
            wait_for("the terminal", lambda: "link" in screen())
            self.assertIn("hello € end", screen())
            for bad in ("owned", "b3du", "127.0.0.1", "onerror"):
                self.assertNotIn(bad, screen())
            p.search("last words")
            self.assertEqual(p.text("hit-count"), "1 hit")
            b.run("document.getElementById('search').focus()")
            b.press("\ue007")
            wait_for("the hit", lambda: "last words" in screen())
            self.assertAlmostEqual(p.now(), 12, places=2)
            self.assertEqual(p.search("hello €"), "1 hit")  # over two records, and colours between
            b.run("document.getElementById('bar').focus()")
            b.press("\ue011")
            wait_for("the beginning", lambda: "last words" not in screen() and "hello" not in screen())
            b.run("document.activeElement.blur()")
            b.press(".")
            b.press(".")
            wait_for("a step", lambda: "hello" in screen())
            p.open(self.path("page.html"), "#t=3.5")
            wait_for("the screen", lambda: "<img src=x" in screen())
            self.assertNotIn("\u202e", screen())
            self.assertEqual(b.run("return document.querySelectorAll('img, a, iframe').length"), 0)
            self.assertTrue(b.run("return document.title").startswith("Warder"))
            p.assertQuiet()

    def hostile(self, value, n):
        """The same event with every text in it replaced, but for what is a time, an address, a number or a hash."""
        if isinstance(value, dict):
            return {k: v if k in KEPT else self.hostile(v, n + i) for i, (k, v) in enumerate(value.items())}
        if isinstance(value, list):
            return [self.hostile(v, n + i) for i, v in enumerate(value)]
        if not isinstance(value, str) or re.fullmatch(r"(0x)?[0-9a-f:.]+|[0-9-]+T[0-9:.]+Z", value):
            return value
        return HOSTILE[n % len(HOSTILE)]

    def test_every_text_of_every_kind(self):
        """Tenant, host, sandbox, names of DNS, rules, packages ...: each tries to be markup, on every panel."""
        events = [made("session.start", 1, 0, run={"backend": HOSTILE[0], "command": HOSTILE, "tier": HOSTILE[1]})]
        folder = os.path.join(SRC, "tests", "golden")
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name, "expect.jsonl")
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as f:
                for line in f:
                    e = json.loads(line)
                    if "kind" not in e:
                        continue  # what was refused
                    seq = len(events) + 1
                    e.pop("raw", None)  # the bytes of the texts that are replaced
                    e = self.hostile(e, seq)
                    e.update(made(e["kind"], seq, seq / 10))
                    e.update(sandbox=HOSTILE[seq % 7], tenant=HOSTILE[(seq + 1) % 7], host=HOSTILE[(seq + 2) % 7])
                    events.append(e)
        self.assertGreater(len({e["kind"] for e in events}), 30)
        frames = [(0, "r", 0, "80 24")] + [(i, "o", 0, t.encode() + b"\r\n") for i, t in enumerate(HOSTILE)]
        path = self.page(events, frames)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for bad in HOSTILE[:3]:
            self.assertNotIn(bad, text)
        with open(self.page(self.events(), [(0, "r", 0, "80 24"), (1, "o", 0, b"x")]), encoding="utf-8") as f:
            self.assertEqual(text.count("<script"), f.read().count("<script"))
        path = self.page(events, frames)
        with Browser() as b:
            p = Page(self, b)
            p.open(path)
            self.scripts = b.run("return document.scripts.length")
            for tab in TABS:
                p.click("t-" + tab)
                self.assertHarmless(b)
            p.search("onerror")
            p.click("t-events")
            for t in range(0, len(events), 7):  # the detail of one of each few
                b.run("location.hash = '#t=%s'" % (t / 10))
                b.press("]")
            self.assertHarmless(b)
            b.print()
            self.assertHarmless(b)
            p.assertQuiet()

    def assertHarmless(self, b):
        found = b.run("return [...document.querySelectorAll('img, svg:not([class^=ap-]), a, iframe, form, object, link, embed')].map("
                      "e => e.outerHTML.slice(0, 200))")
        self.assertEqual(found, [])
        self.assertEqual(b.run("return document.scripts.length"), self.scripts)
        self.assertEqual(b.run("return [...document.querySelectorAll('*')].filter(e => [...e.attributes].some("
                               "a => a.name.startsWith('on') || /^\\s*javascript:/i.test(a.value))).length"), 0)
        self.assertNotIn("owned", b.run("return document.title"))
        self.assertNotIn("‮", b.run("return document.body.textContent"))

    def test_keyboard_screen_reader_and_colours(self):
        """axe-core finds nothing, light and dark; and without a pointer one gets everywhere."""
        axe = os.path.join(BUILD, "web/node_modules/axe-core/axe.min.js")
        if not os.path.exists(axe):
            self.skipTest("axe-core was not fetched: built with PLAYER=no, for machines without npm's registry")
        with open(axe, encoding="utf-8") as f:
            axe = f.read()
        path = self.page(self.events())
        for dark in (False, True):
            with Browser(dark=dark) as b:
                p = Page(self, b)
                p.open(path)
                background = b.run("return getComputedStyle(document.body).backgroundColor")
                self.assertEqual(background, "rgb(18, 21, 26)" if dark else "rgb(255, 255, 255)")
                p.search("curl")
                b.run(axe + ";window.axe = axe;")
                for tab in TABS:
                    p.click("t-" + tab)
                    b.run("window.found = null; axe.run(document).then(r => { window.found = r.violations.map("
                          "v => v.id + ': ' + v.nodes[0].target + ': ' + v.nodes[0].failureSummary); })")
                    self.assertEqual(wait_for("axe", lambda: b.run("return window.found && [window.found]")), [[]], tab)
                p.click("theme")
                self.assertNotEqual(b.run("return getComputedStyle(document.body).backgroundColor"), background)
                seen = set()
                b.run("document.body.focus()")
                for _ in range(40):
                    b.press("\ue004")
                    seen.add(b.run("return document.activeElement.id"))
                for want in ("play", "bar", "search", "filter", "rows", "tree", "detail", "t-events", "theme", "alert-next"):
                    self.assertIn(want, seen)

    def test_long_session_is_told(self):
        events = self.events()[:2]
        proc = events[1]["proc"]
        for i in range(3000):
            events.append(made("file.write", 3 + i, 2 + i / 100, proc=proc, file={"path": "/w/%d" % i, "bytes": 1}))
        events.append(made("rule.alert", 3003, 40, proc=proc, rule={"name": "Late", "priority": "WARNING", "output": "x"}))
        with Browser() as b:
            p = Page(self, b)
            p.open(self.page_of(events, 800))
            self.assertEqual(p.fields()["rule.name"], "Late")  # what matters is there, however late
            kept = int(re.sub(r"\D", "", p.filter("")))
            self.assertLessEqual(kept, 800)
            self.assertIn("%d events of the record are not in this page" % (len(events) - kept),
                          p.text("notes").replace("\u202f", ""))
            p.assertQuiet()

    def page_of(self, events, most):
        lines = self.path("events", "".join(json.dumps(e) + "\n" for e in events))
        done = cmd(helper("report_page"), lines, "-", str(most))
        self.assertCode(done, 0)
        return self.path("page.html", done.out)

    def test_printed_it_is_one_page(self):
        with Browser(dark=True) as b:
            p = Page(self, b)
            p.open(self.page(self.events()))
            self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", b.print())), 1)
            text = p.text("summary")
            self.assertIn("redacted0 places", text)
            for want in (ID, "Alerts (1)", "R1", "denied", "10.0.0.9", "requests", "warder verify", "Reviewed by"):
                self.assertIn(want, text)


@unittest.skipIf(IN_VM, "it does not depend on the kernel")
class Words(TestCase):
    def test_errors(self):
        s = self.session("true")
        done = self.warder("report", s.dir, "-o", self.path("no/such/dir/x.html"))
        self.assertCode(done, 125)
        self.assertOneLine(done, "no/such/dir")
        done = self.warder("report", self.path("none"))
        self.assertCode(done, 125)
        self.assertOneLine(done, "none")
        done = self.warder("report", s.dir, "--from", "5s", "--to", "2s")
        self.assertCode(done, 125)
        self.assertOneLine(done, "--to")
        done = self.warder("report", s.dir)
        self.assertCode(done, 0)
        self.assertTrue(done.out.startswith(b"<!DOCTYPE html>") and done.out.endswith(b"</html>\n"))
        self.assertNotIn(b"http:", done.out.split(b'id="data">')[0])
        self.assertCode(self.warder("report", s.dir, "-o", "/dev/null"), 0)
        self.assertFalse(os.path.isfile("/dev/null"))
        # a record that was cut: the page is there, and its not being whole is said
        seg = s.segments()[0]
        os.truncate(seg, os.path.getsize(seg) - 200)
        done = self.warder("report", s.dir, "-o", self.path("cut.html"))
        self.assertCode(done, 2)
        self.assertIn("the record is not whole", done.err.decode())
        self.assertEqual([n for n in os.listdir(os.path.dirname(self.path("x"))) if "tmp" in n and "html" in n], [])


if __name__ == "__main__":
    unittest.main()
