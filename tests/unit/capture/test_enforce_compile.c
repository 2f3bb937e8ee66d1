// SPDX-License-Identifier: Apache-2.0
/* Entries of the enforcement maps: which keys they make, and which rule comes first where several meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "userspace/base/auto.h"
#include "userspace/capture/enforce.h"

#define OPEN	ENFORCE_KIND(WIRE_FILE_OPEN)
#define DELETE	ENFORCE_KIND(WIRE_FILE_DELETE)
#define CONNECT ENFORCE_KIND(WIRE_NET_CONNECT)

static struct enforce_entry path(uint16_t id, int verdict, const char *p, uint64_t kinds)
{
	return (struct enforce_entry){ .id = id,
				       .verdict = (uint16_t)verdict,
				       .by = ENFORCE_BY_PATH,
				       .kinds = kinds,
				       .path.path = p };
}

static struct enforce_entry addr(uint16_t id, int verdict, const char *ip, uint8_t bits,
				 uint16_t from, uint16_t to)
{
	struct enforce_entry e = { .id = id,
				   .verdict = (uint16_t)verdict,
				   .by = ENFORCE_BY_ADDR,
				   .addr.bits = bits,
				   .addr.port_from = from,
				   .addr.port_to = to };

	e.addr.family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(e.addr.family, ip, e.addr.ip), 1);
	return e;
}

/* As the kernel does it: the longest key that is a prefix, then the first rule that covers the kind. */
static int judge_path(const struct enforce_tables *t, const char *p, uint64_t kind)
{
	const struct enforce_path_row *best = NULL;
	char bytes[ENFORCE_PATH_MAX + 8] = { 0 };

	memcpy(bytes, p, MIN(strlen(p), (size_t)ENFORCE_PATH_MAX));
	for (size_t i = 0; i < t->paths_n; i++)
		if (!memcmp(t->paths[i].key.path, bytes, (t->paths[i].key.prefixlen - 32) / 8) &&
		    (!best || t->paths[i].key.prefixlen > best->key.prefixlen))
			best = &t->paths[i];
	for (size_t i = 0; best && i < ENFORCE_RULES && best->rules.r[i].id; i++)
		if (best->rules.r[i].kinds & kind)
			return best->rules.r[i].verdict == ENFORCE_PASS ? 0 : best->rules.r[i].id;
	return 0;
}

static void a_directory_covers_itself_and_what_is_below(void **state)
{
	struct enforce_entry v[] = { path(1, ENFORCE_DENY, "/etc", 0) };
	struct enforce_tables t;

	(void)state;
	v[0].path.cut = true;
	assert_int_equal(enforce_compile(&t, 5, 0, v, 1, NULL), 0);
	assert_int_equal(judge_path(&t, "/etc", OPEN), 1);
	assert_int_equal(judge_path(&t, "/etc/passwd", OPEN), 1);
	assert_int_equal(judge_path(&t, "/etcetera", OPEN), 0);
	assert_int_equal(judge_path(&t, "/", OPEN), 0);
	assert_int_equal(judge_path(&t, "/etc/passwd", CONNECT), 0);
	assert_int_equal(t.paths[0].key.keys, 5);
	assert_true(t.set.kinds[ENFORCE_BY_PATH] & OPEN);
	assert_int_equal(t.set.cut_id, 1);
	assert_true(t.set.cut_kinds & OPEN);
	enforce_tables_done(&t);
}

static void exact_bytes_and_root(void **state)
{
	struct enforce_entry v[] = { path(1, ENFORCE_DENY, "/a/", 0),
				     path(2, ENFORCE_KILL, "/b/pre", 0),
				     path(3, ENFORCE_DENY, "/", DELETE) };
	struct enforce_tables t;

	(void)state;
	v[0].path.exact = true;
	v[1].path.bytes = true;
	assert_int_equal(enforce_compile(&t, 1, 0, v, 3, NULL), 0);
	assert_int_equal(judge_path(&t, "/a", OPEN), 1);
	assert_int_equal(judge_path(&t, "/a/x", OPEN), 0);
	assert_int_equal(judge_path(&t, "/b/prefix/x", OPEN), 2);
	assert_int_equal(judge_path(&t, "/b/pr", OPEN), 0);
	assert_int_equal(judge_path(&t, "/anything", DELETE), 3);
	assert_int_equal(judge_path(&t, "/", DELETE), 3);
	assert_int_equal(t.set.cut_id, 0); /* nobody asked for paths that were cut */
	enforce_tables_done(&t);
}

