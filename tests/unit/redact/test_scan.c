// SPDX-License-Identifier: Apache-2.0
/* Long output is looked through by Hyperscan: it must find what our own pass does, byte by byte. */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/redact/redact_test.h"
#include "userspace/base/fd.h"
#include "userspace/redact/stream.h"

#define NEVER UINT64_MAX

/* Keywords of three bytes, of four, long ones, with a blank, and the same in two rules. */
static const char RULES[] =
	"- rule: three\n  keywords: [zq-]\n  regex: 'zq-([a-z0-9]{6,40})'\n"
	"- rule: four\n  keywords: [zqk_, ZQL_]\n  regex: '(?i)zq[kl]_([a-z0-9]{6,40})'\n"
	"- rule: long\n  keywords: ['the secret name of the thing is']\n  regex: 'thing is ([a-z0-9]{6,40})'\n"
	"- rule: again\n  keywords: [zqk_]\n  regex: 'zqk_[0-9]{8,12}'\n";

static const char *const VALUES[] = {
	"correct horse battery",
	"a b c d e f g",
	"hunter2hunter2",
	"line one of it\nline two of it\n",
	"p\xc3\xa4ssw\xc3\xb6rd",
	"\"quoted\"&<more>",
	"{\"user\":\"somebody-else\",\"key\":\"abcdefgh12345\"}",
	"tab\tand blank",
	"AAAAAAAAAAAA",
};

static struct redactor *make(uint64_t after)
{
	struct redactor *r = NULL;
	struct err err = { 0 };

	assert_int_equal(redactor_new(&r, TEST_KEY, &err), 0);
	assert_int_equal(redactor_add_builtin(r, &err), 0);
	if (redactor_add_rules(r, "own.yaml", STR(RULES), &err) < 0)
		fail_msg("%s", err_text(&err));
	for (size_t i = 0; i < ARRAY_SIZE(VALUES); i++)
		assert_int_equal(redactor_add_value(r, "v", str_from(VALUES[i])), 0);
	redactor_set_hyperscan_after(r, after);
	assert_int_equal(redactor_finish(r, &err), 0);
	return r;
}

static bool is_there(void)
{
	const char *what;

	if (redact_has_hyperscan(&what))
		return true;
	print_message("no Hyperscan: %s\n", what);
	return false;
}

/* ---- texts ---- */

static uint32_t seed;

