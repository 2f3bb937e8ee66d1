/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks that are built in: one line here, one in registry.c, one file of its own. */
#ifndef WARDER_EXPORTERS_CLASSES_H
#define WARDER_EXPORTERS_CLASSES_H

#include "exporters/exporter.h"

extern const struct exporter_class file_exporter;
extern const struct exporter_class kafka_exporter;
extern const struct exporter_class syslog_exporter;
extern const struct exporter_class splunk_exporter;
extern const struct exporter_class elastic_exporter;
extern const struct exporter_class webhook_exporter;
extern const struct exporter_class otlp_exporter;
extern const struct exporter_class metrics_exporter;

#endif
