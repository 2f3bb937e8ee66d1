// SPDX-License-Identifier: Apache-2.0
// What became of files: the comparison at the end (or on demand) where the record has one, and what was seen being
// done to them on the way.

class Files {
  constructor(page) {
    this.page = page; this.m = page.model;
  }

  fill() {
    const page = this.page;
    const changes = this.changes = this.compared(), touched = this.touched = this.seen();
    const scans = [];
    for (let i = 0; i < this.m.n; i++) if (this.m.kind(i) === "workspace.scan") scans.push(el("p", { class: "none", text: `Comparison at ${clockText(this.m.t[i])}: ${this.m.what(i)}` }));
    page.tables.put("files", changes.length || touched.length,
      ...(changes.length || scans.length ? [...scans, this.changeTable(changes)] : [el("p", { class: "none", text: "The record has no comparison of the workspace: below is what was seen being done, by path." })]),
      page.tables.table("Files touched while it ran", ["first", "path", "what", "events", "written", "by", "last"],
        touched, f => [page.tables.go(f.first), f.path, [...f.ops].join(" "), f.n, f.bytes ? bytesText(f.bytes) : "", [...f.by].slice(0, 4).join(" "), clockText(this.m.t[f.last])]));
  }

  // The last word on each path.
  compared() {
    const m = this.m, by = new Map();
    for (let i = 0; i < m.n; i++) if (m.kind(i) === "workspace.change") by.set(m.text(i, "file.path"), i);
    const order = ["created", "changed", "deleted"];
    return [...by].map(([path, i]) => ({ path, i, op: m.text(i, "file.change") || "changed" }))
      .sort((a, b) => order.indexOf(a.op) - order.indexOf(b.op) || (a.path < b.path ? -1 : 1));
  }

  seen() {
    const m = this.m, files = new Map();
    for (let i = 0; i < m.n; i++) {
      const kind = m.kind(i);
      if (!kind.startsWith("file.")) continue;
      const path = m.text(i, "file.path");
      if (path === undefined) continue;
      let f = files.get(path);
      if (!f) files.set(path, f = { path, n: 0, ops: new Set(), by: new Set(), first: i, last: i, bytes: 0 });
      f.n++; f.ops.add(kind.slice(5)); f.last = i; f.bytes += m.num(i, "file.bytes");
      const comm = m.text(i, "proc.comm");
      if (comm && f.by.size < 5) f.by.add(comm);
    }
    return [...files.values()].sort((a, b) => a.first - b.first);
  }

  changeTable(changes) {
    const m = this.m, size = (i, n) => { const v = m.get(i, n); return v === undefined ? "–" : bytesText(Number(v)); };
    const mode = i => {
      const a = m.get(i, "file.mode_before"), b = m.get(i, "file.mode");
      return a !== undefined && b !== undefined && a !== b ? ` mode ${a.toString(8)} → ${b.toString(8)}` : m.get(i, "file.executable") ? " executable" : "";
    };
    return this.page.tables.table("Files created, changed, deleted", ["at", "change", "path", "size before", "after", "SHA-256 before", "after", "text"], changes, c => {
      const row = [this.page.tables.go(c.i), el("span", { class: "chip " + c.op, text: c.op + mode(c.i) }), c.path, size(c.i, "file.size_before"), size(c.i, "file.size"),
        hashEl(m.text(c.i, "file.sha256_before")), m.text(c.i, "file.sha256") ? hashEl(m.text(c.i, "file.sha256")) : el("span", { class: "dim", text: m.text(c.i, "file.unhashed") ? `not hashed: ${m.text(c.i, "file.unhashed")}` : "–" }), this.diffButton(c)];
      return row;
    });
  }

  diffButton(c) {
    const before = this.m.text(c.i, "file.text_before"), after = this.m.text(c.i, "file.text");
    const texts = [before, after].map(n => n === undefined ? "" : this.m.blobs.get(n));
    if (before === undefined && after === undefined) return el("span", { class: "dim", text: "not kept" });
    if (texts.includes(undefined)) return el("span", { class: "dim", text: "not in this page" });
    const b = button("diff", `diff of ${c.path}`, () => {
      const row = b.closest("tr"), open = row.nextSibling?.className === "diff-row";
      b.setAttribute("aria-expanded", String(!open));
      if (open) row.nextSibling.remove();
      else row.after(el("tr", { class: "diff-row" }, el("td", { colspan: "8" }, diffEl(...texts))));
    });
    b.setAttribute("aria-expanded", "false");
    return b;
  }
}
