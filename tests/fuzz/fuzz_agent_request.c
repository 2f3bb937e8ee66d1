// SPDX-License-Identifier: Apache-2.0
/* What a client says to the agent, or to a hub. A request that is taken says the same when it is written again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "userspace/pipeline/agent_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const char *a, const char *b)
{
	assert(!a == !b && (!a || !strcmp(a, b)));
}

static void check_again(const struct agent_request *q)
{
	auto_buf struct buf text = { 0 };
	struct agent_request again;
	struct arena arena;

	buf_init(&text, 1 << 20);
	if (agent_request_print(&text, q) < 0)
		return; /* escaped it is longer */
	arena_init(&arena, 1 << 22);
	assert(agent_request_parse(&again, &arena, (struct str){ text.p, text.n }, NULL) == 0);
	assert(again.op == q->op && again.argc == q->argc && again.env_n == q->env_n);
	assert(again.rows == q->rows && again.signal == q->signal && again.tty == q->tty);
	same(again.sandbox, q->sandbox);
	same(again.cwd, q->cwd);
	for (size_t i = 0; i < q->argc; i++)
		same(again.argv[i], q->argv[i]);
	for (size_t i = 0; i < q->env_n; i++)
		same(again.env[i], q->env[i]);
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_request q;
	struct err err = { 0 };
	struct arena arena;

	if (size > AGENT_FRAME_MAX)
		return 0;
	arena_init(&arena, 1 << 20);
	if (agent_request_parse(&q, &arena, (struct str){ (const char *)data, size }, &err) == 0) {
		assert(q.op > AGENT_NONE && q.op < AGENT_OPS);
		assert(q.argc <= AGENT_WORDS_MAX && q.env_n <= AGENT_WORDS_MAX);
		assert(!q.argv || !q.argv[q.argc]);
		check_again(&q);
	} else {
		assert(err.code && err.text[0]);
	}
	arena_done(&arena);
	return 0;
}
