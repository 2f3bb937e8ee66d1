// SPDX-License-Identifier: Apache-2.0
// Text of a sandbox: what it was before it was made safe, and what a terminal may be given of it.

// The recorder writes \xNN, \u{NNNN} and \\ for what a reader must not be deceived by; a condition is about the
// text itself.
function unsafeText(s) {
  if (!s.includes("\\")) return s;
  return s.replace(/\\(?:x([0-9a-f]{2})|u\{([0-9a-f]{1,6})\}|\\)/g,
    (all, byte, code) => byte ? String.fromCharCode(parseInt(byte, 16)) : code ? String.fromCodePoint(Math.min(parseInt(code, 16), 0x10ffff)) : "\\");
}

// Invisible, or turns the direction of writing; as is_deceptive() of userspace/base/plain.c.
const DECEPTIVE = /[\x00-\x1f\x7f-\x9f\xad\u061c\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

function visibleText(s) {
  return s.replace(DECEPTIVE, c => {
    const n = c.codePointAt(0);
    return n < 0x80 ? "\\x" + n.toString(16).padStart(2, "0") : `\\u{${n.toString(16).padStart(4, "0")}}`;
  });
}

// A terminal's stream without what is not for the screen: operating system commands (titles, links, clipboard),
// device strings, window operations, and characters that deceive. State goes on from chunk to chunk; a string that
// never ends hides at most STRING_MAX characters.
const STRING_MAX = 4096;

class TerminalFilter {
  constructor() { this.reset(); }
  reset() { this.mode = "text"; this.csi = ""; this.length = 0; this.dropped = 0; }

  // { screen: for the player, plain: the text alone }
  feed(s) {
    let screen = "", plain = "";
    for (let i = 0; i < s.length; i++) {
      const c = s[i], n = s.charCodeAt(i);
      if (this.mode === "text") {
        if (n >= 0x20 && n < 0x7f) {
          let k = i + 1;
          while (k < s.length && (n2(s, k))) k++;
          const run = s.slice(i, k);
          screen += run; plain += run; i = k - 1;
        } else if (n === 0x1b) this.mode = "escape";
        else if (n === 0x9b) this.begin("csi");
        else if (n === 0x90 || n === 0x9d || n === 0x98 || n === 0x9e || n === 0x9f) this.begin("string");
        else if (c === "\n" || c === "\r") { screen += c; plain += "\n"; }
        else if (c === "\t") { screen += c; plain += " "; }
        else if (c === "\b" || n === 0x0e || n === 0x0f || n === 0x0b || n === 0x0c) screen += c;
        else if (n < 0x20 || (n >= 0x7f && n < 0xa0)) this.dropped++;
        else {
          const ch = n >= 0xd800 && n < 0xdc00 && i + 1 < s.length ? s[i] + s[++i] : c;
          DECEPTIVE.lastIndex = 0;
          if (DECEPTIVE.test(ch)) { screen += "\ufffd"; plain += visibleText(ch); this.dropped++; }
          else { screen += ch; plain += ch; }
        }
      } else if (this.mode === "escape") {
        if (c === "[") this.begin("csi");
        else if (c === "]" || c === "P" || c === "X" || c === "^" || c === "_") this.begin("string");
        else if (n >= 0x20 && n < 0x30) { this.begin("intermediate"); this.csi = c; }
        else if (n === 0x1b) continue;
        else { this.mode = "text"; if (n >= 0x30 && n < 0x7f) screen += "\x1b" + c; }
      } else if (this.mode === "intermediate") {
        this.mode = "text";
        if (n >= 0x30 && n < 0x7f) screen += "\x1b" + this.csi + c;
      } else if (this.mode === "csi") {
        if (n >= 0x20 && n < 0x40 && this.csi.length < 64) this.csi += c;
        else {
          this.mode = n === 0x1b ? "escape" : "text";
          if (n >= 0x40 && n < 0x7f) {
            if (c !== "t") screen += "\x1b[" + this.csi + c; // t: window operations
            else this.dropped++;
            if ("CGHf".includes(c)) plain += " ";
          }
        }
      } else { // string: dropped, up to its end
        this.dropped++;
        if (n === 0x1b) this.mode = "string-end";
        else if (this.mode === "string-end") { // ESC \ ends it; any other escape does too, and counts
          this.mode = "escape";
          if (c === "\\") this.mode = "text"; else i--;
        } else if (n === 0x07 || n === 0x9c || n === 0x18 || n === 0x1a || ++this.length > STRING_MAX) this.mode = "text";
      }
    }
    return { screen, plain };
  }
  begin(mode) { this.mode = mode; this.csi = ""; this.length = 0; }
}

function n2(s, k) { const n = s.charCodeAt(k); return n >= 0x20 && n < 0x7f; }
