// SPDX-License-Identifier: Apache-2.0
/* A line that an MCP client sends: a JSON-RPC message, and what its tools are given. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "userspace/api/rpc.h"
#include "userspace/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct str part, struct str whole)
{
	return !part.n || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = { (const char *)data, size };
	struct rpc_arguments a;
	struct rpc_message m;
	struct err err = { 0 };
	struct arena arena;
	struct str v;
	int r;

	if (size > 1 << 16)
		return 0;
	arena_init(&arena, 4 << 20);
	r = rpc_parse(&m, &arena, text, &err);
	assert(is_inside(m.id, text) && is_inside(m.params, text) && m.id.n <= RPC_ID_MAX);
	assert(r == 0 || (err.code && err.text[0]));
	assert(r == -EBADMSG || rpc_is_json(text));
	if (r == 0 && m.method)
		assert(utf8_is_valid(str_from(m.method)));
	if (m.id.n)
		assert(rpc_is_json(m.id));
	if (r == 0 && m.params.n) {
		assert(rpc_is_json(m.params));
		if (rpc_member(m.params, "arguments", &v)) {
			assert(is_inside(v, m.params) && rpc_is_json(v));
			if (*v.p == '{' && rpc_arguments_parse(&a, &arena, v, &err) == 0)
				assert(a.timeout <= 86400);
		}
	}
	arena_done(&arena);
	return 0;
}
