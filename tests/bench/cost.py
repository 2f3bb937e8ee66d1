#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What being watched costs: each load bare and under an agent, in turns, as root.

    cost.py [--build DIR] [--pairs N] [--scale X] [--loads a,b] [--agents a,b] [--json FILE]

For each load and agent N pairs of (bare, watched), the order swapped from pair to pair; the agent is started
before and stopped after each watched run, so that nothing of it is left during the bare one. The load is the
same process in the same control group both times. Medians of the pairs' ratios:
  wall    what a user sees; on a busy machine noise
  active  wall less the time the load was ready but had no CPU: steadier; of compile: its CPU
  CPU     of the load alone: probes run in it
  agent   CPU microseconds of the agent for each act, until it had caught up; what memory it held then
  seen    events found in what the agent wrote, of those made: loss from end to end
Agents: warder (the load's group is the sandbox), untracked (a sandbox is alive elsewhere), idle (none is
alive), and where installed auditd, bpftrace, falco (FALCO=binary, FALCO_CONFIG=its falco.yaml)."""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "bench")
C_FILE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char *s = strdup(argc > 1 ? argv[1] : "text");
	for (size_t i = 0; i < strlen(s); i++)
		s[i] ^= 0x20;
	printf("%s %d\n", s, (int)getpid());
	free(s);
	return 0;
}
"""

# name: (acts, command, most that wall may grow when tracked). {n} acts, {load} {tiny} programs, {dir} on tmpfs.
LOADS = {
    "exec": (2000, ["{load}", "exec", "{n}", "{tiny}"], 1.10),
    "file": (100000, ["{load}", "file", "{n}", "{dir}/file"], 1.30),
    "rename": (100000, ["{load}", "rename", "{n}", "{dir}/rename"], 1.25),
    "unlink": (50000, ["{load}", "unlink", "{n}", "{dir}/unlink"], 1.25),
    "tcp": (20000, ["{load}", "tcp", "{n}"], 1.30),
    "udp": (100000, ["{load}", "udp", "{n}", "5300"], 1.30),
    "dns": (50000, ["{load}", "udp", "{n}", "53"], None),
    "getppid": (3000000, ["{load}", "getppid", "{n}"], None),
    "compile": (10, ["/bin/sh", "-c", "for i in $(seq {n}); do gcc -O1 -o {dir}/small {dir}/small.c; done"], 1.05),
}


def fill(argv, names):
    for key, value in names.items():
        argv = [a.replace("{%s}" % key, str(value)) for a in argv]
    return argv


def v2_mount():
    with open("/proc/self/mounts") as f:
        for line in f:
            w = line.split()
            if w[2] == "cgroup2":
                return w[1]
    raise SystemExit("cost.py: no cgroup v2 mount")


# ---- processes and what they used ----

def processes(pid):
    """A process and its descendants."""
    found = [pid]
    for p in found:
        try:
            for tid in os.listdir("/proc/%d/task" % p):
                with open("/proc/%d/task/%s/children" % (p, tid)) as f:
                    found += map(int, f.read().split())
        except OSError:
            pass
    return found


def kernel_thread(name):
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % p) as f:
                if f.read().strip() == name:
                    return [int(p)]
        except OSError:
            pass
    return []