static void the_most_specific_decides_for_each_kind(void **state)
{
	struct enforce_entry v[] = {
		path(1, ENFORCE_KILL, "/etc", OPEN),
		path(2, ENFORCE_PASS, "/etc/ssl", OPEN),
		path(3, ENFORCE_DENY, "/etc/ssl/private", OPEN),
		path(4, ENFORCE_DENY, "/", DELETE),
	};
	struct enforce_tables t;

	(void)state;
	assert_int_equal(enforce_compile(&t, 1, 0, v, ARRAY_SIZE(v), NULL), 0);
	assert_int_equal(judge_path(&t, "/etc/passwd", OPEN), 1);
	assert_int_equal(judge_path(&t, "/etc/ssl/certs", OPEN), 0);
	assert_int_equal(judge_path(&t, "/etc/ssl/private/key", OPEN), 3);
	assert_int_equal(judge_path(&t, "/etc/ssl/private/key", DELETE), 4);
	assert_int_equal(judge_path(&t, "/etc/ssl/certs", DELETE), 4);
	assert_int_equal(judge_path(&t, "/home", OPEN), 0);
	enforce_tables_done(&t);
}

static const struct enforce_addr_row *find_addr(const struct enforce_tables *t, bool v6,
						unsigned int bits)
{
	for (size_t i = 0; i < t->addrs_n; i++)
		if (t->addrs[i].v6 == v6 && t->addrs[i].key.prefixlen == 32 + bits)
			return &t->addrs[i];
	fail_msg("no row of %u bits", bits);
	return NULL;
}

