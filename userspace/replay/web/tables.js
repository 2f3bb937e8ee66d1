// SPDX-License-Identifier: Apache-2.0
// Alerts, destinations, names and packages, gathered from the events. Each row has a button, ours, that shows its
// event; nothing of a row is a link.

const TABLE_MAX = 1000, TABLE_FIRST = 100;

class Tables {
  constructor(page) {
    this.page = page; this.m = page.model;
  }

  go(i) { return button(clockText(this.m.t[i]), `${clockText(this.m.t[i])}: show this event`, () => this.page.select(i), "go"); }

  // row(item): an array of strings, elements or numbers (set to the right). The first rows are there at once, the
  // others when nothing else is to be done.
  table(caption, heads, items, row) {
    if (!items.length) return el("p", { class: "none", text: `${caption}: none.` });
    const cell = c => c instanceof Node ? el("td", {}, c) : typeof c === "number" ? el("td", { class: "num", text: countText(c) }) : el("td", { text: c ?? "" });
    const made = (from, to) => items.slice(from, to).map(x => { const r = row(x); return el("tr", { class: r.cls }, ...r.map(cell)); });
    const body = el("tbody", {}, ...made(0, TABLE_FIRST));
    for (let k = TABLE_FIRST; k < Math.min(items.length, TABLE_MAX); k += TABLE_FIRST) this.page.later(() => body.append(...made(k, Math.min(k + TABLE_FIRST, TABLE_MAX))));
    const t = el("table", {}, el("caption", { text: `${caption} (${countText(items.length)})` }),
      el("thead", {}, el("tr", {}, ...heads.map(h => el("th", { text: h, scope: "col" })))), body);
    if (items.length > TABLE_MAX) return el("div", {}, t, el("p", { class: "none", text: `${countText(items.length - TABLE_MAX)} more: use the filter of the events.` }));
    return t;
  }
  put(id, n, ...nodes) {
    $("p-" + id).replaceChildren(...nodes);
    const tab = $("t-" + id);
    tab.append(" ", el("span", { class: n ? "n" : "n zero", text: countText(n) }));
  }

  alerts() {
    const m = this.m, row = i => {
      const kind = m.kind(i), rule = m.text(i, "rule.name");
      const r = kind === "rule.alert" ? [this.go(i), m.text(i, "rule.priority") || "", rule, m.text(i, "rule.output") || "", m.text(i, "rule.enforced") || ""]
        : [this.go(i), kind, rule || m.text(i, "escape.type") || m.text(i, "limit.type") || "", m.what(i), m.text(i, "action.result") || ""];
      r.cls = kind === "rule.alert" ? "grave" : "";
      return r;
    };
    this.put("alerts", m.alerts.length, this.table("Alerts, escapes, limits and actions", ["at", "priority", "rule", "what", "became of it"], m.alerts, row));
  }

  destinations() {
    const m = this.m, peers = new Map(), flow = new Map();
    for (let i = 0; i < m.n; i++) {
      const kind = m.kind(i);
      if (!kind.startsWith("net.") || kind === "net.listen" || kind === "net.bind" || kind === "net.socket") continue;
      const ip = m.text(i, "net.dst.ip"), path = m.text(i, "net.path");
      if (!ip && !path) continue;
      const port = m.get(i, "net.dst.port"), proto = m.text(i, "net.proto") || "", key = `${proto} ${ip || path} ${port ?? ""}`;
      let p = peers.get(key);
      if (!p) peers.set(key, p = { proto, where: ip || path, port, names: new Set(), first: i, last: i, n: 0, denied: 0, failed: 0, out: 0, in: 0 });
      p.last = i;
      const name = m.text(i, "net.dst.name"), outcome = m.get(i, "outcome");
      if (name) p.names.add(name);
      if (kind === "net.connect" || kind === "net.accept" || kind === "net.send") p.n += kind === "net.send" ? Math.max(1, m.num(i, "net.count")) : 1;
      if (outcome === "denied") p.denied++;
      else if (outcome === "failure") p.failed++;
      if (kind === "net.close") { // the sum of the flow, what its sends have told included
        const cookie = m.get(i, "net.cookie"), told = flow.get(cookie) || 0;
        p.out += Math.max(0, m.num(i, "net.bytes_out") - told); p.in += m.num(i, "net.bytes_in");
      } else if (kind === "net.send") {
        const cookie = m.get(i, "net.cookie"), n = m.num(i, "net.bytes_out");
        p.out += n;
        if (cookie !== undefined) flow.set(cookie, (flow.get(cookie) || 0) + n);
      }
    }
    return [...peers.values()].sort((a, b) => b.denied - a.denied || b.out + b.in - a.out - a.in || a.first - b.first);
  }

  names() {
    const m = this.m, names = new Map();
    for (let i = 0; i < m.n; i++) {
      if (!m.kind(i).startsWith("dns.")) continue;
      const name = m.text(i, "dns.name") ?? `(${m.text(i, "dns.malformed") || "not readable"})`;
      let d = names.get(name);
      if (!d) names.set(name, d = { name, n: 0, types: new Set(), answers: "", rcode: "", first: i });
      if (m.kind(i) === "dns.query") d.n++;
      if (m.text(i, "dns.type")) d.types.add(m.text(i, "dns.type"));
      d.answers = m.text(i, "dns.answers") || d.answers;
      d.rcode = m.text(i, "dns.rcode") || d.rcode;
    }
    return [...names.values()];
  }

  network() {
    const verdict = p => p.denied ? el("span", { class: "chip bad", text: p.denied === 1 ? "denied" : `denied ${p.denied}×` })
      : p.failed ? el("span", { class: "chip", text: "failed" }) : el("span", { class: "chip ok", text: "allowed" });
    const peers = this.peers = this.destinations(), names = this.asked = this.names();
    this.put("network", peers.length,
      this.table("Destinations", ["first", "verdict", "name", "address", "port", "proto", "times", "sent", "received", "last"],
        peers, p => [this.go(p.first), verdict(p), [...p.names].join(", "), p.where, p.port === undefined ? "" : String(p.port), p.proto, p.n, bytesText(p.out), bytesText(p.in), clockText(this.m.t[p.last])]),
      this.table("Names asked for", ["first", "name", "types", "times", "answer"],
        names, d => [this.go(d.first), d.name, [...d.types].join(" "), d.n, d.answers || d.rcode]));
  }

  packages() {
    const m = this.m, rows = this.installed = [];
    for (let i = 0; i < m.n; i++)
      if (m.kind(i) === "package.install") rows.push({ i, manager: m.text(i, "package.manager"), name: m.text(i, "package.name"), version: m.text(i, "package.version") });
    this.put("packages", rows.length, this.table("Packages", ["at", "by", "name", "version", "how known", "from", "hash"], rows, p => [this.go(p.i), p.manager, p.name, p.version,
      m.text(p.i, "package.from") === "files" ? "seen in files" : "asked for", m.text(p.i, "package.url") || m.text(p.i, "package.registry") || "", m.text(p.i, "package.hash") || ""]));
  }
}