static uint32_t dice(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void add_utf16(struct buf *b, const char *z, bool big, char filler)
{
	for (; *z; z++) {
		if (big)
			buf_addc(b, filler);
		buf_addc(b, *z);
		if (!big)
			buf_addc(b, filler);
	}
}

static void add_hex(struct buf *b, const char *z)
{
	for (; *z; z++)
		buf_printf(b, dice(2) ? "%02x" : "%02X", (unsigned char)*z);
}

/* The value as it is, in other letters, with other blanks, encoded, or only a part. */
static void add_value(struct buf *b, const char *z)
{
	static const char blanks[] = " \t\n\r";
	size_t cut = dice(4) ? SIZE_MAX : dice(12);
	uint32_t how = dice(8);

	if (how == 0 || how == 1) {
		add_utf16(b, z, how, dice(3) ? 0 : ' ');
	} else if (how == 2) {
		add_hex(b, z);
	} else {
		for (size_t i = 0; z[i] && i < cut; i++) {
			char c = z[i];

			if (how == 3 && c >= 'a' && c <= 'z' && dice(2))
				c = (char)(c - 32);
			if (how == 4 && c == ' ')
				c = dice(5) ? blanks[dice(4)] : 0;
			buf_addc(b, c);
		}
	}
}

static void add_piece(struct buf *b)
{
	static const char *const words[] = {
		"zq-",
		"zq-abcdefgh",
		"ZQ-abcdefgh",
		"zqk_123456789",
		"zqL_abcdefgh",
		"zqk_",
		"the secret name of the thing is abc123def",
		"THE SECRET NAME of the thing is ",
		"password=hunter3hunter3",
		"Authorization: Bearer abcdefghijklmnop012345",
		"://",
		"ftp://u:sesame1@h/",
		"AKI"
		"A2B4C6D8E0F2G4H6J",
		"4111 1111 1111 1111",
		"Y29ycmVjdCBob3JzZSBiYXR0ZXJ5",
		"\033[1;32m",
		"\033[0m",
		"\b \b",
		"x\x7f",
		"\x15",
		"\r",
		"\n",
		"\n",
		"    ",
		"---",
		"-----BEGIN RSA PRIVATE "
		"KEY-----\nMIIEpAIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi00\n",
		"-----END RSA PRIVATE "
		"KEY-----\n",
	};

	switch (dice(8)) {
	case 0:
	case 1:
		buf_addz(b, words[dice(ARRAY_SIZE(words))]);
		break;
	case 2:
		add_value(b, VALUES[dice(ARRAY_SIZE(VALUES))]);
		break;
	case 3:
		for (uint32_t n = dice(40); n; n--)
			buf_addc(b, (char)dice(256));
		break;
	default:
		for (uint32_t n = dice(60); n; n--)
			buf_addc(b, "etaoin shrdlu./-0123456789=:ABC"[dice(31)]);
		if (dice(3) == 0)
			buf_addc(b, '\n');
	}
}

/* ---- the same by both ---- */

struct both {
	struct redactor *r[2];
};

static void start(struct both *b)
{
	b->r[0] = make(NEVER);
	b->r[1] = make(0);
}

static void end(struct both *b)
{
	for (int i = 0; i < 2; i++)
		redactor_free(b->r[i]);
}

static void assert_same(const struct buf *a, const struct buf *b, const char *what, size_t step)
{
	size_t at = 0;

	if (a->n == b->n && (!a->n || !memcmp(a->p, b->p, a->n)))
		return;
	while (at < a->n && at < b->n && a->p[at] == b->p[at])
		at++;
	fail_msg("%s, in pieces of %zu: differ at byte %zu: own '%.*s', Hyperscan '%.*s'", what,
		 step, at, (int)MIN(a->n - at, (size_t)60), a->p + at,
		 (int)MIN(b->n - at, (size_t)60), b->p + at);
}

/* As one text, and as a stream in pieces of `step` bytes. */
static uint64_t compare(struct both *b, struct str in, size_t step, const char *what)
{
	struct buf out[2] = { 0 };
	struct redact_counts c[2];

	for (int i = 0; i < 2; i++) {
		AUTO(redact) struct redact *x = NULL;
		AUTO(redact_stream) struct redact_stream *s = NULL;

		assert_int_equal(redact_new(&x, b->r[i]), 0);
		assert_true(redact_text(x, in, &out[i]) >= 0);
		assert_int_equal(redact_stream_new(&s, b->r[i]), 0);
		for (size_t at = 0; at < in.n; at += step) {
			struct str piece = { in.p + at, MIN(step, in.n - at) };

			assert_int_equal(redact_stream_feed(s, piece, &out[i]), 0);
			if (at / step % 5 == 4)
				assert_int_equal(redact_stream_idle(s, &out[i]), 0);
		}
		assert_int_equal(redact_stream_end(s, &out[i]), 0);
		redact_counts(redact_stream_redact(s), &c[i]);
		c[i].by_rule = NULL;
	}
	assert_same(&out[0], &out[1], what, step);
	assert_int_equal(c[0].places, c[1].places);
	assert_int_equal(c[0].values, c[1].values);
	assert_int_equal(c[0].limited, c[1].limited);
	for (int i = 0; i < 2; i++)
		buf_done(&out[i]);
	return c[0].places;
}

static void test_made_texts(void **state)
{
	static const size_t steps[] = { 1, 511, 512, 513, 700, 4096, 65536 };
	uint64_t places = 0;
	struct both b;

	(void)state;
	if (!is_there())
		skip();
	start(&b);
	for (uint32_t i = 0; i < 300; i++) {
		auto_buf struct buf in = { 0 };
		size_t want = i % 30 ? 600 + i * 20 : 100000;

		seed = i;
		while (in.n < want)
			add_piece(&in);
		places += compare(&b, (struct str){ in.p, in.n }, steps[i % ARRAY_SIZE(steps)],
				  "made text");
	}
	assert_true(places > 5000);
	assert_true(redactor_uses_hyperscan(b.r[1]));
	assert_false(redactor_uses_hyperscan(b.r[0]));
	end(&b);
}

/* A secret at each place around the end of a piece, with and without colours in it. */
static void test_over_the_end_of_a_piece(void **state)
{
	static const char *const secrets[] = { "correct horse battery",
					       "corr\033[1mect horse\033[0m battery", "zq-abcdefgh",
					       "a b c d e f g" };
	struct both b;

	(void)state;
	if (!is_there())
		skip();
	start(&b);
	for (size_t k = 0; k < ARRAY_SIZE(secrets); k++)
		for (size_t at = 1000; at <= 1030; at++) {
			auto_buf struct buf in = { 0 };

			for (size_t i = 0; i < at; i++)
				buf_addc(&in, i % 50 ? '.' : '\n');
			buf_addz(&in, secrets[k]);
			for (size_t i = 0; i < 1500; i++)
				buf_addc(&in, i % 50 ? ',' : '\n');
			assert_true(compare(&b, (struct str){ in.p, in.n }, 1024, secrets[k]) > 0);
		}
	end(&b);
}

/* All that the fuzzers found worth keeping, each often enough to be long. */
static void test_corpora(void **state)
{
	static const char *const folders[] = { "redact",   "neutral",	  "screen",
					       "terminal", "export_text", "event_json" };
	struct both b;
	size_t files = 0;

	(void)state;
	if (!is_there())
		skip();
	start(&b);
	for (size_t k = 0; k < ARRAY_SIZE(folders); k++) {
		char path[128];
		struct dirent *d;
		DIR *dir;

		snprintf(path, sizeof(path), "tests/fuzz/corpus/%s", folders[k]);
		dir = opendir(path);
		assert_non_null(dir);
		while ((d = readdir(dir))) {
			auto_buf struct buf in = { 0 };
			auto_free char *text = NULL;
			size_t n = 0;

			if (d->d_name[0] == '.' ||
			    file_read_at(dirfd(dir), d->d_name, 1 << 20, &text, &n) < 0 || !n)
				continue;
			while (in.n < 2048)
				buf_add(&in, text, n);
			compare(&b, (struct str){ in.p, in.n }, 777, d->d_name);
			files++;
		}
		closedir(dir);
	}
	assert_true(files > 20);
	end(&b);
}

/* ---- when ---- */

static void look(struct redactor *r, size_t n, size_t times)
{
	AUTO(redact) struct redact *x = NULL;
	auto_buf struct buf in = { 0 }, out = { 0 };

	assert_int_equal(redact_new(&x, r), 0);
	while (in.n < n)
		buf_addc(&in, in.n % 60 ? 'e' : '\n');
	while (times--)
		assert_int_equal(redact_text(x, (struct str){ in.p, in.n }, &out), 0);
}

/* Its tables are not made for a run without much output. */
static void test_not_before_it_pays(void **state)
{
	struct redactor *r = make(1 << 20);

	(void)state;
	look(r, 500, 3000); /* short texts never are reason for it */
	assert_false(redactor_uses_hyperscan(r));
	look(r, 65536, 15);
	assert_false(redactor_uses_hyperscan(r));
	look(r, 65536, 1);
	assert_int_equal(redactor_uses_hyperscan(r), is_there());
	redactor_free(r);
}

static void *look_in_thread(void *r)
{
	AUTO(redact) struct redact *x = NULL;
	auto_buf struct buf in = { 0 };
	long found = 0;

	if (redact_new(&x, r) < 0)
		return NULL;
	for (size_t i = 0; i < 2000; i++)
		buf_addz(&in, i == 1500 ? "correct horse battery" : "some output ");
	for (int i = 0; i < 200; i++) {
		auto_buf struct buf out = { 0 };

		found += redact_text(x, (struct str){ in.p, in.n }, &out);
	}
	return (void *)found;
}

static void test_threads_that_begin_at_once(void **state)
{
	struct redactor *r = make(0);
	pthread_t t[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, look_in_thread, r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		void *found = NULL;

		assert_int_equal(pthread_join(t[i], &found), 0);
		assert_int_equal((long)found, 200);
	}
	redactor_free(r);
}

/* More patterns than it is given: our own pass does it, and all is found. */
static void test_too_many_for_it(void **state)
{
	AUTO(redactor) struct redactor *r = NULL;
	AUTO(redact) struct redact *x = NULL;
	auto_buf struct buf text = { 0 }, out = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(redactor_new(&r, TEST_KEY, &err), 0);
	for (int i = 0; i < 30; i++) {
		auto_buf struct buf value = { 0 };

		for (int line = 0; line < 400; line++)
			buf_printf(&value, "%08x%08x%08x\n", i * 1000 + line, line * 7919,
				   i * 104729);
		assert_int_equal(redactor_add_value(r, "v", (struct str){ value.p, value.n }), 0);
	}
	redactor_set_hyperscan_after(r, 0);
	assert_int_equal(redactor_finish(r, &err), 0);
	assert_int_equal(redact_new(&x, r), 0);
	for (int i = 0; i < 100; i++)
		buf_addz(&text, "some output ");
	buf_printf(&text, "%08x%08x%08x\n", 7 * 1000 + 3, 3 * 7919, 7 * 104729);
	assert_int_equal(redact_text(x, (struct str){ text.p, text.n }, &out), 1);
	assert_false(redactor_uses_hyperscan(r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_texts),
		cmocka_unit_test(test_over_the_end_of_a_piece),
		cmocka_unit_test(test_corpora),
		cmocka_unit_test(test_not_before_it_pays),
		cmocka_unit_test(test_threads_that_begin_at_once),
		cmocka_unit_test(test_too_many_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
