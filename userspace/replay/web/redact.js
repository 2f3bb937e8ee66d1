// SPDX-License-Identifier: Apache-2.0
// What the recorder took out before it wrote: a mark with the rule's name stands in its place.

const REDACTED = /\[redacted[:\s][^\]]{0,120}\]/;

Model.prototype.redacted = function (i) {
  if (!this.redactedStrings) {
    this.redactedStrings = new Set();
    this.strings.forEach((s, id) => { if (REDACTED.test(s)) this.redactedStrings.add(id); });
  }
  if (!this.redactedStrings.size) return false;
  const hit = (id, v) => !this.isNumber[id] && !this.isBool[id] && (Array.isArray(v) ? v.some(x => this.redactedStrings.has(x)) : this.redactedStrings.has(v));
  const own = this.events[i][4];
  for (let k = 0; k < own.length; k += 2) if (hit(own[k], own[k + 1])) return true;
  const set = this.kind(i) === "exec" ? this.sets[this.set(i)] || [] : []; // told once a process
  for (let k = 0; k < set.length; k += 2) if (hit(set[k], set[k + 1])) return true;
  return false;
};
