/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `warder run` that say where events go besides the record. */
#ifndef WARDER_CLI_RUN_SINKS_H
#define WARDER_CLI_RUN_SINKS_H

#include "exporters/exporter.h"
#include "userspace/base/option.h"
#include "userspace/pipeline/run.h"

struct run_sinks {
	struct exporter_config v[FANOUT_SINKS_MAX];
	size_t n;
	struct exporter_config witness;
	bool has_witness;
};

/* --kafka BROKERS (may be NULL) and each --export. */
int run_sinks_make(struct run_sinks *s, const char *kafka, const struct option_list *exports,
		   struct err *err);
/* --witness FILE: a file sink of its own, for the checkpoints and nothing else; the record is signed then. */
int run_sinks_witness(struct run_sinks *s, const char *path, enum run_sign *sign, struct err *err);
/* What is unwise about them. */
void run_sinks_warn(const struct run_sinks *s);
void run_sinks_done(struct run_sinks *s);

#endif
