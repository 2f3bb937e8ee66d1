/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks by name: WARDER_CONFIG/sinks.yaml (/etc/warder) holds "name: description" lines. */
#ifndef WARDER_CLI_SINKS_H
#define WARDER_CLI_SINKS_H

#include "exporters/exporter.h"
#include "userspace/config/flat.h"

/* The file's path. -ENAMETOOLONG. */
int sinks_path(char *ret, size_t size, struct err *err);
/* A description ("kafka:broker:9092"), or a name out of the file. `word` is of the command line: its secrets are
 * overwritten there, since `ps` shows them to everybody. */
int sinks_parse(struct exporter_config *cfg, const char *word, struct err *err);

#endif
