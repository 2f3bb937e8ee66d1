# SPDX-License-Identifier: Apache-2.0
"""Sinks of real sessions: filters, `warder status`, what a sink's trouble leaves in the record."""

import gzip
import http.server
import json
import os
import signal
import threading
import unittest

from warder import *


class Refuser:
    """A webhook that takes everything but execs: 400. (One that never took anything might be the wrong one.)"""

    def __enter__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                self.send_response(400 if b'"kind":"exec"' in body else 200)
                text = "not me\u009b31m\u202e".encode()  # CSI as C1, right-to-left override
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/" % self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class Sinks(TestCase):
    def status(self):
        done = self.warder("status", "--json")
        self.assertCode(done, 0)
        return json.loads(done.out)["sessions"]

    def lines(self, name):
        with open(self.path(name)) as f:
            return [json.loads(line) for line in f]

    # ---- filters ----

    def test_each_sink_has_its_filter(self):
        s = self.session("sh", "-c", "/bin/true; echo x > f", options=[
            "--export", "file:%s,filter=kind in (exec, exit)" % self.path("execs"),
            "--export", "file:%s,filter=kind = file.open and file.path endswith /f" % self.path("opens"),
            "--export", "file:%s" % self.path("all")])
        self.assertCode(s, 0)
        ids = [e["id"] for e in s.events]
        self.assertEqual([e["id"] for e in self.lines("all")], ids)
        self.assertEqual([e["id"] for e in self.lines("execs")], [e["id"] for e in s.kinds("exec", "exit")])
        self.assertEqual([e["file"]["path"] for e in self.lines("opens")], ["/workspace/f"])
        self.assertEqual(s.result["sinks_behind"], 0)

    def test_a_filter_that_is_none(self):
        done = self.warder("run", "--export", "file:/dev/null,filter=proc.nmae = x", "--", "true")
        self.assertCode(done, 125)
        self.assertOneLine(done, "filter", "proc.nmae")

    def test_export_with_a_filter(self):
        s = self.session("sh", "-c", "/bin/true; /bin/true")
        done = self.warder("export", s.dir, "file:%s,filter=kind = exec" % self.path("late"))
        self.assertCode(done, 0)
        self.assertEqual([e["id"] for e in self.lines("late")], [e["id"] for e in s.kinds("exec")])

    def test_settings_that_may_lose_events_are_told(self):
        s = self.session("true", options=["--export", "syslog:udp://127.0.0.1:9,lossy=yes,name=u",
                                          "--kafka", "127.0.0.1:1,kafka.acks=1", "--export-wait", "10ms"])
        self.assertIn(b"sink 'u': syslog over UDP loses messages", s.err)
        self.assertIn(b"acks", s.err)

    # ---- status and events ----

    def test_a_dead_sink_is_told(self):
        proc, finish = self.start_session("sleep", "60", options=[
            "--kafka", "127.0.0.1:1", "--export", "file:%s,name=f,required=yes" % self.path("all"),
            "--export-wait", "100ms", "--name", "quiet-one"])

        def told():
            sessions = self.status()
            return sessions if sessions and sessions[0].get("sinks") and any(
                e["kind"] == "audit.degraded" for e in self.lines("all")) else None

        row, = wait_for("an event about the dead sink", told)
        kafka, file = row["sinks"]
        self.assertEqual((row["run"]["name"], row["run"]["pid"]), ("quiet-one", proc.pid))
        self.assertEqual((kafka["up"], kafka["acked"], kafka["required"]), (False, 0, False))
        self.assertGreater(kafka["lag"], 0)
        self.assertEqual((file["name"], file["up"], file["required"]), ("f", True, True))
        text = self.warder("status").out.decode()
        self.assertIn("DOWN", text)
        self.assertIn("refused", text)
        self.assertRegex(text, r"  since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: %s" % row["run"]["command"][0])
        proc.send_signal(signal.SIGTERM)
        s = finish()
        event, = s.kinds("audit.degraded")
        self.assertIn("takes nothing", event["audit"]["message"])
        self.assertIn("refused", event["audit"]["message"])
        self.assertEqual(self.status(), [])
        self.assertEqual(self.warder("status").out, b"no session runs\n")
        self.assertEqual([e["id"] for e in self.lines("all")], [e["id"] for e in s.events])

    def test_dead_letters_are_told(self):
        with Refuser() as refuser:
            proc, finish = self.start_session("sleep", "60", options=[
                "--export", "webhook:%s,name=w,filter=kind = session.start or kind = exec" % refuser.url,
                "--export", "file:%s" % self.path("all")])
            wait_for("an event about the refusal", lambda: os.path.exists(self.path("all")) and any(
                e["kind"] == "audit.degraded" for e in self.lines("all")))
            proc.send_signal(signal.SIGTERM)
            s = finish()
        event, = s.kinds("audit.degraded")
        self.assertRegex(event["audit"]["message"], "^sink 'w' refused 1 records for good.*400.*not me")
        self.assertEqual(s.result["dead_letters"], 1)
        self.assertEqual(s.result["sinks_behind"], 0)
        self.assertIn(b"refused by a sink", s.err)
        for text in (event["audit"]["message"], s.err.decode().replace("\n", "")):
            self.assertNotRegex(text, "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
        with open(os.path.join(self.env["WARDER_STATE"], "cursors",
                               s.result["session"] + ".w.dlq.jsonl")) as f:
            dead = json.loads(f.read())
        self.assertEqual(dead["record"]["id"], s.kinds("exec")[0]["id"])

    def test_killed_warders_leave_no_status(self):
        proc, _ = self.start_session("sleep", "60", options=["--export", "file:/dev/null"])
        row, = wait_for("the status", lambda: [r for r in self.status() if "sinks" in r])
        folder = os.path.join(self.env["WARDER_RUN"], "sessions", row["session"])
        proc.kill()
        proc.wait()
        # The engine goes when its root part does; only then the lock is gone.
        wait_for("the sweep", lambda: os.utime(folder, (1, 1)) or self.status() == []
                 if os.path.exists(folder) else True)
        self.assertEqual(os.listdir(os.path.dirname(folder)), [])
        self.warder("run", "--quiet", "--", "true")  # sweeps what the killed one left of its sandbox

    def test_an_engine_that_lies(self):
        """The status is written by an unprivileged process: nothing in its directory can hurt the reader."""
        folder = os.path.join(self.env["WARDER_RUN"], "sessions", "S")
        os.makedirs(folder)
        self.path("secret", '"secret"')
        os.mkfifo(folder + "/fifo.json")
        os.symlink(self.path("secret"), folder + "/link.json")
        for name, text in (("cut.json", '[{"name":'), ("two.json", '1} , {"x":2'), ("nul.json", '1\0"'),
                           ("deep.json", "[" * 100 + "]" * 100), ("big.json", '"%s"' % ("x" * 300000)),
                           ("UP.json", "1"), ("a.json.tmp", "2"), ("good.json", '{"a":[1,true,"\\u001b"]}'),
                           ("sinks.json", '[{"name":"\\u001b[31m","text":"a\x7fb"},7,"x"]')):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        row, = self.status()
        self.assertEqual(sorted(row), ["good", "session", "sinks"])
        out = self.warder("status").out
        self.assertNotIn(b"\x1b", out)
        self.assertNotIn(b"\x7f", out)


if __name__ == "__main__":
    unittest.main()
