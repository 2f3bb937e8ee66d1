// SPDX-License-Identifier: Apache-2.0
// The bar of time: a lane of density for each kind of thing, alerts, gaps, redactions, hits of a search, and the clock.

const LANE_H = 18, RULER_H = 16, HITS_H = 8;

class TimeBar {
  constructor(model, clock) {
    this.m = model; this.clock = clock; this.canvas = $("lanes"); this.hits = []; this.shown = null;
    this.lanes = LANES.filter(l => l.id !== "terminal" || model.frames.length);
    this.bands = this.findBands();
    $("lane-names").replaceChildren(...this.lanes.map(l => el("span", { class: "lane " + l.id, text: l.name })));
    clock.follow(t => this.move(t));
    const bar = $("bar");
    bar.setAttribute("aria-valuemax", model.end.toFixed(3));
    const seek = e => {
      const r = this.canvas.getBoundingClientRect();
      clock.set((e.clientX - r.left) / r.width * model.end, "bar");
    };
    bar.addEventListener("pointerdown", e => { if (e.button) return; bar.setPointerCapture(e.pointerId); seek(e); });
    bar.addEventListener("pointermove", e => { if (bar.hasPointerCapture(e.pointerId)) seek(e); else this.tip(e); });
    bar.addEventListener("pointerleave", () => { $("tip").hidden = true; });
    bar.addEventListener("keydown", e => {
      const big = model.end / 20, step = { ArrowRight: model.end / 200, ArrowUp: model.end / 200, ArrowLeft: -model.end / 200, ArrowDown: -model.end / 200, PageUp: big, PageDown: -big, Home: -Infinity, End: Infinity }[e.key];
      if (step === undefined) return;
      e.preventDefault();
      e.stopPropagation();
      clock.set(clock.t + step, "bar");
    });
    new ResizeObserver(() => this.layout()).observe(this.canvas.parentElement);
  }

  // { from, to, kind, text }: what is not there to be seen.
  findBands() {
    const m = this.m, out = [];
    for (let i = 0; i < m.n; i++) {
      if (m.kind(i) !== "gap") continue;
      const from = m.since(m.text(i, "gap.first")) ?? m.t[i], to = m.since(m.text(i, "gap.last")) ?? m.t[i];
      out.push({ from: Math.max(0, Math.min(from, to)), to: Math.max(from, to, 0), kind: "gap", i,
        text: `gap: ${countText(m.num(i, "gap.count"))} of kind ${m.text(i, "gap.kind") || "any"} lost (${m.text(i, "gap.reason") || "?"})` });
    }
    for (const f of m.frames) {
      if (f.type === "c") out.push({ from: f.t, to: f.t, kind: "gap", text: `terminal: ${bytesText(f.v)} not kept` });
      else if (f.type === "w") out.push({ from: f.t, to: f.t, kind: "redaction", text: `terminal: ${bytesText(f.v)} of input withheld (no echo)` });
      else if ((f.type === "o" || f.type === "i") && REDACTED.test(f.v)) out.push({ from: f.t, to: f.t, kind: "redaction", text: "terminal: text redacted" });
    }
    for (let i = 0; i < m.n; i++)
      if (m.redacted(i)) out.push({ from: m.t[i], to: m.t[i], kind: "redaction", i, text: `${m.kind(i)}: value redacted` });
    return out;
  }

  setShown(list) { this.shown = list; this.layout(); }
  setHits(times) { this.hits = times; this.layout(); }
  x(t, w) { return t / this.m.end * (w - 1); }

  layout() {
    const c = this.canvas, w = c.parentElement.clientWidth, h = RULER_H + LANE_H * this.lanes.length + HITS_H;
    if (!w) return;
    const dpr = devicePixelRatio || 1, css = getComputedStyle(document.body);
    this.color = name => css.getPropertyValue("--" + name).trim();
    c.width = w * dpr; c.height = h * dpr; c.style.height = h + "px";
    this.base = c.getContext("2d");
    this.base.setTransform(dpr, 0, 0, dpr, 0, 0);
    this.base.clearRect(0, 0, w, h);
    this.w = w; this.h = h;
    this.drawRuler();
    this.drawBands();
    this.drawLanes();
    this.drawAlerts();
    this.drawHits();
    this.move(this.clock.t);
  }

  drawRuler() {
    const g = this.base, end = this.m.end, raw = end / Math.max(2, this.w / 110), mag = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(k => k * mag).find(s => s >= raw), digits = Math.max(0, -Math.floor(Math.log10(step)));
    g.fillStyle = this.color("dim");
    g.strokeStyle = this.color("line");
    g.font = "10.5px ui-monospace, monospace";
    g.textBaseline = "middle";
    for (let t = 0; t <= end * 1.0001; t += step) {
      const x = Math.round(this.x(t, this.w)) + 0.5, label = clockText(t, digits), room = g.measureText(label).width;
      g.beginPath(); g.moveTo(x, RULER_H - 4); g.lineTo(x, this.h); g.globalAlpha = 0.6; g.stroke(); g.globalAlpha = 1;
      if (x + room + 4 < this.w) g.fillText(label, x + 3, RULER_H / 2);
    }
  }

