/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON tokenizer (RFC 8259) over bytes in memory: no recursion, no extensions, UTF-8 checked,
 * lone surrogates refused. Numbers are integers only, which is all an event has. */
#ifndef WARDER_EVENT_JSON_READ_H
#define WARDER_EVENT_JSON_READ_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/arena.h"
#include "userspace/base/str.h"

struct json_reader {
	const char *p, *end;
	struct arena *arena; /* strings are copied into it */
	const char *problem; /* static text; NULL while all is well */
	bool no_memory;
};

/* Takes `c` (after white space) if it is next. */
bool json_take(struct json_reader *r, char c);
/* Requires it. */
bool json_expect(struct json_reader *r, char c, const char *problem);
/* The next character that is no white space, 0 at the end. */
char json_peek(struct json_reader *r);
bool json_read_string(struct json_reader *r, struct str *ret);
bool json_read_u64(struct json_reader *r, uint64_t *ret);
bool json_read_i64(struct json_reader *r, int64_t *ret);
bool json_read_bool(struct json_reader *r, bool *ret);
/* Sets the problem unless one is set; always false. */
bool json_problem(struct json_reader *r, const char *problem);

/* Standard base64 with padding -> bytes in the arena. */
bool base64_decode(struct arena *arena, struct str text, struct str *ret);

#endif