def cpu_s(pids):
    total = 0
    for p in pids:
        try:
            for tid in os.listdir("/proc/%d/task" % p):
                with open("/proc/%d/task/%s/schedstat" % (p, tid)) as f:
                    total += int(f.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def switches(pids):
    """How often they were given a CPU."""
    total = 0
    for p in pids:
        for tid in os.listdir("/proc/%d/task" % p):
            with open("/proc/%d/task/%s/status" % (p, tid)) as f:
                total += sum(int(line.split()[1]) for line in f if "_ctxt_switches" in line)
    return total


def memory_mb(pids):
    """What they hold, each page once: proportional set size."""
    total = 0
    for p in pids:
        try:
            with open("/proc/%d/smaps_rollup" % p) as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            pass
    return total / 1024


# ---- agents ----

class Agent:
    """Started, settled, drained, stopped. seen(): events of the load found in its output."""
    threads = ()
    events = None  # all that it wrote, where that is more than one an act

    def __init__(self, bench):
        self.bench, self.proc = bench, None
        self.tmp = tempfile.mkdtemp(prefix="agent-", dir=bench.tmp)

    def spawn(self, argv, ready, **kw):
        out = open(self.tmp + "/out", "wb")
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, **kw)
        out.close()
        end = time.monotonic() + 60
        while not re.search(ready, self.output()):
            if self.proc.poll() is not None or time.monotonic() > end:
                raise RuntimeError("%s is not ready: %r" % (argv[0], self.output()[-600:]))
            time.sleep(0.02)

    def output(self):
        with open(self.tmp + "/out", "rb") as f:
            return f.read()

    def settle(self):
        if self.proc.poll() is not None:
            raise RuntimeError("%s ended: %r" % (self.proc.args[0], self.output()[-600:]))
        self.pids = processes(self.proc.pid) + [p for t in self.threads for p in kernel_thread(t)]
        self.cpu = cpu_s(self.pids)

    def drain(self):
        """Until it has rested for a third of a second; returns its CPU seconds."""
        last, end = cpu_s(self.pids), time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.33)
            now = cpu_s(self.pids)
            if now - last < 0.01:
                break
            last = now
        return cpu_s(self.pids) - self.cpu

    def measure(self, load):
        used, peak = self.drain(), memory_mb(self.pids)
        self.stop()
        seen, lost = self.seen(load)
        return {"agent_s": used, "mb": peak, "seen": seen, "lost": lost, "events": self.events}

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.send_signal(signal.SIGINT)
            try:
                self.proc.wait(20)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        if self.proc:
            self.proc.stdin.close()

    def remove(self):
        try:
            self.stop()
        except RuntimeError:
            Agent.stop(self)
        shutil.rmtree(self.tmp, ignore_errors=True)

    def count(self, text, patterns, load):
        return len(re.findall(patterns[load], text, re.M)) if load in patterns else None


class Warder(Agent):
    kinds = {"exec": b'"kind":"exec"', "file": b'"kind":"file.open"', "rename": b'"kind":"file.rename"',
             "unlink": b'"kind":"file.delete"', "tcp": b'"kind":"net.connect"', "dns": b'"kind":"dns.query"'}
    where = "load"

    def start(self):
        argv = [self.bench.names["watcher"], self.tmp + "/bundle"]
        os.chmod(self.tmp, 0o755)
        os.mkdir(self.tmp + "/bundle")
        if self.where:
            argv.append(self.bench.cgroups[self.where])
        self.spawn(argv, rb"^ready")

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.stdin.close()
            self.proc.wait(60)

    def seen(self, load):
        if not self.where or self.where != "load":
            return None, 0
        lost = json.loads(self.output().splitlines()[-1])["gaps"]
        done = subprocess.run([self.bench.warder, "events", self.tmp + "/bundle"], stdout=subprocess.PIPE, check=True)
        lines = done.stdout.splitlines()
        self.events = len(lines)
        if load == "udp":  # repeats come as a count, the last ones with the socket's end
            return sum(json.loads(line)["net"].get("count", b'"net.send"' in line) for line in lines
                       if b'"kind":"net.send"' in line or b'"kind":"net.close"' in line), lost
        if load == "file":
            return sum(1 for line in lines if self.kinds[load] in line and b"/file/f" in line), lost
        return (sum(1 for line in lines if self.kinds[load] in line) if load in self.kinds else None), lost


class Untracked(Warder):
    where = "other"


class Idle(Warder):
    where = None


