// SPDX-License-Identifier: Apache-2.0
/* A consumer as ours should be: reads the events topic, drops what comes twice, says what is missing. What
 * it does is what exporters/README.md asks of every consumer. */
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "exporters/exporter.h"
#include "exporters/kafka.h"
#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/base/plain.h"
#include "userspace/base/ulid.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/consume_check.h"
#include "userspace/cli/util.h"

#define POLL_MS	       200
#define COMMIT_NS      NSEC_PER_SEC
#define METADATA_NS    (30 * NSEC_PER_SEC)
#define METADATA_MS    500 /* one try */
#define PARTITIONS_MAX 4096
#define WARNINGS_MAX   100 /* lines about what is missing or late */

struct consume_args {
	const char *topic, *group;
	struct option_list set;
	uint64_t count, idle;
	bool to_end, quiet, partial, help;
};

#define AT(member) offsetof(struct consume_args, member)
static const struct option_def OPTIONS[] = {
	{ "topic", 't', OPT_STR, AT(topic), "NAME", "topic to read (default: warder.events)" },
	{ "group", 'g', OPT_STR, AT(group), "NAME",
	  "share the work in this consumer group, and go on where it was; default: everything, from the start" },
	{ "end", 'e', OPT_FLAG, AT(to_end), NULL, "stop at the end of the topic" },
	{ "count", 'n', OPT_U64, AT(count), "N", "stop after so many events" },
	{ "idle", 0, OPT_DURATION, AT(idle), "TIME",
	  "stop when nothing came for so long; without a broker an error, after 30s at the latest" },
	{ "partial", 'p', OPT_FLAG, AT(partial), NULL,
	  "the topic does not hold whole sessions (a filter, alerts, aged out): look only for duplicates" },
	{ "quiet", 'q', OPT_FLAG, AT(quiet), NULL, "print no events, only the sum" },
	{ "set", 'X', OPT_STRLIST, AT(set), "PROPERTY=VALUE",
	  "any librdkafka property; VALUE @FILE is read from the file; repeatable" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

struct consumer {
	const struct consume_args *args;
	const char *brokers;
	rd_kafka_t *rk;
	struct consume_check *check;
	bool assigned;			      /* it is known which partitions are ours */
	uint64_t owned[PARTITIONS_MAX / 64];  /* bit maps */
	uint64_t unread[PARTITIONS_MAX / 64]; /* those whose end was not seen yet */
	int64_t next_offset[PARTITIONS_MAX];  /* 0 = nothing was read yet */
	uint64_t gone;			      /* offsets that had nothing */
	bool cut;			      /* no broker is connected, as far as is known */
	unsigned warnings;
	uint64_t commit_at, last_at;
	bool failed;
};

static atomic_bool stop;

static void on_signal(int sig)
{
	(void)sig;
	atomic_store(&stop, true);
}

/* ---- set-up ---- */

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err)
{
	char text[512];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
		return 0;
	return err_set(err, EINVAL, "%s: %s", name, text);
}

static int set_option(rd_kafka_conf_t *conf, const char *word, struct err *err)
{
	auto_free char *copy = strdup(word), *value = NULL;
	char *eq = copy ? strchr(copy, '=') : NULL;
	int r;

	if (!eq)
		return err_set(err, EINVAL, "option '--set': '%s' is not PROPERTY=VALUE", word);
	*eq++ = 0;
	r = exporter_value(&value, copy, eq, err);
	if (*eq != '@' && (strstr(copy, "password") || strstr(copy, "secret")))
		memset(strchr((char *)word, '=') + 1, '*',
		       strlen(eq)); /* ps shows it to everybody */
	return r < 0 ? r : set(conf, copy, value, err);
}

static int make_conf(rd_kafka_conf_t *conf, const char *brokers, const struct consume_args *a,
		     struct err *err)
{
	char ulid[ULID_LEN + 1], own[64];
	int r;

	ulid_make(ulid, clock_real_ns());
	snprintf(own, sizeof(own), "warder-consume-%s", ulid);
	r = set(conf, "bootstrap.servers", brokers, err);
	if (r == 0)
		r = set(conf, "client.id", "warder-consume", err);
	if (r == 0)
		r = set(conf, "group.id", a->group ? a->group : own, err);
	/* Offsets are committed behind what was printed, by us. */
	if (r == 0)
		r = set(conf, "enable.auto.commit", "false", err);
	if (r == 0)
		r = set(conf, "auto.offset.reset", "earliest", err);
	if (r == 0)
		r = set(conf, "enable.partition.eof", "true", err);
	if (r == 0)
		r = set(conf, "log_level", "0", err);
	for (size_t i = 0; r == 0 && i < a->set.n; i++)
		r = set_option(conf, a->set.v[i], err);
	return r;
}

static void set_partition(struct consumer *c, int32_t n, bool owned, bool unread)
{
	uint64_t bit = n >= 0 && n < PARTITIONS_MAX ? 1ull << n % 64 : 0;
	size_t word = bit ? (size_t)n / 64 : 0;

	c->owned[word] = owned ? c->owned[word] | bit : c->owned[word] & ~bit;
	c->unread[word] = unread ? c->unread[word] | bit : c->unread[word] & ~bit;
}

static bool is_at_end(const struct consumer *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->unread); i++)
		if (c->unread[i])
			return false;
	return c->assigned;
}

