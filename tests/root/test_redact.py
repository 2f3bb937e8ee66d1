# SPDX-License-Identifier: Apache-2.0
"""Planted secrets: nowhere in what is kept or sent, and everywhere there without redaction."""

import base64
import importlib.util
import json
import os
import re
import stat
import unittest
import zlib

from warder import *

# Put together here: no scanner of sources finds a token, and no file of the sandbox has it but those that are made.
TOKEN = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ4sT6vW8yZ0cF2hJ4lM6"
VALUE = "pä\"ss\\w rd" + "/Zq9"

RULES = r"""
- rule: Told
  desc: quotes what it sees
  condition: kind = file.open and file.path contains planted or kind = exec and proc.args contains planted
  output: "saw %file.path of %proc.cmdline in %proc.cwd"
  priority: WARNING
"""

PAYLOAD = r"""
import os, socket, struct, sys, time
token, value = sys.argv[1], os.environ["DB_PASSWORD"]
os.mkdir("/workspace/planted-" + token)
open("/workspace/planted-" + token + "/f", "w").write("x")
open("/workspace/kept.txt", "w").write("a\ntoken = " + token + "\nvalue " + value + "\n")
os.system("true planted --password '" + token + "' planted")
name = b"".join(bytes([len(l)]) + l.encode() for l in (token, "example", "com")) + b"\0"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + name + struct.pack("!HH", 1, 1), ("127.0.0.1", 53))
for text in (token, value):
    data = ("shown " + text + " shown\n").encode()
    for i in range(0, len(data), 5):
        os.write(1, data[i:i + 5])
        time.sleep(0.01)
    half = len(data) // 2
    os.write(2, data[:half])
    time.sleep(0.4)
    os.write(2, data[half:])
"""


