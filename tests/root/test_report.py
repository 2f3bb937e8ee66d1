# SPDX-License-Identifier: Apache-2.0
"""The HTML report, in a real browser: what it shows is what was recorded, and nothing in it runs."""

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
TABS = ("alerts", "files", "network", "packages", "events")


class Page:
    """A report in a browser."""

    def __init__(self, test, b):
        self.test, self.b = test, b

    def open(self, path, fragment=""):
        self.b.open("/dev/null")
        self.b.open(path, fragment)
        ready = wait_for("the page", lambda: self.b.run("return document.body && document.body.dataset.ready"))
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