/* The group hands partitions out, and takes them back; none at all is an assignment, too. */
static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
			 rd_kafka_topic_partition_list_t *list, void *opaque)
{
	struct consumer *c = opaque;
	bool ours = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;

	for (int i = 0; i < list->cnt; i++)
		set_partition(c, list->elems[i].partition, ours, ours);
	c->assigned = ours;
	if (!strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE"))
		rd_kafka_error_destroy(ours ? rd_kafka_incremental_assign(rk, list)
					    : rd_kafka_incremental_unassign(rk, list));
	else
		rd_kafka_assign(rk, ours ? list : NULL);
}

/* In our polls. What it says about single brokers passes, or comes to this. */
static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
	struct consumer *c = opaque;

	(void)rk;
	(void)reason;
	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
		c->cut = true;
}

static int open_consumer(struct consumer *c, const char *brokers, struct err *err)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[512];
	int r = make_conf(conf, brokers, c->args, err);

	c->brokers = brokers;
	if (r < 0) {
		rd_kafka_conf_destroy(conf);
		return r;
	}
	rd_kafka_conf_set_opaque(conf, c);
	rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	rd_kafka_conf_set_error_cb(conf, on_error);
	c->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
	if (!c->rk) {
		rd_kafka_conf_destroy(conf);
		return err_set(err, EINVAL, "kafka: %s", text);
	}
	rd_kafka_poll_set_consumer(c->rk);
	return 0;
}

static int failed(struct err *err, const char *what, rd_kafka_resp_err_t code)
{
	return err_set(err, EIO, "%s: %s", what, rd_kafka_err2str(code));
}

/* How many partitions the topic has. All topics are listed: asking for one by its name makes it, where
 * brokers are set to do that. */
static int count_partitions(const struct rd_kafka_metadata *meta, const char *topic,
			    struct err *err)
{
	for (int i = 0; i < meta->topic_cnt; i++) {
		const struct rd_kafka_metadata_topic *t = &meta->topics[i];

		if (strcmp(t->topic, topic))
			continue;
		if (t->err)
			return failed(err, topic, t->err);
		if (t->partition_cnt < 1 || t->partition_cnt > PARTITIONS_MAX)
			return err_set(err, E2BIG, "topic '%s': %d partitions, at most %d are read",
				       topic, t->partition_cnt, PARTITIONS_MAX);
		return t->partition_cnt;
	}
	return err_set(err, ENOENT,
		       "topic '%s': the brokers have none of that name, or it may not "
		       "be read",
		       topic);
}

