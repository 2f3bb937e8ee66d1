// SPDX-License-Identifier: Apache-2.0
/* An object whose members are not fields of the schema: read value by value and written again, so that its text
 * is ours whoever wrote it. */
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/event/json_read.h"

#define LIST_MAX 4096

static bool take_null(struct json_reader *r)
{
	if (json_peek(r) != 'n')
		return false;
	if (r->end - r->p < 4 || memcmp(r->p, "null", 4))
		return json_problem(r, "expected null");
	r->p += 4;
	return true;
}

static bool copy_single(struct json_reader *r, struct json *j)
{
	struct str s;
	uint64_t u;
	int64_t i;
	bool b;

	switch (json_peek(r)) {
	case '"':
		return json_read_string(r, &s) && (json_str(j, s), true);
	case '-':
		return json_read_i64(r, &i) && (json_i64(j, i), true);
	case 't':
	case 'f':
		return json_read_bool(r, &b) && (json_bool(j, b), true);
	case 'n':
		return take_null(r) && (json_null(j), true);
	default:
		return json_read_u64(r, &u) && (json_u64(j, u), true);
	}
}

static bool copy_list(struct json_reader *r, struct json *j)
{
	size_t n = 0;

	json_array_begin(j);
	while (!json_take(r, ']')) {
		if (n == LIST_MAX)
			return json_problem(r, "list too long");
		if (n++ && !json_expect(r, ',', "expected ',' or the end"))
			return false;
		if (!copy_single(r, j))
			return json_problem(r, "expected a single value");
	}
	json_array_end(j);
	return true;
}

static bool is_known(const struct str *key, size_t n, struct str s)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(key[i], s))
			return true;
	return false;
}

static bool copy_members(struct json_reader *r, struct json *j)
{
	struct str key[JSON_MEMBERS_MAX];
	size_t n = 0;

	if (!json_expect(r, '{', "expected an object"))
		return false;
	json_object_begin(j);
	while (!json_take(r, '}')) {
		if (n == JSON_MEMBERS_MAX)
			return json_problem(r, "too many members");
		if (n && !json_expect(r, ',', "expected ',' or the end"))
			return false;
		if (!json_read_string(r, &key[n]) || !json_expect(r, ':', "expected ':'"))
			return false;
		if (is_known(key, n, key[n]))
			return json_problem(r, "member given twice");
		json_key_str(j, key[n++]);
		if (!(json_take(r, '[') ? copy_list(r, j) : copy_single(r, j)))
			return false;
	}
	json_object_end(j);
	return true;
}

bool json_read_members(struct json_reader *r, struct str *ret)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	if (!copy_members(r, &j))
		return false;
	*ret = arena_strndup(r->arena, out.p, out.n);
	if (!ret->p || out.failed) {
		r->no_memory = true;
		return json_problem(r, "out of memory");
	}
	return true;
}
