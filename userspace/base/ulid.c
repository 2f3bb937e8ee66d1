// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/ulid.h"

#include <stdlib.h>
#include <string.h>

static const char ULID_DIGITS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void ulid_make(char out[ULID_LEN + 1], uint64_t real_ns)
{
	uint64_t ms = real_ns / 1000000;
	uint8_t rnd[16];

	arc4random_buf(rnd, sizeof(rnd)); /* cannot fail; glibc 2.36 */
	for (int i = 9; i >= 0; i--) {
		out[i] = ULID_DIGITS[ms & 31];
		ms >>= 5;
	}
	for (int i = 0; i < 16; i++)
		out[10 + i] = ULID_DIGITS[rnd[i] & 31];
	out[ULID_LEN] = 0;
}

bool ulid_is_valid(const char *text)
{
	return strlen(text) == ULID_LEN && text[0] <= '7' && strspn(text, ULID_DIGITS) == ULID_LEN;
}
