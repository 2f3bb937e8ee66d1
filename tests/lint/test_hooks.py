#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of hooks in bpf/README.md is what the code says: abi/hooks.def.h, the kinds in abi/wire.h and the
sections of the programs. `test_hooks.py --update` writes it."""

import glob
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(ROOT, "bpf", "README.md")
BEGIN, END = "<!-- hooks: made by tests/lint/test_hooks.py --update -->\n", "<!-- hooks end -->\n"
# Programs that tell nothing themselves: they lead to the handlers, or see to it that others can tell.
HELPERS = {"on_sys_exit", "on_call_end", "on_x64_call", "on_ia32_call", "on_x32_call", "on_seccomp", "on_sock_made",
           "on_sock_create", "on_device", "on_sysctl", "on_first_run", "on_name"}
# Of the same thing, what only one tier has.
ONLY = {"on_sock_send": "full", "sys_send": "portable", "on_passed_get": "portable", "on_passed_req": "portable", "on_passed_sqe": "portable"}
FULL = [("kretprobe.multi/__x64_sys_*", "6.12"), ("fexit/x64_sys_call", "6.1")]
TOCTOU = {"NO": "no", "NAMES": "names", "MISS": "rarely"}
AGENT_KINDS = 0x4000  # ids from here on are not the kernel's


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


def kinds():
    """{NAME: text} of the kernel's kinds, in order."""
    rows = re.findall(r"X\((\w+), (\w+), \"([\w.]+)\", \w+\)", read("bpf", "abi", "wire.h"))
    return {name: text for number, name, text in rows if int(number, 0) < AGENT_KINDS}


def hooks():
    """[(kind, program, toctou, since, what)]"""
    return re.findall(r'^HOOK\((\w+), (\w+), (\w+), "([\d.]+)", "([^"]*)"\)', read("bpf", "abi", "hooks.def.h"), re.M)


def programs():
    """{program: section}; of a handler that has several, the portable one. What prevents (prevent_*) leaves
    telling to the end of the call."""
    found = {}
    for path in glob.glob(os.path.join(ROOT, "bpf", "*.bpf.c")):
        text = read(path)
        for section, a, b in re.findall(r'^SEC\("(\w+[/.][^"]+)"\)\n(?:int|long) (?:BPF_PROG\((\w+)|(\w+)\()', text, re.M):
            found[a or b] = section
        for name in re.findall(r"^SYSCALL_END\((\w+)\)", text, re.M):
            found[name] = "tp_btf/sys_exit"
    return found


def has_full_tier():
    return "on_call_end" in programs()


def table():
    sections, texts = programs(), kinds()
    lines = ["| kind | tier | hook | program | caller can change | since | what |\n", "|---|---|---|---|---|---|---|\n"]
    order = list(texts)
    for kind, program, toctou, since, what in sorted(hooks(), key=lambda h: order.index(h[0])):
        if program in ONLY:
            ways = [(ONLY[program], sections[program], since)]
        elif program.startswith("sys_") and has_full_tier():
            ways = [("portable", sections[program], since)] + [("full", hook, first) for hook, first in FULL]
        else:
            ways = [("both", sections[program], since)]
        for tier, hook, first in ways:
            lines.append("| %s | %s | %s | %s | %s | %s | %s |\n" % (
                texts[kind], tier, hook, program, TOCTOU[toctou], first, what))
    return "".join(lines)


class Hooks(unittest.TestCase):
    def test_every_program_has_a_row(self):
        told = {program for _, program, _, _, _ in hooks()}
        there = set(programs())
        there = {p for p in there if not p.startswith("prevent_")}
        self.assertEqual(there - told - HELPERS, set(), "programs without a row in bpf/abi/hooks.def.h")
        self.assertEqual(told - there, set(), "rows of bpf/abi/hooks.def.h for programs that are not there")

    def test_every_row_is_of_a_kind(self):
        self.assertEqual({k for k, _, _, _, _ in hooks()} - set(kinds()), set())

    def test_every_kind_that_is_sent_has_a_row(self):
        sent = set()
        for path in glob.glob(os.path.join(ROOT, "bpf", "*.bpf.c")) + glob.glob(os.path.join(ROOT, "bpf", "lib", "*.h")):
            sent |= set(re.findall(r"\bWIRE_([A-Z]+_?[A-Z]+)\b", read(path)))
        self.assertEqual((sent & set(kinds())) - {k for k, _, _, _, _ in hooks()}, set(),
                         "kinds without a row in bpf/abi/hooks.def.h")

    def test_readme(self):
        text = read("bpf", "README.md")
        self.assertIn(BEGIN, text)
        self.assertEqual(text.split(BEGIN)[1].split(END)[0], table(),
                         "bpf/README.md: run tests/lint/test_hooks.py --update")

    def test_what_proves_it_is_there(self):
        """The tables in tests/README.md name tests: `module` or `module: test` of root/, or a path of another suite."""
        tables = read("tests", "README.md").split("| what | proven by |\n")[1:]
        self.assertEqual(len(tables), 4)
        counts = []
        for table in tables:
            cells = [row.split("|")[2] for row in table.split("\n\n")[0].splitlines()]
            named = [n for cell in cells for n in re.findall(r"`([a-z_0-9]+)(?:: (\w+))?`", cell)]
            counts.append(len(named))
            for module, test in named:
                text = read("tests", "root", "test_%s.py" % module)
                self.assertTrue(not test or "def test_%s(" % test in text, "%s: %s" % (module, test))
            for path in [p for cell in cells for p in re.findall(r"`((?:unit|fuzz|bench)/[a-z_/]+)(?:\.c)?`", cell)]:
                self.assertTrue(os.path.exists(os.path.join(ROOT, "tests", path + ".c")), path)
        # gVisor's, the probes', the runtime's, the trust's
        self.assertTrue(all(n > least for n, least in zip(counts, (25, 50, 50, 20))), counts)


def update():
    text = read("bpf", "README.md")
    head, rest = text.split(BEGIN)
    with open(README, "w") as f:
        f.write(head + BEGIN + table() + END + rest.split(END)[1])


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
