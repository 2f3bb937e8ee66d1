// SPDX-License-Identifier: Apache-2.0
/* Sealed originals of a bundle that somebody else made. The first byte: 0 the rest is a frame's payload, else it is the
 * content of a box, which is sealed here: who has the public key can do that. */
#include <sodium.h>
#include <stdint.h>
#include <string.h>

#include "userspace/redact/escrow.h"

#define CONTENT_MAX 200000

static void read_payload(struct str payload, const uint8_t *secret)
{
	auto_buf struct buf room = { 0 };
	struct redact_original o;
	struct escrow_reader r;
	volatile char last;

	if (escrow_reader_init(&r, payload) < 0)
		return;
	while (escrow_reader_next(&r, secret, &room, &o) == 1) {
		last = o.rule.n ? o.rule.p[o.rule.n - 1] : 0;
		last = o.text.n ? o.text.p[o.text.n - 1] : o.tag.p[o.tag.n - 1];
		(void)last;
	}
}

static void read_content(const uint8_t *p, size_t n, const uint8_t *public_key,
			 const uint8_t *secret)
{
	static uint8_t payload[48 + CONTENT_MAX + crypto_box_SEALBYTES];
	uint32_t box = (uint32_t)(n + crypto_box_SEALBYTES);

	memcpy(payload, "WARDESC1", 8);
	memcpy(payload + 8, public_key, ESCROW_KEY_LEN);
	memcpy(payload + 40, &(uint32_t){ 1 }, 4);
	memcpy(payload + 44, &box, 4);
	if (crypto_box_seal(payload + 48, p, n, public_key) == 0)
		read_payload((struct str){ (char *)payload, 48 + box }, secret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[ESCROW_KEY_LEN] = { 1, 2, 3 };
	uint8_t public_key[ESCROW_KEY_LEN], key[ESCROW_KEY_LEN];

	if (!size || size > CONTENT_MAX || escrow_public_of(public_key, secret) < 0)
		return 0;
	if (data[0])
		read_content(data + 1, size - 1, public_key, secret);
	else
		read_payload((struct str){ (const char *)data + 1, size - 1 }, secret);
	(void)escrow_key_parse(key, ESCROW_PUBLIC_LINE, (struct str){ (const char *)data, size });
	return 0;
}
