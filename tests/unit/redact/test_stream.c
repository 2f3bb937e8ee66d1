// SPDX-License-Identifier: Apache-2.0
/* Secrets that come in pieces. */
#include "tests/unit/redact/redact_test.h"
#include "userspace/redact/stream.h"

#define KEY_BEGIN                 \
	"-----BEGIN RSA PRIVATE " \
	"KEY-----\n"
#define KEY_LINE "MIIEpAIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi00dJTAiTCkbLXBQHyVsQeLq5B\n"
#define KEY_END                 \
	"-----END RSA PRIVATE " \
	"KEY-----\n"

struct pieces {
	struct fixture f;
	struct redact_stream *s;
	struct buf out;
};

static void start(struct pieces *p, const char *value)
{
	*p = (struct pieces){ 0 };
	fixture_start(&p->f, "v", value, NULL);
	assert_int_equal(redact_stream_new(&p->s, p->f.r), 0);
}

static void end(struct pieces *p)
{
	redact_stream_free(p->s);
	fixture_end(&p->f);
	buf_done(&p->out);
}

static void feed(struct pieces *p, const char *z, size_t n)
{
	assert_int_equal(redact_stream_feed(p->s, (struct str){ z, n }, &p->out), 0);
}

static bool says(struct pieces *p, const char *z)
{
	return p->out.n && memmem(p->out.p, p->out.n, z, strlen(z)) != NULL;
}

/* In two pieces, cut at each place, with a silence between. */
static void test_two_pieces(void **state)
{
	static const char *const texts[] = {
		"x correct horse battery y\n",
		"export DB_PASSWORD=hunter2hunter2 y\n",
		"id AKI"
		"A2B4C6D8E0F2G4H6J y\n",
		"x Y29ycmVjdCBob3JzZSBiYXR0ZXJ5 y\n",
		KEY_BEGIN KEY_LINE KEY_LINE KEY_END "y\n",
	};
	static const char *const secrets[] = { "horse", "hunter", "2B4C6D", "Y29ycmV", "MIIEp" };

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
		for (size_t cut = 0; cut <= strlen(texts[t]); cut++) {
			struct pieces p;

			start(&p, "correct horse battery");
			feed(&p, texts[t], cut);
			assert_int_equal(redact_stream_idle(p.s, &p.out), 0);
			feed(&p, texts[t] + cut, strlen(texts[t]) - cut);
			assert_int_equal(redact_stream_end(p.s, &p.out), 0);
			if (says(&p, secrets[t]) || !says(&p, "[redacted:") || !says(&p, "y\n"))
				fail_msg("text %zu cut at %zu: '%.*s'", t, cut, (int)p.out.n,
					 p.out.p);
			end(&p);
		}
}

static void test_byte_by_byte(void **state)
{
	static const char text[] =
		"a password=hunter2hunter2\nb correct horse battery\n" KEY_BEGIN KEY_LINE KEY_LINE
			KEY_END "c\n";
	struct pieces p;

	(void)state;
	start(&p, "correct horse battery");
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		feed(&p, text + i, 1);
		assert_int_equal(redact_stream_idle(p.s, &p.out), 0);
	}
	assert_int_equal(redact_stream_end(p.s, &p.out), 0);
	assert_false(says(&p, "hunter") || says(&p, "horse") || says(&p, "MIIE"));
	assert_true(says(&p, "\nc\n"));
	end(&p);
}

/* Nothing but the secret is changed, however the pieces are cut. */
static void test_nothing_is_lost(void **state)
{
	auto_buf struct buf text = { 0 };
	struct pieces p;

	(void)state;
	for (int i = 0; i < 3000; i++)
		buf_printf(&text, "line %d of output, no secret\x1b[1m in\x1b[0m it%s", i,
			   i % 7 ? "\n" : " ");
	for (size_t step = 1; step < 70000; step = step * 3 + 1) {
		start(&p, "correct horse battery");
		for (size_t at = 0; at < text.n; at += step)
			feed(&p, text.p + at, MIN(step, text.n - at));
		assert_int_equal(redact_stream_end(p.s, &p.out), 0);
		assert_int_equal(p.out.n, text.n);
		assert_memory_equal(p.out.p, text.p, text.n);
		end(&p);
	}
}

