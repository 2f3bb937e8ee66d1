// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "userspace/event/event.h"

static void every_field_is_found_by_name(void **state)
{
	(void)state;
	for (int f = 0; f < F_COUNT; f++)
		assert_int_equal(event_field_find(str_from(event_fields[f].name)), f);
	assert_int_equal(event_field_find(STR("proc")), -1);
	assert_int_equal(event_field_find(STR("proc.exe.")), -1);
	assert_int_equal(event_field_find(STR("")), -1);
}

/* JSON nests by the dot: a name must not be both a value and an object, and the members of an object
 * must stand together or it would be opened twice. */
static void names_nest_cleanly(void **state)
{
	(void)state;
	for (int a = 0; a < F_COUNT; a++) {
		const char *dot = strrchr(event_fields[a].name, '.');
		int last = a;

		for (int b = 0; b < F_COUNT; b++) {
			size_t n = strlen(event_fields[a].name);

			if (a == b)
				continue;
			assert_string_not_equal(event_fields[a].name, event_fields[b].name);
			if (!strncmp(event_fields[b].name, event_fields[a].name, n))
				assert_int_not_equal(event_fields[b].name[n], '.');
		}
		if (!dot)
			continue;
		for (int b = a; b < F_COUNT; b++) {
			size_t n = (size_t)(dot - event_fields[a].name) + 1;

			if (strncmp(event_fields[b].name, event_fields[a].name, n))
				continue;
			assert_true(b == last || b == last + 1);
			last = b;
		}
		assert_true(strlen(dot) < 28);
	}
	assert_int_equal(event_field_find(STR("raw")), -1);
}

static void kinds_by_id_and_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < event_kinds_n; i++) {
		assert_ptr_equal(event_kind_by_id(event_kinds[i].id), &event_kinds[i]);
		assert_ptr_equal(event_kind_by_name(str_from(event_kinds[i].name)),
				 &event_kinds[i]);
	}
	assert_null(event_kind_by_id(0));
	assert_null(event_kind_by_id(WIRE_CHUNK));
	assert_null(event_kind_by_id(0xffff));
	assert_null(event_kind_by_name(STR("execve")));
}

static void escape_types_by_number_and_name(void **state)
{
	(void)state;
	assert_string_equal(event_escape_name(WIRE_ESCAPE_UNSHARE), "unshare");
	assert_int_equal(event_escape_by_name(STR("unshare")), WIRE_ESCAPE_UNSHARE);
	assert_null(event_escape_name(0));
	assert_null(event_escape_name(1000));
	assert_int_equal(event_escape_by_name(STR("nothing")), -1);
}

static void addresses_both_ways(void **state)
{
	static const char *const good[][2] = {
		{ "10.0.0.1", "10.0.0.1" },
		{ "fd00::1", "fd00::1" },
		{ "FD00:0:0::1", "fd00::1" },
		{ "::ffff:192.0.2.7", "192.0.2.7" },
		{ "::", "::" },
	};
	static const char *const bad[] = {
		"", "10.0.0", "10.0.0.256", "fd00::1::2", "a", "1.2.3.4 "
	};
	struct ip_addr ip;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(ip_addr_parse(str_from(good[i][0]), &ip), 0);
		assert_int_equal(ip_addr_text(&ip, text), strlen(good[i][1]));
		assert_string_equal(text, good[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ip_addr_parse(str_from(bad[i]), &ip), -EINVAL);
	assert_int_equal(ip_addr_parse((struct str){ "1.2.3.4\0", 8 }, &ip), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_found_by_name),
		cmocka_unit_test(names_nest_cleanly),
		cmocka_unit_test(kinds_by_id_and_name),
		cmocka_unit_test(escape_types_by_number_and_name),
		cmocka_unit_test(addresses_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
