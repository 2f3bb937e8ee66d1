/* SPDX-License-Identifier: Apache-2.0 */
/* What an HTTP request asks for: path and query of its target (RFC 9112 3.2.1, origin-form; RFC 3986). */
#ifndef WARDER_API_TARGET_H
#define WARDER_API_TARGET_H

#include "userspace/base/arena.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define API_TARGET_MAX	 8192
#define API_SEGMENTS_MAX 8
#define API_QUERY_MAX	 16

struct api_target {
	const char
		*segment[API_SEGMENTS_MAX]; /* decoded: UTF-8, no slash, never empty, "." or ".." */
	size_t segments_n;
	struct {
		const char *key, *value;
	} query[API_QUERY_MAX]; /* no key twice */
	size_t query_n;
};

/* Strings are of the arena. -EBADMSG: what is wrong is in err. */
int api_target_parse(struct api_target *ret, struct arena *arena, struct str text, struct err *err);
/* NULL: not given. */
const char *api_target_query(const struct api_target *t, const char *key);
/* "a=1&b=2" by itself, as the value of a query may be; at most `max` pairs. -EBADMSG. */
int api_pairs_parse(const char *(*ret)[2], size_t max, size_t *ret_n, struct arena *arena,
		    struct str text, struct err *err);

#endif