static void test_colours(void **state)
{
	static const char text[] = "x correct \x1b[01;31mhorse\x1b[m battery y\n";
	struct pieces p;

	(void)state;
	start(&p, "correct horse battery");
	feed(&p, text, sizeof(text) - 1);
	assert_false(says(&p, "horse"));
	assert_true(says(&p, "x [redacted:v:"));
	assert_true(says(&p, "]\x1b[01;31m\x1b[m y\n"));
	end(&p);
}

/* What a terminal would take for a colour may be a part of the secret. */
static void test_colour_or_not(void **state)
{
	static const char text[] =
		"x \x1b[0correct horse battery y\npassword=hun\x1b[1mter2hunter2 z\n";
	struct pieces p;

	(void)state;
	start(&p, "correct horse battery");
	feed(&p, text, sizeof(text) - 1);
	assert_false(says(&p, "horse") || says(&p, "ter2"));
	assert_true(says(&p, "x \x1b[0[redacted:v:") && says(&p, " z\n"));
	end(&p);
}

/* What was rubbed out while it was typed is not there to hide the rest; and what was not rubbed out in the end, but
 * only gone over, is found as it stands. */
static void test_editing(void **state)
{
	static const char *const texts[] = {
		"x correct-horsw\x7f"
		"e-battery y\r",		       /* typed */
		"x correct-horsw\b \be-battery y\r\n", /* its echo */
		"x wrong\x15"
		"correct-horse-battery y\r",
		"x donkey\x17"
		"correct-horse-battery y\r",
		"x correct-horse-battery\b\b y\r\n", /* the cursor goes back */
		"x correct-\x1b[1mhorsw\x7f"
		"e\x1b[m-battery y\r",
		"x correct-horse-batteru\x7fy correct-hor\x7frse-battery y\r",
	};

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
		for (size_t step = 1; step < 40; step += 7) {
			size_t n = strlen(texts[t]);
			struct pieces p;

			start(&p, "correct-horse-battery");
			for (size_t at = 0; at < n; at += step) {
				feed(&p, texts[t] + at, MIN(step, n - at));
				assert_int_equal(redact_stream_idle(p.s, &p.out), 0);
			}
			assert_int_equal(redact_stream_end(p.s, &p.out), 0);
			if (says(&p, "hors") || says(&p, "batter") || !says(&p, "[redacted:v:") ||
			    !says(&p, " y\r"))
				fail_msg("text %zu by %zu: '%.*s'", t, step, (int)p.out.n, p.out.p);
			end(&p);
		}
}

/* A prompt is not held for long; a word that may be a password's is. */
static void test_idle(void **state)
{
	struct pieces p;

	(void)state;
	start(&p, "correct horse battery");
	feed(&p, "user@host:~$ ", 13);
	assert_int_equal(p.out.n, 0);
	assert_int_equal(redact_stream_idle(p.s, &p.out), 0);
	assert_int_equal(p.out.n, 13);
	assert_false(redact_stream_holds(p.s));
	feed(&p, "Password: ", 10);
	assert_int_equal(redact_stream_idle(p.s, &p.out), 0);
	assert_int_equal(p.out.n, 13);
	end(&p);
}

/* One long line: within bounds, and what lies over a cut is found. */
static void test_long_line(void **state)
{
	struct pieces p;
	char chunk[1000];

	(void)state;
	memset(chunk, '.', sizeof(chunk));
	start(&p, "correct horse battery");
	for (int i = 0; i < 100; i++) {
		feed(&p, chunk, sizeof(chunk) - (size_t)i);
		feed(&p, "correct horse battery", 21);
		assert_true(p.out.n + 3 * REDACT_HELD_MAX > (size_t)i * 900);
	}
	assert_int_equal(redact_stream_end(p.s, &p.out), 0);
	assert_false(says(&p, "horse"));
	end(&p);
}

