#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests and counts them. See tests/README.md.

Three sorts of test programs are found by where they lie:
  build/tests/unit/<folder>/test_*    cmocka binaries (they speak TAP)
  build/tests/fuzz/replay_*           a fuzz target over its corpus: one test
  tests/<suite>/test_*.sh             shell scripts that speak TAP
  tests/<suite>/test_*.py             unittest modules
Each program is a process of its own, with a time limit and a temporary directory. One line a test, the
output of what failed, the reasons of what was skipped, and as the last line `N passed, N failed, N skipped`.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

import leftovers  # noqa: E402  (needs the path above)

# These suites load BPF and enter sandboxes: root only, one program at a time, nothing may be left behind.
ROOT_SUITES = ("root", "scenarios", "bpf")
# Not test suites, or (vm) run only when named: it needs kernels that are downloaded.
NO_SUITES = ("lib", "helpers", "fixtures", "bench", "demo", "unit")
ONLY_NAMED = ("vm",)
TIMEOUT = 300
TIMEOUT_ROOT = 900
OUTPUT_SHOWN = 12000  # bytes of a failed program's output; the end tells more than the start


class Program:
    """One test program: what to start, and what its lines mean."""

    def __init__(self, suite, name, argv, form):
        self.suite, self.name, self.argv, self.form = suite, name, argv, form
        self.root = suite in ROOT_SUITES


def find_programs(build):
    programs = []
    unit = os.path.join(build, "tests", "unit")
    for folder, _, files in sorted(os.walk(unit)):
        for f in sorted(files):
            path = os.path.join(folder, f)
            src = os.path.join(ROOT, "tests", "unit", os.path.relpath(path, unit) + ".c")
            # A binary whose source is gone is a left-over of an older build.
            if f.startswith("test_") and os.access(path, os.X_OK) and os.path.exists(src):
                name = "unit/%s/%s" % (os.path.relpath(folder, unit), f[5:])
                programs.append(Program("unit", name, [path], "tap"))
    fuzz = os.path.join(build, "tests", "fuzz")
    for f in sorted(os.listdir(fuzz)) if os.path.isdir(fuzz) else []:
        src = os.path.join(ROOT, "tests", "fuzz", "fuzz_%s.c" % f[7:])
        if f.startswith("replay_") and "." not in f and os.path.exists(src):
            corpus = os.path.join(ROOT, "tests", "fuzz", "corpus", f[7:])
            programs.append(Program("fuzz", "fuzz/" + f[7:],
                                    [os.path.join(fuzz, f), corpus], "exit"))
    tests = os.path.join(ROOT, "tests")
    for suite in sorted(os.listdir(tests)):
        folder = os.path.join(tests, suite)
        if suite in NO_SUITES or not os.path.isdir(folder):
            continue
        for f in sorted(os.listdir(folder)):
            path, name = os.path.join(folder, f), "%s/%s" % (suite, f[5:].rpartition(".")[0])
            if f.startswith("test_") and f.endswith(".py"):
                argv = [sys.executable, "-B", os.path.abspath(__file__), "--child", path]
                programs.append(Program(suite, name, argv, "json"))
            elif f.startswith("test_") and f.endswith(".sh"):
                programs.append(Program(suite, name, ["bash", path], "tap"))
    return programs


# ---- results ----

class Result:
    def __init__(self, name, outcome, text="", seconds=None):
        self.name, self.outcome, self.text, self.seconds = name, outcome, text, seconds


