// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/option.h"

#define MESSAGE_MAX 1024

static const char *type_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *type;
	} rows[] = {
		{ 400, "bad_request" },	     { 403, "forbidden" },
		{ 404, "not_found" },	     { 405, "method_not_allowed" },
		{ 408, "timeout" },	     { 409, "conflict" },
		{ 413, "too_large" },	     { 415, "unsupported_media_type" },
		{ 422, "cannot_be_done" },   { 429, "no_room" },
		{ 431, "too_many_headers" }, { 501, "not_supported" },
		{ 503, "unavailable" },	     { 504, "timeout" },
		{ 507, "no_space" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].status == status)
			return rows[i].type;
	return "internal";
}

void call_json(struct call *c, unsigned status, struct json *j)
{
	c->status = status;
	c->form = FORM_JSON;
	c->more = NULL;
	c->out_at = 0;
	buf_reset(&c->out);
	json_init(j, &c->out);
}

/* {"code":..., "type":..., "message": what the caller puts there. */
static void begin_error(struct call *c, unsigned status, struct json *j)
{
	call_json(c, status, j);
	json_object_begin(j);
	json_key(j, "code");
	json_u64(j, status);
	json_key(j, "type");
	json_strz(j, type_of(status));
	json_key(j, "message");
}

int call_fail(struct call *c, unsigned status, const char *fmt, ...)
{
	char text[MESSAGE_MAX];
	struct json j;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	begin_error(c, status, &j);
	json_strz(&j, text);
	json_object_end(&j);
	return -1;
}

static unsigned status_of(const char *name)
{
	static const struct {
		const char *name;
		unsigned status;
	} rows[] = {
		{ "EINVAL", 400 },     { "EBADMSG", 400 },	{ "E2BIG", 400 },
		{ "EMSGSIZE", 400 },   { "ENAMETOOLONG", 400 }, { "EACCES", 403 },
		{ "EPERM", 403 },      { "ENOENT", 404 },	{ "EEXIST", 409 },
		{ "ENOTUNIQ", 409 },   { "EALREADY", 409 },	{ "ESRCH", 409 },
		{ "EBUSY", 429 },      { "EDQUOT", 429 },	{ "ETIMEDOUT", 429 },
		{ "EOPNOTSUPP", 501 }, { "EAGAIN", 409 },	{ "ENOSPC", 507 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].name, name))
			return rows[i].status;
	return 500;
}

int call_fail_errno(struct call *c, int r, const char *what)
{
	if (r == -EPIPE)
		return call_fail(c, 503, "%s: the agent has ended or is just ending", what);
	if (r == -ETIMEDOUT)
		return call_fail(c, 504, "%s: no answer in time", what);
	return call_fail(c, status_of(strerrorname_np(-r)), "%s: %s", what, strerror(-r));
}

int call_fail_packet(struct call *c, struct str packet)
{
	struct str text = STR("\"?\"");
	char name[32];
	unsigned status;
	struct json j;

	scan_text(packet, "errno", name, sizeof(name));
	scan_find(packet, "error", &text);
	status = *name ? status_of(name) : 500;
	/* Written anew but for the text, which is JSON of ours. */
	begin_error(c, status, &j);
	json_raw(&j, text);
	json_object_end(&j);
	return -1;
}

int call_ask(struct call *c, const struct agent_request *q)
{
	int r = upstream_ask(&c->up, c->channel, c->http, q);

	if (r == -EMSGSIZE)
		return call_fail(c, 400, "the request is too long: %d bytes", AGENT_FRAME_MAX);
	return r < 0 ? call_fail_errno(c, r, "asking the agent") : 0;
}

bool call_is_data(const struct call *c, char letter)
{
	return c->up.packet[0] == letter;
}

struct str call_packet(const struct call *c, size_t n)
{
	return (struct str){ c->up.packet, n };
}

ssize_t call_next(struct call *c, uint64_t deadline)
{
	ssize_t n = upstream_next(&c->up, deadline);
	struct str v;

	if (n < 0)
		return call_fail_errno(c, (int)n, "the agent");
	if (c->up.packet[0] == '{' && scan_find(call_packet(c, (size_t)n), "error", &v))
		return call_fail_packet(c, call_packet(c, (size_t)n));
	return n;
}

int call_flag(struct call *c, const char *key, bool *ret)
{
	const char *v = api_target_query(&c->target, key);

	*ret = v && !strcmp(v, "true");
	if (v && !*ret && strcmp(v, "false"))
		return call_fail(c, 400, "query '%s': expected true or false", key);
	return 0;
}

int call_number(struct call *c, const char *key, uint64_t max, uint64_t *ret)
{
	const char *v = api_target_query(&c->target, key);

	if (v && (parse_u64(v, ret) < 0 || *ret > max))
		return call_fail(c, 400, "query '%s': expected a number of at most %llu", key,
				 (unsigned long long)max);
	return 0;
}
