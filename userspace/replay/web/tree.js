// SPDX-License-Identifier: Apache-2.0
// Who started whom, who is alive at the clock's time, how each ended.

class Process {
  constructor(pid, start) {
    this.pid = pid; this.start = start; this.kids = []; this.parent = null; this.end = Infinity; this.names = [];
    this.code = undefined; this.signal = ""; this.last = -1; this.first = -1; this.open = true; this.runtime = false;
  }
}

class Tree {
  constructor(page) {
    this.page = page; this.m = page.model; this.clock = page.clock;
    this.build();
    this.list = new List($("tree"), { role: "treeitem", row: p => this.row(p), choose: p => this.choose(p), keys: (e, k) => this.key(e, k) });
    $("tree").addEventListener("click", e => {
      const r = e.target.closest(".twig") && e.target.closest("[data-k]");
      if (!r) return;
      e.stopPropagation();
      const p = this.list.items[Number(r.dataset.k)];
      p.open = !p.open;
      this.layout();
    }, true);
    $("alive").addEventListener("change", () => this.layout());
    this.clock.follow(() => this.follow());
    this.layout();
  }

  // Times of starts are of the kernel's clock, ns; the first event's tells where that is here.
  seconds(ns) { return this.mono === undefined ? undefined : (Number(ns) - this.mono) / 1e9; }

  build() {
    const m = this.m, all = this.all = new Map();
    const ids = ["proc.pid", "proc.start", "proc.ppid", "child.pid", "child.start"].map(n => m.byName.get(n).id);
    this.mono = m.session.mono === undefined ? undefined : Number(m.session.mono);
    const of = (pid, start, t, i) => {
      const key = `${pid}:${start ?? ""}`;
      let p = all.get(key);
      if (!p) {
        const s = start === undefined ? undefined : this.seconds(start);
        all.set(key, p = new Process(pid, Math.max(0, Math.min(t, s ?? t))));
        p.first = i;
      }
      return p;
    };
    const bySet = new Map(); // a set of process fields is of one process: looked up once
    for (let i = 0; i < m.n; i++) {
      const kind = m.kind(i), set = m.set(i);
      if (kind.startsWith("rule.") || kind === "action") continue; // they repeat the process of what they are about
      let p = bySet.get(set);
      if (!p) {
        const pid = m.value(i, ids[0]);
        if (pid === undefined) continue;
        p = of(pid, m.value(i, ids[1]), m.t[i], i);
        p.ppid ??= m.value(i, ids[2]);
        p.nspid ??= m.get(i, "proc.nspid");
        p.comm = m.text(i, "proc.comm") ?? p.comm;
        p.runtime ||= m.get(i, "proc.runtime") === true;
        if (!p.names.length && m.get(i, "proc.args")) p.line ??= m.text(i, "proc.args");
        bySet.set(set, p);
      }
      p.last = i;
      if (kind === "exec" && m.get(i, "outcome") !== "failure") p.names.push({ t: m.t[i], i, text: m.text(i, "proc.args") || m.text(i, "proc.exe") || "" });
      else if (kind === "fork") {
        const c = of(m.value(i, ids[3]), m.value(i, ids[4]), m.t[i], i);
        if (!c.parent && c !== p) { c.parent = p; p.kids.push(c); }
        c.nspid ??= m.get(i, "child.nspid");
        c.comm ??= p.comm;
      } else if (kind === "exit") {
        p.end = m.t[i];
        p.signal = m.text(i, "exit.signal") || "";
        p.code = m.num(i, "exit.code");
        p.exit = i;
      }
    }
    this.roots = [];
    const byPid = new Map();
    for (const p of all.values()) byPid.set(p.pid, [...(byPid.get(p.pid) || []), p]);
    for (const p of all.values()) {
      if (!p.parent) {
        const q = (byPid.get(p.ppid) || []).filter(x => x !== p && x.start <= p.start && !this.below(x, p)).at(-1);
        if (q) { p.parent = q; q.kids.push(p); } else this.roots.push(p);
      }
    }
    const ended = this.m.ordered.length ? this.m.end : 0;
    for (const p of all.values()) if (p.end === Infinity) { p.unknown = true; p.end = ended + 1; }
    for (const p of all.values()) p.kids.sort((a, b) => a.start - b.start || a.first - b.first);
  }
  below(x, p) { for (let n = 0; x && n < 256; n++, x = x.parent) if (x === p) return true; return false; }

