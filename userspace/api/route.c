// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/route.h"

#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/version.h"

extern const char api_openapi[], api_openapi_end[];

#define BOX "/v1/sandboxes/{sandboxID}"

const struct route api_routes[] = {
	{ .method = "GET", .path = "/openapi.json", .answer = answer_openapi },
	{ .method = "GET", .path = "/v1/version", .answer = answer_version },
	{ .method = "POST", .path = "/v1/sandboxes", .body = BODY_JSON, .answer = answer_create },
	{ .method = "GET",
	  .path = "/v1/sandboxes",
	  .query = { "metadata", "state" },
	  .answer = answer_list },
	{ .method = "GET", .path = BOX, .answer = answer_get },
	{ .method = "DELETE", .path = BOX, .answer = answer_remove },
	{ .method = "POST", .path = BOX "/pause", .answer = answer_pause },
	{ .method = "POST", .path = BOX "/resume", .answer = answer_resume },
	{ .method = "POST",
	  .path = BOX "/snapshots",
	  .body = BODY_JSON,
	  .answer = answer_snapshot },
	{ .method = "GET", .path = "/v1/snapshots", .answer = answer_snapshots },
	{ .method = "DELETE", .path = "/v1/snapshots/{snapshotID}", .answer = answer_forget },
	{ .method = "POST",
	  .path = BOX "/commands",
	  .body = BODY_JSON,
	  .query = { "stream" },
	  .answer = answer_command },
	{ .method = "GET", .path = BOX "/files", .query = { "path" }, .answer = answer_read },
	{ .method = "PUT",
	  .path = BOX "/files",
	  .body = BODY_RAW,
	  .query = { "path", "mode" },
	  .begin = begin_write,
	  .data = data_write,
	  .answer = answer_write },
	{ .method = "DELETE", .path = BOX "/files", .query = { "path" }, .answer = answer_unlink },
	{ .method = "POST", .path = BOX "/files/dir", .query = { "path" }, .answer = answer_mkdir },
	{ .method = "GET",
	  .path = BOX "/files/list",
	  .query = { "path", "depth" },
	  .answer = answer_entries },
	{ .method = "GET", .path = BOX "/files/stat", .query = { "path" }, .answer = answer_stat },
	{ .method = "GET",
	  .path = BOX "/logs",
	  .query = { "follow", "encoding" },
	  .answer = answer_logs },
	{ .method = "GET",
	  .path = BOX "/events",
	  .query = { "follow", "filter" },
	  .answer = answer_events },
};

const size_t api_routes_n = ARRAY_SIZE(api_routes);

/* Does the path have the pattern's parts? *ret_box: what stands for the one in braces. */
static bool matches(const char *pattern, const struct api_target *t, const char **ret_box)
{
	size_t i = 0;

	for (const char *p = pattern; *p; i++) {
		size_t n = strcspn(++p, "/");

		if (i == t->segments_n)
			return false;
		if (*p == '{')
			*ret_box = t->segment[i];
		else if (strlen(t->segment[i]) != n || strncmp(t->segment[i], p, n))
			return false;
		p += n;
	}
	return i == t->segments_n;
}

static int check_query(struct call *c)
{
	for (size_t i = 0; i < c->target.query_n; i++) {
		const char *const *q = c->route->query;

		while (*q && strcmp(*q, c->target.query[i].key))
			q++;
		if (!*q)
			return call_fail(c, 400, "unknown query '%.80s'", c->target.query[i].key);
	}
	return 0;
}

int route_find(struct call *c)
{
	auto_buf struct buf allow = { 0 };

	for (size_t i = 0; i < api_routes_n; i++) {
		const struct route *r = &api_routes[i];

		if (!matches(r->path, &c->target, &c->sandbox))
			continue;
		if (!strcmp(r->method, c->method)) {
			c->route = r;
			return check_query(c);
		}
		buf_printf(&allow, "%s%s", allow.n ? ", " : "", r->method);
	}
	if (!allow.n)
		return call_fail(c, 404, "there is no such path: /openapi.json has them");
	c->allow = arena_strndup(&c->arena, allow.p, allow.n).p;
	return call_fail(c, 405, "'%.16s' is not for this path", c->method);
}

int answer_version(struct call *c)
{
	struct json j;

	call_json(c, 200, &j);
	json_object_begin(&j);
	json_key(&j, "version");
	json_strz(&j, WARDER_VERSION);
	json_key(&j, "api");
	json_strz(&j, "v1");
	json_object_end(&j);
	return 0;
}

int answer_openapi(struct call *c)
{
	c->status = 200;
	c->form = FORM_JSON;
	return buf_add(&c->out, api_openapi, (size_t)(api_openapi_end - api_openapi));
}
