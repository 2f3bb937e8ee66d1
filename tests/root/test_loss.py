# SPDX-License-Identifier: Apache-2.0
"""Losses: a flood costs only who makes it, what is lost is told, and with another policy nothing is lost."""

import json
import os
import unittest

from probes import *

EACH = 200  # rounds of the quiet one
# All that tests/helpers/flood.c can do, and what one round of it has to make at least. A limit is told once a second,
# a datagram to port 53 is a query.
EVERY = "ocrswpmdfxaentuqgv"


def every(n):
    return {"file.open": 3 * n, "file.write": n, "file.mmap": n, "file.rename": 2 * n, "file.delete": 3 * n, "file.link": n,
            "file.attr": n, "file.mkdir": n, "fork": 3 * n, "exec": 2 * n + 1, "exit": 3 * n + 1, "escape": n,
            "net.connect": 2 * n, "net.bind": n, "net.listen": n, "net.accept": n, "net.send": n, "net.close": 4 * n,
            "dns.query": n, "signal": n, "limit": 1}


class Pair(Probes):
    def many(self, *options, floods):
        argv = [helper("loss_pair"), *options]
        for f in floods:
            argv += ["--", helper("flood"), *f.split()]
        done = cmd(*argv, cwd=self.tmp)
        self.assertCode(done, 0)
        result = json.loads(done.out)
        self.assertEqual(result["out_of_order"], 0, "records must come out in order of time")
        self.assertEqual(result["0"]["gaps"], [], "losses that belong to nobody")
        return result

    def pair(self, *options, flood, quiet="ordfe %d 1000" % EACH):
        result = self.many(*options, floods=[flood, quiet])
        return result, result["1"], result["2"]

    def assertWhole(self, r, each):
        """All records of the quiet sandbox came, and nothing was lost."""
        want = {"file.open": each, "file.rename": 2 * each, "file.delete": each, "fork": each, "exit": each + 1,
                "exec": 1, "escape": each}
        self.assertEqual({k: r.get(k, 0) for k in want}, want)
        self.assertEqual((r["gaps"], r["status"]), ([], 0))

    def test_a_flood_costs_the_other_sandbox_nothing(self):
        # The reader comes late: only at nine tenths of a ring.
        _, flood, quiet = self.pair("--drain-at", "90", "--bulk", "0x100000", "--urgent", "0x100000",
                                    flood="oe 20000")
        self.assertWhole(quiet, EACH)
        gaps = {g["kind"]: g for g in flood["gaps"]}
        self.assertEqual(flood["status"], 0)
        for kind in ("file.open", "escape"):
            self.assertEqual(flood[kind] + gaps[kind]["count"], 20000, "every loss is counted, by kind")
            self.assertTrue(gaps[kind]["rate"])
            self.assertGreater(gaps[kind]["span"], 0)

    def test_every_kind_at_once(self):
        n = 300
        _, flood, quiet = self.pair("--drain-at", "80", "--bulk", "0x100000", "--urgent", "0x100000",
                                    flood="%s %d" % (EVERY, n), quiet="ordfe 50 2000")
        self.assertWhole(quiet, 50)
        want = every(n)
        lost = {}
        for g in flood["gaps"]:
            lost[g["kind"]] = lost.get(g["kind"], 0) + g["count"]
        for kind, count in want.items():
            self.assertGreaterEqual(flood.get(kind, 0) + lost.get(kind, 0), count, kind)

    def test_bulk_does_not_starve_urgent(self):
        # The reader takes nothing before the bulk ring is full to the brim.
        _, flood, quiet = self.pair("--drain-at", "101", "--bulk", "0x10000", flood="or 3000",
                                    quiet="fe 200 0")
        self.assertTrue(flood["gaps"])
        self.assertLessEqual({g["kind"] for g in flood["gaps"]}, {"file.open", "file.rename", "file.delete"})
        self.assertEqual((quiet["fork"], quiet["exit"], quiet["escape"]), (200, 201, 200))
        # Of its start something may have found the bulk ring full: of what is urgent, nothing.
        self.assertLessEqual({g["kind"] for g in quiet["gaps"]}, {"file.open", "file.mkdir"})

    def test_stopped_producers_lose_nothing(self):
        # The reader takes something only when a producer was stopped.
        result, flood, quiet = self.pair("--drain-at", "101", "--policy", "stop", "--bulk", "0x40000", "--urgent",
                                         "0x40000", flood="orcsmdone 1000")
        self.assertWhole(quiet, EACH)
        self.assertEqual((flood["gaps"], flood["status"]), ([], 0))
        self.assertEqual([flood[k] for k in ("file.open", "file.rename", "file.link", "file.attr", "escape",
                                             "net.connect")], [2000, 2000, 1000, 1000, 1000, 1000])
        self.assertGreater(flood["pressed"], 1)
        self.assertGreaterEqual(result["resumed"], flood["pressed"] - 1)

    def test_killed_producers_end(self):
        _, flood, quiet = self.pair("--drain-at", "101", "--policy", "kill", "--bulk", "0x40000", flood="or 20000",
                                    quiet="fe 20 1000")
        self.assertEqual(flood["status"], 9)
        self.assertLess(flood["file.open"], 20000)
        self.assertEqual(flood["gaps"], [])
        self.assertEqual((quiet["status"], quiet["gaps"]), (0, []))

    # Eight who fill a ring together, each of them slow (at most 200 rounds a second), and one who only comes by.
    SLOW_ONES = ["or 1000000 5000"] * 8 + ["or 3 1000"]

    def test_several_slow_producers_are_killed(self):
        """Nothing is read before all have ended: so nobody but them can have kept the ring from filling up."""
        result = self.many("--drain-at", "101", "--hold", "yes", "--policy", "kill", "--bulk", "0x40000", floods=self.SLOW_ONES)
        for i in range(1, 9):
            self.assertEqual((result[str(i)]["status"], result[str(i)]["pressed"], result[str(i)]["gaps"]), (9, 1, []), i)
        self.assertEqual((result["9"]["status"], result["9"]["gaps"], result["9"]["file.rename"]), (0, [], 6))

    def test_who_only_sends_datagrams_is_stopped(self):
        """Those are told by programs that cannot send signals themselves."""
        result = self.many("--drain-at", "101", "--policy", "stop", "--bulk", "0x20000", floods=["q 3000", "e 3"])
        r = result["1"]
        self.assertEqual((r["status"], r["gaps"], r["dns.query"]), (0, [], 3000))
        self.assertGreater(r["pressed"], 1)

    def test_several_producers_are_stopped(self):
        result = self.many("--drain-at", "101", "--policy", "stop", "--bulk", "0x40000", "--urgent", "0x40000",
                           floods=["orcsmdne 250"] * 8)
        for i in range(1, 9):
            r = result[str(i)]
            self.assertEqual((r["status"], r["gaps"]), (0, []), i)
            self.assertEqual([r[k] for k in ("file.open", "file.rename", "file.link", "escape", "net.connect")],
                             [250, 500, 250, 250, 250], i)
        self.assertGreater(sum(result[str(i)]["pressed"] for i in range(1, 9)), 8)


