// SPDX-License-Identifier: Apache-2.0
// What the page rests on: the verdict of verify, who signed, the root, what is missing. The page is a view; the
// bundle is the evidence, and the command that checks it is here to be copied.

class Evidence {
  constructor(page) {
    const m = this.m = page.model, v = m.head.verify, s = m.session;
    const id = this.id = /^[0-9A-Za-z._-]{1,63}$/.test(s.id || "") ? s.id : "";
    document.title = `Warder ${id}`;
    $("title").textContent = id || "Session";
    $("command").textContent = s.command || "";
    $("command").title = s.command || "";
    this.state();
    this.notes();
    const clock = Object(Object(m.manifest.summary).clock), root = typeof m.manifest.merkle_root === "string" ? m.manifest.merkle_root : "";
    const hex = x => typeof x === "string" && /^[0-9a-f]{64}$/.test(x) ? x : "";
    this.root = hex(root);
    this.clockState = clock.source === undefined ? "not stated" : `${String(clock.source)}, ${clock.synced === true ? "synchronised" : "not synchronised"}`;
    this.signer = v.signed ? v.host_key : "";
    const degraded = Object(m.manifest.summary).degraded;
    this.degraded = Array.isArray(degraded) ? degraded.map(String) : [];
    this.redaction = this.redactionText(v);
    const rest = Object(m.manifest.summary).not_compared;
    this.notCompared = Array.isArray(rest) ? rest.map(String).join(", ") : "";
    this.strip(v, s);
    this.facts(v, s);
  }

  // How much was taken out, by which rules, and whether it can be had back.
  redactionText(v) {
    const r = Object(Object(this.m.manifest.summary).redaction), e = Object(r.escrow);
    if (r.on === false) return "off: nothing was taken out";
    const by = Object.entries(Object(r.by_rule)).map(([k, n]) => `${k} ${Number(n)}`).join(", "), known = Number(r.of_known);
    return [plural(v.redactions || 0, "place"), by, known ? `known values ${known}` : "", e.kept === undefined ? "" : `${plural(Number(e.kept), "original")} kept sealed${e.not_kept ? `, ${Number(e.not_kept)} not` : ""}: warder redact reveal`].filter(Boolean).join("; ");
  }

  verdictWord(code) { return ["Intact", "Altered", "Open or cut", "Intact, with gaps"][code] ?? "Unknown"; }

  state() {
    const v = this.m.head.verify, state = $("state");
    state.textContent = v.text;
    state.className = "note s" + v.code;
    state.hidden = v.code === 0;
    const chip = $("verdict");
    chip.textContent = this.verdictWord(v.code);
    chip.className = "chip " + (v.code === 0 ? "ok" : v.code === 1 ? "bad" : "warn");
    chip.title = v.text;
  }

  notes() {
    const m = this.m, c = m.counts, out = [];
    if (c.damage) out.push(["s1", `The record could not be read to its end: ${c.damage}. What stands before is shown.`]);
    if (m.head.from || m.head.to) out.push(["s3", `This page holds a window of the session: from ${clockText(m.head.from / 1e6)}${m.head.to ? ` to ${clockText(m.head.to / 1e6)}` : " on"}.`]);
    if (c.omitted) out.push(["s3", `${plural(c.omitted, "event")} of the record ${c.omitted === 1 ? "is" : "are"} not in this page, but counted by time in the pale lanes. Alerts, actions and program starts went first. A part in full: warder report --from TIME --to TIME`]);
    if (c.terminal_omitted) out.push(["s3", `${bytesText(c.terminal_omitted)} of the terminal are not in this page.`]);
    if (c.blobs_omitted) out.push(["s3", `${plural(c.blobs_omitted, "text")} of files not in this page.`]);
    if (m.head.verify.lost) out.push(["s3", `${plural(m.head.verify.lost, "event")} lost while recording; the bands on the time bar show when.`]);
    $("notes").replaceChildren(...out.map(([cls, text]) => el("p", { class: "note " + cls, text })));
  }

  strip(v, s) {
    const item = (name, ...value) => el("div", { class: "item" }, el("span", { class: "key", text: name }), ...value);
    const cmd = this.command = `warder verify ${this.id || "DIR"}${v.signed ? " --key HOST.pub" : ""}`;
    const done = el("span", { class: "dim", role: "status" });
    const told = this.m.alerts.filter(i => this.m.kind(i) === "rule.alert").length, other = this.m.alerts.length - told;
    $("strip").replaceChildren(
      item("Signed by", v.signed ? hashEl(v.host_key) : el("span", { text: "not signed" }), v.signed && !v.trusted ? el("span", { class: "dim", text: "key not compared" }) : null),
      item("Root", hashEl(this.root || v.head)), item("Records", el("span", { text: countText(v.records) })),
      item("Lost", el("span", { class: v.lost ? "warn-text" : "", text: countText(v.lost) })), item("Alerts", el("span", { class: told ? "bad-text" : "", text: countText(told) }), other ? el("span", { class: "dim", text: `and ${countText(other)} of escapes, limits, actions` }) : null),
      item("Redacted", el("span", { text: this.redaction.startsWith("off") ? "off" : countText(v.redactions || 0), title: this.redaction })),
      item("Ended", el("span", { text: this.ending(s) })), item("Clock", el("span", { text: this.clockState })),
      el("div", { class: "item cmd" }, el("code", { id: "verify-command", text: cmd }), button("Copy", "Copy the verify command", async () => { done.textContent = await copyText(cmd) ? "copied" : "could not copy"; }), done));
  }
  ending(s) {
    return s.reason ? `${s.reason}${s.signal ? ` ${s.signal}` : s.code ? `, code ${s.code}` : ""}` : "no end in the record";
  }

  facts(v, s) {
    const counts = Object.entries(Object(Object(this.m.manifest.summary).by_kind)).map(([k, n]) => `${k} ${Number(n)}`).join(", ");
    const rows = [["verdict", v.text], ["started", s.started], ["lasted", `${clockText(this.m.end)} s`], ["host", s.host], ["sandbox", s.sandbox], ["tenant", s.tenant],
      ["backend", s.backend], ["probes", s.tier], ["policy", s.policy], ["rule set", s.rules], ["degraded", this.degraded.join(", ") || "nothing stated"],
      ["redacted", this.redaction], ["not compared", this.notCompared], ["records by kind", counts], ["chain head", v.head], ["Merkle root", this.root || "none: the record is not signed"], ["host key", v.signed ? v.host_key + (v.trusted ? " (a key that was given)" : " (not compared with a known key)") : "not signed"],
      ["checkpoints", countText(v.checkpoints)]];
    $("facts").replaceChildren(...rows.filter(([, x]) => x).flatMap(([k, x]) => [el("dt", { text: k }), el("dd", { text: x })]));
  }
}