class Printer:
    COLOURS = {"pass": "32", "FAIL": "31;1", "skip": "33"}

    def __init__(self, verbose):
        self.tty = sys.stdout.isatty()
        self.lock = threading.Lock()
        self.results = []
        self.verbose = verbose

    def paint(self, word, kind):
        return "\033[%sm%s\033[0m" % (self.COLOURS[kind], word) if self.tty else word

    def report(self, results, output):
        """All results of one program at once: parallel programs don't mix their lines."""
        with self.lock:
            for r in results:
                self.results.append(r)
                took = "  (%.1f s)" % r.seconds if r.seconds and r.seconds >= 0.1 else ""
                why = "  # " + first_line(r.text) if r.outcome == "skip" else ""
                print("%s  %s%s%s" % (self.paint(r.outcome, r.outcome), r.name, took, why))
                if r.outcome == "FAIL" and r.text:
                    print(indent(r.text))
            if output and (self.verbose or any(r.outcome == "FAIL" for r in results)):
                print(indent("--- output ---\n" + output[-OUTPUT_SHOWN:]))
            sys.stdout.flush()

    def close(self):
        skips = {}
        for r in self.results:
            if r.outcome == "skip":
                skips.setdefault(first_line(r.text) or "no reason given", []).append(r.name)
        for reason, names in sorted(skips.items()):
            more = " and %d more" % (len(names) - 1) if len(names) > 1 else ""
            print("skipped: %s: %s%s" % (reason, names[0], more))
        failed = [r.name for r in self.results if r.outcome == "FAIL"]
        for name in failed:
            print("failed: %s" % name)
        n = {k: sum(r.outcome == k for r in self.results) for k in ("pass", "FAIL", "skip")}
        if not n["pass"] and not n["FAIL"]:
            print("nothing was tested")
        print("%d passed, %d failed, %d skipped" % (n["pass"], n["FAIL"], n["skip"]))
        sys.stdout.flush()
        return 0 if n["pass"] and not n["FAIL"] else 1


def first_line(text):
    return text.strip().split("\n", 1)[0]


def indent(text):
    return "".join("    | %s\n" % line for line in text.rstrip("\n").split("\n")).rstrip("\n")


TAP = re.compile(r"^\s*(not )?ok\b *(\d+)? *(?:- *)?(.*?)(?:\s*# *(SKIP|TODO)\b[:]? *(.*))?$", re.I)
PLAN = re.compile(r"^\s*1\.\.(\d+)(?:\s*# *SKIP\b[:]? *(.*))?", re.I)


def read_tap(program, text):
    """cmocka groups print a plan each, so plans add up; its skips come as `not ok N # SKIP name`."""
    results, planned, said = [], 0, []
    for line in text.split("\n"):
        plan, tap = PLAN.match(line), TAP.match(line)
        if plan:
            planned += int(plan.group(1))
            if plan.group(1) == "0":
                results.append(Result(program.name, "skip", plan.group(2) or ""))
        elif tap and line.strip():
            bad, number, name, directive, reason = tap.groups()
            name = "%s: %s" % (program.name, (name or reason or number or "?").strip())
            if directive:
                why = (reason if reason and reason.strip() not in name else "\n".join(said[-1:]))
                results.append(Result(name, "skip", why.lstrip("# ") or "no reason given"))
            else:
                results.append(Result(name, "FAIL" if bad else "pass"))
            said = []
        elif line.strip():
            said.append(line)
            if line.startswith("#") and results and results[-1].outcome == "FAIL":
                results[-1].text += line + "\n"
    ran = sum(r.name != program.name for r in results)
    if ran < planned:
        results.append(Result(program.name, "FAIL", "planned %d tests, reported %d" % (planned, ran)))
    return results


def read_json(program, lines):
    """What --child wrote: a line at the start and at the end of each test."""
    results, running = [], None
    for line in lines.splitlines():
        r = json.loads(line)
        if r["outcome"] == "start":
            running = r["name"]
            continue
        running = None
        results.append(Result("%s: %s" % (program.name, r["name"]), r["outcome"], r["text"],
                              r["seconds"]))
    if running:
        results.append(Result("%s: %s" % (program.name, running), "FAIL", "it did not come to its end"))
    return results


# ---- running ----