class Policy(TestCase):
    """The same through `warder run`."""

    def setUp(self):
        need_root()
        super().setUp()
        self.options = ("--no-default-rules", "--urgent-ring", "64K", "--bulk-ring", "64K", "--ro",
                        os.path.dirname(helper("flood")) + ":/h")

    def test_stop_keeps_every_event(self):
        s = self.session("/h/flood", "orcmdfe", "1500", options=(*self.options, "--on-pressure", "stop"))
        self.assertCode(s, 0)
        self.assertEqual(s.result["gaps"], 0)
        self.assertEqual(len(s.kinds("file.open")), 1500)
        self.assertEqual(len(s.kinds("file.rename")), 3000)
        self.assertEqual(len(s.kinds("exit")), 1501)
        self.assertEqual(len([e for e in s.kinds("escape") if field(e, "escape.type") == "setns"]), 1500)
        self.assertContiguous(s.events)
        self.assertIntact(s)

    def test_kill_ends_the_sandbox_and_says_why(self):
        policy = self.path("p.yaml", "on_pressure: kill\nrings: { urgent: 64K, bulk: 64K }\n")
        s = self.session("/bin/sh", "-c", "/h/flood or 1000000 & sleep 1000",
                         options=("--no-default-rules", "--policy", policy, *self.options[5:]))
        self.assertCode(s, 137)
        self.assertEqual(s.result["reason"], "event_limit")
        limit = s.kinds("limit", limit__type="events")
        self.assertEqual([field(e, "limit.effect") for e in limit], ["killed"])
        self.assertIn(s.verify().code, (0, 3) if IN_VM else (0,))

    def test_every_kind_at_once(self):
        """Little room, and a flood of all there is: nothing crashes or stalls, each line is JSON, and what is not there
        is counted by kind."""
        n = 150
        s = self.session("/h/flood", EVERY, str(n), options=self.options)
        self.assertCode(s, 0)
        self.assertContiguous(s.events)
        lost = {}
        for e in s.kinds("gap"):
            lost[e["gap"]["kind"]] = lost.get(e["gap"]["kind"], 0) + e["gap"]["count"]
        self.assertEqual(sum(lost.values()), s.result["gaps"])
        for kind, count in every(n).items():
            self.assertGreaterEqual(len(s.kinds(kind)) + lost.get(kind, 0), count, "%s; lost %s" % (kind, lost))
        self.assertEqual(s.kinds("session.stop")[0], s.events[-1])
        self.assertCode(s.verify(), 3 if lost else 0)

    def test_bad_words(self):
        self.assertCode(self.warder("run", "--on-pressure", "panic", "true"), 125)
        self.assertCode(self.warder("run", "--bulk-ring", "100000", "true"), 125)


class Off(Probes):
    def test_families_that_are_not_wanted(self):
        d = self.script("""
open("x", "w")
os.system("true")
sc(308, -1, 0)
""", options=("--off", "0x2"))
        self.assertEqual(d.kinds("file.open"), [])
        self.assertTrue(d.kinds("exec") and d.kinds("fork") and d.escapes("setns"))
        d = self.script("""
open("x", "w")
os.system("true")
sc(308, -1, 0)
""", options=("--off", "0x21"))
        self.assertEqual(d.kinds("exec", "fork", "exit", "escape", "signal"), [])
        self.assertTrue(d.kinds("file.open"))
        self.assertEqual(d.gaps, [])
        for where, seqs in sequences(d.records).items():
            self.assertEqual(sorted(seqs), list(range(1, len(seqs) + 1)), where)


if __name__ == "__main__":
    unittest.main()
