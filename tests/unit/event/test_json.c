// SPDX-License-Identifier: Apache-2.0
/* to_json.c, from_json.c and json_read.c: they must agree on every event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/event/event.h"
#include "userspace/event/json_keys.h"

static uint64_t seed = 88172645463325252;

static uint64_t rnd(void) /* xorshift64: the same events in every run */
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Any bytes, plain text, UTF-8 or nothing, now and then long. */
static struct str random_str(struct arena *a)
{
	static const char *const pieces[] = { "a",
					      "\"",
					      "\\",
					      "\n",
					      "\x7f",
					      "\xc3\xa9",
					      "\xe2\x82\xac",
					      "\xf0\x9f\x98\x80",
					      "\xff",
					      "\xed\xa0\x80",
					      "\xc0\x80",
					      "\xe2\x82",
					      "/usr/bin/python3",
					      "\x1b[31m",
					      "U+FFFD \xef\xbf\xbd" };
	size_t n = 0, max = rnd() % 50 ? 40 : 9000;
	char *p = arena_alloc(a, max + 32);

	while (n < max && rnd() % 12) {
		const char *piece = pieces[rnd() % (sizeof(pieces) / sizeof(pieces[0]))];

		if (rnd() % 30 == 0) {
			p[n++] = 0;
			continue;
		}
		memcpy(p + n, piece, strlen(piece));
		n += strlen(piece);
		if (max > 1000)
			for (size_t k = rnd() % 4000; k && n < max; k--)
				p[n++] = (char)('a' + k % 26);
	}
	return (struct str){ p, n };
}

static uint64_t random_number(void)
{
	return rnd() >> rnd() % 64;
}