/* Waits for a broker, as long as --idle allows. */
static int find_topic(struct consumer *c, const char *topic, struct err *err)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC),
		 wait = c->args->idle ? c->args->idle : METADATA_NS;
	const struct rd_kafka_metadata *meta;
	uint64_t end = now + MIN(wait, METADATA_NS);
	rd_kafka_resp_err_t code;
	int n;

	do {
		code = rd_kafka_metadata(c->rk, 1, NULL, &meta, METADATA_MS);
		now = clock_ns(CLOCK_MONOTONIC);
	} while (code && now < end && !atomic_load(&stop));
	if (code)
		return err_set(err, EIO, "no answer from '%s': %s", c->brokers,
			       rd_kafka_err2str(code));
	n = count_partitions(meta, topic, err);
	rd_kafka_metadata_destroy(meta);
	return n;
}

/* Every partition from its start: nobody else's offsets are touched. */
static int assign_all(struct consumer *c, const char *topic, int n, struct err *err)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);
	rd_kafka_resp_err_t code;

	for (int i = 0; i < n; i++) {
		rd_kafka_topic_partition_list_add(list, topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
		set_partition(c, i, true, true);
	}
	c->assigned = true;
	code = rd_kafka_assign(c->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	return code ? failed(err, "reading the topic", code) : 0;
}

static int subscribe(struct consumer *c, const char *topic, struct err *err)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t code;

	rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
	code = rd_kafka_subscribe(c->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	return code ? failed(err, "joining the group", code) : 0;
}

/* ---- messages ---- */

static struct str header(const rd_kafka_headers_t *list, const char *name)
{
	const void *p;
	size_t n;

	if (!list || rd_kafka_header_get_last(list, name, &p, &n))
		return (struct str){ 0 };
	return (struct str){ p, n };
}

__attribute__((format(printf, 2, 3))) static void warn(struct consumer *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (++c->warnings > WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	plain_text(text, '?', ""); /* keys are anybody's */
	log_warn("%s%s", text, c->warnings == WARNINGS_MAX ? " (and so on)" : "");
}

/* What the broker no longer had when we came to it (retention), or never showed (marks of transactions). */
static void count_gone(struct consumer *c, const rd_kafka_message_t *m)
{
	int64_t *next;

	if (m->partition < 0 || m->partition >= PARTITIONS_MAX)
		return;
	next = &c->next_offset[m->partition];
	if (*next && m->offset > *next)
		c->gone += (uint64_t)(m->offset - *next);
	*next = m->offset + 1;
}

static void take(struct consumer *c, const rd_kafka_message_t *m)
{
	struct str session = { m->key, m->key_len }, body = { m->payload, m->len }, id, seq_text;
	rd_kafka_headers_t *list = NULL;
	enum consume_verdict v;
	uint64_t seq = 0, missed;

	count_gone(c, m);
	if (rd_kafka_message_headers(m, &list))
		list = NULL;
	id = header(list, "id");
	seq_text = header(list, "seq");
	if (!id.n) {
		warn(c, "partition %d, offset %lld: no header 'id': not one of ours, passed over",
		     m->partition, (long long)m->offset);
		return;
	}
	scan_u64(seq_text, &seq);
	v = consume_check_record(c->check, session, id, seq, body, &missed);
	if (missed)
		warn(c, "session %.*s: %llu events before seq %llu are missing", (int)session.n,
		     session.p, (unsigned long long)missed, (unsigned long long)seq);
	if (v == CONSUME_LATE)
		warn(c, "session %.*s: seq %llu came late", (int)session.n, session.p,
		     (unsigned long long)seq);
	if (v == CONSUME_DUPLICATE || c->args->quiet)
		return;
	fwrite(body.p, 1, body.n, stdout);
	putchar('\n');
}

/* Only what is out of our hands. */
static bool commit(struct consumer *c)
{
	rd_kafka_resp_err_t code;

	if (fflush(stdout) != 0)
		return false;
	if (!c->args->group)
		return true;
	code = rd_kafka_commit(c->rk, NULL, 0);
	if (code && code != RD_KAFKA_RESP_ERR__NO_OFFSET)
		warn(c, "committing offsets: %s", rd_kafka_err2str(code));
	return true;
}

static bool is_done(const struct consumer *c, uint64_t now)
{
	struct consume_counts n;

	consume_check_counts(c->check, &n);
	return atomic_load(&stop) || c->failed || (c->args->count && n.events >= c->args->count) ||
	       (c->args->to_end && is_at_end(c)) ||
	       (c->args->idle && now - c->last_at > c->args->idle);
}

static void handle(struct consumer *c, const rd_kafka_message_t *m, struct err *err)
{
	switch (m->err) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		c->cut = false;
		take(c, m);
		break;
	case RD_KAFKA_RESP_ERR__PARTITION_EOF:
		c->cut = false;
		set_partition(c, m->partition, true, false);
		break;
	case RD_KAFKA_RESP_ERR__FATAL:
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
		c->failed = true;
		failed(err, c->args->topic, m->err);
		break;
	default: /* the library tries again */
		warn(c, "%s", rd_kafka_message_errstr(m));
		break;
	}
}

static int consume(struct consumer *c, struct err *err)
{
	c->last_at = clock_ns(CLOCK_MONOTONIC);
	for (;;) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(c->rk, POLL_MS);
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (m) {
			handle(c, m, err);
			if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
				c->last_at = now;
			rd_kafka_message_destroy(m);
		}
		if (now >= c->commit_at) {
			c->commit_at = now + COMMIT_NS;
			if (!commit(c))
				break;
		}
		if (is_done(c, now))
			break;
	}
	commit(c);
	if (c->cut && !c->failed && !atomic_load(&stop)) {
		/* What nobody could be asked for is not known to be whole. */
		err_set(err, EIO, "%s: no broker can be reached", c->args->topic);
		c->failed = true;
	}
	return c->failed ? -EIO : 0;
}

