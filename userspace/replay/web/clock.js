// SPDX-License-Identifier: Apache-2.0
// The one clock of the page: terminal, list, tree and time bar follow it, and each may set it.

const IDLE_SKIP = 2; // seconds without anything that are skipped
const SPEEDS = [0.5, 1, 2, 4, 8, 16];

class Clock {
  constructor(model) {
    this.model = model; this.t = 0; this.end = model.end; this.playing = false; this.speed = 1; this.skip = true;
    this.listeners = []; this.stateListeners = [];
  }
  follow(fn) { this.listeners.push(fn); }
  onState(fn) { this.stateListeners.push(fn); }
  changed() { for (const fn of this.stateListeners) fn(this); }

  // `from`: who moved it, so that it is not moved itself. `event`: the event that is meant, of several at one time.
  set(t, from, event) {
    this.t = Math.min(this.end, Math.max(0, t));
    this.event = event ?? this.model.at(this.t);
    for (const fn of this.listeners) fn(this.t, from, this.event);
  }
  toggle() { this.playing ? this.pause() : this.play(); }
  play() {
    if (this.playing) return;
    if (this.t >= this.end) this.set(0);
    this.playing = true;
    this.last = performance.now();
    this.changed();
    requestAnimationFrame(now => this.tick(now));
  }
  pause() { this.playing = false; this.changed(); }
  tick(now) {
    if (!this.playing) return;
    let t = this.t + Math.min(0.25, (now - this.last) / 1e3) * this.speed;
    this.last = now;
    if (this.skip) {
      const times = this.model.activity(), next = times[upperBound(times, t)];
      if (next !== undefined && next - t > IDLE_SKIP) t = next - 0.3;
    }
    this.set(t, "play");
    if (this.t >= this.end) this.pause();
    else requestAnimationFrame(n => this.tick(n));
  }
  faster(step) {
    const i = SPEEDS.indexOf(this.speed) + step;
    if (i >= 0 && i < SPEEDS.length) { this.speed = SPEEDS[i]; this.changed(); }
  }
  // One frame of the terminal, or one event where there is no terminal.
  step(dir) {
    const times = this.model.frames.length ? this.model.frameTimes : this.model.ordered;
    const k = dir > 0 ? upperBound(times, this.t + 1e-9) : upperBound(times, this.t - 1e-9) - 1;
    if (this.playing) this.pause();
    if (k >= 0 && k < times.length) this.set(times[k], "step");
    else if (k < 0) this.set(0, "step");
  }
  // The next or previous alert; `lead`: so many seconds before it.
  alert(dir, lead = 0) {
    const { alerts, t } = this.model, here = this.event ?? -1;
    const i = dir > 0 ? alerts.find(a => a > here) : alerts.findLast(a => a < here);
    if (i === undefined) return undefined;
    this.set(t[i] - lead, "alert", lead ? undefined : i);
    return i;
  }
  // Before the alert that the clock stands on or comes to next.
  before(lead = 10) {
    const { alerts, t } = this.model, here = this.event ?? -1;
    const i = alerts.find(a => a >= here && t[a] >= this.t) ?? alerts.findLast(a => t[a] <= this.t);
    if (i !== undefined) this.set(t[i] - lead, "alert");
  }
}
