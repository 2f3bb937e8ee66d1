// SPDX-License-Identifier: Apache-2.0
/* The writer of tty.NNNN.seg: a journal of its own, without manifest and seal, which are the events'. */
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/store/journal.h"

struct terminal_log {
	struct journal *journal;
	struct buf rec;
	uint64_t marked; /* the last record that a mark told of */
	uint64_t bytes;	 /* since then */
};

DEFINE_AUTO(terminal_log, terminal_log_free)

void terminal_log_free(struct terminal_log *t)
{
	if (!t)
		return;
	journal_free(t->journal);
	buf_done(&t->rec);
	free(t);
}

int terminal_log_create(struct terminal_log **ret, int dirfd, const struct journal_options *opt,
			struct err *err)
{
	AUTO(terminal_log) struct terminal_log *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(err, ENOMEM, "terminal: %m");
	buf_init(&t->rec, TERMINAL_RECORD_MAX);
	r = journal_create_tty(&t->journal, dirfd, opt, err);
	if (r < 0)
		return r;
	*ret = take_ptr(t);
	return 0;
}

int terminal_log_append(struct terminal_log *t, const struct terminal_record *rec)
{
	int r;

	buf_reset(&t->rec);
	r = terminal_record_encode(&t->rec, rec);
	if (r < 0)
		return r;
	r = journal_append(t->journal, (struct str){ t->rec.p, t->rec.n });
	if (r != -ENOBUFS && r != -ENOMEM && r != -EROFS && r != -EMSGSIZE)
		t->bytes += rec->data.n;
	return r;
}

int terminal_log_commit(struct terminal_log *t, struct terminal_mark *ret_mark)
{
	struct journal *j = t->journal;
	int r = journal_commit(j);

	if (r < 0)
		return r;
	*ret_mark = (struct terminal_mark){
		.first = t->marked + 1,
		.last = j->durable_seq,
		.bytes = t->bytes,
	};
	memcpy(ret_mark->head, j->head, STORE_HASH_LEN);
	t->marked = j->durable_seq;
	t->bytes = 0;
	return 0;
}

size_t terminal_log_behind(const struct terminal_log *t)
{
	return journal_behind(t->journal);
}

void terminal_log_end(const struct terminal_log *t, struct terminal_end *ret)
{
	const struct journal *j = t->journal;

	*ret = (struct terminal_end){ .segments = j->n_segments };
	for (unsigned i = 0; i < j->n_segments; i++) {
		ret->records += j->segments[i].records;
		ret->frames += j->segments[i].frames;
		ret->bytes += j->segments[i].bytes;
	}
	memcpy(ret->head, j->head, STORE_HASH_LEN);
	memcpy(ret->link, j->link, STORE_HASH_LEN);
}