/* A key without an end hides no more than a key's length of what follows. */
static void test_block_without_end(void **state)
{
	struct pieces p;

	(void)state;
	start(&p, "correct horse battery");
	feed(&p, KEY_BEGIN, sizeof(KEY_BEGIN) - 1);
	for (int i = 0; i < 3000; i++)
		feed(&p, KEY_LINE, sizeof(KEY_LINE) - 1);
	feed(&p, "an attack\n", 10);
	assert_int_equal(redact_stream_end(p.s, &p.out), 0);
	assert_true(says(&p, "[redacted:private-key:"));
	assert_true(says(&p, "an attack\n"));
	end(&p);
	start(&p, "correct horse battery");
	feed(&p, KEY_BEGIN "an attack (it is)\n", sizeof(KEY_BEGIN) + 17);
	assert_int_equal(redact_stream_end(p.s, &p.out), 0);
	assert_true(says(&p, "an attack"));
	end(&p);
}

/* ---- no part of a known value at any border ---- */

static const char LONG_VALUE[] = "SECRETMARK-q7Zk2Lm9Xv4Tn8";

static void check_parts(struct pieces *p, const char *value, const char *what, size_t step)
{
	for (size_t i = 0; i + 8 <= strlen(value); i++) {
		const char *at = p->out.n ? memmem(p->out.p, p->out.n, value + i, 8) : NULL;

		if (at)
			fail_msg("between '%s', pieces of %zu: '%.60s'", what, step, at);
	}
}

/* More of them in a line than are taken out one by one. */
static void test_many_in_a_line(void **state)
{
	static const char *const between[] = { "", " ", ",", "xyz", "\033[1m", "\n" };
	static const size_t counts[] = { 257, 700 };

	(void)state;
	for (size_t b = 0; b < ARRAY_SIZE(between); b++)
		for (size_t c = 0; c < ARRAY_SIZE(counts); c++)
			for (size_t step = 1; step < 100000; step = step * 40 + 9) {
				auto_buf struct buf text = { 0 };
				struct pieces p;

				for (size_t i = 0; i < counts[c]; i++)
					buf_printf(&text, "%s%s", LONG_VALUE, between[b]);
				start(&p, LONG_VALUE);
				for (size_t at = 0; at < text.n; at += step)
					feed(&p, text.p + at, MIN(step, text.n - at));
				assert_int_equal(redact_stream_end(p.s, &p.out), 0);
				check_parts(&p, LONG_VALUE, between[b], step);
				end(&p);
			}
}

/* One that is longer than what is held back else, in a line without an end. */
static void test_long_value_in_pieces(void **state)
{
	static char value[12001], text[40001];

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(value); i++)
		value[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[(i * i + i / 7) % 36];
	memset(text, '.', sizeof(text) - 1);
	memcpy(text + 9000, value, strlen(value));
	for (size_t step = 512; step < 30000; step = step * 3) {
		struct pieces p;

		start(&p, value);
		for (size_t at = 0; at < strlen(text); at += step)
			feed(&p, text + at, MIN(step, strlen(text) - at));
		assert_int_equal(redact_stream_end(p.s, &p.out), 0);
		assert_true(says(&p, "[redacted:v:"));
		assert_null(memmem(p.out.p, p.out.n, value + 6000, 32));
		assert_null(memmem(p.out.p, p.out.n, value, 32));
		assert_null(memmem(p.out.p, p.out.n, value + strlen(value) - 32, 32));
		end(&p);
	}
}

/* The writer is stopped, and the last it said is a part of one. */
static void test_ends_inside(void **state)
{
	(void)state;
	for (size_t n = 8; n < strlen(LONG_VALUE); n++) {
		struct pieces p;

		start(&p, LONG_VALUE);
		feed(&p, "said: ", 6);
		feed(&p, LONG_VALUE, n);
		assert_int_equal(redact_stream_end(p.s, &p.out), 0);
		check_parts(&p, LONG_VALUE, "", n);
		assert_true(says(&p, "said: [redacted:v:"));
		end(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_pieces),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_colours),
		cmocka_unit_test(test_colour_or_not),
		cmocka_unit_test(test_editing),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_block_without_end),
		cmocka_unit_test(test_many_in_a_line),
		cmocka_unit_test(test_long_value_in_pieces),
		cmocka_unit_test(test_ends_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
