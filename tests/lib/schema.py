# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema (2020-12) that compiled OCSF schemas use, and the rules of ECS for a document. Both
return a list of what is wrong, empty when nothing is."""

import ipaddress
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
KNOWN = {"$schema", "title", "$defs", "type", "properties", "additionalProperties", "required", "enum", "const",
         "items", "$ref", "anyOf", "oneOf", "pattern", "maxLength", "minimum", "maximum", "description"}


def find_schemas():
    """The directory of compiled schemas: WARDER_SCHEMAS, or beside the tree. None when there is none."""
    for path in (os.environ.get("WARDER_SCHEMAS"), os.path.join(ROOT, "..", "shared", "schemas"),
                 os.path.join(ROOT, "..", "..", "shared", "schemas")):
        if path and os.path.isdir(os.path.join(path, "ocsf")):
            return path
    return None


def validate(value, schema, root=None, at="$"):
    root = root or schema
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError("schema keyword %s is not known here" % sorted(unknown))
    if "$ref" in schema:
        return validate(value, root["$defs"][schema["$ref"].split("/")[-1]], root, at)
    bad = []
    wrong = type_error(value, schema.get("type"))
    if wrong:
        return ["%s: %s" % (at, wrong)]
    if "enum" in schema and value not in schema["enum"]:
        bad.append("%s: %r is none of %s" % (at, value, schema["enum"]))
    if "const" in schema and value != schema["const"]:
        bad.append("%s: %r is not %r" % (at, value, schema["const"]))
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            bad.append("%s: %r does not match %s" % (at, value, schema["pattern"]))
        if len(value) > schema.get("maxLength", len(value)):
            bad.append("%s: longer than %d" % (at, schema["maxLength"]))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            bad.append("%s: %r is out of range" % (at, value))
    if isinstance(value, dict):
        bad += object_errors(value, schema, root, at)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            bad += validate(item, schema["items"], root, "%s[%d]" % (at, i))
    for word, enough in (("anyOf", lambda n: n >= 1), ("oneOf", lambda n: n == 1)):
        if word in schema:
            fits = sum(not validate(value, dict(s), root, at) for s in schema[word])
            if not enough(fits):
                bad.append("%s: fits %d of %s %s" % (at, fits, word, schema[word]))
    return bad


def type_error(value, name):
    if name is None:
        return None
    if name == "integer":
        good = isinstance(value, int) and not isinstance(value, bool)
    elif name == "number":
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
    else:
        good = isinstance(value, TYPES[name])
    return None if good else "%r is no %s" % (value, name)


def object_errors(value, schema, root, at):
    bad = ["%s: no %s" % (at, k) for k in schema.get("required", ()) if k not in value]
    properties = schema.get("properties", {})
    for key, member in value.items():
        if key in properties:
            bad += validate(member, properties[key], root, "%s.%s" % (at, key))
        elif schema.get("additionalProperties") is False:
            bad.append("%s: %s is not known" % (at, key))
    return bad


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


# ---- ECS ----

def leaves(value, at=""):
    """(dotted name, value): lists are values."""
    for key, member in value.items():
        name = at + "." + key if at else key
        if isinstance(member, dict):
            yield from leaves(member, name)
        else:
            yield name, member


def ecs_scalar_error(kind, v):
    if kind in ("keyword", "wildcard", "match_only_text", "text", "constant_keyword"):
        return None if isinstance(v, str) else "%r is no string" % (v,)
    if kind == "long":
        return None if isinstance(v, int) and not isinstance(v, bool) else "%r is no long" % (v,)
    if kind in ("float", "scaled_float"):
        return None if isinstance(v, (int, float)) else "%r is no number" % (v,)
    if kind == "boolean":
        return None if isinstance(v, bool) else "%r is no boolean" % (v,)
    if kind == "date":
        return None if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", str(v)) else "%r is no date" % (v,)
    if kind == "ip":
        try:
            ipaddress.ip_address(v)
        except ValueError:
            return "%r is no address" % (v,)
        return None
    if kind in ("object", "flattened", "nested"):
        return None if isinstance(v, dict) else "%r is no object" % (v,)
    raise ValueError("ECS type %s is not known here" % kind)


def ecs_errors(doc, fields, own=("warder",), free=("labels",)):
    """`fields`: {name: {type, normalize?, allowed_values?}}."""
    bad = []
    for name, value in leaves(doc):
        top = name.split(".")[0]
        if top in own:
            continue
        if top in free:
            if not isinstance(value, (str, bool, int)):
                bad.append("%s: %r is no scalar" % (name, value))
            continue
        field = fields.get(name)
        if not field:
            bad.append("%s: no field of ECS" % name)
            continue
        wants_list = "array" in field.get("normalize", ())
        if isinstance(value, list) != wants_list:
            bad.append("%s: a list or not? %r" % (name, value))
        for v in value if isinstance(value, list) else [value]:
            wrong = ecs_scalar_error(field["type"], v)
            if wrong:
                bad.append("%s: %s" % (name, wrong))
            allowed = [a["name"] for a in field.get("allowed_values", ())]
            if allowed and v not in allowed:
                bad.append("%s: %r is none of %s" % (name, v, allowed))
    return bad + ecs_pair_errors(doc, fields)


def ecs_pair_errors(doc, fields):
    """Each type must be one that a category of the document expects."""
    rows = {a["name"]: a["expected_event_types"] for a in fields["event.category"]["allowed_values"]}
    expected = {t for c in doc["event"]["category"] for t in rows.get(c, ())}
    return ["event.type: %r does not go with %s" % (t, doc["event"]["category"])
            for t in doc["event"]["type"] if t not in expected]
