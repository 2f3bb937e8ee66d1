/* SPDX-License-Identifier: Apache-2.0 */
/* The journal as the fan-out reads it: exporters do not know the store, the store no exporters. */
#ifndef WARDER_PIPELINE_SOURCE_H
#define WARDER_PIPELINE_SOURCE_H

#include "exporters/exporter.h"

/* export_source_fn; `bundle_fd` points to the descriptor of the bundle's directory. */
int journal_source_open(void *bundle_fd, struct export_source *ret, struct err *err);

/* `filter` of the sinks, by the rules' language. */
extern const struct export_filter_ops sink_filters;

#endif
