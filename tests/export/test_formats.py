# SPDX-License-Identifier: Apache-2.0
"""The formats that sinks and `warder export --format` offer, for every kind of event: each sample of
tests/helpers/render (all fields of the kind, none, hostile bytes) is rendered and then read by something that
knows nothing of our code: OCSF's schemas in four versions, the fields of ECS, a CEF and a LEEF parser.

own_schemas.json is what those schemas say about the attributes we emit. With the compiled schemas at hand
(WARDER_SCHEMAS, or ../shared/schemas beside the tree) they are used in whole as well, and
FORMATS_UPDATE=1 makes own_schemas.json anew."""

import base64
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import schema  # noqa: E402
from warder import helper  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OWN = os.path.join(HERE, "own_schemas.json")
OCSF = {"ocsf": "1.8.0", "ocsf-1.5": "1.5.0", "ocsf-1.3": "1.3.0", "ocsf-1.1": "1.1.0"}
# The compiled schemas list only 0 and 99: the ids of types that OCSF generates are not in its sources.
OBSERVABLES = list(range(48)) + [99]


def run(*argv, text=b""):
    done = subprocess.run([helper("render"), *argv], input=text, capture_output=True)
    if done.returncode:
        raise AssertionError("render %s: %s" % (argv, done.stderr.decode(errors="replace")[:500]))
    return done.stdout