  isAlive(p, t) { return p.start <= t + 1e-9 && t < p.end; }

  layout() {
    const only = $("alive").checked, t = this.clock.t, out = [];
    const walk = (p, depth) => {
      p.depth = depth;
      if (!only || this.isAlive(p, t)) out.push(p);
      if (p.open || only) for (const k of p.kids) walk(k, Math.min(depth + 1, 64));
    };
    for (const p of this.roots) walk(p, 0);
    this.aliveOnly = only;
    this.list.setItems(out);
    this.follow();
  }

  follow() {
    const t = this.clock.t;
    let alive = 0, n = 0;
    for (const p of this.all.values()) { n++; if (this.isAlive(p, t)) alive++; }
    $("alive-count").textContent = `${countText(alive)} of ${countText(n)} alive`;
    if (this.aliveOnly) {
      const now = [...this.all.values()].filter(p => this.isAlive(p, t)).length;
      if (now !== this.list.items.length) return this.layout();
    }
    const i = this.clock.event, p = i >= 0 ? this.processOf(i) : null;
    this.list.setActive(p ? this.list.items.indexOf(p) : -1, this.clock.playing || document.activeElement !== this.list.box);
  }
  processOf(i) {
    const pid = this.m.get(i, "proc.pid"), start = this.m.get(i, "proc.start");
    return pid === undefined ? null : this.all.get(`${pid}:${start ?? ""}`) || null;
  }

  stateOf(p) {
    const t = this.clock.t;
    if (t + 1e-9 < p.start) return ["future", "not yet"];
    if (t < p.end) return ["alive", p.unknown && t >= this.m.end ? "end not seen" : "alive"];
    if (p.signal) return ["killed", p.signal];
    return [p.code ? "failed" : "done", `exit ${p.code ?? "?"}`];
  }
  nameOf(p) {
    const t = this.clock.t, seen = p.names.filter(n => n.t <= t + 1e-9), n = seen.at(-1) || p.names[0];
    return n ? n.text : p.line ? p.line : p.comm || "?";
  }

  row(p) {
    const [cls, text] = this.stateOf(p), end = this.m.end, x = v => `${Math.min(100, Math.max(0, v / end * 100))}%`;
    const life = el("span", { class: "life", "aria-hidden": "true" }, el("i"));
    life.firstChild.style.left = x(p.start);
    life.firstChild.style.width = `max(2px, ${x(Math.min(p.end, end) - p.start)})`;
    const name = el("span", { class: "name" }, el("b", { class: "twig", "aria-hidden": "true", text: p.kids.length ? (p.open ? "▾" : "▸") : "·" }), el("code", { text: this.nameOf(p) }));
    name.style.paddingLeft = Math.min(p.depth, 24) * 14 + "px";
    const r = el("div", { class: `proc ${cls}`, "aria-level": String(p.depth + 1) }, name,
      el("span", { class: "pid", text: p.nspid ?? p.pid, title: "process id in the sandbox" }), el("span", { class: "state", text: p.runtime ? "Warder’s init" : text }), life);
    if (p.kids.length) r.setAttribute("aria-expanded", String(p.open));
    return r;
  }

  choose(p) {
    const t = this.clock.t, i = t < p.start || t >= p.end ? (p.names.length ? p.names[0].i : p.first) : p.names.filter(n => n.t <= t).at(-1)?.i ?? p.first;
    this.page.select(i, "tree");
  }
  key(e, k) {
    const p = this.list.items[k];
    if (!p || (e.key !== "ArrowLeft" && e.key !== "ArrowRight" && e.key !== "Enter")) return false;
    if (e.key === "ArrowLeft" && (!p.open || !p.kids.length) && p.parent) this.list.choose(this.list.items.indexOf(p.parent));
    else {
      p.open = e.key === "Enter" ? !p.open : e.key === "ArrowRight";
      this.layout();
    }
    return true;
  }
}
