/* SPDX-License-Identifier: Apache-2.0 */
/* Journal records in the words of a SIEM. A record is read back into an event and written anew from the
 * schema table and the columns of map.h; the journal itself stays native. */
#ifndef WARDER_EXPORTERS_RENDER_RENDER_H
#define WARDER_EXPORTERS_RENDER_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"
#include "userspace/event/event.h"

/* Text of one record; an exec with 128 KiB of arguments stays far below. */
#define RENDER_TEXT_MAX ((size_t)16 << 20)
/* Strings and lists of the event while it is rendered. */
#define RENDER_EVENT_MAX ((size_t)32 << 20)

struct format {
	const char *name;	  /* "ocsf-1.5" */
	const char *schema;	  /* "ocsf/1.5.0": Kafka's header `schema` */
	const char *content_type; /* media type of one record */
	bool is_json;		  /* one JSON object a record; else one line of text */
	int version;		  /* for `render`: which of its family */
	const char *doc;
	/* Appends the record to `out`, no newline. 0, -ENOMEM or -EMSGSIZE. NULL = the record as it
	 * stands in the journal. */
	int (*render)(const struct format *f, const struct event *ev, struct buf *out);
};

extern const struct format render_formats[]; /* the first one is native; ends with a NULL name */

/* NULL with a suggestion in `err` when there is none of that name. */
const struct format *format_find(const char *name, struct err *err);

struct renderer;

int renderer_new(struct renderer **ret, const struct format *format, struct err *err);
void renderer_free(struct renderer *r); /* NULL is fine */
const struct format *renderer_format(const struct renderer *r);
/* One record of the journal. *ret_text is valid until the next call and holds no newline. -EBADMSG when the
 * record is no event of this schema, -EMSGSIZE past RENDER_TEXT_MAX, -ENOMEM. */
int renderer_record(struct renderer *r, struct str json, struct str *ret_text, struct err *err);
/* The same for a record that was read already; `json` is its line. */
int renderer_event(struct renderer *r, const struct event *ev, struct str json,
		   struct str *ret_text, struct err *err);

#endif
