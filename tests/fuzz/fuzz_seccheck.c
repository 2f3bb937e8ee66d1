// SPDX-License-Identifier: Apache-2.0
/* A packet of gVisor's sink, as a sentry in hostile hands may send it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/event/seccheck.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct str packet, struct str s)
{
	if (s.n && (s.p < packet.p || s.n > packet.n || s.p + s.n > packet.p + packet.n))
		abort();
}

static void check_list(struct str packet, const struct seccheck_msg *m,
		       const struct seccheck_list *l)
{
	size_t at = 0, n = 0, bytes = 0;
	struct str s;

	for (; seccheck_list_next(m, l, &at, &s); n++) {
		check_text(packet, s);
		bytes += s.n;
	}
	if (n != l->n || bytes != l->bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	struct str packet = { copy, size };
	struct seccheck_msg m;

	if (size)
		memcpy(copy, data, size);
	seccheck_handshake(packet);
	if (seccheck_parse(packet, &m) == SECCHECK_OK) {
		const struct str texts[] = { m.body, m.c.container_id, m.c.cwd,	  m.c.process_name,
					     m.id,   m.path,	       m.fd_path, m.address };

		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			check_text(packet, texts[i]);
		check_list(packet, &m, &m.argv);
		check_list(packet, &m, &m.env);
	}
	free(copy);
	return 0;
}
