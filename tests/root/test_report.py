# SPDX-License-Identifier: Apache-2.0
"""The HTML report, in a real browser: what it shows is what was recorded, and nothing in it runs."""

import os
import re
import unittest

from browser import Browser
from warder import *

HOSTILE = ["<img src=x onerror=document.title='owned'>", "</script><script>document.title='owned'</script>",
           "</title><svg onload=alert(1)>", "\x1b[2J‮gpj.exe", "javascript:alert(1)", "{{7*7}}${7*7}"]
SHOWN = ["<img src=x onerror=document.title='owned'>", "<script>document.title='owned'<", "<svg onload=alert(1)>",
         "\\x1b[2J\\u{202e}gpj.exe", "javascript:alert(1)", "{{7*7}}${7*7}"]


def wait_ready(b):
    wait_for("the page", lambda: b.run("return document.body && document.body.dataset.ready"))


@unittest.skipIf(IN_VM, "a browser does not depend on the kernel, and takes minutes under emulation")
@unittest.skipIf(Browser.missing(), "%s is not installed" % Browser.missing())
class Report(TestCase):
    def report(self, s, *options, code=0):
        path = self.path("report%d.html" % self.count)
        self.assertCode(self.warder("report", s.dir, "-o", path, *options), code)
        return path

    def rows(self, b):
        return b.run("return [...document.querySelectorAll('.row .what')].map(e => e.textContent)")

    def filter(self, b, text):
        b.run("const f = document.getElementById('filter'); f.value = arguments[0];"
              "f.dispatchEvent(new Event('input')); document.getElementById('why').textContent = '';", text)
        return wait_for("the filter", lambda: b.run("return document.getElementById('why').textContent"))

    def test_shows_the_session(self):
        s = self.session("sh", "-c", "echo hi > a; mv a b; sh -c 'ls /; true'; unshare -m true; true")
        self.assertCode(s, 137)
        path = self.report(s)
        with Browser() as b:
            b.open(path)
            wait_ready(b)
            self.assertIn(s.result["session"], b.run("return document.title"))
            self.assertIn("intact", b.run("return document.getElementById('state').textContent"))
            self.assertTrue(b.run("return document.getElementById('state').classList.contains('s0')"))
            self.assertEqual(len(s.events), b.run("return Number(document.getElementById('facts').textContent"
                                                  ".match(/records(\\d+)lost/)[1])"))
            # filter: as many as `warder events` finds, and words when it is wrong
            for expr in ("kind = exec", "kind in (file.open, file.rename)", "proc.comm = mv or kind = escape",
                         "not kind = exec and proc.nspid > 2", "proc.args contains 'ls /'"):
                want = len(cmd(WARDER, "events", "--filter", expr, s.dir).out.splitlines())
                if "args" in expr:  # a list there, its text here
                    want = b.run("return 1") and len([e for e in s.events if "ls /" in " ".join(
                        field(e, "proc.args", []))])
                self.assertEqual(self.filter(b, expr), "%d of %d events" % (want, len(s.events)), expr)
            self.assertIn("no event here has a field", self.filter(b, "no.such = 1"))
            self.assertIn("expected", self.filter(b, "kind ="))
            self.filter(b, "rename")
            self.assertEqual(self.rows(b), ["file.rename /workspace/a to /workspace/b"])
            self.filter(b, "")
            # by keys: the next alert, and its fields
            b.run("document.activeElement.blur()")
            b.press("n")
            fields = b.run("return document.getElementById('fields').textContent")
            self.assertIn("unshare", fields)
            b.press("n")
            fields = b.run("return document.getElementById('fields').textContent")
            self.assertIn("Namespace changed from inside a sandbox", fields)
            seq = int(re.search(r"#e=(\d+)", b.run("return location.hash")).group(1))
            self.assertEqual([e["kind"] for e in s.events if e["seq"] == seq], ["rule.alert"])
            # its trigger is one step away
            b.run("document.querySelector('#fields button').click()")
            self.assertIn("kindescape", b.run("return document.getElementById('fields').textContent"))
            # the tree: ls is below the inner sh, which is below the outer one
            self.assertEqual(b.run("const li = [...document.querySelectorAll('#p-processes code')]"
                                   ".find(c => c.textContent === 'ls /').closest('li');"
                                   "let n = 0; for (let e = li; (e = e.parentElement.closest('li')); ) n++; return n"), 3 - 1)
            self.assertIn("/workspace/b", b.run("return document.getElementById('p-files').textContent"))
            # a link to one event
            b.open("/dev/null")
            b.open(path, "#e=%d" % seq)
            wait_ready(b)
            self.assertIn("rule.alert", b.run("return document.getElementById('fields').textContent"))
            self.assertEqual(b.requests(), [])
            self.assertEqual([r["message"] for r in b.log("browser") if r["level"] == "SEVERE"], [])

    def test_hostile_session(self):
        """Every string of the sandbox that reaches the page tries to be markup or script."""
        code = "import os, sys\nfor a in sys.argv[1:]:\n  try: open('/workspace/' + a.replace('/', '∕'), 'w')\n" \
               "  except OSError: pass\n  os.spawnv(os.P_WAIT, '/bin/true', [a, a])\n"
        s = self.session("python3", "-c", code, *HOSTILE, options=["--name", "x"])
        self.assertCode(s, 0)
        path = self.report(s)
        with open(path, encoding="utf-8") as f:
            page = f.read()
        for text in HOSTILE[:3]:
            self.assertNotIn(text, page)
        with Browser(dark=True) as b:
            b.open(path)
            wait_ready(b)
            for tab in ("processes", "alerts", "files", "network", "events"):
                b.run("document.getElementById('t-' + arguments[0]).click()", tab)
            text = b.run("return document.body.textContent")
            for shown in SHOWN:
                self.assertIn(shown, text)
            self.assertNotIn("‮", text)
            self.assertEqual(b.run("return document.querySelectorAll('img, svg, a, iframe, form, object, link').length"), 0)
            self.assertEqual(b.run("return document.scripts.length"), 2)
            self.assertNotIn("owned", b.run("return document.title"))
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
        path = self.report(s, code=1)
        with Browser() as b:
            b.open(path)
            wait_ready(b)
            self.assertIn("altered", b.run("return document.getElementById('state').textContent"))
            self.assertTrue(b.run("return document.getElementById('state').classList.contains('s1')"))


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
        done = self.warder("report", s.dir)
        self.assertCode(done, 0)
        self.assertTrue(done.out.startswith(b"<!DOCTYPE html>") and done.out.endswith(b"</html>\n"))
        self.assertNotIn(b"http:", done.out.split(b'id="data">')[0])


if __name__ == "__main__":
    unittest.main()
