# SPDX-License-Identifier: Apache-2.0
"""The start-up self-test: each probe family sees its own event, or every session says that it is degraded.
Families are broken for real: a program is attached and never fires (tests/helpers/no_fire.c)."""

import json
import os
import unittest

from warder import *

# A program of the family that serves it on every kernel, and what is then not seen.
BROKEN = {
    "lineage": ("on_newtask", "a process made"),
    "signal": ("on_signal", "a signal"),
    "dns": ("on_egress", "a query"),
    "net": ("on_connect6", "a refused connect over IPv6"),
    "metadata": ("on_metadata_connect4", "a metadata service sought over IPv4"),
    "process": ("on_exit", "the end of a process"),
}
# Of those that are called at the end of a system call: the tier's own version serves.
HANDLERS = {"file": ("sys_mmap", "a shared mapping"), "escape": ("sys_foreign", "a 32-bit call"),
            "limit": ("sys_limit", "too many open files")}
if IN_VM:  # each costs half a minute there
    BROKEN, HANDLERS = {"dns": BROKEN["dns"]}, {"file": HANDLERS["file"]}


class SelfTest(TestCase):
    def setUp(self):
        need_root()
        super().setUp()
        self.env.pop("WARDER_TIER", None)
        self.env.pop("NO_COLOR", None)

    healthy = None

    def doctor(self, **env):
        if not env and SelfTest.healthy:
            return SelfTest.healthy
        done = self.warder("doctor", "--json", env=dict(self.env, **env))
        try:
            report = json.loads(done.out)
        except ValueError:
            self.fail(str(done))
        found = done.code, report, {f["name"]: f for f in report["families"]}
        if not env:
            SelfTest.healthy = found
        return found

    def no_fire(self, program):
        return {"LD_PRELOAD": helper("no_fire"), "NO_FIRE": program}

    def test_every_family_sees_its_events(self):
        code, report, families = self.doctor()
        self.assertEqual(report["error"], "")
        for name, f in families.items():
            self.assertTrue(f["ok"], f)
            self.assertTrue(f["tests"], "family %s is not tested" % name)
            for t in f["tests"]:
                self.assertNotEqual(t["result"], "unseen", (name, t))
                self.assertEqual(t["result"] == "untried", bool(t["why"]), (name, t))
            # What a host may lack is never all of a family's.
            if name not in ("io_uring", "oom"):
                self.assertIn("seen", [t["result"] for t in f["tests"]], f)
        self.assertEqual((code, report["degraded"]), (0, []))

    def test_what_this_host_has_is_tried(self):
        """Memory, io_uring, IPv6, 32-bit calls: on a host that has them they must not be passed over."""
        _, _, families = self.doctor()
        result = {(n, t["what"]): t["result"] for n, f in families.items() for t in f["tests"]}
        if os.path.exists("/proc/net/if_inet6"):
            self.assertEqual(result["net", "a connect over IPv6"], "seen")
        with open("/proc/sys/kernel/io_uring_disabled" if os.path.exists("/proc/sys/kernel/io_uring_disabled")
                  else "/dev/null") as f:
            if f.read().strip() in ("", "0"):
                self.assertEqual(result["io_uring", "a file opened by io_uring"], "seen")
        with open("/proc/cgroups") as f:
            memory = any(line.split()[0] == "memory" and line.split()[3] == "1" for line in f if line[0] != "#")
        with open("/proc/sys/vm/panic_on_oom") as f:
            if memory and f.read().strip() == "0":
                self.assertEqual(result["oom", "a process killed for its memory"], "seen")

    def test_doctor_names_what_does_not_fire(self):
        for family, (program, what) in BROKEN.items():
            with self.subTest(family):
                code, report, families = self.doctor(**self.no_fire(program))
                self.assertEqual(code, 2)
                self.assertIn(family, report["degraded"])
                self.assertEqual({t["what"]: t["result"] for t in families[family]["tests"]}[what], "unseen")
                self.assertIn("self-test", families[family]["detail"])
                if family != "lineage":  # without it no task is known
                    self.assertEqual(set(report["degraded"]) - {"prevent"}, {family})

    def test_doctor_names_handlers_that_are_not_reached(self):
        healthy = self.doctor()[2]
        tier = healthy["file"]["hook"]
        suffix = "_k" if "kretprobe" in tier else "_f" if "fexit" in tier else ""
        for family, (program, what) in HANDLERS.items():
            with self.subTest(family):
                test, = (t for t in healthy[family]["tests"] if t["what"] == what)
                if test["result"] == "untried":
                    self.skipTest("%s: %s" % (what, test["why"]))
                code, report, families = self.doctor(**self.no_fire(program + suffix))
                self.assertEqual((code, report["degraded"]), (2, [family]))
                self.assertEqual({t["what"]: t["result"] for t in families[family]["tests"]}[what], "unseen")

    def test_doctor_names_that_passed_in_sockets_are_not_seen(self):
        full = self.doctor()[2]["net"]["tier"] == "full"
        plain, ring = "a datagram of a socket that was passed in", "a datagram sent by io_uring on a socket that was passed in"
        for program, unseen in ({"on_sock_send": (plain, ring)} if full else {"sys_send": (plain,), "on_passed_get": (ring,)}).items():
            code, report, families = self.doctor(**self.no_fire(program))
            self.assertEqual((code, report["degraded"]), (2, ["net"]))
            result = {t["what"]: t["result"] for t in families["net"]["tests"]}
            self.assertEqual([result[what] for what in (plain, ring)], ["unseen" if what in unseen else "seen" for what in (plain, ring)])

    @unittest.skipIf(IN_VM, "the same on every kernel, and slow under emulation")
    def test_text_for_a_person(self):
        done = self.warder("doctor", env=dict(self.env, **self.no_fire("on_signal")))
        self.assertCode(done, 2)
        text = done.out.decode()
        self.assertRegex(text, r"MISS signal .*self-test: a signal was done and no event came")
        self.assertIn("Ready, but degraded", text)

    def test_a_session_is_degraded_by_name(self):
        env = dict(self.env, **self.no_fire("on_egress"))
        proc, finish = self.start_session("sh", "-c", "sleep 60", env=env)
        status = wait_for("the session's status", lambda: [
            s["run"] for s in json.loads(self.warder("status", "--json").out)["sessions"] if "run" in s])
        self.assertEqual(status[0]["degraded"], ["probe.dns"])
        self.assertIn(b'degraded ["probe.dns"]', self.warder("status").out)
        proc.terminate()
        s = finish()
        self.assertEqual(s.result["degraded"], ["probe.dns"])
        self.assertEqual(s.events[0]["kind"], "session.start")
        self.assertEqual(s.events[0]["degraded"], ["probe.dns"])
        verify = s.verify("--json")
        self.assertEqual((verify.code, json.loads(verify.out)["degraded"]), (0, ["probe.dns"]))
        self.assertIn(b"degraded  probe.dns\n", s.verify().out)

    def test_what_is_to_be_refused_is(self):
        _, report, families = self.doctor()
        result = {t["what"]: t["result"] for t in families["prevent"]["tests"]}
        self.assertEqual(result["a connect that is refused"], "seen")
        full = families["prevent"]["tier"] == "full"
        self.assertEqual(result["a symbolic link that is refused"], "seen" if full else "untried")
        broken = "prevent_symlink" if full else "on_connect4"
        _, report, families = self.doctor(**self.no_fire(broken))
        self.assertIn("prevent", report["degraded"])
        self.assertIn("was not refused", families["prevent"]["detail"])

    def test_a_healthy_session_leaves_no_trace_of_it(self):
        s = self.session("true")
        self.assertCode(s, 0)
        self.assertEqual(s.result["degraded"], [])
        self.assertNotIn("degraded", s.events[0])
        self.assertEqual(json.loads(s.verify("--json").out)["degraded"], [])
        self.assertEqual([e for e in s.events if "selftest" in json.dumps(e)], [])
        self.assertEqual(s.kinds("gap"), [])

    def test_a_tier_that_this_host_lacks(self):
        if self.doctor()[2]["escape"]["tier"] == "full":
            raise unittest.SkipTest("this kernel has the full tier")
        code, report, families = self.doctor(WARDER_TIER="full")
        self.assertEqual(code, 2)
        # What is refused is not told of, either.
        self.assertEqual(report["degraded"], ["process", "file", "net", "limit", "escape", "prevent"])
        self.assertIn("degraded", self.warder("doctor", env=dict(self.env, WARDER_TIER="full")).out.decode())


if __name__ == "__main__":
    unittest.main()
