// SPDX-License-Identifier: Apache-2.0
// The record as the page holds it (report.h tells the form), and questions about it.

const LANES = [
  { id: "terminal", name: "Terminal" }, { id: "process", name: "Processes" }, { id: "file", name: "Files" },
  { id: "network", name: "Network" }, { id: "dns", name: "DNS" }, { id: "alert", name: "Alerts" },
];

function laneOf(kind) {
  if (/^(rule\.|action|approval|escape|oom|limit|gap|audit)/.test(kind)) return "alert";
  if (/^(file|mount|workspace)/.test(kind)) return "file";
  if (kind.startsWith("net.")) return "network";
  if (kind.startsWith("dns.")) return "dns";
  if (kind === "terminal") return "terminal";
  return "process";
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const bin = atob(base64), bytes = new Uint8Array(bin.length);
  for (let i = 0; i < bin.length; i++) bytes[i] = bin.charCodeAt(i);
  return bytes;
}

async function load() {
  const node = $("data"), bytes = bytesOf(node.textContent.trim());
  node.textContent = ""; // its memory is not needed twice
  const m = new Model(), decoder = new TextDecoder();
  let rest = "";
  for await (const piece of inflated(bytes)) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) m.line(JSON.parse(line));
  }
  m.finish();
  return m;
}

// What was packed, piece by piece: written whole, since by a Blob it takes twice as long.
async function* inflated(bytes) {
  const stream = new DecompressionStream("deflate-raw"), writer = stream.writable.getWriter(), reader = stream.readable.getReader();
  const written = Promise.all([writer.write(bytes), writer.close()]);
  written.catch(() => {}); // the reader has the same error
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    yield value;
  }
}

class Model {
  constructor() {
    this.strings = []; this.sets = []; this.own = []; this.frames = []; this.blobs = new Map();
    this.head = null; this.session = {}; this.counts = { omitted: 0, damage: "", density: { us: 1, kinds: {} } };
    this.seq = []; this.times = []; this.kindOf = []; this.setOf = []; this.ownAt = [0]; this.us = 0; this.lastSeq = 0; this.frameUs = 0; this.decoders = [];
    this.setsSeen = 0; this.high = -1;
  }

  line(o) {
    if (o.e) this.block(o);
    else if (o.y) for (let k = 0; k < o.y.length; k += 4) this.frame(o.y[k], o.y[k + 1], o.y[k + 2], o.y[k + 3]);
    else if (o.b !== undefined) this.blobs.set(o.b, o.t);
    else if (o.session) { this.session = o.session; this.counts = o.counts; }
    else this.start(o);
  }

  start(o) {
    this.head = o;
    this.kinds = o.kinds;
    this.fields = o.fields.map(([name, type, common, doc], id) => ({ id, name, type, common, doc }));
    this.byName = new Map(this.fields.map(f => [f.name, f]));
    this.isNumber = this.fields.map(f => f.type === "number");
    this.isBool = this.fields.map(f => f.type === "bool");
    this.isText = this.fields.map((f, id) => !this.isNumber[id] && !this.isBool[id]);
    for (const [name, id] of Object.entries(o.aliases)) if (!this.byName.has(name)) this.byName.set(name, this.fields[id]);
    this.lanes = o.kinds.map(laneOf);
    this.grave = o.kinds.map(k => ["rule.alert", "escape", "oom", "action", "limit"].includes(k));
    this.nameField = this.byName.get("file.name").id;
    this.pathField = this.byName.get("file.path").id;
  }

  block(o) {
    for (const s of o.s) this.strings.push(s);
    for (const p of o.p) this.sets.push(p);
    const { e, o: own } = o;
    let at = 0;
    for (let k = 0; k < e.length; k += 5) {
      const set = e[k + 3], end = at + e[k + 4];
      if (set === this.setsSeen) { // strings of a set come before those of the event that is the first to have it
        const pairs = this.sets[this.setsSeen++];
        this.number(pairs, 0, pairs.length, false);
      }
      this.number(own, at, end, true);
      for (; at < end; at++) this.own.push(own[at]);
      this.lastSeq += e[k]; this.us += e[k + 1];
      this.seq.push(this.lastSeq); this.times.push(this.us / 1e6);
      this.kindOf.push(e[k + 2]); this.setOf.push(set); this.ownAt.push(this.own.length);
    }
  }

  // Numbers for strings that are new: -1 is the one behind the highest so far.
  number(pairs, from, to, own) {
    for (let k = from; k < to; k += 2) {
      const v = pairs[k + 1];
      if (!this.isText[pairs[k]]) continue;
      if (Array.isArray(v)) for (let j = 0; j < v.length; j++) { if (own && v[j] < 0) v[j] = ++this.high; else if (v[j] > this.high) this.high = v[j]; }
      else if (own && v < 0) pairs[k + 1] = ++this.high;
      else if (v > this.high) this.high = v;
    }
  }

  frame(us, type, stream, v) {
    this.frameUs += us;
    if (type === "o" || type === "i") v = this.decode(v, stream, type);
    this.frames.push({ t: this.frameUs / 1e6, type, stream, v });
  }

  // Bytes that are no text of themselves may be with those of the record before.
  decode(v, stream, type) {
    const key = stream + type, known = this.decoders[key];
    if (typeof v === "string" && !known) return v;
    const d = this.decoders[key] = known || new TextDecoder("utf-8", { fatal: false });
    return d.decode(typeof v === "string" ? new TextEncoder().encode(v) : bytesOf(v.b), { stream: true });
  }

