// SPDX-License-Identifier: Apache-2.0
// Full text over everything: arguments, paths, hosts, outputs of rules, and what the terminal showed. Hits are on the
// time bar, in order of time.

const HITS_MAX = 5000, HITS_SHOWN = 300;

class Search {
  constructor(page) {
    this.page = page; this.m = page.model; this.clock = page.clock; this.hits = []; this.k = -1;
    const input = $("search");
    let timer;
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => this.find(input.value), 150); });
    input.addEventListener("keydown", e => {
      if (e.key !== "Enter") return;
      e.preventDefault();
      if (input.value !== this.want) this.find(input.value);
      this.step(e.shiftKey ? -1 : 1);
    });
    $("hit-prev").addEventListener("click", () => this.step(-1));
    $("hit-next").addEventListener("click", () => this.step(1));
  }

  // What an event says of its own. What it says of its process counts once, where it appears first.
  index() {
    const m = this.m, seen = new Set();
    this.text = Array.from({ length: m.n }, (_, i) => {
      const parts = [m.kind(i)], own = m.ownPairs(i), set = m.set(i);
      for (let k = 0; k < own.length; k += 2) if (m.isText[own[k]]) parts.push(asText(m.resolve(own[k], own[k + 1])));
      if (m.kind(i) === "exec" || !seen.has(set)) {
        seen.add(set);
        for (const [f, v] of m.all(i)) if (f.name.startsWith("proc.") && (f.type === "string" || f.type === "list")) parts.push(Array.isArray(v) ? v.join(" ") : String(v));
      }
      return parts.join("\n").toLowerCase();
    });
    this.terminal = new TerminalText(m);
  }

  find(text) {
    const want = text.trim().toLowerCase();
    this.want = text;
    this.hits = [];
    this.k = -1;
    if (want) {
      if (!this.text) this.index();
      for (let i = 0; i < this.m.n && this.hits.length < HITS_MAX; i++)
        if (this.text[i].includes(want)) this.hits.push({ t: this.m.t[i], i, kind: this.m.kind(i) });
      this.hits.push(...this.terminal.find(want, HITS_MAX));
      this.hits.sort((a, b) => a.t - b.t);
    }
    this.page.bar.setHits(this.hits.map(h => h.t));
    this.fill();
    this.tell();
    this.page.link.later();
  }
  fill() {
    const shown = this.hits.slice(0, HITS_SHOWN);
    $("hits").hidden = !this.hits.length;
    $("hits").replaceChildren(...shown.map((h, k) => el("div", { class: "hit" }, button(clockText(h.t), `${clockText(h.t)}: go to hit ${k + 1}`, () => this.go(k), "go"),
      el("span", { class: "kind", text: h.kind }), el("span", { class: "what", text: h.i === undefined ? h.what : this.m.what(h.i) }))),
      ...(this.hits.length > HITS_SHOWN ? [el("p", { class: "none", text: `${countText(this.hits.length - HITS_SHOWN)} more, on the time bar.` })] : []));
  }
  tell() {
    $("hit-count").textContent = !this.want?.trim() ? "" : this.hits.length ? `${this.k < 0 ? "" : countText(this.k + 1) + " of "}${plural(this.hits.length, "hit")}${this.hits.length >= HITS_MAX ? " or more" : ""}` : "no hits";
  }
  go(k) {
    this.k = k;
    const h = this.hits[k];
    this.tell();
    if (h.i !== undefined) this.page.select(h.i, "search");
    else this.clock.set(h.t, "search");
    [...$("hits").children].forEach((e, n) => e.classList.toggle("on", n === k));
  }
  step(dir) {
    if (!this.hits.length) return;
    this.go((this.k + dir + this.hits.length) % this.hits.length);
  }
}
