# SPDX-License-Identifier: Apache-2.0
"""What a run may leave behind on a host, and must not: control groups, mounts, processes, network
namespaces, loop devices and pinned BPF objects. Compared before and after, so that what was there is nobody's fault."""

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


def proc_table():
    """{pid: (ppid, exe, last names of the control groups of ours that it is in)}"""
    table = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink("/proc/%s/exe" % pid).replace(" (deleted)", "")
            with open("/proc/%s/stat" % pid) as f:
                ppid = int(f.read().rpartition(")")[2].split()[1])
            with open("/proc/%s/cgroup" % pid) as f:
                groups = {line.strip().rpartition("/")[2] for line in f if "/warder" in line}
        except OSError:
            continue
        table[int(pid)] = (ppid, exe, groups)
    return table


def of_others(build, table):
    """Sandboxed processes that somebody else's program keeps: on a machine where several people test, they are
    no left-overs of ours. The keeper is the nearest ancestor outside; an orphan's is pid 1."""
    ours = os.path.realpath(os.path.join(build, "warder"))
    top = int(os.environ.get("WARDER_TEST_TOP", os.getpid()))
    found = set()
    for pid, (_, _, groups) in table.items():
        keeper = pid
        while keeper in table and table[keeper][2]:
            keeper = table[keeper][0]
        if not groups or keeper <= 1 or keeper not in table or table[keeper][1] == ours:
            continue
        p = keeper
        while p in table and p != top:
            p = table[p][0]
        if p != top:
            found.add(pid)
    return found


def cgroups(build):
    table = proc_table()
    theirs = {name for pid in of_others(build, table) for name in table[pid][2]}
    for top in cgroup_mounts():
        for folder, _, _ in os.walk(top, topdown=False):
            names = folder[len(top):].split("/")
            if any(n.startswith("warder") for n in names):
                below = {n for _, subs, _ in os.walk(folder) for n in subs}
                if names[-1] not in theirs and not below & theirs:
                    yield "cgroup " + folder


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
    table = proc_table()
    theirs = of_others(build, table)
    for pid, (_, exe, _) in table.items():
        if exe == ours or (exe.startswith("/memfd:warder") and pid not in theirs):
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


def loops():
    for name in os.listdir("/sys/block"):
        try:
            with open("/sys/block/%s/loop/backing_file" % name) as f:
                yield "loop device %s of %s" % (name, f.read().strip())
        except OSError:
            continue


def snapshot(build):
    return {*cgroups(build), *mounts(), *processes(build), *pins(), *netns(), *loops()}


def wait_clean(build, before, seconds=WAIT_SECONDS):
    """What is there now, was not before, and stays; an empty list is what a test hopes for."""
    end = time.monotonic() + seconds
    left = snapshot(build) - before
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left &= snapshot(build)
    return sorted(left)
