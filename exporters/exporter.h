/* SPDX-License-Identifier: Apache-2.0 */
/* A sink takes journal records in order and says which of them are safe at the other side. The
 * fan-out owns the cursor: it moves only over the contiguous acknowledged prefix. */
#ifndef WARDER_EXPORTERS_EXPORTER_H
#define WARDER_EXPORTERS_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "exporters/render/render.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

struct export_record {
	uint64_t seq;
	struct str session;
	struct str id;	 /* stable event id, for dedup at the consumer */
	struct str kind; /* "exec", "rule.alert", ... */
	struct str sandbox;
	struct str time; /* RFC 3339, up to nanoseconds */
	struct str json; /* the record as it stands in the journal */
	struct str text; /* in the sink's format; p == NULL: native */
};

/* What goes out. */
static inline struct str export_text(const struct export_record *rec)
{
	return rec->text.p ? rec->text : rec->json;
}

enum export_result {
	EXPORT_OK,     /* taken; acknowledged later by `acked` (or at once by sync sinks) */
	EXPORT_FULL,   /* not taken: offer it again after poll */
	EXPORT_POISON, /* will never be taken (too large, refused): count it and go on */
};

struct exporter_config;
struct exporter; /* a sink instance; each sink embeds it as its first member */

struct exporter_property {
	const char *name;
	const char *arg;
	const char *def; /* default as text; NULL = must be given or empty */
	const char *help;
	/* Part of where the records go: another value is another sink, with a cursor of its own. */
	bool identity;
};

struct fanout;

/* What the fan-out offers its sinks. A sink that is opened without one keeps to itself. */
struct exporter_host {
	/* eventfd (non-blocking) that ends the fan-out's sleep; any thread, any library may write 8
	 * bytes to it. -1 = none. */
	int wake_fd;
	struct fanout *fanout;	   /* for its status; NULL = none */
	struct renderer *renderer; /* the sink's format; NULL = native */
	void *arg;
	/* A record that was taken (EXPORT_OK) turned out to be refused for good. Called from `poll`,
	 * before its seq counts as acknowledged. `why` is for a person. */
	void (*dead_letter)(void *arg, uint64_t seq, struct str json, const char *why);
};

struct exporter_class {
	const char *name; /* "file", "kafka" */
	const char *doc;
	/* The first row is the main property; ends with a NULL name. */
	const struct exporter_property *properties;
	/* Every class has those of exporter_common as well. Unknown property: -EINVAL, unless `pass_prefix` matches ("kafka.": any librdkafka setting). */
	const char *pass_prefix;
	int (*open)(struct exporter **ret, const struct exporter_config *cfg, struct err *err);
	enum export_result (*write)(struct exporter *x, const struct export_record *rec);
	/* Serve the sink for at most `timeout_ms`. Returns the highest seq up to which everything
	 * written since open is acknowledged (0 = none). */
	uint64_t (*poll)(struct exporter *x, int timeout_ms);
	/* Last error in words, "" when healthy. Same thread as write and poll. */
	const char *(*status)(const struct exporter *x);
	/* What `format=` may ask for. */
	enum {
		EXPORT_ANY_FORMAT,
		EXPORT_JSON_FORMATS,
		EXPORT_NO_FORMAT, /* it does not send records on */
	} formats;
	/* It makes `text` itself, by the host's renderer, when a request is written: what it keeps and
	 * dead-letters is native. */
	bool renders;
	/* What the other side said to the last record it took, for a person; may be NULL. */
	void (*said)(const struct exporter *x, char *ret, size_t size);
	/* Does not wait for what is not acknowledged: it stays behind the cursor. */
	void (*close)(struct exporter *x);
	/* The files behind the sink were moved away (SIGHUP); may be NULL. */
	void (*reopen)(struct exporter *x);
	/* What in these settings weakens the promise that nothing gets lost, in words for the operator;
	 * NULL = nothing. May be NULL. */
	const char *(*warning)(const struct exporter_config *cfg);
};

#define EXPORTER_PROPS_MAX 64

struct exporter_config {
	char name[64]; /* instance name; cursor file is named by it */
	const struct exporter_class *class;
	const struct exporter_host *host; /* set by the fan-out; outlives the sink */
	const struct format *format;	  /* NULL = native */
	struct {
		char *key;
		char *value;
	} props[EXPORTER_PROPS_MAX];
	size_t props_n;
};

struct exporter {
	const struct exporter_class *class;
	/* Set by the sink in write or poll: it forgot what was not acknowledged (producer made anew,
	 * failed fsync). The fan-out clears it and offers again from behind the last `poll`. */
	bool rewind;
	/* Set by the sink: call poll again within this many ms although nothing will wake the
	 * fan-out (a slow pipe). 0 = no need. */
	int poll_in_ms;
	/* Set by the sink: wake the fan-out when this descriptor has one of these poll(2) events. No
	 * events = none. */
	int fd;
	short fd_events;
	/* Set with EXPORT_POISON: the reason, for a person. Must live until the next call. */
	const char *why;
};

extern const struct exporter_class *const exporter_classes[]; /* ends with NULL */
/* Properties of every sink, the fan-out's own: filter, rate, format, required. Ends with a NULL name. */
extern const struct exporter_property exporter_common[];

/* "kafka:localhost:9092,topic=events,kafka.compression.type=lz4" or "file:/path/x.jsonl": class, its
 * main property, then key=value. A part without "=" continues the value before it
 * ("kafka:a:9092,b:9092"), "\\," is a comma. "key=@/path" takes the value from a file (secrets), "@@"
 * stands for "@". "name=" names the sink; the default is made of the class and a hash of the identity
 * properties. Unknown
 * class, key or format: error with a suggestion. On failure nothing is left in cfg. */
