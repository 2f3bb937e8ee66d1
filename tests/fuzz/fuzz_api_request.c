// SPDX-License-Identifier: Apache-2.0
/* What an HTTP client sends and we take apart ourselves: the target, and JSON bodies. The first byte says which. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "userspace/api/body.h"
#include "userspace/api/target.h"
#include "userspace/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_text(const char *z)
{
	if (z)
		assert(utf8_is_valid(str_from(z)));
}

static void check_words(const struct api_words *w)
{
	assert(w->n <= API_WORDS_MAX && (!w->v || !w->v[w->n]));
	for (size_t i = 0; i < w->n; i++)
		is_text(w->v[i]);
}

static void look_at_target(struct arena *arena, struct str text)
{
	struct api_target t;
	struct err err = { 0 };

	if (api_target_parse(&t, arena, text, &err) < 0) {
		assert(err.code && err.text[0]);
		return;
	}
	assert(t.segments_n <= API_SEGMENTS_MAX && t.query_n <= API_QUERY_MAX);
	for (size_t i = 0; i < t.segments_n; i++) {
		is_text(t.segment[i]);
		assert(*t.segment[i] && !strchr(t.segment[i], '/'));
		assert(strcmp(t.segment[i], ".") && strcmp(t.segment[i], ".."));
	}
	for (size_t i = 0; i < t.query_n; i++) {
		is_text(t.query[i].value);
		assert(*t.query[i].key);
		assert(api_target_query(&t, t.query[i].key) == t.query[i].value);
	}
}

static void look_at_create(struct arena *arena, struct str text)
{
	struct api_create c;
	struct err err = { 0 };

	if (api_create_parse(&c, arena, text, &err) < 0) {
		assert(err.code && err.text[0]);
		return;
	}
	is_text(c.name);
	is_text(c.net_mode);
	check_words(&c.metadata);
	check_words(&c.command);
	for (size_t i = 0; i < c.envs.n; i++)
		assert(strchr(c.envs.v[i], '=') > c.envs.v[i]);
	assert(!c.cpus || strspn(c.cpus, "0123456789.") == strlen(c.cpus));
}

static void look_at_command(struct arena *arena, struct str text)
{
	struct api_command c;
	struct err err = { 0 };

	if (api_command_parse(&c, arena, text, &err) < 0) {
		assert(err.code && err.text[0]);
		return;
	}
	assert(!c.cmd != !c.args.n);
	is_text(c.cmd);
	is_text(c.stdin_text);
	check_words(&c.args);
	check_words(&c.envs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct str text;

	if (!size)
		return 0;
	text = (struct str){ (const char *)data + 1, size - 1 };
	arena_init(&arena, 2 << 20);
	if (data[0] == 't')
		look_at_target(&arena, text);
	else if (data[0] == 'n')
		look_at_create(&arena, text);
	else if (data[0] == 'c')
		look_at_command(&arena, text);
	arena_done(&arena);
	return 0;
}
