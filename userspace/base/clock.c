// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/clock.h"

#include <string.h>

#include "userspace/base/json.h"

#define SECOND_LEN 20 /* with the dot */

static void put_digits(char *p, unsigned v, int width)
{
	while (width-- > 0) {
		p[width] = (char)('0' + v % 10);
		v /= 10;
	}
}

/* "2026-01-31T12:34:56." */
static void put_second(char *out, uint64_t real_s)
{
	uint64_t days = real_s / 86400, left = real_s % 86400;
	/* Days since 0000-03-01, so that the leap day is the last day of a year. */
	uint64_t z = days + 719468, era = z / 146097, doe = z % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	unsigned day = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
	unsigned month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
	unsigned year = (unsigned)(yoe + era * 400 + (month <= 2));

	memcpy(out, "0000-00-00T00:00:00.", SECOND_LEN);
	put_digits(out, year % 10000, 4);
	put_digits(out + 5, month, 2);
	put_digits(out + 8, day, 2);
	put_digits(out + 11, (unsigned)(left / 3600), 2);
	put_digits(out + 14, (unsigned)(left / 60 % 60), 2);
	put_digits(out + 17, (unsigned)(left % 60), 2);
}

void rfc3339_ns(char out[RFC3339_NS_LEN + 1], uint64_t real_ns)
{
	/* Events of one second come one after the other. */
	static __thread struct {
		uint64_t second;
		char text[SECOND_LEN];
	} last;
	uint64_t second = real_ns / NSEC_PER_SEC;
	unsigned ns = (unsigned)(real_ns % NSEC_PER_SEC);

	if (second != last.second || !last.text[0]) {
		put_second(last.text, second);
		last.second = second;
	}
	memcpy(out, last.text, SECOND_LEN);
	out[SECOND_LEN] = (char)('0' + ns / 100000000);
	json_digits8(out + SECOND_LEN + 1, ns % 100000000);
	memcpy(out + RFC3339_NS_LEN - 1, "Z", 2);
}
