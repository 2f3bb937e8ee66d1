/* SPDX-License-Identifier: Apache-2.0 */
/* Values of OCSF that are no field's: ids, endpoints, process chains. */
#ifndef WARDER_EXPORTERS_RENDER_OCSF_H
#define WARDER_EXPORTERS_RENDER_OCSF_H

#include "exporters/render/render.h"
#include "userspace/event/json_value.h"

int render_ocsf(const struct format *f, const struct event *ev, struct buf *out);

struct ocsf_activity {
	uint8_t id;
	const char *name;
};
typedef struct ocsf_activity (*ocsf_activity_fn)(const struct event *ev);
struct ocsf_activity ocsf_file_attr(const struct event *ev);
struct ocsf_activity ocsf_mount(const struct event *ev);
struct ocsf_activity ocsf_action(const struct event *ev);
struct ocsf_activity ocsf_connect(const struct event *ev);
struct ocsf_activity ocsf_change(const struct event *ev);

/* 1 informational ... 6 fatal, 99 other. */
int ocsf_severity(const struct event *ev);
int ocsf_rule_severity(const struct event *ev);

/* render_fn, see layout.h. */
char *ocsf_time(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_status_id(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_status(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_outcome(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_action_id(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_action_id_old(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_disposition_id(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_process_uid(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_child_uid(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_target_uid(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_exe(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_parent(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_parent_chain(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_file_name(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_old_name(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_file_type_id(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_file_type(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_protocol_num(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_protocol_ver(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_remote_name(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_answers(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_rcode_id(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_attacks(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_escape_attacks(struct json_writer *w, char *d, const struct event *ev);
char *ocsf_observables(struct json_writer *w, char *d, const struct event *ev);

#endif