static void random_list(struct event *ev, enum field_id f)
{
	size_t n = rnd() % 5;
	struct str *v = arena_alloc(ev->arena, 5 * sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = random_str(ev->arena);
	event_set_list(ev, f, v, n);
}

static void random_ancestors(struct event *ev, enum field_id f)
{
	size_t n = rnd() % 4;
	struct event_ancestor *v = arena_zalloc(ev->arena, 4 * sizeof(*v));

	for (size_t i = 0; i < n; i++) {
		v[i].pid = random_number();
		v[i].start = random_number();
		if (rnd() % 2)
			v[i].comm = random_str(ev->arena);
		if (rnd() % 2)
			v[i].exe = random_str(ev->arena);
	}
	ev->v[f].ancestors.v = v;
	ev->v[f].ancestors.n = n;
	event_mark(ev, f);
}

static void random_answers(struct event *ev, enum field_id f)
{
	size_t n = rnd() % 4;
	struct event_dns_answer *v = arena_zalloc(ev->arena, 4 * sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = (struct event_dns_answer){ random_str(ev->arena), random_str(ev->arena),
						  random_str(ev->arena), (uint32_t)rnd() };
	ev->v[f].answers.v = v;
	ev->v[f].answers.n = n;
	event_mark(ev, f);
}

static struct str random_members(struct arena *a)
{
	static const char *const one[] = { "\"a\\n\"", "-7", "18446744073709551615", "true",
					   "null",     "[]", "[\"x\",1,false]" };
	struct str s = arena_printf(a, "{");

	for (unsigned i = 0, n = rnd() % 4; i < n; i++)
		s = arena_printf(a, "%.*s%s\"proc.aname[%u]\":%s", (int)s.n, s.p, i ? "," : "", i,
				 one[rnd() % ARRAY_SIZE(one)]);
	return arena_printf(a, "%.*s}", (int)s.n, s.p);
}

static void random_value(struct event *ev, enum field_id f)
{
	struct ip_addr ip = { .family = 4 };

	switch (event_fields[f].type) {
	case FT_STR:
		event_set_str(ev, f, random_str(ev->arena));
		break;
	case FT_U64:
	case FT_HEX:
	case FT_TIME:
		event_set_u64(ev, f, random_number());
		break;
	case FT_I64:
		event_set_i64(ev, f, (int64_t)random_number() * (rnd() % 2 ? 1 : -1));
		break;
	case FT_BOOL:
		event_set_bool(ev, f, rnd() % 2);
		break;
	case FT_IP:
		if (rnd() % 2)
			ip.family = 6;
		for (int i = 0; i < (ip.family == 4 ? 4 : 16); i++)
			ip.b[i] = (uint8_t)rnd();
		event_set_ip(ev, f, ip);
		break;
	case FT_MEMBERS:
		event_set_str(ev, f, random_members(ev->arena));
		break;
	case FT_STRLIST:
		random_list(ev, f);
		break;
	case FT_ANCESTORS:
		random_ancestors(ev, f);
		break;
	case FT_ANSWERS:
		random_answers(ev, f);
		break;
	}
}

static void random_event(struct event *ev, struct arena *a)
{
	event_init(ev, event_kinds[rnd() % event_kinds_n].id, a);
	for (int f = 0; f < F_COUNT; f++)
		if (f != F_V && f != F_KIND && rnd() % 4 == 0)
			random_value(ev, (enum field_id)f);
}

/* The same text with white space wherever it may be. */
static void spread(struct buf *out, const struct buf *json)
{
	bool inside = false;

	buf_addc(out, ' ');
	for (size_t i = 0; i < json->n; i++) {
		char c = json->p[i];

		if (inside && c == '\\')
			buf_addc(out, json->p[i++]);
		else if (c == '"')
			inside = !inside;
		if (!inside && strchr("{}[]:,", c)) {
			buf_addz(out, " \n");
			buf_addc(out, c);
			buf_addz(out, "\t\r");
			continue;
		}
		buf_addc(out, json->p[i]);
	}
}

/* What is read does not depend on the records before, whose keys are tried first; nor on white space, which the quick
 * ways of reading have no place for. */
static void one_text_is_one_event(void **state)
{
	struct buf json[3], spaced, again;
	struct event ev, got;
	struct err err = { 0 };
	struct arena a;

	(void)state;
	arena_init(&a, 0);
	buf_init(&spaced, 0);
	buf_init(&again, 0);
	for (int k = 0; k < 3; k++)
		buf_init(&json[k], 0);
	for (int i = 0; i < 1500; i++) {
		arena_reset(&a);
		for (int k = 0; k < 3; k++) {
			buf_reset(&json[k]);
			random_event(&ev, &a);
			assert_int_equal(event_to_json(&ev, &json[k]), 0);
		}
		buf_reset(&spaced);
		spread(&spaced, &json[2]);
		for (int k = 0; k < 7; k++) { /* 0 1 2 2 spaced 1 2 */
			static const int order[] = { 0, 1, 2, 2, 3, 1, 2 };
			const struct buf *b = order[k] == 3 ? &spaced : &json[order[k]];
			const struct buf *want = order[k] == 3 ? &json[2] : b;

			if (event_from_json(&got, &a, (struct str){ b->p, b->n }, &err) < 0)
				fail_msg("%s: %.*s", err_text(&err), (int)b->n, b->p);
			buf_reset(&again);
			assert_int_equal(event_to_json(&got, &again), 0);
			assert_int_equal(again.n, want->n);
			assert_memory_equal(again.p, want->p, want->n);
		}
	}
	arena_done(&a);
	buf_done(&spaced);
	buf_done(&again);
	for (int k = 0; k < 3; k++)
		buf_done(&json[k]);
}

/* Every key has its text and its slot; the empty one has none. */
static void every_key_is_found(void **state)
{
	char padded[64] = "";

	(void)state;
	json_keys_init();
	for (int f = 0; f < F_COUNT; f++) {
		const struct json_field_key *k = &json_keys[f];
		struct str name = { padded, k->n - 4u };
		struct json_slot *slot;

		assert_true(k->n > 4);
		memset(padded, '"', sizeof(padded));
		memcpy(padded, k->key + 2, name.n);
		slot = json_key_find(json_key_head(json_load8(padded), name.n), name, k->group);
		assert_non_null(slot);
		assert_int_equal(slot->what, f);
		assert_true(json_key_is(k->key + 1, slot));
		if (k->group)
			assert_true(json_groups[k->group].open_n > 4);
	}
	assert_null(json_key_find(0, STR(""), 0));
}

/* Of any length, alone and before whatever may follow. */
static void numbers_of_every_length(void **state)
{
	uint64_t v = 0;

	(void)state;
	for (int n = 1; n <= 20; n++) {
		char json[96];
		struct event ev;
		struct arena a;

		v = v * 10 + (uint64_t)(n % 10);
		arena_init(&a, 0);
		for (int tail = 0; tail < 2; tail++) {
			snprintf(json, sizeof(json), "{\"kind\":\"exec\",\"mono\":%llu%s}",
				 (unsigned long long)v, tail ? ",\"seq\":7" : "");
			assert_int_equal(event_from_json(&ev, &a, str_from(json), NULL), 0);
			assert_true(event_u64(&ev, F_MONO) == v);
		}
		snprintf(json, sizeof(json), "{\"kind\":\"exec\",\"mono\":%llux}",
			 (unsigned long long)v);
		assert_int_equal(event_from_json(&ev, &a, str_from(json), NULL), -EINVAL);
		snprintf(json, sizeof(json), "{\"kind\":\"exec\",\"mono\":%llue1}",
			 (unsigned long long)v);
		assert_int_equal(event_from_json(&ev, &a, str_from(json), NULL), -EINVAL);
		arena_done(&a);
	}
}

static void back_and_forth(void **state)
{
	struct arena a, b;
	struct buf one, two;
	struct event ev, again;
	struct err err = { 0 };

	(void)state;
	arena_init(&a, 0);
	arena_init(&b, 0);
	buf_init(&one, 0);
	buf_init(&two, 0);
	for (int i = 0; i < 3000; i++) {
		arena_reset(&a);
		arena_reset(&b);
		buf_reset(&one);
		buf_reset(&two);
		random_event(&ev, &a);
		assert_int_equal(event_to_json(&ev, &one), 0);
		assert_true(utf8_is_valid((struct str){ one.p, one.n }));
		if (event_from_json(&again, &b, (struct str){ one.p, one.n }, &err) < 0)
			fail_msg("%s: %.*s", err_text(&err), (int)one.n, one.p);
		assert_int_equal(again.kind, ev.kind);
		assert_memory_equal(again.present, ev.present, sizeof(ev.present));
		assert_int_equal(event_to_json(&again, &two), 0);
		assert_int_equal(one.n, two.n);
		assert_memory_equal(one.p, two.p, one.n);
	}
	arena_done(&a);
	arena_done(&b);
	buf_done(&one);
	buf_done(&two);
}

static int read_event(const char *json, size_t n, struct err *err)
{
	static struct event ev;
	struct arena a;
	char *exact = malloc(n + 1); /* a block of that size: a sanitizer sees every overrun */
	int r;

	memcpy(exact, json, n);
	arena_init(&a, 1 << 20);
	r = event_from_json(&ev, &a, (struct str){ exact, n }, err);
	arena_done(&a);
	free(exact);
	return r;
}

static void what_is_no_event_is_refused_with_its_place(void **state)
{
	static const char *const cases[][2] = {
		{ "", "expected an object" },
		{ "[]", "expected an object" },
		{ "{}", "no \"kind\"" },
		{ "{\"kind\":\"exec\"", "expected ',' or the end" },
		{ "{\"kind\":\"exec\"}x", "text behind" },
		{ "{\"\":1,\"kind\":\"exec\"}", "unknown member" },
		{ "{\"kind\":\"exec\",\"time\":\"\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000"
		  "\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000Z\"}",
		  "bad time" },
		{ "{\"kind\":\"nothing\"}", "'kind': unknown kind" },
		{ "{\"kind\":\"exec\",}", "',' before the end" },
		{ "{\"kind\":\"exec\",\"kind\":\"exec\"}", "'kind': member given twice" },
		{ "{\"kind\":\"exec\",\"v\":2}", "'v': unknown schema version" },
		{ "{\"kind\":\"exec\",\"nothing\":1}", "'nothing': unknown member" },
		{ "{\"kind\":\"exec\",\"proc\":{\"nothing\":1}}",
		  "'proc.nothing': unknown member" },
		{ "{\"kind\":\"exec\",\"proc\":1}", "'proc': expected an object" },
		{ "{\"kind\":\"exec\",\"proc\":{\"pid\":\"1\"}}", "'proc.pid': expected a number" },
		{ "{\"kind\":\"exec\",\"proc\":{\"pid\":01}}", "leading zero" },
		{ "{\"kind\":\"exec\",\"proc\":{\"pid\":-1}}", "expected a number" },
		{ "{\"kind\":\"exec\",\"proc\":{\"pid\":1.0}}", "whole number" },
		{ "{\"kind\":\"exec\",\"proc\":{\"pid\":18446744073709551616}}", "too large" },
		{ "{\"kind\":\"exec\",\"proc\":{\"pid\":1},\"proc\":{\"pid\":1}}", "given twice" },
		{ "{\"kind\":\"exec\",\"proc.pid\":1,\"proc\":{\"pid\":1}}", "given twice" },
		{ "{\"kind\":\"exec\",\"proc\":{\"loginuid\":9223372036854775808}}", "too large" },
		{ "{\"kind\":\"exec\",\"toctou\":1}", "true or false" },
		{ "{\"kind\":\"exec\",\"degraded\":[\"a\",]}", "',' before the end" },
		{ "{\"kind\":\"exec\",\"proc\":{\"caps\":\"1f\"}}", "hexadecimal" },
		{ "{\"kind\":\"exec\",\"proc\":{\"ancestors\":[{\"pid\":1}]}}", "member missing" },
		{ "{\"kind\":\"exec\",\"proc\":{\"ancestors\":[{\"pid\":1,\"pid\":1}]}}", "twice" },
		{ "{\"kind\":\"exec\",\"time\":\"2026-02-30T00:00:00Z\"}", "bad time" },
		{ "{\"kind\":\"exec\",\"time\":\"yesterday\"}", "expected a time" },
		{ "{\"kind\":\"net.connect\",\"net\":{\"dst\":{\"ip\":\"1.2.3\"}}}", "IP address" },
		{ "{\"kind\":\"exec\",\"session\":\"\xff\"}", "not UTF-8" },
		{ "{\"kind\":\"exec\",\"session\":\"\\ud800\"}", "lone surrogate" },
		{ "{\"kind\":\"exec\",\"session\":\"\\ud83d\\u0041\"}", "lone surrogate" },
		{ "{\"kind\":\"exec\",\"session\":\"\\x\"}", "unknown escape" },
		{ "{\"kind\":\"exec\",\"session\":\"\n\"}", "control character" },
		{ "{\"kind\":\"exec\",\"session\":\"a", "without end" },
		{ "{\"kind\":\"exec\",\"session\":\"\\\"", "without end" },
		{ "{\"kind\":\"exec\",\"raw\":{\"session\":\"/w==\"}}",
		  "'raw.session': no such string" },
		{ "{\"kind\":\"exec\",\"session\":\"a\",\"raw\":{\"session\":\"/w==\"}}",
		  "do not belong" },
		{ "{\"kind\":\"exec\",\"session\":\"a\",\"raw\":{\"session\":\"YQ==\"}}",
		  "do not belong" },
		{ "{\"kind\":\"exec\",\"session\":\"a\",\"raw\":{\"session\":\"*\"}}",
		  "bad base64" },
		{ "{\"kind\":\"exec\",\"proc\":{\"proc\":{\"proc\":{}}}}", "unknown member" },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		err = (struct err){ 0 };
		assert_int_equal(read_event(cases[i][0], strlen(cases[i][0]), &err), -EINVAL);
		if (!strstr(err_text(&err), cases[i][1]))
			fail_msg("%s -> %s", cases[i][0], err_text(&err));
	}
	assert_int_equal(read_event("{\"kind\":\"exec\"}\0", 16, NULL), -EINVAL);
}

static void people_may_write_it_their_way(void **state)
{
	static const char json[] = " { \"proc.exe\" : \"/bin/\\u0073h\\ud83d\\ude00\",\n"
				   "\t\"proc\":{\"args\" : [ \"sh\" , \"-c\" ]}, \"proc\":{},\n"
				   "\"time\":\"2026-01-31T12:34:56.5Z\", \"kind\":\"exec\" }\n";
	struct event ev;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(event_from_json(&ev, &a, STR(json), NULL), 0);
	assert_int_equal(ev.kind, WIRE_EXEC);
	assert_true(str_eqz(event_str(&ev, F_PROC_EXE), "/bin/sh\xf0\x9f\x98\x80"));
	assert_int_equal(ev.v[F_PROC_ARGS].list.n, 2);
	assert_int_equal(event_u64(&ev, F_TIME), 1769862896500000000);
	assert_int_equal(event_u64(&ev, F_V), EVENT_SCHEMA_VERSION);
	arena_done(&a);
}

/* Whatever is cut off or flipped: an error or an event, never a crash. */
static void mutations_are_survived(void **state)
{
	struct arena a;
	struct buf one;
	struct event ev;

	(void)state;
	arena_init(&a, 0);
	buf_init(&one, 0);
	for (int i = 0; i < 300; i++) {
		arena_reset(&a);
		buf_reset(&one);
		random_event(&ev, &a);
		assert_int_equal(event_to_json(&ev, &one), 0);
		assert_true(read_event(one.p, rnd() % one.n, NULL) < 0);
		for (int k = 0; k < 3; k++)
			one.p[rnd() % one.n] = (char)rnd();
		read_event(one.p, one.n, NULL);
	}
	arena_done(&a);
	buf_done(&one);
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
	struct arena a;
	struct event ev;
	struct buf b;

	(void)state;
	arena_init(&a, 0);
	buf_init(&b, 600);
	buf_addz(&b, "before");
	event_init(&ev, WIRE_EXEC, &a);
	event_set_str(&ev, F_PROC_EXE, arena_strndup(&a, "/bin/sh", 7));
	assert_int_equal(event_to_json(&ev, &b), 0);
	b.n = 6;
	event_set_str(&ev, F_PROC_CWD, arena_strndup(&a, arena_zalloc(&a, 1000), 1000));
	assert_int_equal(event_to_json(&ev, &b), -EMSGSIZE);
	assert_int_equal(b.n, 6);
	assert_memory_equal(b.p, "before", 6);
	assert_false(b.failed);
	arena_done(&a);
	buf_done(&b);
}

static void an_arena_that_is_full_is_no_bad_event(void **state)
{
	static const char json[] = "{\"kind\":\"exec\",\"proc\":{\"args\":[\"a\",\"b\",\"c\"]}}";
	struct err err = { 0 };
	struct event ev;
	struct arena a;

	(void)state;
	for (size_t limit = 8; limit < 160; limit += 8) {
		arena_init(&a, limit);
		assert_int_equal(event_from_json(&ev, &a, STR(json), &err), -ENOMEM);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(back_and_forth),
		cmocka_unit_test(one_text_is_one_event),
		cmocka_unit_test(every_key_is_found),
		cmocka_unit_test(numbers_of_every_length),
		cmocka_unit_test(what_is_no_event_is_refused_with_its_place),
		cmocka_unit_test(people_may_write_it_their_way),
		cmocka_unit_test(mutations_are_survived),
		cmocka_unit_test(a_full_buffer_is_left_as_it_was),
		cmocka_unit_test(an_arena_that_is_full_is_no_bad_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
