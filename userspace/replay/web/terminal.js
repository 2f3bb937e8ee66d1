// SPDX-License-Identifier: Apache-2.0
// The terminal as it was: the player draws it, this page's clock moves it. The player gets the stream through
// TerminalFilter and no keys: nothing of the recording can do anything but be on the screen.

const STEP_MAX = 1500; // records that are drawn at once: between two such steps the page answers
const COLS_MAX = 400, ROWS_MAX = 200, PLAIN_MAX = 100000;

class Terminal {
  constructor(model, clock) {
    this.m = model; this.clock = clock; this.at = 0; this.filter = new TerminalFilter();
    this.ready = this.start();
    clock.follow(t => this.sync(t));
  }

  sizeOf(f) { return { cols: Math.min(COLS_MAX, Math.max(1, f.v[0] | 0)), rows: Math.min(ROWS_MAX, Math.max(1, f.v[1] | 0)) }; }
  firstSize() {
    const f = this.m.frames.find(x => x.type === "r");
    return f ? this.sizeOf(f) : { cols: 100, rows: 28 };
  }

  async start() {
    this.size = this.firstSize();
    this.plain = typeof AsciinemaPlayer === "undefined"; // made with PLAYER=no
    if (this.plain) {
      this.dispatch = plainScreen();
      this.sync(this.clock.t);
      return;
    }
    const clock = this.clock, driver = ({ dispatch }) => {
      this.dispatch = dispatch;
      return {
        init: () => { this.reset(); this.sync(clock.t); },
        play: () => clock.play(), pause: () => clock.pause(), seek: () => false,
        getTiming: () => ({ time: clock.t * 1000 }), getDuration: () => this.m.end * 1000,
      };
    };
    this.player = AsciinemaPlayer.create(driver, $("screen"), { ...this.size, controls: false, fit: "both", theme: "auto/asciinema", cursorMode: "steady" });
  }

  reset() {
    this.at = 0;
    this.filter.reset();
    this.dispatch("reset", { size: this.size, init: undefined, theme: null });
  }

  sync(t) {
    if (!this.dispatch) return;
    this.to = upperBound(this.m.frameTimes, t + 1e-9);
    if (this.to < this.at) this.reset();
    if (!this.timer) this.step();
  }
  step() {
    this.timer = 0;
    this.draw(Math.min(this.to, this.at + STEP_MAX));
    if (this.at < this.to) this.timer = setTimeout(() => this.step());
  }
  draw(to) {
    let out = "";
    const put = () => { if (out) this.dispatch("output", [out]); out = ""; };
    for (; this.at < to; this.at++) {
      const f = this.m.frames[this.at];
      if (f.type === "o") {
        if (this.plain) out += this.filter.feed(f.v.replace(/\r+\n/g, "\n")).plain;
        else out += this.filter.feed(f.stream ? f.v.replace(/\r?\n/g, "\r\n") : f.v).screen;
      }
      else if (f.type === "r") {
        put();
        this.dispatch("resize", this.sizeOf(f));
      } else if (f.type === "c") {
        const text = `${bytesText(f.v)} were not kept`;
        out += this.plain ? `\n[${text}]\n` : `\r\n\x1b[0;7m ${text} \x1b[0m\r\n`;
      }
    }
    put();
  }
}

// Where there is no player: the last of the text, without colours or a cursor.
function plainScreen() {
  const pre = document.createElement("pre");
  $("screen").append(pre);
  let text = "";
  return (what, data) => {
    if (what === "reset") text = "";
    else if (what === "output") text = (text + data.join("")).slice(-PLAIN_MAX);
    pre.textContent = text;
    pre.scrollTop = pre.scrollHeight;
  };
}

// The text alone, with the time of each piece: what a search looks through.
class TerminalText {
  constructor(model) {
    const filters = {}, parts = [], starts = [], times = [];
    let n = 0;
    for (const f of model.frames) {
      if (f.type !== "o" && f.type !== "i") continue;
      const filter = filters[f.type + f.stream] ||= new TerminalFilter(), s = filter.feed(f.v).plain;
      if (!s) continue;
      parts.push(s); starts.push(n); times.push(f.t);
      n += s.length;
    }
    this.text = parts.join("");
    this.lower = this.text.toLowerCase();
    if (this.lower.length !== this.text.length) this.lower = this.text; // a character that folds to two: then by case
    this.starts = starts; this.times = times;
  }
  find(want, max) {
    const out = [];
    for (let at = -1; out.length < max && (at = this.lower.indexOf(want, at + 1)) >= 0;) {
      const k = upperBound(this.starts, at + want.length - 1) - 1;
      const line = this.text.slice(Math.max(this.text.lastIndexOf("\n", at) + 1, at - 60), at + want.length + 80).split("\n")[0];
      out.push({ t: this.times[k], what: visibleText(line), kind: "terminal" });
    }
    return out;
  }
}
