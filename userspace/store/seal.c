// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/journal.h"

#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

static int seal_manifest(struct journal *j, const struct journal_seal *seal, struct seal *s)
{
	struct manifest m = {
		.session = j->session,
		.tool = j->tool,
		.created_ns = j->created_ns,
		.sealed_ns = s->sealed_ns,
		.sealed = true,
		.gaps = seal->gaps,
		.redactions = j->redactions,
		.segments = j->segments,
		.n_segments = j->n_segments,
		.summary = seal->summary,
		.terminal = seal->terminal ? seal->terminal : j->tty,
		.host_key = j->signer ? signer_host_key(j->signer) : NULL,
	};
	struct manifest_segment *last = &j->segments[j->n_segments - 1];
	auto_buf struct buf text = { 0 };
	int r;

	buf_init(&text, MANIFEST_MAX);
	last->bytes += FRAME_HEADER_LEN + SEAL_LEN; /* as the files will be when sealed */
	for (unsigned i = 0; i < j->n_segments; i++) {
		m.records += j->segments[i].records;
		m.frames += j->segments[i].frames;
		m.bytes += j->segments[i].bytes;
	}
	memcpy(m.head, j->head, STORE_HASH_LEN);
	r = j->signer ? merkle_root(&j->tree, j->chain, s->root) : 0;
	if (r < 0)
		return r;
	m.root = j->signer ? s->root : NULL;
	r = manifest_write(&text, &m);
	last->bytes -= FRAME_HEADER_LEN + SEAL_LEN;
	if (r < 0)
		return r;
	s->records = m.records;
	s->frames = m.frames;
	s->gaps = m.gaps;
	s->bytes = m.bytes;
	s->segments = m.n_segments;
	s->redactions = j->redactions;
	s->manifest_len = text.n;
	if (m.terminal)
		memcpy(s->tty, m.terminal->link, STORE_HASH_LEN);
	r = chain_hash(j->chain, s->manifest_hash, text.p, text.n, NULL, 0);
	if (r < 0)
		return r;
	return file_replace_at(j->dirfd, MANIFEST_NAME, text.p, text.n, 0640);
}

/* The manifest goes first: a crash in between leaves a bundle whose end is missing, never one whose
 * seal does not fit. */
int journal_seal(struct journal *j, const struct journal_seal *seal)
{
	struct frame_header h = {
		.type = FRAME_SEAL,
		.codec = CODEC_STORED,
		.first_seq = j->next_seq,
		.raw_len = SEAL_LEN,
		.comp_len = SEAL_LEN,
	};
	struct seal s = { .sealed_ns = clock_real_ns() };
	uint8_t payload[SEAL_LEN];
	int r;

	if (j->state == JOURNAL_SEALED)
		return 0;
	if (j->state == JOURNAL_OPEN) {
		r = journal_commit(j);
		if (r < 0)
			return r;
		r = seal_manifest(j, seal, &s);
		if (r < 0)
			return r;
		r = buf_reserve(&j->out, FRAME_HEADER_LEN + SEAL_LEN);
		if (r < 0)
			return r;
		seal_encode(payload, &s);
		r = journal_put_frame(j, &h, payload, j->head, NULL);
		if (r < 0)
			return r;
		j->state = JOURNAL_SEALING;
	}
	r = journal_flush(j);
	if (r == 0 && j->signer)
		r = journal_flush_log(j, true);
	if (r < 0)
		return r;
	j->state = JOURNAL_SEALED;
	return 0;
}
