// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/agent_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"

static void begin(struct json *j, struct buf *out, const char *type)
{
	json_init(j, out);
	json_object_begin(j);
	json_key(j, "type");
	json_strz(j, type);
}

static int end(struct json *j, struct buf *out)
{
	json_object_end(j);
	buf_addc(out, '\n');
	if (out->failed)
		return -ENOMEM;
	return fwrite(out->p, 1, out->n, stdout) == out->n && fflush(stdout) == 0 ? 0 : -EPIPE;
}

static int put(bool is_stderr, struct str s)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	begin(&j, &out, is_stderr ? "stderr" : "stdout");
	if (utf8_is_valid(s)) {
		json_key(&j, "data");
		json_str(&j, s);
	} else {
		json_key(&j, "encoding");
		json_strz(&j, "base64");
		json_key(&j, "data");
		json_base64(&j, s);
	}
	return end(&j, &out);
}

int agent_json_data(struct agent_json *a, bool is_stderr, struct str bytes)
{
	auto_buf struct buf all = { 0 };
	size_t n;

	buf_add(&all, a->carry[is_stderr].held, a->carry[is_stderr].n);
	buf_add(&all, bytes.p, bytes.n);
	if (all.failed)
		return -ENOMEM;
	n = utf8_unfinished((struct str){ all.p, all.n });
	memcpy(a->carry[is_stderr].held, all.p + all.n - n, n);
	a->carry[is_stderr].n = n;
	return all.n > n ? put(is_stderr, (struct str){ all.p, all.n - n }) : 0;
}

void agent_json_error(struct agent_json *a, const char *text)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	(void)a;
	begin(&j, &out, "error");
	json_key(&j, "message");
	json_strz(&j, text);
	end(&j, &out);
}

void agent_json_exit(struct agent_json *a, int code)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	for (int i = 0; i < 2; i++)
		if (a->carry[i].n)
			put(i, (struct str){ a->carry[i].held, a->carry[i].n });
	begin(&j, &out, "exit");
	json_key(&j, "code");
	json_i64(&j, code);
	end(&j, &out);
}
