/* SPDX-License-Identifier: Apache-2.0 */
/* Splunk's indexer acknowledgement: what the collector took is safe only when /services/collector/ack says
 * that it was indexed. */
#ifndef WARDER_EXPORTERS_SPLUNK_ACK_H
#define WARDER_EXPORTERS_SPLUNK_ACK_H

#include "exporters/http.h"

/* Pauses between two questions. */
#define ACK_ASK_MIN_NS 100000000ull
#define ACK_ASK_MAX_NS 5000000000ull

/* Property values; adds the channel to the sink's headers. -EINVAL, -ENOMEM, -errno. */
int splunk_ack_set_up(struct http_sink *s, const struct exporter_config *cfg, struct err *err);
/* For `opened`, `tick`, `close` of the flavour. Nothing happens when acknowledgement is off. */
int splunk_ack_opened(struct http_sink *s, struct http_options opt, struct err *err);
uint64_t splunk_ack_tick(struct http_sink *s, uint64_t now);
void splunk_ack_close(struct http_sink *s);
/* An answer that says "taken": what it means. */
enum http_verdict splunk_ack_judge(struct http_sink *s, const struct http_answer *a, char *why);

#endif
