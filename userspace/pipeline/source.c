// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/source.h"

#include "userspace/store/store.h"

static int source_next(void *arg, struct str *ret_rec, uint64_t *ret_seq, struct err *err)
{
	return journal_reader_next(arg, ret_rec, ret_seq, err);
}

static int source_seek(void *arg, uint64_t seq, struct err *err)
{
	return journal_reader_seek(arg, seq, err);
}

static void source_free(void *arg)
{
	journal_reader_free(arg);
}

int journal_source_open(void *bundle_fd, struct export_source *ret, struct err *err)
{
	struct journal_reader *reader;
	int r = journal_reader_open(&reader, *(const int *)bundle_fd, err);

	if (r < 0)
		return r;
	*ret = (struct export_source){ reader, source_next, source_seek, source_free };
	return 0;
}
