// SPDX-License-Identifier: Apache-2.0
// Conditions in the words of rules (`warder fields`, rules/README.md), or plain text to look for. A missing value
// makes every check false, != included; a list is hit by any of its values, but `in` wants all of them.
// Not here: regex, val(), b64(), computed fields of Falco's: `warder events --filter` has them.

class FilterError extends Error {
  constructor(at, length, text) { super(text); this.at = at; this.length = Math.max(1, length); }
}

const WORD_OPS = ["exists", "contains", "icontains", "startswith", "endswith", "glob", "iglob", "in", "intersects", "pmatch"];
const ELSEWHERE_OPS = ["regex", "bcontains", "bstartswith"];
const LISTS = ["in", "intersects", "pmatch"];
const ORDER = ["<", "<=", ">", ">="];
const TRANSFORMS = {
  tolower: s => typeof s === "string" ? s.toLowerCase() : undefined,
  toupper: s => typeof s === "string" ? s.toUpperCase() : undefined,
  basename: s => typeof s === "string" ? s.slice(s.lastIndexOf("/") + 1) : undefined,
  len: v => Array.isArray(v) || typeof v === "string" ? v.length : undefined,
};

// ---- values ----

function addressOf(text) {
  const v4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (v4) return v4.slice(1).every(n => n < 256) ? { bits: 32, v: v4.slice(1).reduce((a, n) => a << 8n | BigInt(n), 0n) } : null;
  if (!text.includes(":") || !/^[0-9a-fA-F:.]+$/.test(text)) return null;
  const tail = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (tail) {
    const a = addressOf(tail[2]);
    if (!a) return null;
    text = tail[1] + (a.v >> 16n).toString(16) + ":" + (a.v & 0xffffn).toString(16);
  }
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const parts = h => h ? h.split(":") : [], left = parts(halves[0]), right = parts(halves[1]);
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing) return null;
  const words = [...left, ...Array(halves.length === 2 ? missing : 0).fill("0"), ...right];
  if (!words.every(w => /^[0-9a-fA-F]{1,4}$/.test(w))) return null;
  return { bits: 128, v: words.reduce((a, w) => a << 16n | BigInt("0x" + w), 0n) };
}

function networkOf(text) {
  const [addr, len] = text.split("/"), a = addressOf(addr);
  if (!a || (len !== undefined && (!/^\d{1,3}$/.test(len) || len > a.bits))) return null;
  const shift = BigInt(a.bits - (len === undefined ? a.bits : Number(len)));
  return { bits: a.bits, shift, v: a.v >> shift };
}

function globOf(text, fold) { // * crosses slashes, as in rules
  let re = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "*") re += "[^]*";
    else if (c === "?") re += "[^]";
    else if (c === "[") {
      const end = text.indexOf("]", i + 2);
      if (end < 0) { re += "\\["; continue; }
      re += "[" + text.slice(i + 1, end).replace(/^!/, "^").replace(/[\\\]]/g, "\\$&") + "]";
      i = end;
    } else re += c.replace(/[.+^${}()|\\\]/]/g, "\\$&");
  }
  return new RegExp(`^${re}$`, fold ? "iu" : "u");
}

// ---- the parser: or > and > not > check ----

class FilterParser {
  constructor(text, model) { this.s = text; this.i = 0; this.model = model; this.depth = 0; }

