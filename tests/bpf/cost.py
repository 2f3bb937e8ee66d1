#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The size of our programs and what the verifier has to do for them.

    cost.py              as root: print the figures of this kernel
    cost.py --update     as root: write them to cost.tsv, for this kernel and compiler
    cost.py --update --place '6.1 clang14' < FIGURES     the same with figures from elsewhere (a VM)"""

import argparse
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "cost.tsv")
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(HERE, "..", "..", "build")))

# The kernel gives up at 1,000,000 instructions; leave room for kernels that look at more of them.
VERIFIED_MAX = 100000
VERIFIED_TOTAL_MAX = 1500000
XLATED_MAX = 128 * 1024
NEW = (12000, 32 * 1024)  # of a program that is not written down yet: verified, bytes
SLACK = {"verified": 300, "xlated": 256}  # growth that is nothing, whatever the program's size


def measure():
    """{program: (verified instructions, bytes, bytes of machine code)}. Same names: the most costly one."""
    out = subprocess.run([os.path.join(BUILD, "tests", "helpers", "prog_cost")], stdout=subprocess.PIPE, check=True,
                         text=True).stdout
    return parse(out)


def names():
    """All programs that we have."""
    out = subprocess.run([os.path.join(BUILD, "tests", "helpers", "prog_cost"), "names"], stdout=subprocess.PIPE, check=True, text=True)
    return set(out.stdout.split())


def parse(text):
    rows = {}
    for line in text.splitlines():
        w = line.split()
        if len(w) == 4 and all(n.isdigit() for n in w[1:]):
            value = tuple(map(int, w[1:]))
            rows[w[0]] = max(rows.get(w[0], value), value)
    return rows


def place():
    """Figures differ by kernel series and by compiler."""
    series = ".".join(os.uname().release.split(".")[:2])
    version = subprocess.run([os.environ.get("CLANG", "clang"), "--version"], stdout=subprocess.PIPE, text=True).stdout
    major = re.search(r"version (\d+)", version)
    return "%s clang%s" % (series, major.group(1) if major else "?")


class Table:
    """Lines of kernel, compiler, program, verified, xlated, jited."""

    def __init__(self):
        self.lines = {}
        try:
            with open(TABLE) as f:
                for line in f:
                    w = line.split()
                    if w and w[0] != "#":
                        self.lines.setdefault("%s %s" % (w[0], w[1]), {})[w[2]] = tuple(map(int, w[3:6]))
        except FileNotFoundError:
            pass

    def rows(self, where):
        return self.lines.get(where, {})

    def write(self):
        with open(TABLE, "w") as f:
            f.write("# Made by `make bpf-cost`. kernel, compiler, program, instructions verified, bytes, bytes of "
                    "machine code\n")
            for where in sorted(self.lines, key=lambda w: [int(n) if n.isdigit() else n for n in re.split(r"[. ]", w)]):
                for name, value in sorted(self.lines[where].items()):
                    f.write("\t".join([*where.split(), name, *map(str, value)]) + "\n")


def main():
    ap = argparse.ArgumentParser(description="what our programs cost the verifier")
    ap.add_argument("--update", action="store_true")
    ap.add_argument("--place")
    args = ap.parse_args()
    rows = parse(sys.stdin.read()) if args.place else measure()
    if not rows:
        raise SystemExit("cost.py: no figures")
    for name, value in sorted(rows.items()):
        print("%-22s %8d %7d %7d" % (name, *value))
    print("%-22s %8d %7d %7d" % ("total", *map(sum, zip(*rows.values()))))
    if args.update:
        table = Table()
        table.lines[args.place or place()] = rows
        table.write()


if __name__ == "__main__":
    main()