int exporter_config_parse(struct exporter_config *cfg, const char *text, struct err *err);
int exporter_config_set(struct exporter_config *cfg, const char *key, const char *value,
			struct err *err);
/* Overwrites the secrets in a description by stars, in place: for those of the command line, which everybody on the
 * host can read. "@path" stays. */
void exporter_hide_secrets(char *text);
/* The value given, else the default, else NULL. */
const char *exporter_config_get(const struct exporter_config *cfg, const char *key);
int exporter_config_copy(struct exporter_config *ret, const struct exporter_config *cfg,
			 struct err *err);
void exporter_config_done(struct exporter_config *cfg);
/* "@path" = the file's text without its line end, "@@x" = "@x", else the value itself. */
int exporter_value(char **ret, const char *key, const char *value, struct err *err);
/* See `warning` above; NULL = nothing to say. */
const char *exporter_config_warning(const struct exporter_config *cfg);

/* ---- fan-out: one thread that reads the journal for all sinks ---- */

/* Reads records for the fan-out; handed in so that exporters need not know the store. Same returns as
 * journal_reader_next / _seek. One source per sink: each has its own position. */
struct export_source {
	void *arg;
	int (*next)(void *arg, struct str *ret_rec, uint64_t *ret_seq, struct err *err);
	int (*seek)(void *arg, uint64_t seq, struct err *err);
	void (*free)(void *arg);
};
typedef int (*export_source_fn)(void *arg, struct export_source *ret, struct err *err);

/* Conditions over records, for the property `filter`; handed in so that exporters need not know the
 * rules. */
struct export_filter_ops {
	int (*open)(void **ret, const char *text, struct err *err);
	/* A record that cannot be judged matches. */
	bool (*match)(void *filter, struct str json);
	void (*free)(void *filter);
};

#define FANOUT_SINKS_MAX 32 /* streams included */

/* A number that the program around the fan-out keeps up to date, for the page of its metrics sinks. Rows of one
 * name stand together. */
struct exporter_gauge {
	const char *name;   /* "warder_ring_used_bytes" */
	const char *labels; /* ring="bulk"; "" = none */
	const char *help;
	bool counter;	/* else it may go down */
	uint64_t value; /* atomic, relaxed */
};

static inline void exporter_gauge_set(struct exporter_gauge *g, uint64_t v)
{
	__atomic_store_n(&g->value, v, __ATOMIC_RELAXED);
}

struct fanout_options {
	const struct exporter_gauge *gauges; /* outlive the fan-out */
	size_t gauges_n;
	const char *session;
	int cursor_dirfd; /* where cursors and dead letters are kept; -1 = nowhere (start at 0) */
	bool from_start;  /* leave the cursors alone and start at 0; dead letters are kept */
	export_source_fn open_source;
	void *open_source_arg;
	const struct export_filter_ops *filters; /* NULL = none */
};

struct fanout_status {
	char name[64];
	const char *class_name;
	uint64_t acked; /* cursor */
	uint64_t sent;	/* highest seq handed to the sink */
	uint64_t
		poison; /* records refused for good; they are in <session>.<sink>.dlq.jsonl, if cursors are kept */
	uint64_t rewinds; /* times the sink had to be offered records again */
	uint64_t errors;
	uint64_t skipped; /* records that its filter kept from it, rewinds included */
	bool up;
	bool required;	/* segments are kept until it took them */
	bool own_seq;	/* fanout_add_stream: acked and sent are not the journal's numbers */
	bool at_end;	/* it was offered all that its source had, when it last looked */
	char text[256]; /* last error */
	char why[128];	/* the last record was refused for */
	char said[192]; /* to the last record that was taken */
};

/* Records that it has not taken; `last` = the journal's newest. */
static inline uint64_t fanout_status_lag(const struct fanout_status *row, uint64_t last)
{
	uint64_t end = row->own_seq ? row->sent : last;

	return end > row->acked ? end - row->acked : 0;
}

int fanout_new(struct fanout **ret, const struct fanout_options *opt, struct err *err);
/* Opens the sink; a sink whose other side is down still opens. Takes what it needs from cfg. */
int fanout_add(struct fanout *f, const struct exporter_config *cfg, struct err *err);
/* The same for a sink with a source of its own (another file of the session): its records have their own
 * numbers. It takes part in fanout_drain: until everything that is in the source then was taken. */
int fanout_add_stream(struct fanout *f, const struct exporter_config *cfg,
		      export_source_fn open_source, void *arg, struct err *err);
/* Start the thread (all signals blocked in it). No fanout_add after that. */
int fanout_start(struct fanout *f, struct err *err);
/* New records were committed. Cheap, any thread. */
void fanout_notify(struct fanout *f);
/* Wait until every sink has acknowledged `seq`, at most `timeout_ms`. Returns the number of sinks
 * that have not. */
int fanout_drain(struct fanout *f, uint64_t seq, int timeout_ms);
/* Ask every sink to reopen its files (log rotation). Any thread. */
void fanout_reopen(struct fanout *f);
/* Fills at most `max` rows; returns how many sinks there are. Any thread. */
size_t fanout_status(struct fanout *f, struct fanout_status *rows, size_t max);
/* Those of the options. */
const struct exporter_gauge *fanout_gauges(const struct fanout *f, size_t *ret_n);
/* Stops the thread, writes the cursors, closes the sinks. Does not drain. NULL is fine. */
void fanout_free(struct fanout *f);

#endif
