// SPDX-License-Identifier: Apache-2.0
// Lines that two texts differ in: by the longest common subsequence, where that is affordable.

const DIFF_CELLS = 4e6, DIFF_SHOWN = 2000;

// [sign, line] with sign " ", "-" or "+".
function diffLines(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail);
  const middle = x.length * y.length > DIFF_CELLS ? [...x.map(l => ["-", l]), ...y.map(l => ["+", l])] : middleOf(x, y);
  return [...a.slice(0, head).map(l => [" ", l]), ...middle, ...a.slice(a.length - tail).map(l => [" ", l])];
}

function middleOf(x, y) {
  const w = y.length + 1, len = new Uint32Array((x.length + 1) * w), out = [];
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      len[i * w + j] = x[i] === y[j] ? len[(i + 1) * w + j + 1] + 1 : Math.max(len[(i + 1) * w + j], len[i * w + j + 1]);
  let i = 0, j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) { out.push([" ", x[i++]]); j++; }
    else if (i < x.length && (j === y.length || len[(i + 1) * w + j] >= len[i * w + j + 1])) out.push(["-", x[i++]]);
    else out.push(["+", y[j++]]);
  }
  return out;
}

// Changed lines with three around them.
function diffEl(before, after) {
  const lines = diffLines(before, after), near = new Uint8Array(lines.length), out = [];
  lines.forEach(([sign], i) => { if (sign !== " ") near.fill(1, Math.max(0, i - 3), i + 4); });
  for (let i = 0; i < lines.length && out.length < DIFF_SHOWN; i++) {
    if (near[i]) out.push(el("div", { class: lines[i][0] === "+" ? "plus" : lines[i][0] === "-" ? "minus" : "" }, lines[i][0] + " " + visibleText(lines[i][1].slice(0, 2000))));
    else if (!out.length || out.at(-1).className !== "skip") out.push(el("div", { class: "skip", text: "⋯" }));
  }
  if (out.length >= DIFF_SHOWN) out.push(el("div", { class: "skip", text: "more lines are not shown" }));
  if (!near.includes(1)) out.push(el("div", { class: "skip", text: "the texts are equal" }));
  return el("pre", { class: "diff", tabindex: "0", "aria-label": "text difference" }, ...out);
}
