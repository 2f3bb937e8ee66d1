// SPDX-License-Identifier: Apache-2.0
/* What of a request is passed on to an upstream, and what of a route is accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/egress/route.h"
#include "userspace/base/auto.h"

static void targets(void **state)
{
	static const struct {
		const char *target, *prefix;
		bool good;
	} rows[] = {
		{ "/", "", true },
		{ "/v1/chat?x=1/../2", "/v1", true },
		{ "/a/./b", "", true },
		{ "", "", false },
		{ "*", "", false },
		{ "http://other/", "", false },
		{ "/a b", "", false },
		{ "/a\tb", "", false },
		{ "/\x7f", "", false },
		{ "/\xc3\xa4", "", false },
		{ "/a#b", "", false },
		{ "/../x", "/v1", false },
		{ "/a/..", "/v1", false },
		{ "/a/./b", "/v1", false },
		{ "/%2e%2E/x", "/v1", false },
		{ "/.%2e/x", "/v1", false },
		{ "/a%2f../x", "/v1", false },
		{ "/a%2F%2e%2e%2fx", "/v1", false },
		{ "/a\\..\\x", "/v1", false },
		{ "/a%5c..", "/v1", false },
		{ "/...", "/v1", true },
		{ "/a..b", "/v1", true },
		{ "/%2e%2e%2e", "/v1", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (route_target_is_good(rows[i].target, rows[i].prefix) != rows[i].good)
			fail_msg("'%s' below '%s'", rows[i].target, rows[i].prefix);
}

static void headers(void **state)
{
	(void)state;
	assert_true(route_header_passes("Accept", NULL));
	assert_true(route_header_passes("X-A", "close"));
	for (const char *const *p =
		     (const char *const[]){ "Connection", "keep-alive", "TE", "trailer",
					    "TRANSFER-ENCODING", "Upgrade", "Host",
					    "content-length", "Expect", "Proxy-Authorization", "",
					    "a b", "a:b", "a\r\nb", "\xc3\xa4", NULL };
	     *p; p++)
		if (route_header_passes(*p, NULL))
			fail_msg("'%s'", *p);
	assert_false(route_header_passes("X-Hop", "close, x-hop"));
	assert_false(route_header_passes("X-Hop", "x-hop"));
	assert_true(route_header_passes("X-Ho", "x-hop ,close"));
	assert_true(route_value_is_good("Bearer a\tb \xff"));
	assert_false(route_value_is_good("a\r\nX: y"));
	assert_false(route_value_is_good("a\x7f"));
	assert_true(route_host_is("API.egress", "api.egress"));
	assert_true(route_host_is("api.egress:80", "api.egress"));
	assert_false(route_host_is("api.egress:443", "api.egress"));
	assert_false(route_host_is("api.egress.evil", "api.egress"));
	assert_false(route_host_is(NULL, "api.egress"));
	assert_string_equal(route_method("PATCH"), "PATCH");
	assert_null(route_method("TRACE"));
	assert_null(route_method("CONNECT"));
	assert_null(route_method("get"));
}

static int policy(const char *name, const char *url, const char *to, const char *header,
		  const char *value, struct egress_policy *p)
{
	static struct sandbox_route route;
	static struct arena mem;
	struct err err = { 0 };

	arena_init(&mem, 65536);
	route = (struct sandbox_route){ .name = name, .url = url, .to = to };
	if (header) {
		route.headers = 1;
		route.header[0].name = header;
		route.header[0].value = value;
	}
	egress_policy_init(p);
	return egress_policy_route(p, &mem, &route, &err);
}

static void policies(void **state)
{
	struct egress_policy p;

	(void)state;
	assert_int_equal(policy("Api.Egress", "https://api.example:8443/v1/", "10.0.0.1:99",
				"Authorization", "Bearer x", &p),
			 0);
	assert_string_equal(p.rows[0].name, "api.egress");
	assert_int_equal(p.rows[0].port, 80);
	assert_int_equal(p.rows[0].route, 1);
	assert_string_equal(p.routes[0].origin, "https://api.example:8443");
	assert_string_equal(p.routes[0].host, "api.example");
	assert_string_equal(p.routes[0].prefix, "/v1");
	assert_int_equal(p.routes[0].port, 8443);
	static const struct {
		const char *name, *url, *to, *header, *value;
	} bad[] = {
		{ "a.b", "http://api.example", NULL, "A", "v" },
		{ "a.b", "https://", NULL, "A", "v" },
		{ "a.b", "https://user@api.example", NULL, "A", "v" },
		{ "a.b", "https://api.example:0", NULL, "A", "v" },
		{ "a.b", "https://api.example:99999", NULL, "A", "v" },
		{ "a.b", "https://10.0.0.1", NULL, "A", "v" },
		{ "a.b", "https://api.example/a?b", NULL, "A", "v" },
		{ "a.b", "https://api.example/../x", NULL, "A", "v" },
		{ "a.b", "https://api.example", "host:1", "A", "v" },
		{ "10.0.0.1", "https://api.example", NULL, "A", "v" },
		{ "*.b.c", "https://api.example", NULL, "A", "v" },
		{ "a.b", "https://api.example", NULL, NULL, NULL },
		{ "a.b", "https://api.example", NULL, "Host", "v" },
		{ "a.b", "https://api.example", NULL, "A b", "v" },
		{ "a.b", "https://api.example", NULL, "A", "v\r\nX: y" },
		{ "a.b", "https://api.example", NULL, "A", "" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (policy(bad[i].name, bad[i].url, bad[i].to, bad[i].header, bad[i].value, &p) >=
		    0)
			fail_msg("row %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets),
		cmocka_unit_test(headers),
		cmocka_unit_test(policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
