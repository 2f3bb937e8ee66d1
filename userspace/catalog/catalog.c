// SPDX-License-Identifier: Apache-2.0
#include "userspace/catalog/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/catalog/internal.h"

/* A change of the tables changes this; an older file is thrown away, it can be made again. */
#define CATALOG_VERSION 3
#define TEXT_OF(x)	#x
#define TEXT(x)		TEXT_OF(x)
#define BUSY_MS		10000 /* another command may be reading bundles in */

static const char SCHEMA[] =
	"CREATE TABLE session (id TEXT PRIMARY KEY, mark TEXT, state TEXT, name TEXT, tenant TEXT,"
	" host TEXT, backend TEXT, tier TEXT, command TEXT, reason TEXT, rule TEXT, head TEXT,"
	" started INTEGER, ended INTEGER, records INTEGER, alerts INTEGER, lost INTEGER,"
	" bytes INTEGER, exit_code INTEGER, is_signed INTEGER, is_cut INTEGER,"
	" damage TEXT) WITHOUT ROWID;"
	"CREATE TABLE fact (session TEXT, kind TEXT, value TEXT, count INTEGER,"
	" PRIMARY KEY (session, kind, value)) WITHOUT ROWID;"
	"CREATE INDEX fact_value ON fact (kind, value);"
	"CREATE INDEX session_started ON session (started);"
	"PRAGMA user_version = " TEXT(CATALOG_VERSION) ";";

int catalog_error(struct catalog *c, struct err *err)
{
	return err_set(err, EIO, "catalogue: %s", sqlite3_errmsg(c->db));
}

int catalog_exec(struct catalog *c, const char *sql, struct err *err)
{
	return sqlite3_exec(c->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : catalog_error(c, err);
}

sqlite3_stmt *catalog_prepare(struct catalog *c, const char *sql, struct err *err)
{
	sqlite3_stmt *s = NULL;

	if (sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) != SQLITE_OK)
		catalog_error(c, err);
	return s;
}

static bool is_current(struct catalog *c)
{
	auto_stmt sqlite3_stmt *s = NULL;

	if (sqlite3_prepare_v2(c->db, "PRAGMA user_version", -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		return false;
	return sqlite3_column_int(s, 0) == CATALOG_VERSION;
}

static int open_file(struct catalog *c, const char *path, struct err *err)
{
	mode_t mask = umask(0077); /* what sandboxes did is not everybody's */
	int r = sqlite3_open_v2(path ? path : ":memory:", &c->db,
				SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
				NULL);

	umask(mask);
	if (r != SQLITE_OK)
		return err_set(err, EIO, "catalogue '%s': %s", path ? path : "in memory",
			       c->db ? sqlite3_errmsg(c->db) : sqlite3_errstr(r));
	sqlite3_busy_timeout(c->db, BUSY_MS);
	/* The file is root's, but a crafted one must not reach further than SQL does. */
	sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(c->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return 0;
}

static int make_anew(struct catalog *c, const char *path, struct err *err)
{
	static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
	char name[4096];
	int r;

	sqlite3_close(c->db);
	c->db = NULL;
	for (size_t i = 0; path && i < ARRAY_SIZE(suffixes); i++)
		if (snprintf(name, sizeof(name), "%s%s", path, suffixes[i]) < (int)sizeof(name))
			unlink(name);
	r = open_file(c, path, err);
	return r < 0 ? r : catalog_exec(c, SCHEMA, err);
}

int catalog_open(struct catalog **ret, const char *path, struct err *err)
{
	struct catalog *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, ENOMEM, "%m");
	r = open_file(c, path, err);
	if (r == 0 && !is_current(c))
		r = make_anew(c, path, err);
	if (r < 0) {
		catalog_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

void catalog_close(struct catalog *c)
{
	if (c)
		sqlite3_close(c->db);
	free(c);
}