def load_verifier():
    spec = importlib.util.spec_from_file_location("verify", os.path.join(SRC, "tests", "store", "verify.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VERIFY = load_verifier()


def forms(text):
    """As a reader or a tool may meet it."""
    raw = text.encode()
    found = {raw, raw.hex().encode(), json.dumps(text)[1:-1].encode(), json.dumps(text, ensure_ascii=False)[1:-1].encode()}
    for lead in range(3):
        b = base64.b64encode(b"x" * lead + raw)
        found.add(b[4 if lead else 0:len(b) - 4])
    return {f.lower() for f in found}


class Redact(TestCase):
    def run_planted(self, *options, kafka=None, **kw):
        rules = self.path("own.yaml", RULES)
        sink = self.path("sink.jsonl")
        options = ["--rules", rules, "--keep-texts", "--watch-env", "DB_PASSWORD,GH", "--env", "DB_PASSWORD=" + VALUE,
                   "--env", "GH=" + TOKEN, "--export", "file:" + sink, "--export",
                   "file:%s,format=ocsf" % self.path("sink.ocsf"), *options]
        if kafka:
            options += ["--kafka", kafka.brokers]
        s = self.session(PYTHON_IN_SANDBOX, "-c", PAYLOAD, TOKEN, options=options, **kw)
        self.assertCode(s, 0)
        return s

    def unpacked(self, path):
        with open(path, "rb") as f:
            data = f.read()
        at, out = VERIFY.SEGMENT_LEN, [data]
        while at + VERIFY.FRAME_LEN <= len(data):
            h = VERIFY.parse_frame_header(data[at:at + VERIFY.FRAME_LEN])
            payload = data[at + VERIFY.FRAME_LEN:at + VERIFY.FRAME_LEN + h["comp"]]
            out.append(payload if h["codec"] == 0 else VERIFY.unzstd(payload, h["raw"]))
            at += VERIFY.FRAME_LEN + h["comp"]
        return b"".join(out)

    def tty_text(self, s):
        """What was recorded, without the records' headers: a secret over two records would show."""
        done = self.warder("export", s.dir, "--format", "text")
        self.assertCode(done, 0)
        return done.out

    def report(self, s):
        page = self.path("report.html")
        self.assertCode(self.warder("report", s.dir, "-o", page), 0)
        with open(page, "rb") as f:
            html = f.read()
        data = html.split(b'id="data">', 1)[1].split(b"</script>", 1)[0]
        return html + zlib.decompress(base64.b64decode(b"".join(data.split())), -15)

    def channels(self, s, kafka=None):
        """By name, all that was kept or sent."""
        found = {"result": open(s.result_path, "rb").read(), "messages": s.err.replace(b"shown", b"")}
        found["terminal"] = self.tty_text(s)
        for name in os.listdir(s.dir):
            path = os.path.join(s.dir, name)
            if name.endswith(".seg"):
                found.setdefault(name.split(".")[0] + " segments", b"")
                found[name.split(".")[0] + " segments"] += self.unpacked(path)
            elif os.path.isdir(path):
                found["blobs"] = b"".join(open(os.path.join(path, n), "rb").read() for n in os.listdir(path))
            else:
                found[name] = open(path, "rb").read()
        for fmt in ("json", "ocsf", "ecs", "cef", "leef", "cast", "cast3"):
            done = self.warder("export", s.dir, "--format", fmt)
            self.assertCode(done, 0)
            found["export " + fmt] = done.out
            if fmt.startswith("cast"):  # the pieces one behind another, by what wrote them: as one sees them
                pieces = [json.loads(line) for line in done.out.splitlines()[1:] if line.startswith(b"[")]
                found["export " + fmt] += "".join(p[2] for p in pieces if p[1] == "o" and len(p[2]) > 15).encode()
                # On a busy machine what was written later stands between: then the first lines are whole in all pieces.
                found["export " + fmt] += ("\n" + "".join(p[2] for p in pieces if p[1] == "o")).encode()
        found["replay"] = self.warder("replay", s.dir).out + self.warder("replay", "--tty", s.dir).out
        found["report"] = self.report(s)
        found["file sinks"] = open(self.path("sink.jsonl"), "rb").read() + open(self.path("sink.ocsf"), "rb").read()
        if kafka:
            found["kafka"] = b"\n".join(r[3] for r in kcat_read(kafka.brokers, "warder.events"))
        for top, _, names in os.walk(self.path("state")):
            for n in names:
                if n != "redact.key" and not top.startswith(s.dir):
                    found["state"] = found.get("state", b"") + open(os.path.join(top, n), "rb").read()
        return found

    def test_planted_secrets_are_nowhere(self):
        need("kcat")
        with MockKafka() as kafka:
            s = self.run_planted(kafka=kafka)
            found = self.channels(s, kafka)
        # What the command itself writes goes to its caller as it is.
        self.assertIn(TOKEN.encode(), s.out)
        found["messages"] = b"\n".join(l for l in s.err.splitlines() if l.startswith(b"warder"))
        for where, data in found.items():
            for secret in (TOKEN, VALUE):
                for form in forms(secret):
                    self.assertFalse(form in data.lower(), "%s has %r" % (where, form))
        self.assertIn(s.verify().code, (0, 3))
        kinds = {e["kind"] for e in s.events if e.get("redactions")}
        self.assertLessEqual({"session.start", "exec", "file.open", "dns.query", "rule.alert", "terminal",
                              "workspace.change"}, kinds | self.with_marks(s))
        alert = s.kinds("rule.alert", rule__name="Told")[0]
        self.assertIn("[redacted:github-token:", json.dumps(alert["rule"]))
        change = next(e for e in s.kinds("workspace.change") if e["file"]["path"] == "/workspace/kept.txt")
        self.assertEqual((change["file"].get("sha256"), change["file"]["unhashed"]), (None, "redacted"))
        self.assertGreaterEqual(change["redactions"], 2)

    @staticmethod
    def with_marks(s):
        return {e["kind"] for e in s.events if "[redacted:" in json.dumps(e)}

    def test_without_it_they_are_everywhere(self):
        """Each channel would show them: the test above can fail in each."""
        need("kcat")
        with MockKafka() as kafka:
            s = self.run_planted("--redact", "off", kafka=kafka)
            found = self.channels(s, kafka)
        for where in ("events segments", "blobs", "terminal", "export json", "export ocsf", "export ecs", "export cef",
                      "export leef", "export cast", "export cast3", "replay", "report", "file sinks", "kafka"):
            self.assertIn(TOKEN.lower().encode(), found[where].lower(), where)
        kinds = {e["kind"] for e in s.events if TOKEN.lower() in json.dumps(e).lower()}
        self.assertLessEqual({"session.start", "exec", "file.open", "dns.query", "rule.alert", "workspace.change"}, kinds)
        self.assertTrue(any(TOKEN in v for e in s.kinds("exec") for v in e["proc"].get("env", [])))
        with open(os.path.join(s.dir, "manifest.json")) as f:
            self.assertEqual(json.load(f)["summary"]["redaction"], {"on": False})

    def test_one_secret_has_one_tag_on_a_host(self):
        os.makedirs(self.path("state"))
        tags = set()
        for _ in range(2):
            s = self.session("true", "--password", TOKEN)
            tags |= set(re.findall(r"\[redacted:github-token:([0-9a-f]{12})\]", json.dumps(s.events)))
        self.assertEqual(len(tags), 1)
        key = os.path.join(self.path("state"), "keys", "redact.key")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)

    def test_messages(self):
        s = self.session("/nothing/" + TOKEN)
        self.assertCode(s, 127)
        self.assertNotIn(TOKEN, s.err.decode() + json.dumps(s.result))
        self.assertIn("[redacted:github-token:", s.result["error"])

    def test_values_of_a_file(self):
        path = self.path("values", "first-value-0\n" + "q7-" + "Zx" * 4 + "\n")
        os.chmod(path, 0o600)
        s = self.session("echo", "x q7-ZxZxZxZx y", options=["--redact-value-file", path])
        self.assertEqual(s.out, b"x q7-ZxZxZxZx y\n")
        self.assertNotIn("q7-ZxZxZxZx", json.dumps(s.events))
        self.assertIn("[redacted:value:", json.dumps(s.events))
        os.chmod(path, 0o644)
        self.assertOneLine(self.warder("run", "--redact-value-file", path, "--", "true"), "values", "chmod 600")

    def test_counts_are_sealed(self):
        """Records, checkpoints, manifest and seal agree; another number is found by both verifiers."""
        self.assertCode(self.warder("keys", "init"), 0)
        s = self.session("echo", TOKEN)
        told = sum(e.get("redactions", 0) for e in s.events)
        self.assertGreater(told, 2)
        with open(os.path.join(s.dir, "manifest.json")) as f:
            self.assertEqual(json.load(f)["redactions"], told)
        self.assertEqual(json.loads(self.warder("verify", "--json", s.dir).out)["redactions"], told)
        with open(os.path.join(s.dir, "checkpoints.log"), "rb") as f:
            self.assertEqual(int.from_bytes(f.read()[-288:][28:32], "little"), told)
        self.assertEqual(VERIFY.verify(s.dir)["state"], VERIFY.OK)
        self.forge(s, told - 1)
        self.assertEqual(VERIFY.verify(s.dir)["state"], VERIFY.ALTERED)
        self.assertCode(self.warder("verify", s.dir), 1)

    def test_forged_count_without_signatures(self):
        s = self.session("echo", TOKEN)
        self.assertEqual(VERIFY.verify(s.dir)["state"], VERIFY.OK)
        self.forge(s, 1)
        self.assertIn("does not fit", VERIFY.verify(s.dir)["text"])
        self.assertIn(b"the seal does not fit", self.warder("verify", s.dir).out)

    @staticmethod
    def forge(s, n):
        """Another number in the seal, its checksums made good."""
        with open(s.segments()[-1], "r+b") as f:
            data = bytearray(f.read())
            at = len(data) - VERIFY.SEAL_LEN
            head = at - VERIFY.FRAME_LEN
            data[at + 52:at + 56] = n.to_bytes(4, "little")
            data[head + 28:head + 32] = VERIFY.crc32c(data[at:]).to_bytes(4, "little")
            data[head + 124:head + 128] = VERIFY.crc32c(data[head:head + 124]).to_bytes(4, "little")
            f.seek(0)
            f.write(data)

    def keys(self):
        key = self.path("escrow.key")
        self.assertCode(self.warder("redact", "keygen", "-o", key), 0)
        return key

    def test_escrow(self):
        """A secret that is nowhere but in the escrow, and comes out of it by its key, and by no other."""
        key, other = self.keys(), self.path("other.key")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        self.assertCode(self.warder("redact", "keygen", "-o", key), 125)
        self.assertCode(self.warder("keys", "init"), 0)
        self.assertCode(self.warder("redact", "keygen", "-o", other), 0)
        s = self.run_planted("--redact-escrow", key + ".pub")
        found = self.channels(s)
        found["messages"] = b"\n".join(l for l in s.err.splitlines() if l.startswith(b"warder"))
        for where, data in found.items():
            for form in forms(TOKEN) | forms(VALUE):
                self.assertFalse(form in data.lower(), "%s has %r" % (where, form))
            if where not in ("events segments", "state"):
                self.assertNotIn(b"WARDESC1", data, where)
        self.assertIn(b"WARDESC1", found["events segments"])
        # the bundle is whole, and says how much is kept
        self.assertIn(s.verify().code, (0, 3))
        self.assertIn(VERIFY.verify(s.dir)["state"], (VERIFY.OK, VERIFY.GAPS))
        with open(os.path.join(s.dir, "manifest.json")) as f:
            told = json.load(f)["summary"]["redaction"]["escrow"]
        with open(key + ".pub") as f:
            self.assertEqual(told["key"], f.read().split()[1])
        self.assertEqual(told["not_kept"], 0)
        # by the key, and by no other
        shown = self.warder("redact", "reveal", "--key", key, s.dir)
        self.assertCode(shown, 0)
        rows = [json.loads(line) for line in shown.out.splitlines()]
        self.assertEqual(len(rows), told["kept"])
        self.assertLessEqual({TOKEN, VALUE}, {r["original"] for r in rows})
        self.assertOneLine(self.warder("redact", "reveal", "--key", other, s.dir), "another key")
        self.assertOneLine(self.warder("redact", "reveal", "--key", key + ".pub", s.dir), "no secret key")
        # every mark of every record has its original
        marks = set(re.findall(r"\[redacted:([^:\]]+):([0-9a-f]{12})\]", json.dumps(s.events)))
        self.assertLessEqual(marks, {(r["rule"], r["tag"]) for r in rows})
        named = next(e for e in s.kinds("exec") if "[redacted:github-token:" in json.dumps(e))
        of_one = self.warder("redact", "reveal", "--key", key, "--record", str(named["seq"]), s.dir)
        self.assertIn(TOKEN, {json.loads(line)["original"] for line in of_one.out.splitlines()})
        self.assertEqual(self.warder("redact", "reveal", "--key", key, "--record", str(s.events[-1]["seq"]), s.dir).out, b"")

    def test_escrow_is_bound(self):
        """Both verifiers find a sealed original that was changed, or taken out with its frame."""
        key = self.keys()
        self.assertCode(self.warder("keys", "init"), 0)
        s = self.session("echo", TOKEN, options=["--redact-escrow", key + ".pub"])
        path = s.segments()[-1]
        with open(path, "rb") as f:
            good = f.read()
        at = good.index(b"WARDESC1")
        head = at - VERIFY.FRAME_LEN
        length = int.from_bytes(good[head + 24:head + 28], "little")
        changed = bytearray(good)
        changed[at + 100] ^= 1
        changed[head + 28:head + 32] = VERIFY.crc32c(bytes(changed[at:at + length])).to_bytes(4, "little")
        changed[head + 124:head + 128] = VERIFY.crc32c(bytes(changed[head:head + 124])).to_bytes(4, "little")
        for bad in (bytes(changed), good[:head] + good[at + length:]):
            with open(path, "wb") as f:
                f.write(bad)
            self.assertEqual(VERIFY.verify(s.dir)["state"], VERIFY.ALTERED)
            self.assertCode(self.warder("verify", s.dir), 1)
            self.assertOneLine(self.warder("redact", "reveal", "--key", key, s.dir), "altered")

    def test_reveal_of_a_record_that_is_not_whole(self):
        key = self.keys()
        s = self.session("echo", TOKEN, options=["--redact-escrow", key + ".pub"])
        with open(s.segments()[-1], "rb") as f:
            good = f.read()
        for made, word in ((good[:-1], "cut"), (good[:-300], "cut"), (good + good, "added behind the seal")):
            with open(s.segments()[-1], "wb") as f:
                f.write(made)
            done = self.warder("redact", "reveal", "--key", key, s.dir)
            self.assertCode(done, 125)
            self.assertIn(word, done.err.decode())

    def test_reveal_where_the_terminal_was_cut(self):
        key = self.keys()
        s = self.session("echo", TOKEN, options=["--redact-escrow", key + ".pub"])
        path = os.path.join(s.dir, "tty.0001.seg")
        os.truncate(path, os.path.getsize(path) - 1)
        done = self.warder("redact", "reveal", "--key", key, s.dir)
        self.assertCode(done, 125)
        self.assertIn(b"of the terminal's recording", done.err)

    def test_what_the_escrow_lacks_is_told(self):
        key = self.keys()
        flood = "import sys\nfor i in range(200000): print('gh' + 'p_%036x' % (i * 0x9e3779b97f4a7c15f39cc0605cedc835))"
        s = self.session("python3", "-c", flood, options=["--redact-escrow", key + ".pub"])
        with open(os.path.join(s.dir, "manifest.json")) as f:
            escrow = json.load(f)["summary"]["redaction"]["escrow"]
        self.assertGreater(escrow["not_kept"], 0)
        self.assertIn(b"redaction: %d originals are not in the escrow (%d are)" % (escrow["not_kept"], escrow["kept"]), s.err)

    def test_escrow_words(self):
        key = self.keys()
        self.assertOneLine(self.warder("run", "--redact-escrow", key, "--", "true"), "no public key", "redact-escrow")
        self.assertOneLine(self.warder("run", "--redact-escrow", self.path("nothing"), "--", "true"), "nothing")
        zero = self.path("zero.pub", "warder-escrow-key-1 " + 64 * "0" + "\n")
        self.assertOneLine(self.warder("run", "--redact-escrow", zero, "--", "true"), "zero.pub", "nothing can be sealed")
        os.chmod(key, 0o640)
        self.assertOneLine(self.warder("redact", "reveal", "--key", key, self.tmp), "escrow.key", "owner alone")
        os.chmod(key, 0o600)
        os.chmod(key + ".pub", 0o666)
        self.assertOneLine(self.warder("run", "--redact-escrow", key + ".pub", "--", "true"), "key file", "escrow.key.pub")
        os.chmod(key + ".pub", 0o644)
        self.assertOneLine(self.warder("run", "--redact", "off", "--redact-escrow", key + ".pub", "--", "true"), "contradict")
        s = self.session("echo", TOKEN)
        self.assertOneLine(self.warder("redact", "reveal", "--key", key, s.dir), "no originals")
        for words in (["reveal", s.dir], ["reveal", "--key", key], ["keygen"], ["keygen", "x"], ["what"], []):
            self.assertCode(self.warder("redact", *words), 125)

    def test_command(self):
        done = self.warder("redact", "test", input=("a " + TOKEN + " b\n").encode())
        self.assertCode(done, 1)
        self.assertRegex(done.out, rb"^a \[redacted:github-token:[0-9a-f]{12}\] b\n$")
        done = self.warder("redact", "test", input=b"nothing here\n")
        self.assertEqual((done.code, done.out), (0, b"nothing here\n"))
        self.assertCode(self.warder("redact", "check"), 0)
        bad = self.path("bad.yaml", "- rule: acme\n  keywords: [ac]\n  regex: 'ac'\n")
        self.assertOneLine(self.warder("redact", "check", bad), "bad.yaml:2:14", "3 to 256 bytes")

    def test_own_rules(self):
        rules = self.path("redact.yaml", "- rule: acme\n  keywords: [acme_]\n  regex: 'acme_[a-z]{8}'\n- rule: github-token\n  off: true\n")
        s = self.session("echo", "acme_abcdefgh", TOKEN, options=["--redact", rules])
        self.assertNotIn("acme_abcdefgh", json.dumps(s.events))
        self.assertIn(TOKEN, json.dumps(s.events))
        bad = self.path("bad.yaml", "- rule: acme\n  keywords: [acme_]\n  regex: '('\n")
        self.assertOneLine(self.warder("run", "--redact", bad, "--", "true"), "bad.yaml:3:10", "regex")

    def check_says_what_is_not_carried(self):
        """0, all of it; 1, a part, by name and reason; 125, none."""
        good = self.path("good.toml", "[[rules]]\nid='good'\nregex='acme_[0-9]+'\nkeywords=['acme_']\n")
        self.assertCode(self.warder("redact", "check", good), 0)
        part = self.path("part.toml", "[[rules]]\nid='a'\nregex='acme_[0-9]+'\nkeywords=['acme_']\n"
                                      "[[rules]]\nid='b'\nregex='b[0-9]+'\n")
        done = self.warder("redact", "check", good, part)
        self.assertCode(done, 1)
        self.assertIn(b"b: left out: it has no keywords", done.err)
        self.assertIn(b"not carried: 1 rule", done.out)
        strange = self.path("strange.toml", "[[rules]]\nid='a'\nregex='acme_[0-9]+'\nkeywords=['acme_']\nentorpy=3\n")
        done = self.warder("redact", "check", strange)
        self.assertCode(done, 1)
        self.assertIn(b"a: the key 'entorpy' is not known", done.err)
        self.assertCode(self.warder("redact", "check", self.path("none.toml", "[[rules]]\nid='b'\nregex='b[0-9]+'\n")), 125)

    def test_what_looks_through_long_output_is_told(self):
        """By the build and the machine, the same everywhere."""
        said = [self.warder(*command).out.decode() for command in (["--version"], ["redact", "check"], ["doctor"])]
        what = re.search(r"redaction of long output: (.*)\n", said[0]).group(1)
        self.assertRegex(what, r"^Hyperscan [0-9.]+$|^own pass: (built without Hyperscan|libhs\.so\.5 .*)$")
        self.assertIn("long output: %s\n" % what, said[1])
        self.assertIn(what.replace("own pass: ", ""), said[2])

    def test_rules_of_gitleaks(self):
        toml = self.path("acme.toml", "[[rules]]\nid = 'acme'\nregex = '\\b(acme_[a-z]{8})\\b'\nkeywords = ['acme_']\n"
                         "[[rules]]\nid = 'named-file'\npath = 'x'\n")
        made = self.path("acme.yaml")
        done = self.warder("redact", "import", toml, "-o", made)
        self.assertCode(done, 0)
        self.assertIn(b"named-file: left out: it is about names of files", done.err)
        self.assertIn(b"1 of 2 rules", done.err)
        self.assertOneLine(self.warder("redact", "import", toml, "-o", made), "acme.yaml", "File exists")
        for rules in (toml, made):
            s = self.session("echo", "acme_abcdefgh", options=["--redact", rules])
            self.assertNotIn("acme_abcdefgh", json.dumps(s.events))
            self.assertIn("[redacted:gitleaks.acme:", json.dumps(s.events))
        self.assertIn(b"'gitleaks.acme'", self.warder("redact", "check", made, toml).err)
        self.check_says_what_is_not_carried()
        none = self.path("none.toml", "[[rules]]\nid = 'a'\nregex = 'foo[0-9]+'\n")
        for command in (["run", "--redact", none, "--", "true"], ["redact", "check", none], ["redact", "test", none]):
            self.assertOneLine(self.warder(*command), "none.toml", "of its 1 rule none can be used: a: it has no keywords")
        self.assertCode(self.warder("redact", "import", none), 125)
        self.assertOneLine(self.warder("redact", "import", self.path("bad.toml", "[[rules]\n")), "bad.toml:1", "']' is wanted")

    def test_rules_judge_what_happened(self):
        rules = self.path("own.yaml", "- rule: Knows it\n  desc: x\n  condition: kind = exec and proc.args contains %s\n"
                          "  output: it\n  priority: WARNING\n" % TOKEN)
        s = self.session("echo", TOKEN, options=["--rules", rules])
        self.assertTrue(s.kinds("rule.alert", rule__name="Knows it"))
        self.assertNotIn(TOKEN, json.dumps(s.events))


if __name__ == "__main__":
    need_root()
    unittest.main()
