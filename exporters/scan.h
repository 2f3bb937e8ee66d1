/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over JSON text (RFC 8259) without parsing all of it: members and elements come as the text of
 * their values. No recursion, no memory, never a byte past the end. Not a validator: what is skipped is
 * only followed as far as its strings and brackets. */
#ifndef WARDER_EXPORTERS_SCAN_H
#define WARDER_EXPORTERS_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/str.h"

struct scan {
	const char *p;
	const char *end;
	bool started;
	bool bad; /* malformed, or the text ended too early */
};

static inline struct scan scan_of(struct str text)
{
	return (struct scan){ .p = text.p, .end = text.p + text.n };
}

/* The next member of the object / element of the array that the text is. false at its end, or when it is
 * none (then `bad`). Keys stand as they are written, escapes included. */
bool scan_member(struct scan *s, struct str *ret_key, struct str *ret_value);
bool scan_element(struct scan *s, struct str *ret_value);

/* A value that is a string without escapes: its body. */
bool scan_string(struct str value, struct str *ret);
bool scan_u64(struct str value, uint64_t *ret);
/* The value of one member of the object; false when absent. */
bool scan_find(struct str object, const char *key, struct str *ret_value);
/* Its text, a string's without its quotes, as much as `size` holds with a NUL; empty when absent. Returns `ret`. */
const char *scan_text(struct str object, const char *key, char *ret, size_t size);

#endif
