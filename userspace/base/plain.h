/* SPDX-License-Identifier: Apache-2.0 */
/* Text of strangers (a server's answer, a file's name), before a person's terminal or eyes get it. */
#ifndef WARDER_BASE_PLAIN_H
#define WARDER_BASE_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/base/buf.h"
#include "userspace/base/str.h"

/* Characters that a terminal obeys or a reader does not see, though they are valid UTF-8: C0 and C1 controls,
 * DEL, soft hyphen, zero-width and bidi controls (UAX #9), line separators, variation selectors, tags. */
bool is_deceptive(uint32_t code_point);

/* In place, and never longer: each such character, and each byte that is no UTF-8 (RFC 3629), becomes
 * `instead`. Control characters in `keep` (ASCII) stay. */
void plain_text(char *text, char instead, const char *keep);

/* A JSON text that somebody else wrote, fit for a line: in its strings such characters are escaped, between them
 * they are spaces, and bytes that are no UTF-8 become U+FFFD. *ret is `json` itself, as nearly always, or in `room`.
 * -ENOMEM, -EMSGSIZE. */
int plain_json(struct str json, struct buf *room, struct str *ret);

#endif
