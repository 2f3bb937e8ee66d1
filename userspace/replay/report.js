// SPDX-License-Identifier: Apache-2.0
// The page of `warder report`. Everything in `data` came from a sandbox: it reaches the page through textContent
// only, never as markup, and nothing of it can be clicked but to select an event of this page.
"use strict";
(() => {
const ROW = 22, LANES = ["process", "file", "network", "dns", "alert"];
const $ = id => document.getElementById(id);

function el(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (k === "class") e.className = v;
    else if (k === "text") e.textContent = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

async function load() {
  const bin = atob($("data").textContent.trim());
  const bytes = new Uint8Array(bin.length);
  for (let i = 0; i < bin.length; i++) bytes[i] = bin.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

// ---- the model ----

class Session {
  constructor(d) {
    this.d = d;
    this.n = d.events.length;
    this.t = new Float64Array(this.n); // seconds since the start
    let us = 0;
    d.events.forEach((e, i) => { us += e[1]; this.t[i] = us / 1e6; });
    // verdicts are recorded a little after what they are about: time may step back
    this.end = this.t.reduce((a, b) => Math.max(a, b), 0);
    this.fieldIds = new Map(d.fields.map((name, i) => [name, i]));
    this.bySeq = new Map(d.events.map((e, i) => [e[0], i]));
    this.lane = d.kinds.map(laneOf);
  }
  seq(i) { return this.d.events[i][0]; }
  kind(i) { return this.d.kinds[this.d.events[i][2]]; }
  laneOf(i) { return this.lane[this.d.events[i][2]]; }
  what(i) { return this.d.strings[this.d.events[i][4]]; }
  pairs(i) {
    const e = this.d.events[i];
    return [e[5], this.d.snapshots[e[3]] || []];
  }
  field(i, name) {
    if (name === "kind" || name === "evt.type") return this.kind(i);
    if (name === "seq") return String(this.seq(i));
    const id = this.fieldIds.get(name);
    if (id === undefined) return undefined;
    for (const list of this.pairs(i))
      for (let k = 0; k < list.length; k += 2)
        if (list[k] === id) return this.d.strings[list[k + 1]];
    return undefined;
  }
  fields(i) {
    const out = [];
    for (const list of this.pairs(i))
      for (let k = 0; k < list.length; k += 2) out.push([this.d.fields[list[k]], this.d.strings[list[k + 1]]]);
    return out;
  }
  isGrave(i) { return this.laneOf(i) === "alert"; }
}

function laneOf(kind) {
  if (/^(rule\.|action|approval|escape|oom|limit|gap|audit)/.test(kind)) return "alert";
  if (/^(file|mount)/.test(kind)) return "file";
  if (kind.startsWith("net.")) return "network";
  if (kind.startsWith("dns.")) return "dns";
  return "process";
}

// ---- filter: the words of rule conditions, or plain text to search for ----

const OPS = {
  "=": (a, b) => a === b, "==": (a, b) => a === b, "!=": (a, b) => a !== b,
  "<": (a, b) => Number(a) < Number(b), "<=": (a, b) => Number(a) <= Number(b),
  ">": (a, b) => Number(a) > Number(b), ">=": (a, b) => Number(a) >= Number(b),
  contains: (a, b) => a.includes(b), icontains: (a, b) => a.toLowerCase().includes(b.toLowerCase()),
  startswith: (a, b) => a.startsWith(b), endswith: (a, b) => a.endsWith(b),
};

function tokens(text) {
  const out = [], re = /\s*(?:([()])|(,)|(<=|>=|!=|==|=|<|>)|"([^"]*)"|'([^']*)'|([^\s()=<>!,"']+))/gy;
  while (re.lastIndex < text.length) {
    const at = re.lastIndex, m = re.exec(text);
    if (!m) {
      if (/^\s*$/.test(text.slice(at))) break;
      throw new Error(`unexpected '${text[at]}'`);
    }
    if (m[4] !== undefined || m[5] !== undefined) out.push({ q: true, v: m[4] ?? m[5] });
    else out.push({ v: m[1] || m[2] || m[3] || m[6] });
  }
  return out;
}

function compile(text, s) {
  text = text.trim();
  if (!text) return () => true;
  if (!/[=<>]|\b(contains|icontains|startswith|endswith|exists|in)\b/.test(text)) {
    const want = text.toLowerCase();
    return i => s.what(i).toLowerCase().includes(want) || s.fields(i).some(f => f[1].toLowerCase().includes(want));
  }
  const t = tokens(text);
  let p = 0;
  const is = v => p < t.length && !t[p].q && t[p].v === v;
  const next = what => { if (p >= t.length) throw new Error(`${what} expected at the end`); return t[p++].v; };
  function or() { let f = and(); while (is("or")) { p++; const a = f, b = and(); f = i => a(i) || b(i); } return f; }
  function and() { let f = not(); while (is("and")) { p++; const a = f, b = not(); f = i => a(i) && b(i); } return f; }
  function not() {
    if (is("not")) { p++; const f = not(); return i => !f(i); }
    if (is("(")) { p++; const f = or(); if (!is(")")) throw new Error("')' expected"); p++; return f; }
    return compare();
  }
  function compare() {
    const name = next("a field"), op = next("an operator");
    if (name !== "kind" && name !== "evt.type" && name !== "seq" && !s.fieldIds.has(name))
      throw new Error(`no event here has a field '${name}'`);
    if (op === "exists") return i => s.field(i, name) !== undefined;
    if (op === "in") {
      const set = new Set();
      if (next("'('") !== "(") throw new Error("'(' expected after 'in'");
      while (!is(")")) { set.add(next("a value")); if (is(",")) p++; }
      p++;
      return i => set.has(s.field(i, name));
    }
    const fn = OPS[op], value = next("a value");
    if (!fn) throw new Error(`'${op}' is no operator`);
    return i => { const v = s.field(i, name); return v !== undefined && fn(v, value); };
  }
  const f = or();
  if (p < t.length) throw new Error(`'${t[p].v}' is one word too many`);
  return f;
}

// ---- the page ----

class Page {
  constructor(s) {
    this.s = s;
    this.shown = Array.from({ length: s.n }, (_, i) => i);
    this.selected = -1;
    this.tab = "events";
    this.header();
    this.panels();
    this.bind();
    this.fromHash();
    this.draw();
    this.layout();
    document.body.dataset.ready = "1";
  }

  header() {
    const d = this.s.d, v = d.verify, S = d.session;
    $("title").textContent = "Session " + S.id;
    $("command").textContent = S.command;
    const state = $("state");
    state.textContent = v.text;
    state.className = "state s" + v.code;
    const rows = [["started", S.started], ["lasted", fmt(this.s.end) + " s"], ["ended by", S.reason], ["exit code", S.code],
      ["host", S.host], ["sandbox", S.sandbox], ["tenant", S.tenant], ["backend", S.backend], ["probes", S.tier],
      ["policy", S.policy], ["rule set", S.rules], ["records", String(v.records)], ["lost", String(v.lost)],
      ["chain head", v.head], ["signed by", v.signed ? v.host_key + (v.trusted ? " (a key given)" : " (not compared with a known key)") : "not signed"],
      ["checkpoints", String(v.checkpoints)]];
    for (const [k, val] of rows)
      if (val !== "" && val !== undefined) $("facts").append(el("dt", { text: k }), el("dd", { text: val }));
    if (d.omitted) {
      $("omitted").hidden = false;
      $("omitted").textContent = `${d.omitted} later events are in the record and not in this page.`;
    }
  }

  panels() {
    const s = this.s, files = new Map(), peers = new Map();
    const alerts = [], procs = new Map();
    for (let i = 0; i < s.n; i++) {
      const kind = s.kind(i);
      if (s.isGrave(i)) alerts.push(i);
      if (kind.startsWith("file.")) {
        const path = s.field(i, "file.path");
        if (path !== undefined) {
          const f = files.get(path) || { n: 0, ops: new Set(), last: i, bytes: 0 };
          f.n++; f.ops.add(kind.slice(5)); f.last = i; f.bytes += Number(s.field(i, "file.bytes") || 0);
          files.set(path, f);
        }
      }
      if (kind.startsWith("net.")) {
        const ip = s.field(i, "net.dst.ip") || s.field(i, "net.path");
        if (ip) {
          const port = s.field(i, "net.dst.port"), key = port ? ip + " port " + port : ip;
          const p = peers.get(key) || { n: 0, name: "", out: 0, in: 0, last: i };
          p.n++; p.name = s.field(i, "net.dst.name") || p.name; p.last = i;
          p.out += Number(s.field(i, "net.bytes_out") || 0); p.in += Number(s.field(i, "net.bytes_in") || 0);
          peers.set(key, p);
        }
      }
      const pid = s.field(i, "proc.pid");
      if (pid !== undefined) {
        const key = pid + ":" + (s.field(i, "proc.start") || "");
        let p = procs.get(key);
        if (!p) procs.set(key, p = { pid, ppid: s.field(i, "proc.ppid"), first: i, last: i, names: [], kids: [], end: "" });
        p.last = i;
        if (kind === "exec") p.names.push([i, s.field(i, "proc.args") || s.field(i, "proc.exe") || ""]);
        if (kind === "exit") p.end = s.field(i, "exit.signal") || "exit " + (s.field(i, "exit.code") || "0");
      }
    }
    this.alerts = alerts;
    this.fill("alerts", alerts.map(i => [fmt(s.t[i]), s.what(i), i]), ["time", "what"]);
    this.fill("files", [...files].map(([p, f]) => [p, [...f.ops].join(" "), String(f.n), f.bytes ? String(f.bytes) : "", f.last]),
      ["path", "what", "events", "bytes written"]);
    this.fill("network", [...peers].map(([k, p]) => [k, p.name, String(p.n), String(p.out), String(p.in), p.last]),
      ["where", "name", "events", "bytes out", "bytes in"]);
    this.tree(procs);
  }

  // The last member of a row is the event to show.
  fill(id, rows, heads) {
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads.map(h => el("th", { text: h, scope: "col" })))));
    const body = el("tbody");
    for (const row of rows.slice(0, 2000)) {
      const i = row[row.length - 1];
      body.append(el("tr", { tabindex: "0", "data-event": String(i), onclick: () => this.go(i),
        onkeydown: e => { if (e.key === "Enter") this.go(i); } }, ...row.slice(0, -1).map(c => el("td", { text: c }))));
    }
    table.append(body);
    $("p-" + id).append(rows.length ? table : el("p", { class: "none", text: "None." }));
    if (rows.length > 2000) $("p-" + id).append(el("p", { text: `${rows.length - 2000} more: use the filter.` }));
    $("t-" + id).textContent += ` (${rows.length})`;
  }

  tree(procs) {
    const byPid = new Map(), roots = [];
    for (const p of procs.values()) byPid.set(p.pid, [...(byPid.get(p.pid) || []), p]);
    for (const p of procs.values()) {
      const parents = (byPid.get(p.ppid) || []).filter(q => q !== p && q.first <= p.first);
      const parent = parents[parents.length - 1];
      if (parent) parent.kids.push(p); else roots.push(p);
    }
    const list = (nodes, depth) => el("ul", { role: depth ? "group" : "tree" }, ...nodes.slice(0, 2000).map(p => {
      const name = p.names.length ? p.names.map(n => n[1]).join("  ⇒  ") : this.s.field(p.first, "proc.comm") || "?";
      const line = el("span", { tabindex: "0", class: "proc", onclick: () => this.go(p.names.length ? p.names[0][0] : p.first),
        onkeydown: e => { if (e.key === "Enter") this.go(p.first); } },
        el("code", { text: name }), el("small", { text: ` ${fmt(this.s.t[p.first])}–${fmt(this.s.t[p.last])} s  ${p.end}` }));
      return el("li", { role: "treeitem" }, line, ...(p.kids.length && depth < 64 ? [list(p.kids, depth + 1)] : []));
    }));
    $("p-processes").append(procs.size ? list(roots, 0) : el("p", { class: "none", text: "None." }));
    $("t-processes").textContent += ` (${procs.size})`;
  }

  bind() {
    $("filter").addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.filter($("filter").value), 120); });
    $("rows").addEventListener("scroll", () => this.draw());
    $("rows").addEventListener("click", e => { const r = e.target.closest("[data-i]"); if (r) this.select(Number(r.dataset.i)); });
    for (const b of document.querySelectorAll("[role=tab]")) b.addEventListener("click", () => this.show(b.id.slice(2)));
    $("next").addEventListener("click", () => this.alert(1));
    $("prev").addEventListener("click", () => this.alert(-1));
    $("lanes").addEventListener("click", e => {
      const r = $("lanes").getBoundingClientRect();
      this.seek((e.clientX - r.left) / r.width * this.s.end);
    });
    addEventListener("resize", () => this.layout());
    addEventListener("hashchange", () => this.fromHash());
    addEventListener("keydown", e => {
      if (e.target.tagName === "INPUT") { if (e.key === "Escape") e.target.blur(); return; }
      const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[e.key];
      if (step && this.tab === "events") { e.preventDefault(); this.move(step); }
      else if (e.key === "n") this.alert(1);
      else if (e.key === "p") this.alert(-1);
      else if (e.key === "/") { e.preventDefault(); $("filter").focus(); }
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.layout());
    addEventListener("beforeprint", () => { document.body.classList.add("printing"); });
    addEventListener("afterprint", () => document.body.classList.remove("printing"));
  }

  filter(text) {
    let f;
    try { f = compile(text, this.s); } catch (e) { $("why").textContent = e.message; $("filter").setAttribute("aria-invalid", "true"); return; }
    $("filter").removeAttribute("aria-invalid");
    this.shown = [];
    for (let i = 0; i < this.s.n; i++) if (f(i)) this.shown.push(i);
    $("why").textContent = text.trim() ? `${this.shown.length} of ${this.s.n} events` : `${this.s.n} events`;
    $("rows").scrollTop = 0;
    this.draw();
    this.layout();
  }

  draw() {
    const box = $("rows"), total = this.shown.length, space = $("space");
    space.style.height = total * ROW + "px";
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 10);
    const last = Math.min(total, first + Math.ceil(box.clientHeight / ROW) + 20), rows = [];
    for (let k = first; k < last; k++) {
      const i = this.shown[k], r = el("div", { class: "row " + this.s.laneOf(i) + (i === this.selected ? " on" : ""), role: "option",
        "aria-selected": String(i === this.selected), "aria-setsize": String(total), "aria-posinset": String(k + 1), "data-i": String(i) },
        el("span", { class: "t", text: fmt(this.s.t[i]) }), el("span", { class: "who", text: this.s.field(i, "proc.comm") || "" }),
        el("span", { class: "what", text: this.s.what(i) }));
      r.style.top = k * ROW + "px";
      rows.push(r);
    }
    space.replaceChildren(...rows);
  }

  layout() {
    const c = $("lanes"), w = c.clientWidth, h = 20 * LANES.length, dpr = devicePixelRatio || 1, style = getComputedStyle(document.body);
    c.width = Math.max(1, w * dpr); c.height = h * dpr; c.style.height = h + "px";
    const g = c.getContext("2d");
    g.scale(dpr, dpr);
    g.clearRect(0, 0, w, h);
    const bins = LANES.map(() => new Uint32Array(Math.max(1, w)));
    for (const i of this.shown) bins[LANES.indexOf(this.s.laneOf(i))][Math.min(w - 1, Math.floor(this.x(i, w)))]++;
    LANES.forEach((lane, l) => {
      const most = bins[l].reduce((a, b) => Math.max(a, b), 1);
      g.fillStyle = style.getPropertyValue("--" + lane);
      bins[l].forEach((n, x) => { if (n) { const k = 3 + 14 * Math.log1p(n) / Math.log1p(most); g.fillRect(x, 20 * l + 19 - k, 1.5, k); } });
    });
    g.fillStyle = style.getPropertyValue("--gap");
    for (const i of this.alerts) if (this.s.kind(i) === "gap") g.fillRect(this.x(i, w) - 2, 0, 4, h);
    if (this.selected >= 0) { g.fillStyle = style.getPropertyValue("--fg"); g.fillRect(this.x(this.selected, w), 0, 1, h); }
  }
  x(i, w) { return this.s.end ? this.s.t[i] / this.s.end * (w - 2) : 0; }

  show(tab) {
    this.tab = tab;
    for (const b of document.querySelectorAll("[role=tab]")) {
      const on = b.id === "t-" + tab;
      b.setAttribute("aria-selected", String(on));
      $("p-" + b.id.slice(2)).hidden = !on;
    }
    if (tab === "events") this.draw();
  }

  go(i) { this.show("events"); if (!this.shown.includes(i)) { $("filter").value = ""; this.filter(""); } this.select(i); }
  move(step) {
    const at = this.shown.indexOf(this.selected), k = Math.min(this.shown.length - 1, Math.max(0, at < 0 ? 0 : at + step));
    if (this.shown.length) this.select(this.shown[k]);
  }
  alert(step) {
    const a = this.alerts, next = step > 0 ? a.find(i => i > this.selected) : a.findLast(i => i < (this.selected < 0 ? 1e9 : this.selected));
    if (next !== undefined) this.go(next);
  }
  seek(t) {
    if (!this.shown.length) return;
    let best = this.shown[0];
    for (const i of this.shown) if (Math.abs(this.s.t[i] - t) < Math.abs(this.s.t[best] - t)) best = i;
    this.show("events");
    this.select(best);
  }

  select(i) {
    this.selected = i;
    const box = $("rows"), top = this.shown.indexOf(i) * ROW;
    if (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 3);
    const dl = $("fields");
    dl.replaceChildren(el("dt", { text: "kind" }), el("dd", { text: this.s.kind(i) }), el("dt", { text: "seq" }), el("dd", { text: String(this.s.seq(i)) }),
      el("dt", { text: "at" }), el("dd", { text: fmt(this.s.t[i]) + " s" }));
    for (const [k, v] of this.s.fields(i)) {
      const dd = el("dd", { text: v });
      if (k === "rule.trigger") {
        const seq = Number(v.slice(v.lastIndexOf(":") + 1));
        if (this.s.bySeq.has(seq)) dd.append(" ", el("button", { type: "button", text: "show", onclick: () => this.go(this.s.bySeq.get(seq)) }));
      }
      dl.append(el("dt", { text: k }), dd);
    }
    history.replaceState(null, "", "#e=" + this.s.seq(i));
    this.draw();
    this.layout();
  }

  fromHash() {
    const m = /^#e=(\d+)$/.exec(location.hash);
    if (m && this.s.bySeq.has(Number(m[1])) && this.s.bySeq.get(Number(m[1])) !== this.selected) this.go(this.s.bySeq.get(Number(m[1])));
  }
}

function fmt(t) { return t.toFixed(6); }

load().then(d => new Page(new Session(d))).catch(e => {
  $("state").textContent = "This page cannot be shown: " + e.message;
  document.body.dataset.ready = "error";
});
})();
