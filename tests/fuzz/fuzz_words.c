// SPDX-License-Identifier: Apache-2.0
/* Short texts: what `runsc trace list` prints, addresses, sizes, durations, fractions, a public key. First byte: which. A
 * value that is taken is written and read again the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "runtime/egress/range.h"
#include "runtime/gvisor/guest.h"
#include "userspace/base/option.h"
#include "userspace/store/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void address(const char *z)
{
	struct egress_addr a, b;
	char text[EGRESS_TEXT_MAX];
	uint16_t port, again;

	if (egress_addr_parse(&a, z))
		(void)egress_range_of(&a);
	if (!egress_addr_port_parse(&a, &port, z, true))
		return;
	egress_addr_text(&a, port, text);
	if (!egress_addr_port_parse(&b, &again, text, true) || again != port ||
	    memcmp(&a, &b, sizeof(a)) != 0)
		abort();
}

static void size(const char *z)
{
	uint64_t v;

	(void)parse_size(z, &v);
}

static void duration(const char *z)
{
	uint64_t v;

	(void)parse_duration_ns(z, &v);
}

static void fraction(const char *z)
{
	uint64_t v;

	(void)parse_fraction(z, &v);
}

static void key(struct str text)
{
	uint8_t k[KEY_LEN];

	(void)key_parse(text, k);
}

static void trace_list(struct str text)
{
	uint64_t dropped;

	(void)gvisor_trace_list_parse(text, &dropped, NULL);
}

static const struct {
	char which;
	void (*words)(const char *z);
	void (*text)(struct str text);
} parsers[] = {
	{ 'a', address, NULL },	 { 's', size, NULL }, { 'd', duration, NULL },
	{ 'f', fraction, NULL }, { 'k', NULL, key },  { 'r', NULL, trace_list },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *z;

	for (size_t i = 0; n && i < ARRAY_SIZE(parsers); i++) {
		size_t len = n - 1 + !!parsers[i].words;

		if (data[0] != (uint8_t)parsers[i].which)
			continue;
		z = calloc(1, len ? len : 1); /* ASan sees one byte too far */
		if (!z)
			abort();
		memcpy(z, data + 1, n - 1);
		if (parsers[i].words)
			parsers[i].words(z);
		else
			parsers[i].text((struct str){ z, n - 1 });
		free(z);
	}
	return 0;
}
