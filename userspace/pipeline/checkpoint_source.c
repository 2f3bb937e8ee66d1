// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/checkpoint_source.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/store/chain.h"
#include "userspace/store/segment.h"
#include "userspace/store/signer.h"

struct source {
	const struct checkpoint_source_arg *arg;
	struct checkpoint_file file; /* fd -1 = not there yet */
	uint64_t seq;
	struct buf text;
};

static void add_hex(struct json *j, const char *key, const uint8_t bytes[STORE_HASH_LEN])
{
	char hex[2 * STORE_HASH_LEN + 1];

	hash_to_hex(hex, bytes);
	json_key(j, key);
	json_strz(j, hex);
}

static void add_checkpoint(struct json *j, const struct checkpoint_file *f)
{
	static const char *const types[] = { "genesis", "frame", "seal" };
	const struct checkpoint *c = &f->next;
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = {
		{ "index", c->index },	 { "seq", c->seq },   { "segment", c->segment },
		{ "offset", c->offset }, { "lost", c->lost },
	};

	json_key(j, "checkpoint");
	json_object_begin(j);
	json_key(j, "type");
	json_strz(j, c->type < ARRAY_SIZE(types) ? types[c->type] : "unknown");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(j, numbers[i].key);
		json_u64(j, numbers[i].v);
	}
	add_hex(j, "head", c->head);
	add_hex(j, "link", c->link);
	add_hex(j, "root", c->root);
	if (c->type == CHECKPOINT_GENESIS)
		add_hex(j, "host_key", f->genesis.host_key);
	json_object_end(j);
}

/* The entry that was just read, as text. */
static int make_record(struct source *s)
{
	const struct checkpoint *c = &s->file.next;
	size_t n = c->type == CHECKPOINT_GENESIS ? GENESIS_LEN : CHECKPOINT_LEN;
	char time[RFC3339_NS_LEN + 1], id[160];
	uint8_t entry[GENESIS_LEN];
	struct json j;

	if (pread(s->file.fd, entry, n, (off_t)(s->file.off - n)) != (ssize_t)n)
		return -EIO;
	rfc3339_ns(time, c->real_ns);
	snprintf(id, sizeof(id), "%.128s:checkpoint:%" PRIu64, s->arg->session, s->seq);
	const struct {
		const char *key, *value;
	} rows[] = { { "kind", "checkpoint" }, { "session", s->arg->session }, { "time", time } };

	buf_reset(&s->text);
	json_init(&j, &s->text);
	json_object_begin(&j);
	json_key(&j, "v");
	json_u64(&j, 1);
	json_key(&j, "id");
	json_strz(&j, id);
	json_key(&j, "seq");
	json_u64(&j, s->seq);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_key(&j, rows[i].key);
		json_strz(&j, rows[i].value);
	}
	add_checkpoint(&j, &s->file);
	json_key(&j, "entry");
	json_base64(&j, (struct str){ (const char *)entry, n });
	json_object_end(&j);
	return s->text.failed ? -ENOMEM : 0;
}

/* 1: s->file.next is the next entry; 0: not there yet. */
static int read_entry(struct source *s, struct err *err)
{
	const char *why = "";
	int r;

	if (s->file.fd < 0) {
		r = checkpoint_file_open(&s->file, s->arg->bundle_fd, O_RDONLY);
		if (r == -ENOENT)
			return 0;
		if (r < 0)
			return err_set(err, r, CHECKPOINTS_NAME ": %m");
		s->file.log.any_host = true; /* the witness knows the host's key, we need not */
	}
	r = checkpoint_file_next(&s->file, &why);
	if (r == -EBADMSG)
		return err_set(err, r, CHECKPOINTS_NAME ": %s", why);
	if (r < 0)
		return err_set(err, r, CHECKPOINTS_NAME ": %m");
	if (r != READ_OK) /* the end, or half an entry: its writer is not done */
		return 0;
	s->file.has_next = false;
	s->seq++;
	return 1;
}

static int source_next(void *arg, struct str *ret_rec, uint64_t *ret_seq, struct err *err)
{
	struct source *s = arg;
	int r = read_entry(s, err);

	if (r <= 0)
		return r;
	r = make_record(s);
	if (r < 0)
		return err_set(err, r, CHECKPOINTS_NAME ": %m");
	*ret_rec = (struct str){ s->text.p, s->text.n };
	*ret_seq = s->seq;
	return 1;
}

static int source_seek(void *arg, uint64_t seq, struct err *err)
{
	struct source *s = arg;

	if (s->file.fd >= 0)
		checkpoint_file_close(&s->file);
	s->file = CHECKPOINT_FILE_NONE;
	s->seq = 0;
	while (s->seq < seq) {
		int r = read_entry(s, err);

		if (r == 0)
			return err_set(err, ENODATA, CHECKPOINTS_NAME ": no entry %" PRIu64, seq);
		if (r < 0)
			return r;
	}
	return 0;
}

static void source_free(void *arg)
{
	struct source *s = arg;

	if (s->file.fd >= 0)
		checkpoint_file_close(&s->file);
	buf_done(&s->text);
	free(s);
}

int checkpoint_source_open(void *arg, struct export_source *ret, struct err *err)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->arg = arg;
	s->file = CHECKPOINT_FILE_NONE;
	*ret = (struct export_source){ s, source_next, source_seek, source_free };
	return 0;
}

int checkpoint_sink_add(struct fanout *f, const struct exporter_config *cfg,
			struct checkpoint_source_arg *arg, struct err *err)
{
	const char *topic = exporter_config_get(cfg, "checkpoints-topic");
	struct exporter_config own;
	int r;

	if (!topic || !*topic)
		return 0;
	r = exporter_config_copy(&own, cfg, err);
	if (r < 0)
		return r;
	if ((size_t)snprintf(own.name, sizeof(own.name), "%.51s.checkpoints", cfg->name) >=
	    sizeof(own.name))
		r = err_set(err, ENAMETOOLONG, "sink '%s': name too long", cfg->name);
	if (r == 0)
		r = exporter_config_set(&own, "topic", topic, err);
	if (r == 0)
		r = exporter_config_set(&own, "alerts-topic", "", err);
	if (r == 0)
		r = exporter_config_set(&own, "filter", "", err);
	own.format = NULL;
	if (r == 0)
		r = fanout_add_stream(f, &own, checkpoint_source_open, arg, err);
	exporter_config_done(&own);
	return r;
}