  finish() {
    this.n = this.seq.length;
    this.t = Float64Array.from(this.times);
    this.times = null;
    this.ordered = new Float64Array(this.n); // verdicts are recorded a little after what they are about
    for (let i = 0, max = 0; i < this.n; i++) this.ordered[i] = max = Math.max(max, this.t[i]);
    this.frameTimes = Float64Array.from(this.frames, f => f.t);
    const d = this.counts.density, bins = Object.values(d.kinds).reduce((n, b) => Math.max(n, b.length), 0);
    this.end = Math.max(this.n ? this.ordered[this.n - 1] : 0, this.frames.length ? this.frameTimes.at(-1) : 0,
      bins > 1 ? (bins - 1) * d.us / 1e6 : 0, 1e-3);
    this.alerts = [];
    for (let i = 0; i < this.n; i++) if (this.isAlert(i)) this.alerts.push(i);
    this.start0 = Date.parse(this.session.started);
    this.manifest = {};
    try { this.manifest = Object(JSON.parse(this.head.manifest)); } catch { /* not to be had: the page says less */ }
  }

  // Made when first asked for: the index of the event with a number, or undefined.
  indexOf(seq) {
    if (Number.isNaN(seq)) return undefined;
    this.bySeq ||= new Map(this.seq.map((s, i) => [s, i]));
    return this.bySeq.get(seq);
  }
  // All times at which something happens, in order.
  activity() {
    if (!this.active) {
      this.active = new Float64Array(this.n + this.frames.length);
      this.active.set(this.t);
      this.active.set(this.frameTimes, this.n);
      this.active.sort();
    }
    return this.active;
  }

  kind(i) { return this.kinds[this.kindOf[i]]; }
  lane(i) { return this.lanes[this.kindOf[i]]; }
  isAlert(i) { return this.grave[this.kindOf[i]]; }
  set(i) { return this.setOf[i]; }

  // The event that a clock time stands on: the last one that is not later; -1 before the first.
  at(t) { return upperBound(this.ordered, t) - 1; }

  // [field, value, ...] of what the event says of its own, not of its process.
  ownPairs(i) { return this.own.slice(this.ownAt[i], this.ownAt[i + 1]); }

  // Raw value of a field: undefined, number, decimal string, string or list of strings.
  value(i, id) {
    const own = this.own;
    for (let k = this.ownAt[i], end = this.ownAt[i + 1]; k < end; k += 2) if (own[k] === id) return this.resolve(id, own[k + 1]);
    if (id === this.nameField) { // told by the path
      const path = this.value(i, this.pathField);
      return path?.includes("/") ? path.slice(path.lastIndexOf("/") + 1) : undefined;
    }
    const set = this.sets[this.setOf[i]];
    if (set) for (let k = 0; k < set.length; k += 2) if (set[k] === id) return this.resolve(id, set[k + 1]);
    return undefined;
  }
  resolve(id, v) {
    if (this.isNumber[id]) return v;
    if (this.isBool[id]) return v === 1;
    return Array.isArray(v) ? v.map(x => this.strings[x]) : this.strings[v];
  }
  get(i, name) {
    if (name === "kind") return this.kind(i);
    if (name === "seq") return this.seq[i];
    const f = this.byName.get(name);
    return f && this.value(i, f.id);
  }
  text(i, name) {
    const v = this.get(i, name);
    return v === undefined ? undefined : asText(v);
  }
  num(i, name) { return Number(this.get(i, name) || 0); }

  // [field, value] of everything the event says, its own first.
  all(i) {
    const out = [];
    for (const list of [this.ownPairs(i), this.sets[this.setOf[i]] || []])
      for (let k = 0; k < list.length; k += 2) out.push([this.fields[list[k]], this.resolve(list[k], list[k + 1])]);
    return out;
  }

  // What the event says, in words: as timeline_what() of timeline.c.
  what(i) {
    const kind = this.kind(i), parts = this.head.parts[this.kindOf[i]];
    let s = "";
    if (parts.length) {
      for (let p = 0; p < parts.length; p += 2) {
        const v = this.value(i, parts[p + 1]);
        if (v !== undefined) s += (parts[p].startsWith(":") || !s ? "" : " ") + parts[p] + asText(v);
      }
    } else {
      for (const [f, v] of this.all(i))
        if (!f.common && !f.name.startsWith("proc.")) s += `${s ? " " : ""}${f.name}=${asText(v)}`;
    }
    const outcome = this.get(i, "outcome"), errno = this.get(i, "errno");
    if (outcome && outcome !== "success" && kind !== "rule.alert" && kind !== "action")
      s += ` [${outcome}${errno ? " " + errno : ""}]`;
    return s;
  }

  // Seconds of the session of an RFC 3339 time.
  since(text) {
    const ms = Date.parse(text);
    return Number.isNaN(ms) || Number.isNaN(this.start0) ? undefined : (ms - this.start0) / 1e3;
  }
}

const SHELL = /[\s'"$`*?[\]{}()<>|&;!#~\\]/;

function asText(v) {
  if (Array.isArray(v)) return v.map(w => !w || SHELL.test(w) ? `'${w}'` : w).join(" ");
  return v === true ? "true" : v === false ? "false" : String(v);
}
