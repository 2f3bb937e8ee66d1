// SPDX-License-Identifier: Apache-2.0
// The page of `warder report`: parts around one clock. Loaded last; the other files are beside it.

const TABS = ["events", "alerts", "files", "network", "packages"];

class Page {
  constructor(model) {
    this.model = model;
    this.tab = "events";
    this.clock = new Clock(model);
    this.evidence = new Evidence(this);
    this.bar = new TimeBar(model, this.clock);
    this.link = new Link(this);
    this.tables = new Tables(this);
    this.files = new Files(this);
    this.events = new Events(this);
    this.tree = new Tree(this);
    this.search = new Search(this);
    this.tasks = [];
    this.parts = new Map([["alerts", () => this.tables.alerts()], ["network", () => this.tables.network()], ["packages", () => this.tables.packages()],
      ["files", () => this.files.fill()], ["summary", () => new Summary(this)]]);
    addEventListener("beforeprint", () => { for (const id of [...this.parts.keys()]) this.need(id); });
    if (model.frames.length) this.terminal = new Terminal(model, this.clock);
    document.body.classList.toggle("no-terminal", !this.terminal);
    $("p-terminal").hidden = !this.terminal;
    this.transport();
    this.tabs();
    this.theme();
    addEventListener("keydown", e => this.key(e), true);
    if (!this.link.read()) this.begin();
  }

  // What nobody looks at yet is made when somebody does, or else when nothing else is to be done.
  need(id) {
    const make = this.parts.get(id);
    this.parts.delete(id);
    make?.();
  }
  later(task) { this.tasks.push(task); }
  // One thing at a time: between two of them the page answers. Resolves when there is no more.
  async rest() {
    for (;;) {
      const id = this.parts.keys().next().value, task = this.tasks.shift();
      if (task) task();
      else if (id) this.need(id);
      else return;
      await new Promise(done => setTimeout(done));
    }
  }

  // Where a reviewer begins: at the first alert, or with everything there at the end.
  begin() {
    const i = this.model.alerts.find(a => this.model.kind(a) === "rule.alert");
    if (i === undefined) this.clock.set(this.model.end, "start");
    else this.clock.set(this.model.t[i], "start", i);
  }

  select(i, from) {
    if (from !== "tree" && from !== "search" && from !== "alert" && this.tab !== "events" && !this.events.shown.includes(i)) this.clearFilter();
    this.clock.set(this.model.t[i], from || "select", i);
  }
  clearFilter() {
    $("filter").value = "";
    this.events.filter("");
  }

  transport() {
    const c = this.clock, now = $("now");
    $("play").addEventListener("click", () => c.toggle());
    $("step-back").addEventListener("click", () => c.step(-1));
    $("step-on").addEventListener("click", () => c.step(1));
    $("alert-prev").addEventListener("click", () => c.alert(-1));
    $("alert-next").addEventListener("click", () => c.alert(1));
    $("alert-before").addEventListener("click", () => c.before(10));
    for (const b of ["alert-prev", "alert-next", "alert-before"]) $(b).disabled = !this.model.alerts.length;
    $("speed").addEventListener("change", e => { c.speed = Number(e.target.value); c.changed(); });
    $("skip").addEventListener("change", e => { c.skip = e.target.checked; });
    $("total").textContent = clockText(c.end);
    c.follow(t => {
      now.textContent = clockText(t);
      $("wall").textContent = Number.isNaN(this.model.start0) ? "" : new Date(this.model.start0 + t * 1e3).toISOString().replace("T", " ").slice(0, 23);
    });
    c.onState(() => {
      $("play").textContent = c.playing ? "❚❚" : "▶";
      $("play").setAttribute("aria-label", c.playing ? "Pause" : "Play");
      $("speed").value = String(c.speed);
      this.tree.list.redraw();
    });
  }

  tabs() {
    for (const id of TABS) {
      $("t-" + id).addEventListener("click", () => this.show(id));
      $("t-" + id).addEventListener("keydown", e => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
        if (!step) return;
        e.preventDefault();
        const next = TABS[(TABS.indexOf(id) + step + TABS.length) % TABS.length];
        this.show(next);
        $("t-" + next).focus();
      });
    }
    this.show("events");
  }
  show(tab) {
    this.tab = tab;
    this.need(tab);
    for (const id of TABS) {
      const on = id === tab;
      $("t-" + id).setAttribute("aria-selected", String(on));
      $("t-" + id).tabIndex = on ? 0 : -1;
      $("p-" + id).hidden = !on;
    }
    if (tab === "events") this.events.list.redraw();
    this.link.later();
  }

  theme() {
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
    $("theme").addEventListener("click", () => {
      const is = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
      root.dataset.theme = is ? "light" : "dark";
      this.bar.layout();
    });
    dark.addEventListener("change", () => this.bar.layout());
    $("print").addEventListener("click", () => print());
    $("keys").addEventListener("click", () => this.help());
    $("help-close").addEventListener("click", () => $("help").close());
    $("help").addEventListener("click", e => { if (e.target === $("help")) $("help").close(); });
  }
  help() { $("help").open ? $("help").close() : $("help").showModal(); }

  key(e) {
    const inside = $("p-terminal").contains(e.target);
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "checkbox";
    if (typing) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    if (e.altKey || e.ctrlKey || e.metaKey || $("help").open) return;
    const c = this.clock, actions = {
      " ": () => c.toggle(), n: () => c.alert(1), p: () => c.alert(-1), b: () => c.before(10), ".": () => c.step(1), ",": () => c.step(-1),
      "+": () => c.faster(1), "-": () => c.faster(-1), "/": () => $("filter").focus(), s: () => $("search").focus(), "?": () => this.help(),
      l: () => c.set(c.t + 5, "key"), h: () => c.set(c.t - 5, "key"),
    };
    // space presses a button that has the focus, and the lists have their own keys
    if (e.key === " " && /^(BUTTON|SUMMARY|INPUT)$/.test(e.target.tagName)) return;
    const fn = Object.hasOwn(actions, e.key) && actions[e.key];
    if (fn) { e.preventDefault(); fn(); }
    if (fn || inside) e.stopPropagation(); // the player has keys of its own: none reaches it
  }
}

load().then(async m => {
  const page = new Page(m);
  await page.terminal?.ready;
  performance.mark("ready");
  document.body.dataset.ready = "1";
  await new Promise(done => requestAnimationFrame(() => setTimeout(done))); // it is on the screen first
  await page.rest();
  document.body.dataset.whole = "1";
}).catch(e => {
  $("state").hidden = false;
  $("state").className = "note s1";
  $("state").textContent = "This page cannot be shown: " + e.message;
  document.body.dataset.ready = "error";
});
