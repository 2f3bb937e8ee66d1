// SPDX-License-Identifier: Apache-2.0
/* The record against what somebody else has seen of it. */
#include <string.h>

#include "userspace/store/verify.h"

static const struct verify_witness *next(const struct verify *v)
{
	const struct verify_witness *w = v->opt->witness;

	if (!w || v->witness >= v->opt->n_witness)
		return NULL;
	w += v->witness;
	return strcmp(w->session, v->report->session) == 0 ? w : NULL;
}

void verify_witness_start(struct verify *v)
{
	while (v->witness < v->opt->n_witness &&
	       strcmp(v->opt->witness[v->witness].session, v->report->session) < 0)
		v->witness++;
	/* Before the first record every session looks the same. */
	for (const struct verify_witness *w; (w = next(v)) && !w->seq;)
		v->witness++;
}

const char *verify_witness_reached(struct verify *v)
{
	const struct verify_witness *w;

	while ((w = next(v)) && w->seq <= v->report->records) {
		if (w->seq < v->report->records)
			return "the witness saw a commit where none is any more";
		if (memcmp(w->head, v->head, sizeof(v->head)) != 0)
			return "the witness saw other records than these";
		v->report->witnessed = w->seq;
		v->witness++;
	}
	return NULL;
}

void verify_witness_end(struct verify *v)
{
	const struct verify_witness *w = next(v);
	unsigned long long records = v->report->records;

	if (!v->opt->witness || v->report->state == VERIFY_ALTERED)
		return;
	if (w) {
		while (v->witness + 1 < v->opt->n_witness &&
		       strcmp(w[1].session, w->session) == 0) {
			v->witness++;
			w++;
		}
		verify_finding(v, VERIFY_ALTERED,
			       "altered: rolled back: the witness saw %llu records, %llu are here",
			       (unsigned long long)w->seq, records);
	} else if (!v->report->witnessed) {
		verify_finding(v, VERIFY_ALTERED,
			       "not witnessed: the witness knows nothing of session %s%s",
			       v->report->session,
			       v->report->is_signed ? ""
						    : ", which is not signed: of such a record no "
						      "checkpoint goes anywhere");
	}
}
