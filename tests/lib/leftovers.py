# SPDX-License-Identifier: Apache-2.0
"""What a run may leave behind on a host, and must not: control groups, mounts, processes, network
namespaces and pinned BPF objects. Compared before and after, so that what was there is nobody's fault."""

import os
import time

# A kernel may need a moment to let go of a control group or a namespace, and an emulated machine (make
# check-vm) a longer one.
WAIT_SECONDS = 60 if os.environ.get("WARDER_VM") else 15


def cgroup_mounts():
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, _, right = line.partition(" - ")
            if right.split()[0] in ("cgroup", "cgroup2"):
                yield left.split()[4].replace("\\040", " ")


def proc_table(build):
    """{pid: (ppid, exe)} of all processes, and the pids that a warder of another build keeps: on a machine
    where several people work, what runs there is theirs."""
    ours, table, foreign = os.path.realpath(os.path.join(build, "warder")), {}, set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink("/proc/%s/exe" % pid).replace(" (deleted)", "")
            with open("/proc/%s/stat" % pid) as f:
                table[int(pid)] = (int(f.read().rpartition(")")[2].split()[1]), exe)
        except OSError:
            continue
    for pid in table:
        p = pid
        while p in table:
            if os.path.basename(table[p][1]) == "warder" and table[p][1] != ours:
                foreign.add(pid)
                break
            p = table[p][0]
    return table, foreign


def cgroups(build):
    theirs = set()
    for pid in proc_table(build)[1]:
        try:
            with open("/proc/%d/cgroup" % pid) as f:
                theirs.update(part for line in f for part in line.strip().split("/") if part.startswith("warder"))
        except OSError:
            pass
    for top in cgroup_mounts():
        for folder, subs, _ in os.walk(top):
            # Ours whole: what lies below goes with it.
            for s in [s for s in subs if s.startswith("warder")]:
                subs.remove(s)
                if s not in theirs:
                    yield "cgroup " + os.path.join(folder, s)


def mounts():
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, _, right = line.partition(" - ")
            root, where = left.split()[3:5]
            if where == "/run/netns":
                continue  # `ip netns` makes it once and keeps it
            yield "mount of %s %s on %s" % (right.split()[0], root, where)


def processes(build):
    ours = os.path.realpath(os.path.join(build, "warder"))
    table, foreign = proc_table(build)
    for pid, (_, exe) in table.items():
        if pid not in foreign and (exe == ours or exe.startswith("/memfd:warder")):
            yield "process %d %s" % (pid, exe)


def group_members(pgid, seconds):
    """Who is still in a process group after `seconds` in which it may empty."""
    end = time.monotonic() + seconds
    while True:
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    comm, _, rest = f.read().partition("(")[2].rpartition(") ")
            except OSError:
                continue
            state, _, group = rest.split()[:3]
            if int(group) == pgid and state not in "ZX":
                found.append("%s (%s)" % (pid, comm))
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def pins():
    for folder, _, files in os.walk("/sys/fs/bpf"):
        for f in files:
            yield "pin " + os.path.join(folder, f)


def netns():
    try:
        return ["network namespace " + n for n in os.listdir("/run/netns")]
    except OSError:
        return []


def snapshot(build):
    return {*cgroups(build), *mounts(), *processes(build), *pins(), *netns()}


def wait_clean(build, before, seconds=WAIT_SECONDS):
    """What is there now and was not before; an empty list is what a test hopes for."""
    end = time.monotonic() + seconds
    while True:
        left = snapshot(build) - before
        if not left or time.monotonic() > end:
            return sorted(left)
        time.sleep(0.1)
