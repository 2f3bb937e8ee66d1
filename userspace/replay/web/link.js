// SPDX-License-Identifier: Apache-2.0
// The address says where one is: #t=12.345&seq=77, and tab, filter and search where they are in use.

class Link {
  constructor(page) {
    this.page = page;
    addEventListener("hashchange", () => { if (location.hash !== this.own) this.read(); });
    page.clock.follow((t, from) => { if (from !== "play") this.later(); });
    page.clock.onState(c => { if (!c.playing) this.later(); });
  }
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), 150);
  }
  write() {
    const { clock, model, tab } = this.page, q = new URLSearchParams();
    q.set("t", clock.t.toFixed(3));
    if (clock.event >= 0) q.set("seq", model.seq[clock.event]);
    if (tab !== "events") q.set("tab", tab);
    if ($("filter").value.trim()) q.set("filter", $("filter").value);
    if ($("search").value.trim()) q.set("q", $("search").value);
    this.own = "#" + q;
    history.replaceState(null, "", this.own);
  }
  // True when the address named a place.
  read() {
    const q = new URLSearchParams(location.hash.slice(1)), page = this.page, m = page.model;
    const t = Number(q.get("t") ?? NaN), i = m.indexOf(Number(q.get("seq") ?? q.get("e") ?? NaN));
    const put = (id, text, fn) => { if (text !== null && $(id).value !== text) { $(id).value = text; fn(text); } };
    put("filter", q.get("filter"), v => page.events.filter(v));
    put("search", q.get("q"), v => page.search.find(v));
    if (q.get("tab") && $("t-" + q.get("tab"))) page.show(q.get("tab"));
    if (i !== undefined && (Number.isNaN(t) || Math.abs(t - m.t[i]) < 0.01)) page.clock.set(m.t[i], "link", i);
    else if (!Number.isNaN(t)) page.clock.set(t, "link");
    else return false;
    return true;
  }
}