def stop(proc):
    """The whole process group: a hanging test's children hang too."""
    for sig, wait in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(proc.pid, sig)
        except ProcessLookupError:
            pass
        try:
            proc.wait(wait)
            return
        except subprocess.TimeoutExpired:
            pass


def run_program(program, args, words):
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", LC_ALL="C.UTF-8", WARDER_BUILD=args.build,
               WARDER_SRC=ROOT, WARDER_TEST_TOP=str(os.getpid()), PYTHONDONTWRITEBYTECODE="1")
    env["PYTHONPATH"] = os.path.join(ROOT, "tests", "lib")
    began, timed_out = time.monotonic(), False
    with tempfile.TemporaryDirectory(prefix="warder-test-", ignore_cleanup_errors=True) as tmp:
        env["TMPDIR"] = tmp
        log = os.path.join(tmp, "results.jsonl")
        # Sandboxed users have to come through; what matters inside is made 0700 by who needs it.
        os.chmod(tmp, 0o755)
        # Output goes to a file: a grandchild that keeps it open must not keep us waiting.
        with open(os.path.join(tmp, "output"), "w+b") as out:
            argv = program.argv
            if program.form == "json":
                open(log, "w").close()
                argv = argv + [log] + words
            proc = subprocess.Popen(argv, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT, start_new_session=True)
            try:
                proc.wait(args.timeout or (TIMEOUT_ROOT if program.root else TIMEOUT))
            except subprocess.TimeoutExpired:
                timed_out = True
            except BaseException:
                stop(proc)
                raise
            stragglers = [] if timed_out else leftovers.group_members(proc.pid, 5)
            stop(proc)
            out.seek(0)
            output = out.read().decode("utf-8", "replace")
        results = []
        if program.form == "tap":
            results = read_tap(program, output)
        elif program.form == "json":
            with open(log) as f:
                results = read_json(program, f.read())
    took = time.monotonic() - began
    bad = any(r.outcome == "FAIL" for r in results)
    if timed_out:
        results.append(Result(program.name, "FAIL", "still running after %d s: stopped" % took))
    elif proc.returncode < 0:
        results.append(Result(program.name, "FAIL",
                              "died of signal %s" % signal.Signals(-proc.returncode).name))
    elif proc.returncode and not bad:
        results.append(Result(program.name, "FAIL", "exit code %d" % proc.returncode))
    elif program.form == "exit":
        results.append(Result(program.name, "pass", seconds=took))
    elif stragglers:
        results.append(Result(program.name, "FAIL", "left running: " + "; ".join(stragglers)))
    elif not results and not words:
        results.append(Result(program.name, "FAIL", "it holds no test"))
    return results, output


def must(results):
    """MUST=1: a skip is a failure, for hosts of which it is known that everything runs there."""
    for r in results:
        if r.outcome == "skip" and os.environ.get("MUST"):
            r.outcome, r.text = "FAIL", "skipped, but MUST is set: " + r.text
    return results