class Auditd(Agent):
    threads = ("kauditd",)
    rules = ["-D", "-b 8192", "--backlog_wait_time 60000", "-a always,exit -F arch=b64 -S execve,execveat -k exec",
             "-a always,exit -F arch=b64 -S connect -k net",
             "-a always,exit -F arch=b64 -S open -F a1&0x243 -k write",
             "-a always,exit -F arch=b64 -S openat -F a2&0x243 -k write",
             "-a always,exit -F arch=b64 -S creat,rename,renameat,renameat2,unlink,unlinkat -k names"]
    config = ["log_file = {tmp}/log", "log_format = RAW", "flush = INCREMENTAL_ASYNC", "freq = 50", "num_logs = 2",
              "max_log_file = 2000", "max_log_file_action = IGNORE", "space_left = 75", "space_left_action = IGNORE",
              "admin_space_left = 50", "admin_space_left_action = IGNORE", "disk_full_action = IGNORE",
              "disk_error_action = IGNORE"]
    patterns = {"exec": rb'^type=SYSCALL.*comm="tiny".*key="exec"', "file": rb'^type=SYSCALL.*comm="load".*key="write"',
                "rename": rb'^type=SYSCALL.*syscall=82 .*comm="load"', "unlink": rb'^type=SYSCALL.*syscall=87 .*comm="load"',
                "tcp": rb'^type=SYSCALL.*comm="load".*key="net"'}

    @staticmethod
    def there():
        return shutil.which("auditd") and shutil.which("auditctl")

    def start(self):
        os.chmod(self.tmp, 0o700)
        with open(self.tmp + "/auditd.conf", "w") as f:
            f.write("\n".join(self.config).replace("{tmp}", self.tmp) + "\n")
        os.chmod(self.tmp + "/auditd.conf", 0o640)
        with open(self.tmp + "/rules", "w") as f:
            f.write("\n".join(self.rules) + "\n")
        os.chmod(self.tmp + "/rules", 0o640)
        self.spawn(["auditd", "-n", "-c", self.tmp], rb"")
        time.sleep(1)
        subprocess.run(["auditctl", "--reset-lost"], stdout=subprocess.DEVNULL)
        subprocess.run(["auditctl", "-R", self.tmp + "/rules"], check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        if self.proc and self.proc.poll() is None:
            status = subprocess.run(["auditctl", "-s"], stdout=subprocess.PIPE, text=True).stdout
            self.lost = sum(map(int, re.findall(r"^lost (\d+)", status, re.M)))
            subprocess.run(["auditctl", "-D"], stdout=subprocess.DEVNULL)
            subprocess.run(["auditctl", "-e", "0"], stdout=subprocess.DEVNULL)
            self.proc.send_signal(signal.SIGTERM)
            self.proc.wait(30)

    def seen(self, load):
        with open(self.tmp + "/log", "rb") as f:
            return self.count(f.read(), self.patterns, load), self.lost


class Bpftrace(Agent):
    patterns = {"exec": rb"^exec .*tiny", "file": rb"^write .* load f", "rename": rb"^rename .* load ",
                "unlink": rb"^unlink .* load u", "tcp": rb"^net .* load ", "dns": rb"^dns .* load "}

    @staticmethod
    def there():
        return shutil.which("bpftrace")

    def start(self):
        argv = ["bpftrace", HERE + "/peers/audit.bt"]
        if not os.path.exists("/sys/kernel/debug/tracing/events/syscalls"):
            # Nobody mounted it; in a mount namespace of its own the host's mounts stay as they are.
            argv = ["unshare", "--mount", "sh", "-c", 'mount -t debugfs none /sys/kernel/debug && exec "$@"', "sh", *argv]
        self.spawn(argv, rb"Attaching")
        time.sleep(2.5)

    def seen(self, load):
        text = self.output()
        return self.count(text, self.patterns, load), sum(map(int, re.findall(rb"Lost (\d+) events", text)))


class Falco(Agent):
    patterns = {"exec": rb"bench exec .*comm=tiny ", "file": rb"bench write .*comm=load path=.*/f\d",
                "rename": rb"bench names .*comm=load what=rename", "unlink": rb"bench names .*comm=load what=unlink",
                "tcp": rb"bench net .*comm=load", "udp": rb"bench udp .*comm=load", "dns": rb"bench udp .*comm=load"}

    @staticmethod
    def binary():
        return os.environ.get("FALCO") or shutil.which("falco")

    @classmethod
    def there(cls):
        path = cls.binary()
        return path and os.access(path, os.X_OK)

    def start(self):
        config = os.environ.get("FALCO_CONFIG")
        options = {"engine.kind": "modern_ebpf", "syslog_output.enabled": "false", "watch_config_files": "false",
                   "webserver.enabled": "false", "metrics.enabled": "true", "metrics.interval": "4s",
                   "metrics.output_rule": "false", "metrics.output_file": self.tmp + "/metrics",
                   "metrics.rules_counters_enabled": "false", "buffered_outputs": "true"}
        argv = [self.binary()] + (["-c", config] if config else [])
        for key, value in options.items():
            argv += ["-o", "%s=%s" % (key, value)]
        # It ends where it cannot raise this limit, which nothing of it counts against.
        env = dict(os.environ, LD_PRELOAD=os.path.join(os.path.dirname(self.bench.names["load"]), "memlock_ok"))
        self.spawn([*argv, "-r", HERE + "/peers/falco.yaml"], rb"Opening 'syscall' source", env=env)
        # Its first figures come when the probes are loaded, which can take long. More often than that they would
        # disturb just this: their timer interrupts the verifier.
        self.wait_for_figures()

    def figures(self):
        try:
            with open(self.tmp + "/metrics") as f:
                return f.read().strip().splitlines()
        except OSError:
            return []

    def wait_for_figures(self):
        end, before = time.monotonic() + 90, len(self.figures())
        while len(self.figures()) == before:
            if self.proc.poll() is not None or time.monotonic() > end:
                raise RuntimeError("falco is not ready: %r" % self.output()[-600:])
            time.sleep(0.1)

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.wait_for_figures()  # what it lost is in those only
        super().stop()

    def seen(self, load):
        lost = 0
        try:
            lost = json.loads(self.figures()[-1])["output_fields"].get("scap.n_drops", 0)
        except (ValueError, IndexError, KeyError):
            pass
        return self.count(self.output(), self.patterns, load), lost


AGENTS = {"warder": Warder, "untracked": Untracked, "idle": Idle, "auditd": Auditd, "bpftrace": Bpftrace,
          "falco": Falco}


# ---- a run ----

class Bench:
    def __init__(self, build, scale=1.0):
        self.scale = scale
        self.warder = os.path.join(build, "warder")
        helpers = os.path.join(build, "tests", "helpers")
        self.tmp = tempfile.mkdtemp(prefix="warder-cost-")
        os.chmod(self.tmp, 0o711)
        self.dir = tempfile.mkdtemp(prefix="warder-cost-", dir="/dev/shm")
        self.names = {"dir": self.dir}
        self.names.update((p, os.path.join(helpers, p)) for p in ("load", "tiny", "watcher"))
        self.cgroups = {n: "%s/warder-cost-%d-%s" % (v2_mount(), os.getpid(), n) for n in ("load", "other")}
        for path in self.cgroups.values():
            os.mkdir(path)
        with open(self.dir + "/small.c", "w") as f:
            f.write(C_FILE)

    def done(self):
        for path in self.cgroups.values():
            for _ in range(100):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.02)
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.tmp, ignore_errors=True)

    def in_group(self, argv):
        """Run a command in the load's control group; what it printed."""
        group = self.cgroups["load"] + "/cgroup.procs"

        def enter():
            with open(group, "w") as f:
                f.write("0")
        done = subprocess.run(argv, stdout=subprocess.PIPE, preexec_fn=enter)
        if done.returncode:
            raise RuntimeError("%s failed" % " ".join(argv))
        return done.stdout

    def acts(self, load):
        return max(1, int(LOADS[load][0] * self.scale))

    def idle_switches(self, seconds):
        """Of the agent's processes, a second, while a sandbox is alive and does nothing."""
        a = Warder(self)
        try:
            a.start()
            a.settle()
            a.drain()
            time.sleep(1)
            before = switches(a.pids)
            time.sleep(seconds)
            return (switches(a.pids) - before) / seconds
        finally:
            a.remove()

    def run_load(self, load):
        argv = fill(LOADS[load][1], dict(self.names, n=self.acts(load)))
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        out = self.in_group(argv)
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            told = json.loads(out)
            return {"wall": told["wall"], "cpu": told["cpu"], "active": told["wall"] - told["waited"]}
        except ValueError:
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return {"wall": wall, "cpu": cpu, "active": cpu}

    def watched(self, load, agent):
        a = AGENTS[agent](self)
        try:
            a.start()
            a.settle()
            r = self.run_load(load)
            r.update(a.measure(load))
            return r
        finally:
            a.remove()

    def pairs(self, load, agent, n):
        rows = []
        for i in range(n):
            pair = {}
            for what in ("bare", "with") if i % 2 == 0 else ("with", "bare"):
                pair[what] = self.run_load(load) if what == "bare" else self.watched(load, agent)
            rows.append(pair)
        return Result(load, agent, self.acts(load), rows)


