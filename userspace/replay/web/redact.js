// SPDX-License-Identifier: Apache-2.0
// What the recorder took out before it wrote: a mark with the rule's name stands in its place.

const REDACTED = /\[redacted[:\s][^\]]{0,120}\]/;

Model.prototype.redacted = function (i) {
  if (!this.redactedStrings) {
    this.redactedStrings = new Set();
    this.strings.forEach((s, id) => { if (REDACTED.test(s)) this.redactedStrings.add(id); });
  }
  if (!this.redactedStrings.size) return false;
  const hit = (id, v) => this.isText[id] && (Array.isArray(v) ? v.some(x => this.redactedStrings.has(x)) : this.redactedStrings.has(v));
  for (let k = this.ownAt[i], end = this.ownAt[i + 1]; k < end; k += 2) if (hit(this.own[k], this.own[k + 1])) return true;
  const set = this.kind(i) === "exec" ? this.sets[this.set(i)] || [] : []; // told once a process
  for (let k = 0; k < set.length; k += 2) if (hit(set[k], set[k + 1])) return true;
  return false;
};