static bool print_sum(const struct consumer *c)
{
	auto_buf struct buf out = { 0 };
	struct consume_counts n;
	struct json j;

	consume_check_counts(c->check, &n);
	const struct {
		const char *key;
		uint64_t v;
	} rows[] = {
		{ "records", n.records },	{ "events", n.events },
		{ "duplicates", n.duplicates }, { "late", n.late },
		{ "missing", n.missing },	{ "altered", n.altered },
		{ "sessions", n.sessions },	{ "gone", c->gone },
	};

	json_init(&j, &out);
	json_object_begin(&j);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_key(&j, rows[i].key);
		json_u64(&j, rows[i].v);
	}
	json_object_end(&j);
	fflush(stdout);
	fprintf(stderr, "%.*s\n", (int)out.n, out.p);
	return !n.missing && !n.late && !n.altered;
}

int cmd_consume(int argc, char **argv)
{
	AUTO(consume_check) struct consume_check *check = NULL;
	struct consume_args args = { .topic = "warder.events" };
	struct consumer c = { .args = &args };
	struct err err = { 0 };
	bool good;
	int n, r;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("consume", &err);
	if (args.help) {
		cli_usage(
			"consume [OPTIONS] BROKERS",
			"Read events from Kafka, one a line: without duplicates, and checked.\n"
			"The last line on stderr is the sum, a JSON object.\n\n"
			"Exit code: 0 whole and in order, 1 events are missing, late or altered,\n"
			"125 warder's own error.",
			OPTIONS);
		return 0;
	}
	if (n != 1) {
		err_set(&err, EINVAL,
			n == 0 ? "from which brokers?" : "brokers are joined by commas");
		return cli_bad_usage("consume", &err);
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGPIPE, SIG_IGN);
	r = consume_check_new(&check, !args.partial && !args.group);
	if (r < 0) {
		err_set(&err, r, "out of memory");
		return cli_fail(&err);
	}
	c.check = check;
	if (kafka_check_topic("topic", args.topic, &err) < 0)
		return cli_fail(&err);
	r = open_consumer(&c, argv[1], &err);
	if (r < 0)
		return cli_fail(&err);
	n = find_topic(&c, args.topic, &err);
	r = n < 0	 ? n
	    : args.group ? subscribe(&c, args.topic, &err)
			 : assign_all(&c, args.topic, n, &err);
	if (r == 0)
		r = consume(&c, &err);
	good = r == 0 ? print_sum(&c) : false;
	rd_kafka_consumer_close(c.rk);
	rd_kafka_destroy(c.rk);
	return r < 0 ? cli_fail(&err) : cli_finish_output(good ? 0 : 1);
}
