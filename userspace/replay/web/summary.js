// SPDX-License-Identifier: Apache-2.0
// The page on paper: what goes into the audit file, on one sheet.

class Summary {
  constructor(page) {
    const m = page.model, s = m.session, v = m.head.verify, ev = page.evidence, t = page.tables, f = page.files;
    const cut = (text, n = 150) => text && text.length > n ? text.slice(0, n - 1) + "…" : text || "";
    const rows = list => el("dl", {}, ...list.filter(([, x]) => x).flatMap(([k, x]) => [el("dt", { text: k }), el("dd", { text: cut(x, 400) })]));
    const part = (title, items, max, line) => items.length ? el("section", {}, el("h3", { text: `${title} (${countText(items.length)})` }),
      el("ul", {}, ...items.slice(0, max).map(x => el("li", { text: cut(line(x)) })), ...(items.length > max ? [el("li", { text: `and ${countText(items.length - max)} more` })] : []))) : el("section", {}, el("h3", { text: `${title}: none` }));
    const alerts = m.alerts.filter(i => m.kind(i) === "rule.alert"), signs = m.alerts.filter(i => m.kind(i) !== "rule.alert"), gaps = page.bar.bands.filter(b => b.kind === "gap");
    const changes = f.changes.length ? f.changes.map(c => `${c.op} ${c.path}  ${(m.text(c.i, "file.sha256") || "").slice(0, 16)}`) : f.touched.filter(x => x.bytes || x.ops.has("delete") || x.ops.has("rename")).map(x => `${[...x.ops].join(" ")} ${x.path}`);
    $("summary").replaceChildren(
      el("h2", { text: `Session ${ev.id}` }), el("p", { class: "verdict", text: v.text.toLowerCase().startsWith(ev.verdictWord(v.code).toLowerCase()) ? v.text[0].toUpperCase() + v.text.slice(1) : `${ev.verdictWord(v.code)}: ${v.text}` }),
      rows([["command", s.command], ["started", s.started], ["lasted", `${clockText(m.end)} s`], ["ended", ev.ending(s)], ["host, sandbox, tenant", [s.host, s.sandbox, s.tenant].filter(Boolean).join(", ")],
        ["backend, probes", [s.backend, s.tier].filter(Boolean).join(", ")], ["policy", s.policy], ["secrets given", s.secrets], ["rule set", s.rules], ["records", `${countText(v.records)}, ${countText(v.lost)} lost`], ["redacted", ev.redaction], ["degraded", ev.degraded.join(", ") || "nothing stated"], ["clock", ev.clockState],
        ["root", ev.root || v.head], ["signed by", v.signed ? v.host_key : "not signed"], ["to check", ev.command]]),
      part("Alerts", alerts, 8, i => `${clockText(m.t[i])}  ${m.text(i, "rule.priority") || ""}  ${m.text(i, "rule.name") || ""}: ${m.text(i, "rule.output") || ""}`),
      ...(signs.length ? [part("Escapes, limits and actions", signs, 6, i => `${clockText(m.t[i])}  ${m.kind(i)}  ${m.what(i)}`)] : []),
      part("Not recorded", gaps, 4, b => `${clockText(b.from)} to ${clockText(b.to)}: ${b.text}`),
      part("Files", changes, 10, x => x),
      part("Destinations", t.peers, 8, p => `${p.denied ? "denied" : p.failed ? "failed" : "allowed"}  ${[...p.names].join(", ")} ${p.where}${p.port === undefined ? "" : " port " + p.port}, sent ${bytesText(p.out)}, received ${bytesText(p.in)}`),
      part("Packages", t.installed, 6, p => `${p.manager} ${p.name} ${p.version || ""}`),
      el("section", { class: "sign" }, el("span", { text: "Reviewed by" }), el("span", { text: "Date" }), el("span", { text: "Verdict" })));
  }
}
