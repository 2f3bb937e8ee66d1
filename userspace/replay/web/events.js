// SPDX-License-Identifier: Apache-2.0
// The list of events, its filter, and what the selected one says.

class Events {
  constructor(page) {
    this.page = page; this.m = page.model; this.clock = page.clock;
    this.list = new List($("rows"), { role: "option", row: i => this.row(i), choose: i => page.select(i) });
    this.shown = Array.from({ length: this.m.n }, (_, i) => i);
    this.list.setItems(this.shown);
    this.selected = -1;
    this.clock.follow((t, from, event) => this.follow(event));
    const input = $("filter");
    let timer;
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => this.filter(input.value), 120); });
    $("fields-button").addEventListener("click", () => this.toggleFields());
    this.tell();
  }

  row(i) {
    const m = this.m, late = m.ordered[i] > this.clock.t + 1e-9;
    return el("div", { class: `${m.lane(i)}${late ? " late" : ""}${m.isAlert(i) ? " grave" : ""}` },
      el("span", { class: "t", text: clockText(m.t[i]) }), el("span", { class: "who", text: m.text(i, "proc.comm") || "" }),
      el("span", { class: "kind", text: m.kind(i) }), el("span", { class: "what", text: m.what(i) }));
  }

  // The clock has moved: the event it stands on, or the last one of those shown before it.
  follow(event) {
    this.list.setActive(upperBound(this.shown, event) - 1);
    if (event !== this.selected) this.detail(event);
  }

  filter(text) {
    const why = $("why"), input = $("filter");
    try {
      const f = compileFilter(text, this.m);
      this.shown = [];
      for (let i = 0; i < this.m.n; i++) if (!f || f(i)) this.shown.push(i);
      input.removeAttribute("aria-invalid");
      this.tell(Boolean(f));
    } catch (e) {
      if (!(e instanceof FilterError)) throw e;
      input.setAttribute("aria-invalid", "true");
      why.className = "error";
      why.replaceChildren(el("code", {}, text.slice(0, e.at), el("mark", { text: text.slice(e.at, e.at + e.length) || "\u00a0" }), text.slice(e.at + e.length)),
        el("span", { text: `column ${e.at + 1}: ${e.message}` }));
      return;
    }
    this.list.items = this.shown;
    this.list.setActive(upperBound(this.shown, this.clock.event ?? -1) - 1);
    this.page.bar.setShown(text.trim() ? this.shown : null);
    this.page.link.later();
  }
  tell(filtered) {
    const n = plural(this.m.n, "event");
    $("why").className = "";
    $("why").textContent = filtered ? `${countText(this.shown.length)} of ${n}` : n;
  }

  detail(i) {
    this.selected = i;
    const m = this.m, dl = $("fields"), rows = [];
    if (i < 0) {
      dl.replaceChildren(el("dt", { text: "No event yet at this time." }));
      return;
    }
    const add = (name, v, ...more) => rows.push(el("dt", { text: name }), el("dd", { text: v }, ...more));
    add("kind", m.kind(i));
    add("seq", String(m.seq[i]));
    add("at", `${clockText(m.t[i], 6)} s${Number.isNaN(m.start0) ? "" : ", " + new Date(m.start0 + m.t[i] * 1e3).toISOString()}`);
    for (const [f, v] of m.all(i)) {
      if (f.name === "rule.trigger") {
        const seq = Number(String(v).slice(String(v).lastIndexOf(":") + 1)), to = m.indexOf(seq);
        add(f.name, asText(v), ...(to === undefined ? [] : [" ", button("show", "show the event that matched", () => this.page.select(to))]));
      } else add(f.name, asText(v));
    }
    dl.replaceChildren(...rows);
  }

  // Names that the events of this session have, to be put into the filter.
  toggleFields() {
    const box = $("field-list"), open = box.hidden;
    $("fields-button").setAttribute("aria-expanded", String(open));
    box.hidden = !open;
    if (!open || box.childElementCount) return;
    const used = new Set();
    for (let k = 0; k < this.m.own.length; k += 2) used.add(this.m.own[k]);
    for (const p of this.m.sets) for (let k = 0; k < p.length; k += 2) used.add(p[k]);
    const names = [["kind", "event kind"], ["seq", "number of the record"]];
    for (const f of this.m.fields) if (used.has(f.id)) names.push([f.name, f.doc]);
    box.append(...names.map(([name, doc]) => el("div", {}, button(name, `Put ${name} into the filter`, () => {
      const input = $("filter");
      input.setRangeText(name + " ", input.selectionStart, input.selectionEnd, "end");
      input.focus();
    }), el("span", { text: doc }))));
  }
}
