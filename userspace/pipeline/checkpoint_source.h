/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints of a signed record as a journal of their own, for Kafka's checkpoints topic: whoever keeps
 * that topic can prove later that a record was cut or replaced, even by who has root on the host. */
#ifndef WARDER_PIPELINE_CHECKPOINT_SOURCE_H
#define WARDER_PIPELINE_CHECKPOINT_SOURCE_H

#include "exporters/exporter.h"

struct checkpoint_source_arg {
	int bundle_fd;
	const char *session;
};

/* export_source_fn; `arg` is a struct checkpoint_source_arg that outlives the source. The log need not be
 * there yet. Record n is the n-th entry: {"kind":"checkpoint", "checkpoint":{...}, "entry": base64}. */
int checkpoint_source_open(void *arg, struct export_source *ret, struct err *err);
/* For each sink that has a checkpoints topic, one more sink named <name>.checkpoints. */
int checkpoint_sink_add(struct fanout *f, const struct exporter_config *cfg,
			struct checkpoint_source_arg *arg, struct err *err);

#endif
