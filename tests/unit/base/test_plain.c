// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "userspace/base/plain.h"

static void what_a_terminal_obeys_goes(void **state)
{
	static const struct {
		const char *in, *keep, *out;
	} rows[] = {
		{ "", "", "" },
		{ "plain, ~ and gr\303\274n \360\237\220\232", "",
		  "plain, ~ and gr\303\274n \360\237\220\232" },
		{ "a\033[31mb\177c\r\n", "", "a?[31mb?c??" },
		{ "a\tb\nc\r", "\n\t", "a\tb\nc?" },
		{ "C1 \302\233"
		  "31m and \302\200\302\237",
		  "", "C1 ?31m and ??" }, /* CSI as UTF-8 */
		{ "raw \233"
		  "31m \200\377",
		  "", "raw ?31m ??" },					/* and as a byte */
		{ "\342\200\256txt.exe\342\200\254", "", "?txt.exe?" }, /* RLO, PDF */
		{ "\342\201\246x\342\201\251 \342\200\217\330\234", "",
		  "?x? ??" },					       /* LRI, PDI, RLM, ALM */
		{ "a\342\200\213b\357\273\277\302\255", "", "a?b??" }, /* ZWSP, BOM, soft hyphen */
		{ "\302\240 stays", "", "\302\240 stays" },
		{ "cut \342\200", "", "cut ??" },
		{ "\300\257 \355\240\200", "", "?? ???" }, /* overlong, surrogate */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[128];

		memcpy(text, rows[i].in, strlen(rows[i].in) + 1);
		plain_text(text, '?', rows[i].keep);
		assert_string_equal(text, rows[i].out);
	}
}

static void a_record_is_one_line(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "{\"a\":\"gr\303\274n \\n\"}", "{\"a\":\"gr\303\274n \\n\"}" },
		{ "{\"a\":\"x\033[31m\"}", "{\"a\":\"x\\u001b[31m\"}" },
		{ "{\"a\":\"x\n{\\\"k\\\":1}\"}\n{}", "{\"a\":\"x\\n{\\\"k\\\":1}\"} {}" },
		{ "{\"a\\\\\":\n\"\302\233\377\"}", "{\"a\\\\\": \"\\u009b\357\277\275\"}" },
		{ "\033\302\233", "  " },
		{ "", "" },
	};
	struct buf room;

	(void)state;
	buf_init(&room, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str line;

		assert_int_equal(plain_json(str_from(rows[i].in), &room, &line), 0);
		assert_int_equal(line.n, strlen(rows[i].out));
		assert_memory_equal(line.p, rows[i].out, line.n);
	}
	buf_done(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_terminal_obeys_goes),
		cmocka_unit_test(a_record_is_one_line),
	};

	return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