  drawBands() {
    const g = this.base;
    for (const b of this.bands) {
      const x = this.x(b.from, this.w), width = Math.max(3, this.x(Math.min(b.to, this.m.end), this.w) - x);
      g.fillStyle = g.strokeStyle = this.color(b.kind);
      g.globalAlpha = 0.2; g.fillRect(x - 1, RULER_H, width + 2, this.h - RULER_H - HITS_H); g.globalAlpha = 0.9;
      g.save();
      g.beginPath(); g.rect(x - 1, RULER_H, width + 2, this.h - RULER_H - HITS_H); g.clip();
      for (let k = -this.h; k < width + 4; k += 6) { // hatched, so that it does not depend on colour
        g.beginPath(); g.moveTo(x + k, this.h); g.lineTo(x + k + (b.kind === "gap" ? this.h : 0), 0); g.lineWidth = 1; g.stroke();
      }
      g.restore();
      g.globalAlpha = 1;
    }
  }

  drawLanes() {
    const m = this.m, w = this.w, g = this.base, bins = new Map(this.lanes.map(l => [l.id, new Float64Array(w)]));
    const put = (lane, t, n) => { const b = bins.get(lane); if (b) b[Math.min(w - 1, Math.floor(this.x(t, w)))] += n; };
    if (this.shown) for (const i of this.shown) put(m.lane(i), m.t[i], 1);
    else for (let i = 0; i < m.n; i++) put(m.lane(i), m.t[i], 1);
    for (const f of m.frames) put("terminal", f.t, f.type === "o" ? 1 + f.v.length / 80 : 1);
    const d = m.counts.density, wide = d.us / 1e6;
    const rest = new Map(this.lanes.map(l => [l.id, new Float64Array(w)]));
    for (const [kind, counts] of Object.entries(d.kinds)) { // counted, not in the page: drawn hollow
      const b = rest.get(laneOf(kind));
      if (b) counts.forEach((n, k) => { for (let x = Math.floor(this.x(k * wide, w)); n && x <= this.x((k + 1) * wide, w) && x < w; x++) b[x] += n; });
    }
    this.lanes.forEach((lane, l) => {
      const y = RULER_H + LANE_H * (l + 1) - 1, b = bins.get(lane.id), r = rest.get(lane.id);
      const most = Math.max(1, b.reduce((a, n) => Math.max(a, n), 0)), mostRest = Math.max(1, r.reduce((a, n) => Math.max(a, n), 0));
      g.fillStyle = this.color(lane.id);
      for (let x = 0; x < w; x++) {
        if (r[x]) { const k = 2 + (LANE_H - 5) * Math.log1p(r[x]) / Math.log1p(mostRest); g.globalAlpha = 0.3; g.fillRect(x, y - k, 1, k); g.globalAlpha = 1; }
        if (b[x]) { const k = 3 + (LANE_H - 6) * Math.log1p(b[x]) / Math.log1p(most); g.fillRect(x, y - k, 1.6, k); }
      }
      g.fillStyle = this.color("line");
      g.fillRect(0, y, w, 1);
    });
  }

  drawAlerts() {
    const g = this.base, m = this.m;
    g.fillStyle = this.color("alert");
    for (const i of m.alerts) {
      if (m.kind(i) !== "rule.alert" && m.kind(i) !== "escape") continue;
      const x = this.x(m.t[i], this.w);
      g.globalAlpha = 0.35; g.fillRect(x, RULER_H, 1, this.h - RULER_H - HITS_H); g.globalAlpha = 1;
      g.beginPath(); g.moveTo(x - 4, RULER_H - 7); g.lineTo(x + 4, RULER_H - 7); g.lineTo(x, RULER_H); g.fill();
    }
  }

  drawHits() {
    const g = this.base;
    g.fillStyle = this.color("hit");
    for (const t of this.hits) g.fillRect(this.x(t, this.w) - 1, this.h - HITS_H + 1, 2.5, HITS_H - 2);
  }

  move(t) {
    const bar = $("bar");
    if (this.w) $("head").style.transform = `translateX(${this.x(t, this.w)}px)`;
    bar.setAttribute("aria-valuenow", t.toFixed(3));
    bar.setAttribute("aria-valuetext", `${clockText(t)} of ${clockText(this.m.end)}`);
  }

  tip(e) {
    const r = this.canvas.getBoundingClientRect(), t = (e.clientX - r.left) / r.width * this.m.end, near = 4 / r.width * this.m.end;
    if (t < 0 || t > this.m.end) return;
    const words = [clockText(t)];
    for (const i of this.m.alerts) if (Math.abs(this.m.t[i] - t) < near && words.length < 4) words.push(this.m.what(i).slice(0, 120));
    for (const b of this.bands) if (t > b.from - near && t < b.to + near && words.length < 5) words.push(b.text);
    const tip = $("tip");
    tip.replaceChildren(...words.map(w => el("div", { text: w })));
    tip.hidden = false;
    tip.style.left = Math.max(0, Math.min(r.width - tip.offsetWidth, e.clientX - r.left - tip.offsetWidth / 2)) + "px";
  }
}
