// SPDX-License-Identifier: Apache-2.0
// A list of any length of which only the rows in view are elements. Keyboard and screen reader see one listbox (or
// tree) with an active row.

const ROW = 22;

class List {
  // opt: { role, row(i, k) -> element, choose(i, k), keys(event, k) -> handled }
  constructor(box, opt) {
    this.box = box; this.opt = opt; this.items = []; this.active = -1;
    this.space = el("div", { class: "space", role: "presentation" });
    box.append(this.space);
    box.addEventListener("scroll", () => this.draw());
    box.addEventListener("click", e => {
      const r = e.target.closest("[data-k]");
      if (r) this.choose(Number(r.dataset.k));
    });
    box.addEventListener("keydown", e => this.key(e));
    new ResizeObserver(() => { if (this.active >= 0) this.show(this.active); this.redraw(); }).observe(box);
  }
  setItems(items) { this.items = items; this.drawn = null; this.draw(); }
  key(e) {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[e.key];
    if (step !== undefined) this.choose(Math.min(this.items.length - 1, Math.max(0, this.active + step)));
    else if (!this.opt.keys || !this.opt.keys(e, this.active)) return;
    e.preventDefault();
    e.stopPropagation();
  }
  choose(k) {
    if (k < 0 || k >= this.items.length) return;
    this.setActive(k);
    this.opt.choose(this.items[k], k);
  }
  setActive(k, scroll = true) {
    this.active = k;
    if (scroll && k >= 0) this.show(k);
    this.drawn = null;
    this.draw();
  }
  show(k) {
    this.space.style.height = this.items.length * ROW + "px";
    const top = k * ROW, b = this.box;
    if (top < b.scrollTop || top + ROW > b.scrollTop + b.clientHeight) b.scrollTop = Math.max(0, top - b.clientHeight / 2);
  }
  draw() {
    const total = this.items.length, b = this.box;
    if (!b.clientHeight) return;
    const first = Math.max(0, Math.floor(b.scrollTop / ROW) - 6), last = Math.min(total, first + Math.ceil(b.clientHeight / ROW) + 12);
    const state = `${first} ${last} ${this.active}`;
    if (this.drawn === state) return;
    this.drawn = state;
    this.space.style.height = total * ROW + "px";
    const rows = [];
    for (let k = first; k < last; k++) {
      const r = this.opt.row(this.items[k], k);
      r.id = `${b.id}-${k}`;
      r.dataset.k = k;
      r.classList.add("row");
      r.classList.toggle("on", k === this.active);
      r.setAttribute("role", this.opt.role);
      r.setAttribute("aria-selected", String(k === this.active));
      r.setAttribute("aria-setsize", String(total));
      r.setAttribute("aria-posinset", String(k + 1));
      r.style.top = k * ROW + "px";
      rows.push(r);
    }
    this.space.replaceChildren(...rows);
    if (this.active >= first && this.active < last) b.setAttribute("aria-activedescendant", `${b.id}-${this.active}`);
    else b.removeAttribute("aria-activedescendant");
  }
  redraw() { this.drawn = null; this.draw(); }
}
