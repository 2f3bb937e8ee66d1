// SPDX-License-Identifier: Apache-2.0
/* Messages of ours, which quote names and texts of the sandbox and may have been cut to their buffers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/err.h"
#include "userspace/redact/internal.h"

static int redact_piece(struct redact *x, struct str in, unsigned edges, struct buf *made)
{
	int n;

	x->edges = edges;
	n = redact_text(x, in, made);
	x->edges = 0;
	return n;
}

/* Texts that were cut before they came into this one say so by ERR_CUT. */
static int redact_cut_texts(struct redact *x, struct str in, struct buf *made)
{
	const size_t mark = sizeof(ERR_CUT) - 1;
	int n = 0, one;

	while (n >= 0 && in.n) {
		const char *at = memmem(in.p, in.n, ERR_CUT, mark);
		struct str piece = { in.p, at ? (size_t)(at - in.p) : in.n };
		size_t step = at ? piece.n + mark : in.n;

		one = redact_piece(x, piece, at ? EDGE_END : 0, made);
		if (one == 0)
			buf_add(made, piece.p, piece.n);
		if (at)
			buf_add(made, ERR_CUT, mark);
		n = one < 0 || made->failed ? -ENOMEM : n + one;
		in = (struct str){ in.p + step, in.n - step };
	}
	return n;
}

void redact_in_place(struct redact *x, char *text, size_t size)
{
	struct str in = { text, strnlen(text, size) };
	bool was_longer = in.n + 1 >= size;
	auto_buf struct buf more = { 0 };
	int n, m = 0;

	buf_reset(&x->made);
	n = redact_piece(x, in, was_longer ? EDGE_END : 0, &x->made);
	if (n > 0)
		in = (struct str){ x->made.p, x->made.n };
	if (n >= 0 && memmem(in.p, in.n, ERR_CUT, sizeof(ERR_CUT) - 1))
		m = redact_cut_texts(x, in, &more);
	if (n < 0 || m < 0)
		snprintf(text, size, REDACT_MARK REDACT_LIMIT_RULE "]");
	else if (m > 0)
		snprintf(text, size, "%.*s", (int)more.n, more.p);
	else if (n > 0)
		snprintf(text, size, "%.*s", (int)x->made.n, x->made.p);
}
