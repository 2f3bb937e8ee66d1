/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction of one session, in the engine: its events, its output, its workspace's texts, and what of it is told in
 * the completeness statement. */
#ifndef WARDER_PIPELINE_REDACTION_H
#define WARDER_PIPELINE_REDACTION_H

#include "userspace/base/json.h"
#include "userspace/pipeline/recorder.h"
#include "userspace/redact/redact.h"

struct redaction;

/* The redactor is borrowed. */
int redaction_new(struct redaction **ret, const struct redactor *r);
void redaction_free(struct redaction *r);
DEFINE_AUTO(redaction, redaction_free)

/* For events and texts of the workspace: one thread. */
struct redact *redaction_redact(struct redaction *r);
/* For the recorder, whose thread alone uses it. */
const struct output_filter *redaction_output(struct redaction *r);
/* Sealed originals that wait, as the payload of one frame, in place of what `out` holds. 1; 0: none wait; -errno. */
int redaction_next_original(struct redaction *r, struct buf *out);
/* That one could not be written. */
void redaction_original_lost(struct redaction *r, struct str payload);
/* An object: which rules, how many places, by rule. NULL: it was off. Once the recorder has ended. */
/* Says so when the escrow lacks originals. At the same time. */
void redaction_warn(const struct redaction *r);
void redaction_json(const struct redaction *r, struct json *j);

/* The command without its secrets, as members of an open list. */
void redaction_of_words(const struct redactor *r, char *const *argv, struct json *j);
/* From now on messages of this process pass it. NULL: no more. */
int redaction_of_log(const struct redactor *r);
/* A text of ours for a file or another process, in place. */
void redaction_of_text(char *text, size_t size);

#endif
