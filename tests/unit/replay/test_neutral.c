// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/replay/neutral.h"

static void expect(bool plain, const char *in, const char *want)
{
	/* whole, and byte by byte: nothing depends on how it was cut */
	for (size_t step = 1; step <= strlen(in); step += strlen(in) > 1 ? strlen(in) - 1 : 1) {
		struct neutral v = { .plain = plain };
		auto_buf struct buf out = { 0 };

		for (size_t i = 0; i < strlen(in); i += step)
			assert_int_equal(
				neutral_feed(&v, (struct str){ in + i, MIN(step, strlen(in) - i) },
					     &out),
				0);
		assert_int_equal(neutral_end(&v, &out), 0);
		buf_addc(&out, 0);
		assert_string_equal(out.p, want);
	}
}

static void test_harmless_passes(void **state)
{
	(void)state;
	expect(false, "plain\r\n\ttext\b", "plain\r\n\ttext\b");
	expect(false, "\033[1;31mred", "\033[1;31mred\033[0m");
	expect(false, "\033[38:2::1:2:3mx", "\033[38:2::1:2:3mx\033[0m");
	expect(false, "\033[2J\033[10;5H\033[K\0337\0338\033M",
	       "\033[2J\033[10;5H\033[K\0337\0338\033M");
	expect(false, "gr\303\274n \342\202\254 \360\237\230\200",
	       "gr\303\274n \342\202\254 \360\237\230\200");
}

static void test_undone_in_the_end(void **state)
{
	(void)state;
	expect(false, "\033[?1049h\033[?25lvim", "\033[?1049h\033[?25lvim\033[?1049l\033[?25h");
	expect(false, "\033[?1049h\033[?1049l", "\033[?1049h\033[?1049l");
	expect(false, "\033[2;5r", "\033[2;5r\033[r");
}

static void test_attacks_do_not(void **state)
{
	static const char *const rows[] = {
		"\033]0;title\007",
		"\033]52;c;cm0gLXJm\007",
		"\033]52;c;x\033\\",
		"\033]8;;http://x\033\\",
		"\033P+q544e\033\\",
		"\033P$qm\033\\",
		"\033_app\033\\",
		"\033^pm\033\\",
		"\033Xsos\033\\",
		"\033[6n",
		"\033[5n",
		"\033[c",
		"\033[>c",
		"\033[=c",
		"\033[21t",
		"\033[?1000h",
		"\033[?2004h",
		"\033[?1h",
		"\033[4h",
		"\033[20h",
		"\033[?25;1049h",
		"\033[!p",
		"\033[1$r",
		"\033[ q",
		"\033[0 q",
		"\033=",
		"\033>",
		"\033#8",
		"\033(0",
		"\033Z",
		("\302\233"
		 "6n"),
		"\007",
		"\016\017",
		"\005",
		"\177",
		"\033[<1u",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct neutral v = { 0 };
		auto_buf struct buf out = { 0 };

		neutral_feed(&v, str_from("a"), &out);
		neutral_feed(&v, str_from(rows[i]), &out);
		neutral_feed(&v, str_from("b"), &out);
		neutral_end(&v, &out);
		if (memchr(out.p, 0x1b, out.n) || out.p[0] != 'a' || out.p[out.n - 1] != 'b')
			fail_msg("row %zu: %.*s", i, (int)out.n, out.p);
		for (size_t k = 0; k < out.n; k++)
			if ((unsigned char)out.p[k] < 0x20 || out.p[k] == 0x7f)
				fail_msg("row %zu", i);
	}
}

static void test_strange_ends(void **state)
{
	char longest[200] = "\033[";

	(void)state;
	expect(false, "x\033]never ends", "x");
	expect(false, "x\033]0;t\033[31mred", "x\033[31mred\033[0m");
	expect(false, "x\033[12\033[1mb", "x\033[1mb\033[0m");
	expect(false, "x\033\033\033[1mb", "x\033[1mb\033[0m");
	expect(false, "\377\302", "\357\277\275\357\277\275");
	expect(false, "\342\202x", "\357\277\275x");
	memset(longest + 2, '1', 150);
	strcpy(longest + 152, "mok");
	expect(false, longest, "ok");
}

static void test_plain_text(void **state)
{
	(void)state;
	expect(true, "\033[31mred\033[0m\r\n\033]0;t\007x\b", "red\nx");
	expect(true, "\033[?1049hx\033c", "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_harmless_passes), cmocka_unit_test(test_undone_in_the_end),
		cmocka_unit_test(test_attacks_do_not),	cmocka_unit_test(test_strange_ends),
		cmocka_unit_test(test_plain_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
