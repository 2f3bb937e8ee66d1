# SPDX-License-Identifier: Apache-2.0
"""The host's own memory of its sessions: catalogue, host log, holds, reviews, pruning."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from warder import *


class Sessions(TestCase):
    def ran(self, *command, options=()):
        """A session in the state directory; its id."""
        result = self.path("r.json")
        done = self.warder("run", "--quiet", "--result", result, *options, "--", *command)
        with open(result) as f:
            r = json.load(f)
        self.assertEqual(done.code, r["exit_code"], done)
        return r["session"]

    def words(self, *argv, code=0):
        done = self.warder(*argv)
        self.assertCode(done, code)
        return done.out.decode()

    def listed(self, *options):
        return [json.loads(line)["session"] for line in self.words("sessions", "--json", *options).splitlines()]

    def log(self, **where):
        entries = [json.loads(line) for line in self.words("sessions", "log", "--json").splitlines()]
        return [e for e in entries if all(e[k] == v for k, v in where.items())]

    def bundle(self, session):
        return os.path.join(self.env["WARDER_STATE"], "sessions", session)

    def test_found_by_what_they_did(self):
        a = self.ran("sh", "-c", "echo x > /workspace/alpha; ls / >/dev/null", options=["--tenant", "red"])
        b = self.ran("sh", "-c", "echo x > /workspace/beta; exit 3", options=["--tenant", "blue"])
        self.assertEqual(self.listed(), [b, a])
        self.assertEqual(self.listed("-n", "1"), [b])
        for options, found in ((["--path", "*/alpha"], [a]), (["--path", "/workspace/*"], [b, a]),
                               (["--exe", "*/ls"], [a]), (["--tenant", "blue"], [b]), (["--tenant", "b"], []),
                               (["--since", "1h"], [b, a]), (["--until", "1h"], []),
                               (["--since", "2001-01-01", "--until", "2001-02-01T00:00:00Z"], []),
                               (["--reason", "exit"], [b, a]), (["--state", "open"], []),
                               (["--dst", "*"], []), (["--rule", "*"], [])):
            self.assertEqual(self.listed(*options), found, options)
        for option in ("--state", "--reason"):
            done = self.warder("sessions", option, "foo")
            self.assertCode(done, 125)
            self.assertOneLine(done, option, "'foo'")
        self.assertIn(b, self.words("sessions", "search", "beta"))
        self.assertNotIn(a, self.words("sessions", "search", "beta"))
        shown = json.loads(self.words("sessions", "show", "--json", b[:12]) if a[:12] != b[:12]
                           else self.words("sessions", "show", "--json", b))
        self.assertEqual((shown["session"], shown["exit_code"], shown["tenant"], shown["held"]),
                         (b, 3, "blue", False))
        # Opened, written, and found by the comparison at the end.
        self.assertIn({"kind": "path", "value": "/workspace/beta", "count": 3}, shown["did"])
        # The catalogue is nobody's proof: gone or damaged it is made again.
        catalogue = os.path.join(self.env["WARDER_STATE"], "catalogue.sqlite")
        for damage in (b"", b"no database, just text\n" * 100):
            with open(catalogue, "wb") as f:
                f.write(damage)
            self.assertEqual(self.listed("--path", "*/alpha"), [a])
        self.words("sessions", "reindex")
        self.assertEqual(self.listed(), [b, a])

    def test_what_was_cut_or_added_to_is_listed_as_that(self):
        """By the sizes of its files, each time it is asked for; and well again when they are as they were."""
        a, b = (self.ran("sh", "-c", "echo x; : > /workspace/" + name) for name in ("alpha", "beta"))
        self.assertEqual([json.loads(x)["damage"] for x in self.words("sessions", "--json").splitlines()], [None, None])
        for name in ("events.0001.seg", "tty.0001.seg"):
            path = os.path.join(self.bundle(a), name)
            with open(path, "rb") as f:
                good = f.read()
            for made, word in ((good[:-1], "cut"), (good + good[100:], "added to")):
                with open(path, "wb") as f:
                    f.write(made)
                self.assertEqual((self.listed("--state", "damaged"), self.listed("--state", "sealed")), ([a], [b]))
                row = json.loads(self.words("sessions", "--json", "--state", "damaged"))
                self.assertIn(word, row["damage"])
                self.assertEqual(row["state"], "damaged")
                self.assertEqual(json.loads(self.words("sessions", "show", "--json", a))["damage"], row["damage"])
                self.assertRegex(self.words("sessions", "show", a), r"damage +the (record|terminal's recording) has")
                self.assertRegex(self.words("sessions", "search", "alpha"), a + r" .* damaged ")
            with open(path, "wb") as f:
                f.write(good)
            self.assertEqual(self.listed("--state", "sealed"), [b, a])
        extra = os.path.join(self.bundle(a), "events.0002.seg")
        shutil.copy(os.path.join(self.bundle(a), "events.0001.seg"), extra)
        self.assertEqual(self.listed("--state", "damaged"), [a])
        os.unlink(extra)
        os.unlink(os.path.join(self.bundle(a), "tty.0001.seg"))
        self.assertIn("0 of 1 segments", json.loads(self.words("sessions", "show", "--json", a))["damage"])

    def test_a_record_that_is_none_hides_no_other(self):
        """Records are written without privilege: who took over their writer must not take the list with him."""
        a, b = self.ran("true"), self.ran("true")
        events = [json.loads(line) for line in self.words("events", a).splitlines()]
        events[1]["proc"]["args"] = [""] * 340000
        lines = self.path("lines", "\n".join(json.dumps(e, separators=(",", ":")) for e in events[:2]) + "\n")
        shutil.rmtree(self.bundle(a))
        os.mkdir(self.bundle(a))
        self.assertCode(cmd(helper("bundle"), "make", self.bundle(a), "session=" + a, "lines=" + lines), 0)
        self.assertEqual((self.listed("--state", "damaged"), self.listed("--state", "sealed")), ([a], [b]))
        self.assertIn("record 2: event: larger than an event can be",
                      json.loads(self.words("sessions", "show", "--json", a))["damage"])
        done = self.warder("report", a, "-o", self.path("r.html"))
        self.assertCode(done, 1)
        self.assertIn("the page ends where the record could not be read", done.err.decode())
        os.unlink(os.path.join(self.bundle(b), "manifest.json"))
        for name in ("events", "replay", "export --format json"):
            done = self.warder(*name.split(), b)
            self.assertCode(done, 125)
            self.assertIn("manifest.json is missing", done.err.decode())
        seg = os.path.join(self.bundle(b), "events.0001.seg")
        os.rename(seg, self.path("kept"))
        os.mkfifo(seg)
        self.assertIn("it is no regular file", self.warder("events", b).err.decode())

    def test_destinations(self):
        a = self.ran(PYTHON_IN_SANDBOX, "-c", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                     "try: s.sendto(b'x', ('127.0.0.1', 4711))\nexcept OSError: pass")
        self.assertEqual(self.listed("--dst", "127.0.0.1:4711"), [a])
        self.assertEqual(self.listed("--dst", "127.0.0.1"), [a])
        self.assertEqual(self.listed("--dst", "127.0.0.2"), [])

    def test_evidence_for_who_has_the_bundle_and_the_key(self):
        """The log of the host he sits at is none of his."""
        self.words("keys", "init")
        a = self.ran("true")
        with tempfile.TemporaryDirectory(prefix="warder-reviewer-") as desk:
            shutil.copytree(self.bundle(a), desk + "/bundle")
            shutil.copy(WARDER, desk + "/warder")
            with open(desk + "/host.pub", "w") as f:
                f.write(self.words("keys", "public"))
            for folder, names, files in os.walk(desk):
                for path in [folder] + [os.path.join(folder, n) for n in files]:
                    os.chown(path, 65534, 65534)
            os.chmod(self.env["WARDER_STATE"], 0o700)
            done = cmd(desk + "/warder", "evidence", "--json", "--key", desk + "/host.pub", desk + "/bundle", env=self.env,
                       user=65534, group=65534, extra_groups=[])
            self.assertCode(done, 1)
        proofs = json.loads(done.out)["proofs"]
        self.assertEqual([proofs[p]["state"] for p in ("intact", "recorded", "reviewed")], ["shown", "shown", "missing"])
        acts = sum(e["vantage"] == "kernel" for e in map(json.loads, self.words("events", a).splitlines()))
        self.assertTrue(proofs["recorded"]["text"].startswith("%d acts of " % acts), proofs["recorded"]["text"])

    def test_sent_to_stdout_it_is_events_alone(self):
        a = self.ran("true")
        done = self.warder("export", "--all", a, "file:-,filter=kind = exec")
        self.assertCode(done, 0)
        self.assertEqual({json.loads(line)["kind"] for line in done.out.splitlines()}, {"exec"})
        self.assertIn(b" events", done.err)

    def test_hostile_text_is_plain(self):
        self.ran("sh", "-c", ": '\x1b]0;owned\x07\x1b[2J'; echo > \"/workspace/$(printf 'a\\033[31m')\"")
        for argv in (["sessions"], ["sessions", "search", "a"], ["sessions", "show", self.listed()[0]],
                     ["sessions", "log"]):
            self.assertNotIn("\x1b", self.words(*argv))

    def test_a_forged_record_drives_no_terminal(self):
        """Who has an unsigned record can make it anew, with any bytes in it; so can a sandbox with names in UTF-8."""
        evil = "\x1b]0;owned\x07\x1b[31m\x9b31m\u202e\x7f"
        a = self.ran("sh", "-c", "true", evil)
        folder = self.bundle(a)
        events = [json.loads(line) for line in self.words("events", a).splitlines()]
        for raw in (False, True):
            lines = self.path("lines", "")
            with open(lines, "w") as f:
                for event in (events[0], events[-1]):
                    event["tenant"] = event["host"] = event["sandbox"] = evil
                    event["run"].update(backend=evil, tier=evil, reason=evil)
                    event["degraded"] = [evil]
                    text = json.dumps(event, ensure_ascii=False)
                    f.write((text.replace("\\u001b", "\x1b") if raw else text) + "\n")
            shutil.rmtree(folder)
            os.mkdir(folder)
            done = cmd(helper("bundle"), "make", folder, "session=" + a, "lines=" + lines)
            self.assertCode(done, 0)
            for argv in (["verify", a], ["verify", "--json", a], ["events", a], ["replay", "--events", a],
                         ["export", "--format", "json", a], ["export", "--format", "cef", a],
                         ["export", "--format", "leef", a], ["export", "--format", "ocsf", a], ["evidence", a],
                         ["diff", a, a], ["sessions"], ["sessions", "--json"], ["sessions", "show", a],
                         ["sessions", "show", "--json", a], ["sessions", "log"]):
                done = self.warder(*argv)
                odd = {c for c in (done.out + done.err).decode() if c not in "\n\t" and not c.isprintable()}
                self.assertEqual(odd, set(), argv)
            for line in self.words("events", a).splitlines():
                self.assertEqual(json.loads(line)["tenant"], evil)
            self.assertEqual(json.loads(self.words("verify", "--json", a))["degraded"], [evil])

    def test_the_host_log_misses_what_is_gone(self):
        a, b = self.ran("true"), self.ran("false")
        self.words("verify", "--host-log")
        self.assertEqual([e["session"] for e in self.log(kind="session")], [a, b])
        shutil.move(self.bundle(a), self.path("aside"))
        done = self.words("verify", "--host-log", code=1)
        self.assertIn(a, done)
        self.assertNotIn(b, done)
        told = json.loads(self.words("verify", "--host-log", "--json", code=1))
        self.assertEqual((told["sessions"], told["present"], told["missing"]), (2, 1, 1))
        self.assertEqual(told["faults"], [{"session": a, "fault": "missing"}])
        # another record in its place
        shutil.copytree(self.bundle(b), self.bundle(a))
        self.assertEqual(json.loads(self.words("verify", "--host-log", "--json", code=1))["faults"],
                         [{"session": a, "fault": "other"}])
        shutil.rmtree(self.bundle(a))
        shutil.move(self.path("aside"), self.bundle(a))
        self.words("verify", "--host-log")

    def test_a_log_that_was_changed(self):
        self.ran("true")
        self.ran("true")
        path = os.path.join(self.env["WARDER_STATE"], "host.log")
        with open(path) as f:
            lines = f.readlines()
        for bad in (lines[1:], lines[::-1], [lines[0].replace("start", "stops"), lines[1]]):
            with open(path, "w") as f:
                f.writelines(bad)
            self.assertIn("altered: line", self.words("verify", "--host-log", code=1))
        with open(path, "w") as f:
            f.writelines(lines)
        self.words("verify", "--host-log")

    def test_who_read_what(self):
        a = self.ran("true")
        commands = ("events", "replay", "report", "verify", "sessions show")
        for command in commands:
            self.words(*command.split(), a)
        self.warder("evidence", a)
        got = self.log(kind="access")
        self.assertEqual([(e["session"], e["data"]["command"]) for e in got],
                         [(a, c) for c in commands + ("evidence",)])
        self.assertTrue(got[0]["who"].startswith("uid=0(root)"), got)
        # a bundle somebody was given is theirs
        self.words("events", self.bundle(a))
        self.assertEqual(len(self.log(kind="access")), len(commands) + 1)

    def test_a_part_of_the_log(self):
        a, b = self.ran("true"), self.ran("true")
        all = self.log()
        self.assertEqual([e["session"] for e in all], [a, a, b, b])

        def part(*options):
            return [json.loads(line) for line in self.words("sessions", "log", "--json", *options).splitlines()]

        self.assertEqual(part("-n", "1"), all[-1:])
        self.assertEqual(part("-n", "9"), all)
        self.assertEqual(part("--since", "1h"), all)
        self.assertEqual(part("--until", "1h"), [])
        self.assertEqual(part("--since", "2001-01-01", "--until", "2001-02-01T00:00:00Z"), [])
        self.assertCode(self.warder("sessions", "log", "--since", "never"), 125)

    def test_of_a_running_one(self):
        """The catalogue knows what it did so far."""
        result = self.path("r.json")
        with subprocess.Popen([WARDER, "run", "--quiet", "--result", result, "--", "sh", "-c",
                               "echo x > /workspace/early; ls /nowhere; read end"],
                              env=self.env, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as proc:
            wait_for("a record", lambda: os.path.exists(self.bundle("")))
            found = wait_for("what it did", lambda: self.listed("--path", "*/early", "--exe", "*/ls"))
            row = json.loads(self.words("sessions", "show", "--json", found[0]))
            self.assertEqual((row["state"], row["ended"], row["alerts"]), ("open", None, 0))
            self.assertGreater(row["records"], 2)
            proc.communicate(b"\n")
        self.assertEqual(self.listed("--state", "sealed"), found)

    def test_of_another(self):
        """A record that lies in the place of another, or that nobody recorded here."""
        a, b = self.ran("true"), self.ran("sh", "-c", "echo x > /workspace/theirs")
        self.words("verify", "--host-log")
        shutil.rmtree(self.bundle(a))
        shutil.copytree(self.bundle(b), self.bundle(a))
        self.assertEqual(self.listed("--state", "other"), [a])
        self.assertEqual(self.listed("--state", "sealed"), [b])
        foreign = b[:-1] + ("0" if b[-1] != "0" else "1")
        shutil.copytree(self.bundle(b), self.bundle(foreign))
        told = json.loads(self.words("verify", "--host-log", "--json", code=1))
        self.assertEqual((told["other"], told["unlogged"], told["present"]), (1, 1, 1))
        self.assertEqual({(f["session"], f["fault"]) for f in told["faults"]}, {(a, "other"), (foreign, "unlogged")})
        shutil.rmtree(self.bundle(foreign))
        self.assertEqual(json.loads(self.words("verify", "--host-log", "--json", code=1))["unlogged"], 0)

    def test_review(self):
        a = self.ran("true")
        self.assertIn(b"warder keys init", self.warder("review", a, "--verdict", "approved").err)
        self.words("keys", "init")
        key = self.path("host.pub", self.words("keys", "public"))
        self.assertCode(self.warder("review", a, "--verdict", "good"), 125)
        self.assertCode(self.warder("review", a), 125)
        self.words("review", a, "--verdict", "approved", "--note", "seen \x1b[1m")
        e, = self.log(kind="review")
        head = json.loads(self.words("verify", "--json", a))["head"]
        self.assertEqual((e["session"], e["data"]["verdict"], e["data"]["note"], e["data"]["head"]),
                         (a, "approved", "seen \x1b[1m", head))
        self.words("verify", "--host-log", "--key", key)
        segment = os.path.join(self.bundle(a), "events.0001.seg")
        with open(segment, "r+b") as f:
            f.seek(100)
            byte = f.read(1)
            f.seek(100)
            f.write(bytes([byte[0] ^ 1]))
        done = self.warder("review", a, "--verdict", "approved")
        self.assertCode(done, 1)
        self.assertIn(b"not approved", done.err)
        self.words("review", a, "--verdict", "rejected")
        self.assertEqual(len(self.log(kind="review")), 2)

    def test_from_a_session_to_a_verdict(self):
        """The README's five commands, as they stand there."""
        with open(os.path.join(SRC, "README.md"), encoding="utf-8") as f:
            part = f.read().split("## From a session to a verdict", 1)[1].split("```", 2)[1]
        lines = [re.split(r"\s{2,}", line[2:])[0] for line in part.strip().splitlines()]
        self.assertEqual(len(lines), 5)
        self.words("keys", "init")
        approved = self.ran("sh", "-c", "echo a > one")
        session = self.ran("sh", "-c", "echo a > two")
        key, page = self.path("host.pub", self.words("keys", "public")), self.path("report.html")
        names = {"SESSION": session, "APPROVED": approved, "host.pub": key, "report.html": page}
        codes = []
        for line in lines:
            words = [names.get(w, w) for w in line.split()]
            self.assertEqual(words[:2], ["sudo", "build/warder"])
            codes.append(self.warder(*words[2:]).code)
        self.assertEqual(codes, [0, 0, 0, 1, 0])
        self.assertTrue(os.path.getsize(page))
        e, = self.log(kind="review")
        self.assertEqual((e["session"], e["data"]["verdict"], e["data"]["note"]), (session, "approved", "ok"))

    def test_killed_before_its_end_was_told(self):
        result = self.path("r.json")
        proc = subprocess.Popen([WARDER, "run", "--quiet", "--result", result, "--", "sleep", "60"], env=self.env,
                                stdin=subprocess.DEVNULL)
        self.addCleanup(proc.wait)
        wait_for("a start", lambda: os.path.exists(os.path.join(self.env["WARDER_STATE"], "host.log"))
                 and self.log(kind="start"))
        session = self.log(kind="start")[0]["session"]
        self.words("keys", "init")
        done = self.warder("review", session, "--verdict", "approved")
        self.assertCode(done, 2)
        proc.kill()
        proc.wait()
        wait_for("the seal", lambda: self.warder("verify", session).code == 0)
        told = json.loads(self.words("verify", "--host-log", "--json"))
        self.assertEqual((told["sessions"], told["unended"], told["missing"]), (1, 1, 0))
        self.assertIn("its end is not", self.words("evidence", session, code=1))
        shutil.rmtree(self.bundle(session))
        self.assertIn(session, self.words("verify", "--host-log", code=1))

    def test_hold_and_prune(self):
        a, b, c = self.ran("true"), self.ran("true"), self.ran("true")
        self.assertCode(self.warder("sessions", "prune"), 125)
        self.assertCode(self.warder("sessions", "hold", b), 125)
        self.words("sessions", "hold", b, "--why", "case 12")
        self.words("sessions", "prune", "--older", "1h")
        self.assertEqual(self.listed(), [c, b, a])
        self.assertIn("2 sessions", self.words("sessions", "prune", "--older", "1ns", "--dry-run"))
        self.assertEqual(self.listed(), [c, b, a])
        self.words("sessions", "prune", "--older", "1ns")
        self.assertEqual(self.listed(), [b])
        self.assertEqual(sorted(e["session"] for e in self.log(kind="prune")), [a, c])
        self.words("verify", "--host-log")
        self.words("sessions", "release", b, "--why", "closed")
        d = self.ran("true")
        size = sum(os.path.getsize(os.path.join(self.bundle(d), f)) for f in os.listdir(self.bundle(d)))
        self.words("sessions", "prune", "--max-bytes", str(size))
        self.assertEqual(self.listed(), [d])
        self.words("sessions", "prune", "--max-bytes", "1")
        self.assertEqual(self.listed(), [])

    def test_prune_takes_all_of_it(self):
        """Output, kept texts, and what a writer that was killed left half made."""
        a = self.ran("sh", "-c", "echo out; echo x > /workspace/new", options=["--keep-texts"])
        there = os.listdir(self.bundle(a))
        self.assertIn("tty.0001.seg", there)
        self.assertEqual(len(os.listdir(os.path.join(self.bundle(a), "blobs"))), 1)
        with open(os.path.join(self.bundle(a), ".manifest.json.tmp"), "w") as f:
            f.write("{")
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(self.bundle(a)) for f in files)
        self.assertEqual(json.loads(self.words("sessions", "show", "--json", a))["bytes"], size)
        self.words("sessions", "prune", "--older", "0s")
        self.assertFalse(os.path.exists(self.bundle(a)))
        b = self.ran("true")
        self.words("sessions", "prune", "--max-bytes", "0")
        self.assertFalse(os.path.exists(self.bundle(b)))
        # A link in the place of the texts leads nowhere.
        c = self.ran("true")
        mine = self.path("mine")
        os.mkdir(mine)
        kept = os.path.join(mine, "0" * 64)
        open(kept, "w").close()
        os.symlink(mine, os.path.join(self.bundle(c), "blobs"))
        self.assertCode(self.warder("sessions", "prune", "--older", "0s"), 125)
        self.assertTrue(os.path.exists(kept))

    def test_prune_leaves_what_is_no_record(self):
        a = self.ran("true")
        with open(os.path.join(self.bundle(a), "letter"), "w") as f:
            f.write("mine")
        self.assertCode(self.warder("sessions", "prune", "--older", "1ns"), 125)
        self.assertEqual(os.listdir(self.bundle(a)), ["letter"])

    def test_what_a_record_states_of_itself(self):
        a = self.ran("unshare", "-m", "true")
        with open(os.path.join(self.bundle(a), "manifest.json")) as f:
            said = json.load(f)["summary"]
        start = json.loads(self.words("events", "-f", "kind = session.start", a))
        self.assertEqual((said["backend"], said["tier"], said["policy"], said["rules"]),
                         ("ns", start["run"]["tier"], start["run"]["policy"], [start["rule"]["set"]]))
        self.assertEqual((said["degraded"], said["gaps"], said["lost"]), (start.get("degraded", []), [], 0))
        self.assertEqual(sum(said["by_kind"].values()), said["events"])
        self.assertIn(said["clock"]["synced"], (True, False))
        with open("/sys/devices/system/clocksource/clocksource0/current_clocksource") as f:
            self.assertEqual(said["clock"]["source"], f.read().strip())

    def test_evidence(self):
        self.words("keys", "init")
        key = self.path("host.pub", self.words("keys", "public"))
        a = self.ran("true")

        def states(*options, code=1):
            told = json.loads(self.words("evidence", "--json", *options, a, code=code))
            self.assertEqual(len(told["requirements"]), 16)
            for r in told["requirements"]:
                order = ("shown", "partly", "missing")
                self.assertEqual(r["state"], max((told["proofs"][p]["state"] for p in r["proofs"]), key=order.index))
            return {k: v["state"] for k, v in told["proofs"].items()}

        first = states()
        self.assertEqual((first["intact"], first["reviewed"], first["retained"], first["watched"]),
                         ("partly", "missing", "shown", "shown"))
        self.words("review", a, "--verdict", "approved", "--note", "fine")
        signed = states("--key", key, code=0 if first["time"] == "shown" and first["complete"] == "shown" else 1)
        self.assertEqual((signed["intact"], signed["reviewed"]), ("shown", "shown"))
        for framework in ("PCI DSS", "SOC 2", "ISO 27001", "HIPAA", "EU AI Act"):
            self.assertIn(framework, self.words("evidence", a, code=1))
        with open(os.path.join(self.bundle(a), "events.0001.seg"), "r+b") as f:
            f.seek(70)
            f.write(b"\xff")
        self.assertEqual(states()["intact"], "missing")

    def test_diff(self):
        a = self.ran("sh", "-c", "echo > one; cat one >/dev/null")
        b = self.ran("sh", "-c", "echo > two; cat two >/dev/null; ls >/dev/null")
        done = self.warder("diff", "--json", a, b)
        self.assertCode(done, 1)
        got = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual({(g["only_in"], g["kind"], os.path.basename(g["value"])) for g in got},
                         {("b", "exe", "ls"), ("b", "path", "two"), ("a", "path", "one")})
        self.assertEqual(self.words("diff", a, a), "")
        self.assertCode(self.warder("diff", a), 125)
        with open(os.path.join(self.bundle(b), "events.0001.seg"), "r+b") as f:
            f.seek(80)
            f.write(b"\xff\xff\xff\xff")
        self.assertCode(self.warder("diff", a, b), 125)


if __name__ == "__main__":
    unittest.main()
