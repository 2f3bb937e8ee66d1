# SPDX-License-Identifier: Apache-2.0
"""Many events for a long time, into sinks that fail at random: nothing lost, memory flat. `make soak` is the long
form: SOAK_SECONDS=600 SOAK_RATE=20000 (events a second, all sessions together)."""

import json
import os
import random
import statistics
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from feed import Feed  # noqa: E402
from warder import WARDER, MockKafka, TestCase, helper  # noqa: E402

SECONDS = int(os.environ.get("SOAK_SECONDS", "45"))
RATE = int(os.environ.get("SOAK_RATE", "4000"))
KILLS = os.environ.get("SOAK_KILLS", "yes") == "yes"  # no: memory of one process over the whole time
SESSIONS = 8
# Bytes. What fills in an outage is bounded and given back, but one half may have the worse outages. What leaks, or tears
# the heap to pieces, shows in the median. A short run has few outages to take it of.
GROWTH, PEAK_GROWTH = (6 if SECONDS >= 300 else 12) << 20, 16 << 20
WARM_UP = 20  # samples, a tenth of a second each and the time of a trouble
NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS = 6, 7, 19


class Hook:
    """tests/helpers/hook.c: a webhook in bad health that is quick enough."""

    def __init__(self):
        self.proc = subprocess.Popen([helper("hook")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = "http://127.0.0.1:%d/" % int(self.proc.stdout.readline())

    def ask(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        return self.proc.stdout.readline().strip()

    def sick(self, p):
        assert self.ask("sick %f" % p) == "ok"

    def count(self):
        return json.loads(self.ask("count"))

    def close(self):
        self.proc.stdin.close()
        self.proc.wait(10)
        self.proc.stdout.close()


class Soak(TestCase):
    def tell(self, line):
        self.kafka.tell(line)
        self.assertEqual(self.kafka.proc.stdout.readline().strip(), "ok")

    def trouble(self, dice):
        """One thing breaks for a moment."""
        what = dice.randrange(5)
        if what == 0:
            self.tell("down")
            time.sleep(dice.uniform(0.2, 2))
            self.tell("up")
        elif what == 1:
            self.tell("rtt %d" % dice.randrange(20, 300))
            time.sleep(dice.uniform(0.2, 1))
            self.tell("rtt 0")
        elif what == 2:
            self.tell("err 0 %d %d" % (dice.choice((NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS)), dice.randrange(1, 8)))
        else:
            self.hook.sick(dice.uniform(0.1, 0.7))
            time.sleep(dice.uniform(0.2, 1.5))
            self.hook.sick(0)

    def memory(self):
        with open("/proc/%d/status" % self.feed.proc.pid) as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))

    def start(self):
        names = ",".join("S%d" % i for i in range(SESSIONS))
        self.feed = Feed(",".join([self.made] * SESSIONS), self.tmp, names,
                         # The mock takes what a broker refuses as out of order, so one request at a time.
                         "kafka:%s,name=k,kafka.max.in.flight=1" % self.kafka.brokers,
                         "webhook:%s,name=h,timeout=5s" % self.hook.url)
        self.addCleanup(self.feed.kill)

    def test_soak(self):
        dice = random.Random(int(os.environ.get("SOAK_SEED", "1")))
        self.kafka, self.hook = MockKafka(), Hook()
        self.addCleanup(self.kafka.__exit__)
        self.addCleanup(self.hook.close)
        # A partition of the mock keeps 5 MiB and drops what is older, read or not: sessions in few of them would
        # leave a slow consumer some seconds only.
        self.tell("topic warder.events 64")
        each = RATE // SESSIONS
        total = each * SECONDS * SESSIONS
        self.made = "made:%d:%d:%d" % (each, each * SECONDS, time.monotonic_ns() + 10**9)
        # The mock keeps little: what arrives is read at once, by a client that is allowed to see duplicates.
        consumer = subprocess.Popen([WARDER, "consume", self.kafka.brokers, "--quiet", "--count", str(total),
                                     "--idle", "60s", "-X", "reconnect.backoff.max.ms=1000", "-X",
                                     "fetch.error.backoff.ms=50", "-X", "fetch.wait.max.ms=100"],
                                    stderr=subprocess.PIPE, env=self.env, text=True)
        self.addCleanup(consumer.kill)
        self.start()
        began, samples, kills = time.monotonic(), [], 0
        while time.monotonic() < began + SECONDS + 1:
            self.feed.proc.stdin.write("notify\n")
            self.feed.proc.stdin.flush()
            if dice.random() < 0.25:
                self.trouble(dice)
            if dice.random() < 0.02 and kills * 60 < SECONDS and KILLS:
                kills += 1
                self.feed.kill()
                self.start()
                samples.append(None)
            samples.append(self.memory())
            time.sleep(0.1)
        answer = self.feed.ask("drain 250000")
        self.assertEqual((answer["behind"], sum(r["poison"] for r in answer["sinks"])), (0, 0), answer)
        _, err = consumer.communicate(timeout=250)
        got = json.loads(err.splitlines()[-1])
        # What the sinks were told is safe, was taken: nothing is still on its way.
        hook = self.hook.count()
        print("soak: %d events at %d/s, %d kills, consumer %s, webhook %s" % (total, RATE, kills, got, hook))
        # `gone` says whether it was the mock, which keeps 5 MiB a partition, that forgot before it was read.
        self.assertEqual((consumer.returncode, got["events"], got["missing"], got["late"], got["altered"]),
                         (0, total, 0, 0, 0), got)
        self.assertEqual((sum(hook["next"]), hook["missing"], hook["bad"]), (total + SESSIONS, 0, 0))
        self.assertGreater(hook["refused"] + hook["unanswered"], 0)  # it was sick indeed
        # Memory of the last process, from when it was warm.
        last = samples[len(samples) - samples[::-1].index(None):] if None in samples else samples
        last = last[WARM_UP:]
        # The heap grows to what the worst outages want, for some minutes, and stays there: of a long run the half after.
        if SECONDS >= 300:
            last = last[len(last) // 2:]
        half = len(last) // 2
        if half > 20:
            first, second = last[:half], last[half:]
            tenths = [last[len(last) * i // 10:len(last) * (i + 1) // 10] for i in range(10)]
            print("soak: memory by tenths of the last %d samples, least/median/most MiB: %s" % (len(last), ", ".join(
                "%d/%d/%d" % tuple(int(n) >> 20 for n in (min(t), statistics.median(t), max(t))) for t in tenths)))
            print("soak: memory %d KiB in the middle and %d at most in the first half, %d and %d in the second" % tuple(
                int(n) >> 10 for h in (first, second) for n in (statistics.median(h), max(h))))
            self.assertLess(statistics.median(second), statistics.median(first) + GROWTH)
            self.assertLess(max(second), max(first) + PEAK_GROWTH)


if __name__ == "__main__":
    unittest.main()