static void networks_and_ports(void **state)
{
	struct enforce_entry v[] = {
		addr(1, ENFORCE_DENY, "10.1.2.3", 8, 0, 0),
		addr(2, ENFORCE_PASS, "10.1.2.3", 32, 443, 443),
		addr(3, ENFORCE_KILL, "10.1.2.3", 32, 22, 30),
		addr(4, ENFORCE_DENY, "::ffff:192.168.1.1", 112, 0, 0),
		addr(5, ENFORCE_DENY, "2001:db8::1", 33, 0, 0),
	};
	const struct enforce_addr_row *r;
	struct enforce_tables t;

	(void)state;
	assert_int_equal(enforce_compile(&t, 1, 0, v, ARRAY_SIZE(v), NULL), 0);
	assert_int_equal(t.addrs_n, 4);
	r = find_addr(&t, false, 8);
	assert_memory_equal(r->key.addr, "\x0a\0\0\0", 4);
	assert_int_equal(r->rules.r[0].port_to, 65535);
	r = find_addr(&t, false, 32);
	assert_int_equal(r->rules.r[0].id, 2); /* one port before nine, and what is wider last */
	assert_int_equal(r->rules.r[1].id, 3);
	assert_int_equal(r->rules.r[2].id, 1);
	assert_int_equal(r->rules.r[3].id, 0);
	r = find_addr(&t, false, 16);
	assert_memory_equal(r->key.addr, "\xc0\xa8\0\0", 4);
	r = find_addr(&t, true, 33);
	assert_memory_equal(r->key.addr, "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	enforce_tables_done(&t);
}

static void kinds_and_escapes(void **state)
{
	struct enforce_entry v[] = {
		{ .id = 1,
		  .verdict = ENFORCE_DENY,
		  .by = ENFORCE_BY_KIND,
		  .kinds = OPEN | CONNECT },
		{ .id = 2, .verdict = ENFORCE_KILL, .by = ENFORCE_BY_KIND, .kinds = OPEN },
		{ .id = 3, .verdict = ENFORCE_DENY, .by = ENFORCE_BY_KIND, .kinds = OPEN },
		{ .id = 4,
		  .verdict = ENFORCE_KILL,
		  .by = ENFORCE_BY_ESCAPE,
		  .escape = WIRE_ESCAPE_MOUNT },
		{ .id = 5, .verdict = ENFORCE_DENY, .by = ENFORCE_BY_EXE, .exe = { 7, 8 } },
	};
	struct enforce_tables t;

	(void)state;
	assert_int_equal(enforce_compile(&t, 1, 0, v, ARRAY_SIZE(v), NULL), 0);
	assert_int_equal(t.set.kind_id[WIRE_FILE_OPEN], 2);
	assert_int_equal(t.set.kind_verdict[WIRE_FILE_OPEN], ENFORCE_KILL);
	assert_int_equal(t.set.kind_id[WIRE_NET_CONNECT], 1);
	assert_int_equal(t.set.escape_id[WIRE_ESCAPE_MOUNT], 4);
	assert_true(t.set.kinds[ENFORCE_BY_ESCAPE] == ENFORCE_KIND(WIRE_ESCAPE));
	assert_int_equal(t.exes_n, 1);
	assert_true(t.exes[0].rules.r[0].kinds == ENFORCE_KIND(WIRE_EXEC));
	enforce_tables_done(&t);
}

static void what_is_refused(void **state)
{
	struct enforce_entry v[ENFORCE_RULES + 1];
	char longest[ENFORCE_PATH_MAX + 1];
	struct enforce_tables t = { 0 };
	struct err err = { 0 };

	(void)state;
	v[0] = path(1, ENFORCE_DENY, "relative", 0);
	assert_int_equal(enforce_compile(&t, 1, 0, v, 1, &err), -EINVAL);
	assert_non_null(strstr(err_text(&err), "entry 1"));
	v[0] = path(0, ENFORCE_DENY, "/x", 0);
	assert_int_equal(enforce_compile(&t, 1, 0, v, 1, NULL), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[ENFORCE_PATH_MAX] = 0;
	v[0] = path(1, ENFORCE_DENY, longest, 0);
	assert_int_equal(enforce_compile(&t, 1, 0, v, 1, NULL), -EINVAL);
	longest[ENFORCE_PATH_MAX - 1] = 0;
	assert_int_equal(enforce_compile(&t, 1, 0, v, 1, NULL), 0);
	enforce_tables_done(&t);
	v[0] = addr(1, ENFORCE_DENY, "1.2.3.4", 33, 0, 0);
	assert_int_equal(enforce_compile(&t, 1, 0, v, 1, NULL), -EINVAL);
	v[0] = addr(1, ENFORCE_DENY, "1.2.3.4", 32, 9, 8);
	assert_int_equal(enforce_compile(&t, 1, 0, v, 1, NULL), -EINVAL);
	v[0] = (struct enforce_entry){ .id = 1, .verdict = ENFORCE_DENY };
	assert_int_equal(enforce_compile(&t, 1, 0, v, 1, NULL), -EINVAL);
	for (uint16_t i = 0; i <= ENFORCE_RULES; i++)
		v[i] = addr((uint16_t)(i + 1), ENFORCE_DENY, "1.2.3.4", 32, (uint16_t)(i + 1),
			    (uint16_t)(i + 1));
	assert_int_equal(enforce_compile(&t, 1, 0, v, ENFORCE_RULES + 1, &err), -E2BIG);
	assert_int_equal(enforce_compile(&t, 1, 0, v, ENFORCE_RULES, &err), 0);
	enforce_tables_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_covers_itself_and_what_is_below),
		cmocka_unit_test(exact_bytes_and_root),
		cmocka_unit_test(the_most_specific_decides_for_each_kind),
		cmocka_unit_test(networks_and_ports),
		cmocka_unit_test(kinds_and_escapes),
		cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
