// SPDX-License-Identifier: Apache-2.0
/* The half of json.h that processors without SSE2 use. */
#define JSON_PLAIN_C
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"

#include "tests/unit/base/json_copy.h"

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_until_the_first_odd_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
