// SPDX-License-Identifier: Apache-2.0
// Elements without markup: what comes from a sandbox reaches the page through textContent only.

const $ = id => document.getElementById(id);

// el("td", { class: "n", text: v, onclick: f }, child, ...)
function el(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k === "class") e.className = v;
    else if (k === "text") e.textContent = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

// A button of ours: its label is never of the sandbox's making.
function button(text, label, onclick, cls) {
  return el("button", { type: "button", text, title: label, "aria-label": label, class: cls, onclick });
}

function two(n) { return String(n).padStart(2, "0"); }

// Seconds of the session as a clock: 0.123, 1:02.345, 1:00:02.345.
function clockText(t, digits = 3) {
  const whole = Math.floor(t + 1e-9), s = (t - Math.floor(t / 60) * 60).toFixed(digits);
  const m = Math.floor(whole / 60), h = Math.floor(m / 60);
  if (!m) return s;
  const pad = s.indexOf(".") === 1 || s.length === 1 ? "0" + s : s;
  return h ? `${h}:${two(m % 60)}:${pad}` : `${m}:${pad}`;
}

function bytesText(n) {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = -1;
  do { n /= 1024; i++; } while (n >= 1024 && i < units.length - 1);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

function countText(n) { return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f"); }

function plural(n, word) { return `${countText(n)} ${word}${n === 1 ? "" : "s"}`; }

// "abcdef0123456789..." short, the whole in its title.
function hashEl(hash, n = 12) {
  return hash ? el("code", { class: "hash", text: hash.slice(0, n) + (hash.length > n ? "…" : ""), title: hash })
    : el("span", { class: "dim", text: "–" });
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = el("textarea", { class: "away", "aria-hidden": "true" });
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}

// The first index of a sorted array whose value is greater than v.
function upperBound(a, v, n = a.length) {
  let lo = 0, hi = n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (a[mid] <= v) lo = mid + 1; else hi = mid;
  }
  return lo;
}
