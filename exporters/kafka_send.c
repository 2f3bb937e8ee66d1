// SPDX-License-Identifier: Apache-2.0
/* One record as a Kafka message: topic, key, headers. */
#include "exporters/kafka.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/json.h"

/* A dead letter's copy of the record: what is larger is named by its id only. */
#define DLQ_RECORD_MAX (256 * 1024)

static int open_topic(rd_kafka_topic_t **ret, rd_kafka_t *rk, const char *name, struct err *err)
{
	if (!name)
		return 0;
	*ret = rd_kafka_topic_new(rk, name, NULL);
	if (!*ret)
		return err_set(err, EINVAL, "kafka: topic '%s': %s", name,
			       rd_kafka_err2str(rd_kafka_last_error()));
	return 0;
}

int kafka_topics_open(struct kafka_topics *t, rd_kafka_t *rk, const char *const names[KAFKA_TOPICS],
		      struct err *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < KAFKA_TOPICS; i++)
		r = open_topic(&t->v[i], rk, names[i], err);
	return r;
}

void kafka_topics_close(struct kafka_topics *t)
{
	for (int i = 0; i < KAFKA_TOPICS; i++) {
		if (t->v[i])
			rd_kafka_topic_destroy(t->v[i]);
		t->v[i] = NULL;
	}
}

rd_kafka_resp_err_t kafka_send(rd_kafka_t *rk, rd_kafka_topic_t *topic,
			       const struct export_record *rec, const struct format *format,
			       uint64_t ticket)
{
	struct str text = export_text(rec);
	char seq[24];
	ssize_t seq_n = json_digits(seq, rec->seq) - seq;

	/* RD_KAFKA_V_RKT: no look-up by name for each message. */
	return rd_kafka_producev(
		rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_KEY(rec->session.p, rec->session.n),
		RD_KAFKA_V_VALUE((void *)text.p, text.n), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
		RD_KAFKA_V_OPAQUE((void *)(uintptr_t)ticket),
		RD_KAFKA_V_HEADER("id", rec->id.p, (ssize_t)rec->id.n),
		RD_KAFKA_V_HEADER("schema", format->schema, -1),
		RD_KAFKA_V_HEADER("kind", rec->kind.p, (ssize_t)rec->kind.n),
		RD_KAFKA_V_HEADER("seq", seq, seq_n),
		RD_KAFKA_V_HEADER("content-type", format->content_type, -1),
		RD_KAFKA_V_HEADER("sandbox", rec->sandbox.p, (ssize_t)rec->sandbox.n),
		RD_KAFKA_V_END);
}

static void dead_letter_json(struct buf *out, const struct kafka_dead_letter *d)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "id");
	json_str(&j, d->id);
	json_key(&j, "seq");
	json_u64(&j, d->seq);
	json_key(&j, "session");
	json_str(&j, d->session);
	json_key(&j, "sink");
	json_strz(&j, d->sink);
	json_key(&j, "why");
	json_strz(&j, d->why ? d->why : "");
	json_key(&j, "record");
	if (d->text.n > DLQ_RECORD_MAX)
		json_null(&j);
	else if (d->is_json)
		json_raw(&j, d->text);
	else
		json_str(&j, d->text);
	json_object_end(&j);
}

void kafka_send_dead_letter(rd_kafka_t *rk, rd_kafka_topic_t *topic,
			    const struct kafka_dead_letter *d)
{
	auto_buf struct buf out = { 0 };

	if (!rk || !topic)
		return;
	dead_letter_json(&out, d);
	if (out.failed)
		return;
	/* Ticket 0: nothing waits for it. The dead-letter file is what counts, this is a copy. */
	rd_kafka_producev(
		rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_KEY(d->session.p, d->session.n),
		RD_KAFKA_V_VALUE(out.p, out.n), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
		RD_KAFKA_V_OPAQUE(NULL), RD_KAFKA_V_HEADER("id", d->id.p, (ssize_t)d->id.n),
		RD_KAFKA_V_HEADER("schema", "dead-letter/1", -1),
		RD_KAFKA_V_HEADER("content-type", "application/json", -1), RD_KAFKA_V_END);
}

static bool header(rd_kafka_headers_t *list, const char *name, struct str *ret)
{
	const void *p;
	size_t n;

	if (!list || rd_kafka_header_get_last(list, name, &p, &n))
		return false;
	*ret = (struct str){ p, n };
	return true;
}

void kafka_dead_letter_of(struct kafka_dead_letter *d, const rd_kafka_message_t *m)
{
	rd_kafka_headers_t *list = NULL;

	d->text = (struct str){ m->payload, m->len };
	d->session = (struct str){ m->key, m->key_len };
	if (rd_kafka_message_headers(m, &list))
		list = NULL;
	if (!header(list, "id", &d->id))
		d->id = STR("");
}