  fail(at, length, text) { throw new FilterError(at, length, text); }
  blanks() { while (/\s/.test(this.s[this.i] || "")) this.i++; }
  // What stands here, for a message.
  token() {
    this.blanks();
    const m = /^[^\s(),="'<>!]+|^[^]/.exec(this.s.slice(this.i));
    return m ? `'${m[0]}'` : "the end";
  }
  name() { return (/^[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*/.exec(this.s.slice(this.i)) || [""])[0]; }
  keyword(w) { this.blanks(); if (this.name() !== w) return false; this.i += w.length; return true; }

  parse() {
    const f = this.or();
    this.blanks();
    if (this.i < this.s.length) this.fail(this.i, 1, `expected 'and' or 'or', found ${this.token()}`);
    return f;
  }
  or() { let f = this.and(); while (this.keyword("or")) { const a = f, b = this.and(); f = i => a(i) || b(i); } return f; }
  and() { let f = this.not(); while (this.keyword("and")) { const a = f, b = this.not(); f = i => a(i) && b(i); } return f; }
  not() {
    if (++this.depth > 100) this.fail(this.i, 1, "nested too deeply");
    let f;
    if (this.keyword("not")) { const g = this.not(); f = i => !g(i); } else f = this.check();
    this.depth--;
    return f;
  }
  check() {
    this.blanks();
    if (this.s[this.i] !== "(") return this.compare();
    const open = this.i++, f = this.or();
    this.blanks();
    if (this.s[this.i] !== ")")
      this.i < this.s.length ? this.fail(this.i, 1, `expected 'and', 'or' or ')', found ${this.token()}`) : this.fail(open, 1, "this '(' has no ')'");
    this.i++;
    return f;
  }

  field() {
    const at = this.i, name = this.name();
    if (!name) this.fail(at, 1, `expected a field, found ${this.token()}`);
    if (this.s[at + name.length] === "(") {
      const fn = Object.hasOwn(TRANSFORMS, name) && TRANSFORMS[name];
      if (!fn) this.fail(at, name.length, `transformer '${name}' is not evaluated here`);
      this.i += name.length + 1;
      this.blanks();
      const inner = this.field();
      this.blanks();
      if (this.s[this.i] !== ")") this.fail(this.i, 1, `expected ')' after the field, found ${this.token()}`);
      this.i++;
      return { ...inner, type: name === "len" ? "number" : "string", get: i => { const v = inner.get(i); return v === undefined ? undefined : Array.isArray(v) && name !== "len" ? v.map(fn) : fn(v); } };
    }
    this.i += name.length;
    const f = this.lookup(name, at);
    if (this.s[this.i] !== "[") return f;
    const m = /^\[(\d+)\]/.exec(this.s.slice(this.i));
    if (!m || f.type !== "list") this.fail(this.i, 1, `field '${name}' takes no such argument`);
    this.i += m[0].length;
    return { ...f, type: "string", get: i => { const v = f.get(i); return v && v[Number(m[1])]; } };
  }
  lookup(name, at) {
    const m = this.model;
    if (name === "kind") return { name, type: "string", get: i => m.kind(i) };
    if (name === "seq") return { name, type: "number", get: i => m.seq[i] };
    const f = m.byName.get(name);
    if (!f) this.fail(at, name.length, `unknown field '${name}'${this.hint(name)}`);
    const text = f.type !== "number" && f.type !== "bool";
    return { name, type: f.type, get: !text ? i => m.value(i, f.id) : i => {
      const v = m.value(i, f.id);
      return v === undefined ? v : Array.isArray(v) ? v.map(unsafeText) : unsafeText(v);
    } };
  }
  hint(name) {
    let best = "", least = 3;
    for (const known of this.model.byName.keys()) {
      const d = editDistance(name, known, least);
      if (d < least) { least = d; best = known; }
    }
    return best ? `, did you mean '${best}'?` : "";
  }

  operator(name) {
    this.blanks();
    const at = this.i, sign = /^(<=|>=|!=|==|=|<|>)/.exec(this.s.slice(at)), word = this.name();
    if (sign) { this.i += sign[0].length; return { op: sign[0] === "==" ? "=" : sign[0], at }; }
    if (ELSEWHERE_OPS.includes(word)) this.fail(at, word.length, `operator '${word}' is not evaluated here: warder events --filter has it`);
    if (!word || !WORD_OPS.includes(word))
      this.fail(at, word.length || 1, `expected an operator after field '${name}', found ${this.token()}`);
    this.i += word.length;
    return { op: word, at };
  }

  value(op) {
    this.blanks();
    const at = this.i, q = this.s[at];
    if (q === '"' || q === "'") {
      let v = "";
      for (this.i++; this.i < this.s.length && this.s[this.i] !== q; this.i++) {
        if (this.s[this.i] === "\\" && this.i + 1 < this.s.length) {
          const c = this.s[++this.i], plain = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" }[c];
          v += plain || c;
        } else v += this.s[this.i];
      }
      if (this.i >= this.s.length) this.fail(at, 1, `string that starts with ${q} has no end`);
      this.i++;
      return { v, at, length: this.i - at };
    }
    const m = /^[^\s()"'=,]+/.exec(this.s.slice(at));
    if (!m) this.fail(at, 1, `operator '${op}' needs a value, found ${this.token()}${q === "(" ? ": a list goes with 'in', 'intersects' or 'pmatch'" : ""}`);
    this.i += m[0].length;
    return { v: m[0], at, length: m[0].length };
  }
  values(op) {
    this.blanks();
    if (this.s[this.i] !== "(") this.fail(this.i, 1, `operator '${op}' needs its values in parentheses: (a, b)`);
    const open = this.i++, out = [];
    for (;;) {
      this.blanks();
      if (this.i >= this.s.length) this.fail(open, 1, "list that starts here has no ')'");
      if (this.s[this.i] === ")") break;
      if (out.length) {
        if (this.s[this.i] !== ",") this.fail(this.i, 1, `expected ',' or ')' in a list, found ${this.token()}`);
        this.i++;
      }
      out.push(this.value(op));
    }
    this.i++;
    return out;
  }

  compare() {
    const f = this.field(), { op, at } = this.operator(f.name);
    if (op === "exists") return i => f.get(i) !== undefined;
    const values = LISTS.includes(op) ? this.values(op) : [this.value(op)];
    const test = this.test(f, op, at, values), all = op === "in" && f.type === "list";
    return i => {
      const v = f.get(i);
      if (v === undefined) return false;
      if (!Array.isArray(v)) return test(v);
      return all ? v.every(test) : v.some(test);
    };
  }

  test(f, op, at, values) {
    if (f.type === "number" || f.type === "hex") return this.numberTest(f, op, at, values);
    if (f.type === "bool") return this.boolTest(f, op, at, values);
    if (f.type === "ip") return this.addressTest(f, op, at, values);
    if (ORDER.includes(op)) this.fail(at, op.length, `operator '${op}' compares numbers, field '${f.name}' is text`);
    if (f.name === "kind" && ["=", "!=", "in", "intersects"].includes(op))
      for (const w of values) if (!this.model.kinds.includes(w.v)) this.fail(w.at, w.length, `no event kind is named '${w.v}'`);
    const list = values.map(w => w.v), v = list[0];
    switch (op) {
      case "=": return s => s === v;
      case "!=": return s => s !== v;
      case "contains": return s => s.includes(v);
      case "icontains": { const low = v.toLowerCase(); return s => s.toLowerCase().includes(low); }
      case "startswith": return s => s.startsWith(v);
      case "endswith": return s => s.endsWith(v);
      case "glob": case "iglob": { const re = globOf(v, op === "iglob"); return s => re.test(s); }
      case "pmatch": return s => list.some(p => s.startsWith(p) && (s.length === p.length || s[p.length] === "/" || p.endsWith("/")));
      default: { const set = new Set(list); return s => set.has(s); }
    }
  }
  numberTest(f, op, at, values) {
    if (!["=", "!=", "in", "intersects", ...ORDER].includes(op)) this.fail(at, op.length, `operator '${op}' is for text, field '${f.name}' is a number`);
    const list = values.map(w => {
      if (!/^[-+]?(\d+|0[xX][0-9a-fA-F]+)$/.test(w.v)) this.fail(w.at, w.length, `field '${f.name}' is a number, '${w.v}' is not`);
      const minus = w.v[0] === "-", n = BigInt(w.v.replace(/^[-+]/, ""));
      return minus ? -n : n;
    });
    const small = list.every(n => Number.isSafeInteger(Number(n))), nums = small ? list.map(Number) : list;
    const of = small ? v => typeof v === "number" ? v : Number(v) : v => BigInt(v), x = nums[0];
    const fn = { "=": v => v === x, "!=": v => v !== x, "<": v => v < x, "<=": v => v <= x, ">": v => v > x, ">=": v => v >= x }[op] || (v => nums.includes(v));
    return v => fn(of(v));
  }
  boolTest(f, op, at, values) {
    if (!["=", "!=", "in", "intersects"].includes(op)) this.fail(at, op.length, `field '${f.name}' is true or false: '=' or '!='`);
    const list = values.map(w => {
      if (!["true", "false", "1", "0"].includes(w.v)) this.fail(w.at, w.length, `field '${f.name}' is true or false, not '${w.v}'`);
      return w.v === "true" || w.v === "1";
    });
    return op === "!=" ? v => v !== list[0] : v => list.includes(v);
  }
  addressTest(f, op, at, values) {
    if (!["=", "!=", "in", "intersects"].includes(op)) this.fail(at, op.length, `field '${f.name}' is an address: '=', '!=' or 'in'`);
    const nets = values.map(w => networkOf(w.v) || this.fail(w.at, w.length, `'${w.v}' is no address or network: like 10.0.0.1, 10.0.0.0/8 or fd00::/8`));
    const hit = v => { const a = addressOf(v); return !!a && nets.some(n => n.bits === a.bits && a.v >> n.shift === n.v); };
    return op === "!=" ? v => !hit(v) : hit;
  }
}

function editDistance(a, b, limit) {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length];
}

// A predicate over event numbers, or null for all of them. Throws FilterError.
function compileFilter(text, model) {
  if (!text.trim()) return null;
  if (!/[=<>]|(^|\s|\()(not|exists|contains|icontains|startswith|endswith|glob|iglob|in|intersects|pmatch|regex)(\s|\(|$)/.test(text)) {
    const want = text.trim().toLowerCase();
    return i => model.kind(i).includes(want) || model.all(i).some(([, v]) => asText(v).toLowerCase().includes(want));
  }
  return new FilterParser(text, model).parse();
}