def no_repeats(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("repeated member in %s" % keys)
    return dict(pairs)


def parse(line):
    """Strictly: UTF-8, no repeated member, no control character."""
    if re.search(rb"[\x00-\x1f\x7f]", line):
        raise ValueError("control character in %r" % line)
    return json.loads(line.decode("utf-8"), object_pairs_hook=no_repeats)


def flat(value, at=""):
    """Native record -> {field name: value}: nested objects by dots, lists are values."""
    out = {}
    for key, member in value.items():
        name = at + key
        if isinstance(member, dict) and name not in ("raw", "rule.output_fields"):
            out.update(flat(member, name + "."))
        else:
            out[name] = member
    return out


def scalars(value):
    if isinstance(value, dict):
        for member in value.values():
            yield from scalars(member)
    elif isinstance(value, list):
        for member in value:
            yield from scalars(member)
    else:
        yield value


def words(command):
    import shlex
    return shlex.split(command)


SAMPLES = run("--samples").splitlines()
NATIVE = [parse(line) for line in SAMPLES]
FIELDS = run("--fields").decode().split()
TEXT = b"\n".join(SAMPLES) + b"\n"


def rendered(name):
    lines = run(name, text=TEXT).splitlines()
    assert len(lines) == len(SAMPLES), (name, len(lines))
    return lines


class Decisions(unittest.TestCase):
    def test_every_field_has_a_row(self):
        with open(os.path.join(schema.ROOT, "userspace", "event", "fields.h")) as f:
            names = re.findall(r"^\s*X\(([A-Z0-9_]+),", f.read(), re.M)
        with open(os.path.join(schema.ROOT, "exporters", "render", "map.h")) as f:
            rows = re.findall(r"^\s*X\(([A-Z0-9_]+),", f.read(), re.M)
        self.assertGreater(len(names), 100)
        missing = [n for n in names if n not in rows]
        self.assertEqual(missing, [], "fields of fields.h without a row in exporters/render/map.h: decide where "
                         "they go (NONE = under their own name)")
        self.assertEqual(len(set(rows)), len(rows))

    def test_every_kind_has_a_row(self):
        with open(os.path.join(schema.ROOT, "bpf", "abi", "wire.h")) as f:
            text = f.read().split("#define WIRE_KINDS(X)")[1].split("#define WIRE_CHUNK")[0]
        names = re.findall(r"X\((?:0x)?[0-9a-f]+, ([A-Z_]+),", text)
        self.assertGreater(len(names), 30)
        for source in ("ocsf.c", "ecs.c"):
            with open(os.path.join(schema.ROOT, "exporters", "render", source)) as f:
                rows = re.findall(r"^\t\{ WIRE_([A-Z_]+),", f.read(), re.M)
            self.assertEqual([n for n in names if n not in rows], [],
                             "kinds without a row in the table of exporters/render/" + source)

    def test_every_kind_is_rendered(self):
        kinds = run("--kinds").decode().split()
        self.assertEqual([e["kind"] for e in NATIVE[::3]], kinds)
        for name in [*OCSF, "ecs", "cef", "leef"]:
            rendered(name)  # fails for a kind without a row in the format's own table


class Ocsf(unittest.TestCase):
    def check(self, documents, version, schemas):
        bad = []
        for doc in documents:
            rules = schemas(version, doc["class_uid"])
            bad += ["%s: %s" % (doc["metadata"]["event_code"], b) for b in schema.validate(doc, rules)]
            if doc["type_uid"] != doc["class_uid"] * 100 + doc["activity_id"]:
                bad.append("%s: type_uid" % doc["metadata"]["event_code"])
            if doc["category_uid"] != doc["class_uid"] // 1000 or doc["metadata"]["version"] != version:
                bad.append("%s: category_uid or version" % doc["metadata"]["event_code"])
        self.assertEqual(bad, [])

    def test_what_we_know_of_the_schemas(self):
        own = schema.load(OWN)

        def load(version, uid):
            known = own["ocsf"][version]
            self.assertIn(str(uid), known["classes"], "class %d in %s" % (uid, version))
            return dict(known["classes"][str(uid)], **{"$defs": known["objects"]})

        for name, version in OCSF.items():
            with self.subTest(name):
                self.check([parse(line) for line in rendered(name)], version, load)

    def test_the_compiled_schemas(self):
        folder = schema.find_schemas()
        if not folder:
            self.skipTest("no compiled OCSF schemas (WARDER_SCHEMAS); own_schemas.json was used")
        for name, version in OCSF.items():
            with self.subTest(name):
                self.check([parse(line) for line in rendered(name)], version,
                           lambda v, uid: compiled(folder, v, uid))

    def test_versions_differ_where_they_must(self):
        def one(name, kind):
            return next(d for d in map(parse, rendered(name)) if d["metadata"]["event_code"] == kind)

        self.assertEqual(one("ocsf", "gap")["class_uid"], 1008)
        self.assertEqual(one("ocsf-1.5", "gap")["class_uid"], 6002)
        self.assertEqual(one("ocsf-1.3", "action")["class_uid"], 7003)
        self.assertEqual(one("ocsf-1.1", "action")["class_uid"], 1007)
        self.assertIn("working_directory", one("ocsf-1.5", "exec")["process"])
        self.assertNotIn("working_directory", one("ocsf-1.3", "exec")["process"])
        self.assertIn("proc.cwd", one("ocsf-1.3", "exec")["unmapped"])
        self.assertEqual(one("ocsf", "file.open")["action_id"], 2)

    def test_a_chain_of_parents(self):
        doc = parse(rendered("ocsf")[0])
        names, p = [], doc["process"]
        while p:
            names.append(p["name"])
            p = p.get("parent_process")
        self.assertEqual(names, ["proc.comm", "proc.pcomm", "sh", "make", "init"])
        self.assertEqual(doc["actor"]["process"]["name"], "proc.pcomm")

    def test_who_opened_the_connection(self):
        docs = {d["metadata"]["event_code"]: d for d in map(parse, rendered("ocsf")[::3])}
        native = {e["kind"]: e for e in NATIVE[::3]}
        accept, net = docs["net.accept"], native["net.accept"]["net"]
        self.assertEqual(accept["src_endpoint"]["ip"], net["dst"]["ip"])
        self.assertEqual(accept["connection_info"]["direction_id"], 1)
        self.assertEqual(docs["net.connect"]["dst_endpoint"]["ip"], native["net.connect"]["net"]["dst"]["ip"])


def compiled(folder, version, uid):
    rules = schema.load(os.path.join(folder, "ocsf", version, "%d.json" % uid))
    rules["$defs"]["observable"]["properties"]["type_id"]["enum"] = OBSERVABLES
    return rules


class Ecs(unittest.TestCase):
    def check(self, fields):
        bad = []
        for line in rendered("ecs"):
            doc = parse(line)
            self.assertTrue(line.startswith(b'{"@timestamp":"'))
            bad += ["%s: %s" % (doc["event"]["code"], b) for b in schema.ecs_errors(doc, fields)]
        self.assertEqual(bad, [])

    def test_what_we_know_of_the_fields(self):
        self.check(schema.load(OWN)["ecs"])

    def test_all_fields(self):
        folder = schema.find_schemas()
        if not folder:
            self.skipTest("no table of ECS (WARDER_SCHEMAS); own_schemas.json was used")
        self.check(schema.load(os.path.join(folder, "ecs", "ecs-9.4-fields.json")))


class NothingLost(unittest.TestCase):
    """Every value of the full sample is somewhere in the rendered record, or under its own name. The samples' values
    are different from field to field, so one cannot stand in for another."""

    CARRIED = {"outcome", "proc.args", "proc.pargs", "rule.attack", "proc.ancestors"}  # looked at by themselves

    def check_json(self, name, own):
        for native, line in zip(NATIVE[::3], rendered(name)[::3]):
            doc = parse(line)
            rest = flat(doc.get(own, {}))
            found = set()
            for v in scalars(doc):
                found.add(str(v))
            lines = [v for v in scalars(doc) if isinstance(v, str)]
            for field, value in flat(native).items():
                where = "%s: %s of %s" % (name, field, native["kind"])
                if field in rest and field != "outcome":
                    self.assertEqual(rest[field], value, where)
                elif field == "outcome":
                    self.assertEqual(rest[field], "denied", where)
                elif field in ("proc.args", "proc.pargs"):
                    self.assertTrue(value in listed(doc) or any(
                        "'" in v and words(v) == value for v in lines), where)
                elif field == "rule.attack":
                    self.assertLessEqual(set(value), found, where)
                elif field == "proc.ancestors":
                    self.assertLessEqual({str(a["pid"]) for a in value}, found, where)
                elif isinstance(value, dict):
                    at = doc["warder"]["rule"] if name == "ecs" else \
                        {"output_fields": doc.get("evidences", [{}])[0].get("data", doc["unmapped"].get(field))}
                    self.assertEqual(at["output_fields"], value, where)
                elif isinstance(value, bool):
                    self.assertIn(True, [v for v in scalars(doc) if isinstance(v, bool)], where)
                elif isinstance(value, list):
                    self.assertIn(value, listed(doc), where)
                elif field == "file.mode":
                    self.assertIn("0644", found, where)
                elif field == "file.type":
                    self.assertIn(value if name != "ecs" else "file", found, where)
                else:
                    self.assertIn(str(value), found, where)

    def test_ocsf(self):
        for name in OCSF:
            self.check_json(name, "unmapped")

    def test_ecs(self):
        self.check_json("ecs", "warder")

    def test_bytes_that_are_not_utf8(self):
        for name, own in [*((n, "unmapped") for n in OCSF), ("ecs", "warder")]:
            for native, line in zip(NATIVE[2::3], rendered(name)[2::3]):
                self.assertEqual(parse(line)[own]["raw"], native["raw"], name)


def listed(value):
    if isinstance(value, dict):
        return [x for m in value.values() for x in listed(m)]
    if isinstance(value, list):
        return [value] + [x for m in value for x in listed(m)]
    return []


# ---- CEF and LEEF: written from their documents, not from our code ----

def unescape(text, table):
    out, i = [], 0
    while i < len(text):
        if text[i] == "\\":
            if i + 1 == len(text) or text[i + 1] not in table:
                raise ValueError("bad escape in %r" % text)
            out.append(table[text[i + 1]])
            i += 2
        else:
            out.append(text[i])
            i += 1
    return "".join(out)


def split_header(line, n):
    """n fields at unescaped '|', then the rest."""
    fields, at, start = [], 0, 0
    while len(fields) < n:
        if line[at] == "\\":
            at += 1
        elif line[at] == "|":
            fields.append(unescape(line[start:at], {"\\": "\\", "|": "|"}))
            start = at + 1
        at += 1
    return fields, line[start:]


def parse_cef(line):
    if not line.startswith("CEF:0|"):
        raise ValueError("no CEF")
    header, extension = split_header(line[4:], 7)
    pairs = {}
    # a key starts the extension or stands behind a space; its '=' is not escaped
    keys = list(re.finditer(r"(?:^| )([A-Za-z0-9]+)(?<!\\)=", extension))
    for m, after in zip(keys, keys[1:] + [None]):
        value = extension[m.end():after.start() if after else len(extension)]
        if m.group(1) in pairs:
            raise ValueError("%s twice" % m.group(1))
        pairs[m.group(1)] = unescape(value, {"\\": "\\", "=": "=", "n": "\n", "r": "\r"})
    return header, pairs


def parse_leef(line):
    if not line.startswith("LEEF:2.0|"):
        raise ValueError("no LEEF")
    header, rest = split_header(line[5:], 6)
    delimiter = chr(int(header[5][1:], 16)) if header[5].startswith("x") else header[5]
    pairs = {}
    for part in rest.split(delimiter):
        key, value = part.split("=", 1)
        if key in pairs:
            raise ValueError("%s twice" % key)
        pairs[key] = unescape(value, {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"})
    return header, pairs


def pictured(text, keep):
    return "".join(chr(0x2400 + ord(c)) if ord(c) < 32 and c not in keep else "\u2421" if c == "\x7f" else c
                   for c in text)


class Text(unittest.TestCase):
    HEADER = ["Warder", "Warder"]

    def each(self, name, reader):
        for native, line in zip(NATIVE, rendered(name)):
            text = line.decode("utf-8")
            self.assertNotRegex(text, r"[\x00-\x08\x0a-\x1f\x7f]")
            yield native, reader(text)

    def check_values(self, native, pairs, own_key):
        found = set(pairs.values())
        for field, value in flat(native).items():
            where = "%s of %s" % (field, native["kind"])
            if field == "raw":
                self.assertEqual(json.loads(pairs["WarderRaw" if own_key("a")[0] == "W" else "raw"]), value)
            elif isinstance(value, dict):
                self.assertTrue(any(v.startswith('{"') and json.loads(v) == value for v in found), where)
            elif isinstance(value, bool):
                self.assertIn("true", found, where)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                self.assertTrue(any(v.startswith("[{") and json.loads(v) == value for v in found), where)
            elif isinstance(value, list):
                want = [pictured(v, "\t\n\r") for v in value]
                self.assertTrue(any(" " in v and good_words(v) == want for v in found), where)
            elif field == "time":
                self.assertEqual(pairs[own_key("time")], value)
                self.assertIn("1700000000123", found)
            else:
                self.assertIn(pictured(str(value), "\t\n\r"), found, where)

    def test_cef(self):
        def own_key(name):
            return "Warder" + "".join(p.capitalize() for p in re.split(r"[._]", name))

        for native, (header, pairs) in self.each("cef", parse_cef):
            name = native.get("rule", {}).get("name") or native.get("escape", {}).get("type") or native["kind"]
            self.assertEqual(header[:3] + header[4:5], ["0"] + self.HEADER + [native["kind"]])
            self.assertEqual(header[5], pictured(name, ""))
            self.assertIn(header[6], {str(n) for n in range(11)})
            self.check_values(native, pairs, own_key)
            self.assertEqual(pairs["cs1Label"], "session")
            for key in pairs:
                self.assertRegex(key, r"^[A-Za-z][A-Za-z0-9]*$")

    def test_leef(self):
        def own_key(name):
            first, *rest = re.split(r"[._]", name)
            return first + "".join(p.capitalize() for p in rest)

        for native, (header, pairs) in self.each("leef", parse_leef):
            self.assertEqual(header[:3] + header[4:], ["2.0"] + self.HEADER + [native["kind"], "x09"])
            self.assertIn(int(pairs["sev"]), range(1, 11))
            self.check_values(native, pairs, own_key)

    def test_values_longer_than_their_key_takes(self):
        native = {"v": 1, "id": "s-1", "seq": 1, "kind": "exec", "session": "s", "host": "h" * 99 + "\u00e9" * 9,
                  "proc": {"pid": 1, "args": ["\u20ac" * 900, "x=" * 300]}}
        line = run("cef", text=json.dumps(native).encode() + b"\n").decode("utf-8").rstrip("\n")
        header, pairs = parse_cef(line)
        self.assertEqual(pairs["dvchost"], "h" * 99)  # 100 would cut a character
        self.assertEqual(pairs["WarderHost"], native["host"])
        self.assertLessEqual(len(pairs["msg"].encode()), 1023)
        self.assertEqual(words(pairs["WarderProcArgs"]), native["proc"]["args"])

    def test_a_long_rule_name(self):
        native = {"v": 1, "id": "s-1", "seq": 1, "kind": "rule.alert", "session": "s",
                  "rule": {"name": "a|\\b\n" * 300, "priority": "Warning"}}
        header, pairs = parse_cef(run("cef", text=json.dumps(native).encode() + b"\n").decode().rstrip("\n"))
        self.assertLessEqual(len(header[5].encode()), 512 * 3)
        self.assertEqual(pairs["cs5"], native["rule"]["name"])
        self.assertEqual(header[6], "6")


def good_words(text):
    try:
        return words(text)
    except ValueError:
        return None


class Refused(unittest.TestCase):
    def test_no_event_of_ours(self):
        for line in (b"{}", b"[]", b'{"v":1,"kind":"exec","nonsense":1}', b'{"v":1,"kind":"no.such"}', b"\xff"):
            done = subprocess.run([helper("render"), "ocsf"], input=line + b"\n", capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (1, b""), line)

    def test_unknown_format(self):
        done = subprocess.run([helper("render"), "ocfs"], input=b"", capture_output=True)
        self.assertIn(b"did you mean 'ocsf'?", done.stderr)


# ---- own_schemas.json ----

def prune(rules, root, documents, objects):
    """The schema of what the documents hold, and nothing else."""
    out = {k: v for k, v in rules.items() if k not in ("$defs", "properties", "$schema", "title", "items", "$ref")}
    if "$ref" in rules:
        name = rules["$ref"].split("/")[-1]
        objects.setdefault(name, []).extend(documents)
        return {"$ref": rules["$ref"]}
    if "items" in rules:
        items = [i for d in documents if isinstance(d, list) for i in d]
        out["items"] = prune(rules["items"], root, items, objects)
    if "properties" in rules:
        used = {}
        for d in documents:
            for k, v in d.items() if isinstance(d, dict) else ():
                used.setdefault(k, []).append(v)
        out["properties"] = {k: prune(rules["properties"][k], root, v, objects)
                             for k, v in sorted(used.items()) if k in rules["properties"]}
    return out


def extract(folder):
    own = {"ocsf": {}, "ecs": {}}
    for name, version in OCSF.items():
        by_class, docs_of, classes, done = {}, {}, {}, {}
        for line in rendered(name):
            doc = parse(line)
            by_class.setdefault(doc["class_uid"], []).append(doc)
        roots = {}
        for uid, docs in sorted(by_class.items()):
            rules = compiled(folder, version, uid)
            for k, v in rules["$defs"].items():
                roots.setdefault(k, v)
            classes[str(uid)] = prune(rules, rules, docs, docs_of)
        while True:  # objects inside objects add to each other until nothing is new
            sizes = {k: len(v) for k, v in docs_of.items()}
            todo = [k for k in docs_of if done.get(k, (0,))[0] != sizes[k]]
            if not todo:
                break
            for k in todo:
                seen, before = docs_of[k], done.get(k, (0,))[0]
                nested = {}
                prune(roots[k], roots, seen[before:], nested)
                for n, d in nested.items():
                    docs_of.setdefault(n, []).extend(d)
                done[k] = (sizes[k],)
        objects = {k: prune(roots[k], roots, d, {}) for k, d in sorted(docs_of.items())}
        own["ocsf"][version] = {"classes": classes, "objects": objects}
    fields = schema.load(os.path.join(folder, "ecs", "ecs-9.4-fields.json"))
    used = {name for line in rendered("ecs") for name, _ in schema.leaves(parse(line))}
    own["ecs"] = {name: fields[name] for name in sorted(used | {"event.category", "event.type"}) if name in fields}
    return own


if os.environ.get("FORMATS_UPDATE"):
    with open(OWN, "w") as out:
        json.dump(extract(schema.find_schemas()), out, indent=None, separators=(",", ":"), sort_keys=True)
        out.write("\n")
