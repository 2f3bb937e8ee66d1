/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_CATALOG_INTERNAL_H
#define WARDER_CATALOG_INTERNAL_H

#include <sqlite3.h>
#include "userspace/catalog/catalog.h"

struct catalog {
	sqlite3 *db;
};

/* Say what SQLite says. -EIO. */
int catalog_error(struct catalog *c, struct err *err);
int catalog_exec(struct catalog *c, const char *sql, struct err *err);
/* Prepare; NULL and err on failure. */
sqlite3_stmt *catalog_prepare(struct catalog *c, const char *sql, struct err *err);

static inline void finalize_stmt(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}
#define auto_stmt __attribute__((cleanup(finalize_stmt)))

#endif
