# SPDX-License-Identifier: Apache-2.0
"""A journal as a file of JSON lines, and tests/helpers/export-feed, which sends it to a sink."""

import json
import os
import subprocess

from warder import PYTHON_IN_SANDBOX, helper

# Debian's own Python has python3-kafka, which shares no line with librdkafka.
PYTHON_CLIENT = """
import json, sys
from kafka import KafkaConsumer, TopicPartition
c = KafkaConsumer(bootstrap_servers=sys.argv[1], enable_auto_commit=False, api_version=(2, 0, 0))
parts = [TopicPartition(sys.argv[2], p) for p in c.partitions_for_topic(sys.argv[2])]
c.assign(parts)
c.seek_to_beginning(*parts)
ends = c.end_offsets(parts)
while any(c.position(p) < ends[p] for p in parts):
    for records in c.poll(1000).values():
        for r in records:
            print(json.dumps([r.key.decode(), dict(r.headers)["id"].decode(), json.loads(r.value)["id"]]))
"""
DRAIN_MS = 120000  # for what must happen; nothing waits this long when all is well


def read_json_lines(path, is_written_to=False):
    """The records of a file. Who still writes to it may have half a line there, just now; nobody else may."""
    if not os.path.exists(path):
        return []
    with open(path) as f:
        text = f.read()
    if is_written_to:
        text = text[:text.rfind("\n") + 1]
    assert not text or text.endswith("\n"), "half a line at the end of " + path
    return [json.loads(line) for line in text.splitlines()]


class Journal:
    def __init__(self, path, session):
        self.path, self.session, self.ids = path, session, []
        open(path, "w").close()

    def add(self, n, kind="exec", pad=300):
        with open(self.path, "a") as f:
            for _ in range(n):
                seq = len(self.ids) + 1
                self.ids.append("%s-%d" % (self.session, seq))
                f.write(json.dumps({"v": 1, "id": self.ids[-1], "seq": seq, "kind": kind,
                                    "session": self.session, "sandbox": "box",
                                    "proc": {"exe": "/bin/x", "kind": "hostile"},
                                    "pad": "x" * pad}) + "\n")


class Feed:
    @staticmethod
    def argv(journal, folder, session, *sinks):
        return [helper("export-feed"), journal, folder, session, *sinks]

    def __init__(self, journal, folder, session, *sinks, prefix=()):
        self.proc = subprocess.Popen(list(prefix) + self.argv(journal, folder, session, *sinks),
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        answer = self.proc.stdout.readline()
        if not answer:
            raise AssertionError("export-feed ended with %s" % self.proc.wait())
        return json.loads(answer)

    def status(self):
        """The first sink's row. Also tells the fan-out that the journal grew."""
        return self.ask("status")["sinks"][0]

    def row(self, name):
        return [r for r in self.ask("status")["sinks"] if r["name"] == name][0]

    def drain(self, ms=DRAIN_MS, behind=0, until=None):
        if until:
            import warder
            return warder.wait_for("the sink", until, ms // 1000)
        answer = self.ask("drain %d" % ms)
        if answer["behind"] != behind:
            raise AssertionError("%d sinks are behind: %s" % (answer["behind"], answer["sinks"]))
        return answer["sinks"][0]

    def stop(self):
        row = self.status()
        self.proc.stdin.write("end\n")
        self.proc.stdin.close()
        self.proc.stdout.close()
        code = self.proc.wait(60)
        if code:
            raise AssertionError("export-feed ended with %d" % code)
        return row

    def kill(self):
        """kill -9; harmless when it has ended."""
        self.proc.kill()
        self.proc.wait()
        for f in (self.proc.stdin, self.proc.stdout):
            try:
                f.close()
            except OSError:
                pass


def python_client_read(brokers, topic):
    """What a topic holds, by a client that shares no line with librdkafka: [(key, id)]; None without it. The header
    `id` and the id in the record are the same."""
    if subprocess.run([PYTHON_IN_SANDBOX, "-c", "import kafka"], capture_output=True).returncode:
        print("python3-kafka is not installed: only clients made with librdkafka looked")
        return None
    done = subprocess.run([PYTHON_IN_SANDBOX, "-c", PYTHON_CLIENT, brokers, topic], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r for r in rows if r[1] != r[2]] == []
    return [(r[0], r[1]) for r in rows]