class Result:
    def __init__(self, load, agent, acts, pairs):
        self.load, self.agent, self.acts, self.raw = load, agent, acts, pairs
        self.ratios = {k: [p["with"][k] / p["bare"][k] for p in pairs] for k in ("wall", "active", "cpu")}
        self.agent_us = statistics.median(p["with"]["agent_s"] for p in pairs) / acts * 1e6
        events = [p["with"]["events"] for p in pairs]
        # An act can be several events: an open, its writes, the name's end.
        self.event_us = self.agent_us / max(1, min(events) / acts) if None not in events else self.agent_us
        self.mb = max(p["with"]["mb"] for p in pairs)
        self.lost = max(p["with"]["lost"] for p in pairs)
        seen = [p["with"]["seen"] for p in pairs]
        self.seen = None if None in seen else min(seen)

    def ratio(self, what):
        return statistics.median(self.ratios[what])

    def text(self, what):
        r = self.ratios[what]
        return "%.3f (%.2f-%.2f)" % (statistics.median(r), min(r), max(r))

    def line(self):
        seen = "-" if self.seen is None else "%d / %d" % (self.seen, self.acts)
        return "| %-9s | %-8s | %s | %s | %s | %7.2f | %5.1f | %s | %d |" % (
            self.agent, self.load, self.text("wall"), self.text("active"), self.text("cpu"), self.agent_us, self.mb,
            seen, self.lost)


HEAD = ("| agent | load | wall (min-max) | active (min-max) | CPU (min-max) | agent us/act | MB |"
        " seen / made | lost |\n|---|---|---|---|---|---|---|---|---|")


def main():
    ap = argparse.ArgumentParser(description="what being watched costs")
    ap.add_argument("--build", default=os.path.join(ROOT, "build"))
    ap.add_argument("--pairs", type=int, default=5)
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--loads", default=",".join(LOADS))
    ap.add_argument("--agents", default="warder")
    ap.add_argument("--json")
    args = ap.parse_args()
    if os.geteuid():
        raise SystemExit("cost.py: needs root")
    bench, results = Bench(os.path.abspath(args.build), args.scale), []
    try:
        print(HEAD)
        for agent in args.agents.split(","):
            for load in args.loads.split(","):
                results.append(bench.pairs(load, agent, args.pairs))
                print(results[-1].line(), flush=True)
    finally:
        bench.done()
    if args.json:
        with open(args.json, "w") as f:
            json.dump([r.raw for r in results], f)


if __name__ == "__main__":
    main()