def main():
    ap = argparse.ArgumentParser(description="run the tests")
    ap.add_argument("--build", default=os.path.join(ROOT, "build"), help="folder of products")
    ap.add_argument("--suite", help="only these suites, comma-separated")
    ap.add_argument("-j", type=int, default=min(4, os.cpu_count() or 1), help="programs at once")
    ap.add_argument("--timeout", type=float, help="seconds a program may take")
    ap.add_argument("-v", action="store_true", help="output of all programs")
    ap.add_argument("--list", action="store_true", help="list the programs")
    ap.add_argument("words", nargs="*", help="only tests whose name holds one of these")
    args = ap.parse_args()
    args.build = os.path.abspath(args.build)

    programs = find_programs(args.build)
    is_root = os.geteuid() == 0
    wanted = args.suite.split(",") if args.suite else []
    programs = [p for p in programs if p.suite in wanted or (not wanted and p.suite not in ONLY_NAMED)]
    if args.suite:
        if not is_root and any(p.root for p in programs):
            sys.exit("run.py: the suites %s need root" % ", ".join(ROOT_SUITES))
    elif not is_root:
        programs = [p for p in programs if not p.root]
    # A word names a program (its tests all run) or tests in it; one with a slash only a program, so that
    # the others need not be started to be asked for their tests (in a VM that takes 3 s for each).
    # One that is the whole name of a program is only that one.
    tests = [w for w in args.words if "/" not in w]
    whole = {p.name for p in programs}

    def is_named(p):
        return any(p.name == w if w in whole else w in p.name for w in args.words)
    chosen = [(p, [] if is_named(p) else tests) for p in programs]
    if args.words and not tests:
        chosen = [(p, words) for p, words in chosen if is_named(p)]
    if args.words:
        chosen = [(p, words) for p, words in chosen if not words or p.form == "json"]
    if args.list:
        for p, _ in chosen:
            print(p.name)
        return 0

    printer = Printer(args.v)
    with concurrent.futures.ThreadPoolExecutor(max(1, args.j)) as pool:
        jobs = {pool.submit(run_program, p, args, words): p for p, words in chosen if not p.root}
        for job in concurrent.futures.as_completed(jobs):
            results, output = job.result()
            printer.report(must(results), output)
    rooted = [(p, words) for p, words in chosen if p.root]
    for p, words in rooted:
        before = leftovers.snapshot(args.build)
        results, output = run_program(p, args, words)
        left = leftovers.wait_clean(args.build, before)
        if left and results:  # none of its tests was wanted: what came meanwhile is somebody else's
            results.append(Result(p.name + ": leaves nothing behind", "FAIL", "\n".join(left)))
        elif results:
            results.append(Result(p.name + ": leaves nothing behind", "pass"))
        printer.report(must(results), output)
    if not is_root and not args.suite:
        print("not root: the tests that load BPF and enter sandboxes were left out (sudo make check)")
    return printer.close()


# ---- the child: one unittest module in a process of its own ----

class LineResult(unittest.TestResult):
    """A JSON line as each test starts and ends, so that a crash tells where it was."""

    def __init__(self, out):
        super().__init__()
        self.out, self.began, self.bad = out, 0, False

    def line(self, test, outcome, text=""):
        name = test.id().split(".", 1)[-1] if isinstance(test, unittest.TestCase) else str(test)
        json.dump({"name": name, "outcome": outcome, "text": text,
                   "seconds": time.monotonic() - self.began if self.began else 0}, self.out)
        self.out.write("\n")
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.began, self.bad = time.monotonic(), False
        print("== %s" % test.id(), flush=True)
        self.line(test, "start")

    def fail_with(self, test, err):
        self.bad = True
        self.line(test, "FAIL", self._exc_info_to_string(err, test))

    addError = addFailure = fail_with

    def addSubTest(self, test, subtest, err):
        if err:
            self.bad = True
            self.line(subtest, "FAIL", self._exc_info_to_string(err, test))

    def addSuccess(self, test):
        if not self.bad:
            self.line(test, "pass")

    def addSkip(self, test, reason):
        self.line(test, "skip", reason)

    def addExpectedFailure(self, test, err):
        self.line(test, "skip", "known failure: %s" % err[1])

    def addUnexpectedSuccess(self, test):
        self.line(test, "FAIL", "expected to fail, but passed")


def flatten(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from flatten(t)
        else:
            yield t


def child(path, log, words):
    # As Ctrl-C does: tests clean up behind themselves when the runner stops them.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name = os.path.basename(path)[:-3]
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    if words:
        suite = unittest.TestSuite(t for t in flatten(suite) if any(w in t.id() for w in words))
    with open(log, "a") as out:
        result = LineResult(out)
        suite.run(result)
    # An error is in the lines; nothing more to say by the exit code.
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--child":
        sys.exit(child(sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.exit(main())
