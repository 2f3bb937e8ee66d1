// SPDX-License-Identifier: Apache-2.0
/* A bundle into rows. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/ulid.h"
#include "userspace/catalog/internal.h"
#include "userspace/event/event.h"
#include "userspace/pipeline/walk.h"
#include "userspace/store/files.h"
#include "userspace/store/manifest.h"

#define COMMAND_MAX  4096
#define VALUE_MAX    4096
#define SESSIONS_MAX 1000000
#define OPEN_SMALL   (4ull << 20) /* bytes: an open session of less is read whenever it changed */

enum fact_kind {
	FACT_EXE,
	FACT_PATH,
	FACT_DST,
	FACT_NAME,
	FACT_RULE,
	FACT_ESCAPE,
	FACT_SECRET,
	FACT_COUNT
};

static const char *const fact_names[FACT_COUNT] = { "exe",  "path",   "dst",   "name",
						    "rule", "escape", "secret" };

/* Columns of the session in the order of INSERT. */
enum column {
	C_ID,
	C_MARK,
	C_STATE,
	C_NAME,
	C_TENANT,
	C_HOST,
	C_BACKEND,
	C_TIER,
	C_COMMAND,
	C_REASON,
	C_RULE,
	C_HEAD,
	C_STARTED,
	C_ENDED,
	C_RECORDS,
	C_ALERTS,
	C_LOST,
	C_BYTES,
	C_EXIT,
	C_SIGNED,
	C_CUT,
	C_DAMAGE,
	C_COUNT,
};

struct indexer {
	struct catalog *c;
	const char *id;
	sqlite3_stmt *session, *fact;
	uint64_t facts[FACT_COUNT]; /* rows made */
	uint64_t alerts, records;
	bool cut, strict, failed; /* the catalogue, not the record */
};

static void bind_text(sqlite3_stmt *s, enum column col, struct str v)
{
	if (v.n)
		sqlite3_bind_text(s, (int)col + 1, v.p, (int)MIN(v.n, (size_t)COMMAND_MAX),
				  SQLITE_TRANSIENT);
}

static void bind_u64(sqlite3_stmt *s, enum column col, uint64_t v)
{
	sqlite3_bind_int64(s, (int)col + 1, (sqlite3_int64)MIN(v, (uint64_t)INT64_MAX));
}

static int add_fact(struct indexer *x, enum fact_kind kind, struct str v, struct err *err)
{
	sqlite3_stmt *s = x->fact;
	int changes;

	if (!v.n)
		return 0;
	if (x->facts[kind] >= CATALOG_FACTS_MAX) {
		x->cut = true;
		return 0;
	}
	sqlite3_bind_text(s, 1, x->id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, fact_names[kind], -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, v.p, (int)MIN(v.n, (size_t)VALUE_MAX), SQLITE_STATIC);
	changes = sqlite3_step(s);
	/* RETURNING gives the count: 1 is a new row. */
	if (changes == SQLITE_ROW && sqlite3_column_int64(s, 0) == 1)
		x->facts[kind]++;
	if (changes != SQLITE_ROW) {
		x->failed = true;
		catalog_error(x->c, err);
	}
	sqlite3_reset(s);
	return changes == SQLITE_ROW ? 0 : -EIO;
}

static int add_destination(struct indexer *x, const struct event *ev, struct err *err)
{
	char text[64], ip[48];
	struct str name = event_str(ev, F_NET_DST_NAME), path = event_str(ev, F_NET_PATH);
	int n;

	if (path.n)
		return add_fact(x, FACT_DST, path, err);
	if (!event_has(ev, F_NET_DST_IP))
		return 0;
	ip[ip_addr_text(&ev->v[F_NET_DST_IP].ip, ip)] = 0;
	n = snprintf(text, sizeof(text), strchr(ip, ':') ? "[%s]:%u" : "%s:%u", ip,
		     (unsigned)event_u64(ev, F_NET_DST_PORT));
	if (name.n)
		add_fact(x, FACT_NAME, name, err);
	return add_fact(x, FACT_DST, (struct str){ text, (size_t)n }, err);
}

static int join_command(struct indexer *x, const struct event *ev)
{
	auto_buf struct buf text = { 0 };
	const struct str *v = event_has(ev, F_RUN_COMMAND) ? ev->v[F_RUN_COMMAND].list.v : NULL;
	size_t n = v ? ev->v[F_RUN_COMMAND].list.n : 0;

	buf_init(&text, 4 * COMMAND_MAX);
	for (size_t i = 0; i < n && text.n < COMMAND_MAX; i++) {
		if (i)
			buf_addc(&text, ' ');
		buf_add(&text, v[i].p, MIN(v[i].n, (size_t)COMMAND_MAX));
	}
	bind_text(x->session, C_COMMAND, (struct str){ text.p, text.n });
	return 0;
}

static int add_start(struct indexer *x, const struct event *ev, struct err *err)
{
	const struct str *v = event_has(ev, F_RUN_SECRETS) ? ev->v[F_RUN_SECRETS].list.v : NULL;
	size_t n = v ? ev->v[F_RUN_SECRETS].list.n : 0;
	sqlite3_stmt *s = x->session;
	int r = 0;

	bind_text(s, C_NAME, event_str(ev, F_SANDBOX));
	bind_text(s, C_TENANT, event_str(ev, F_TENANT));
	bind_text(s, C_HOST, event_str(ev, F_HOST));
	bind_text(s, C_BACKEND, event_str(ev, F_RUN_BACKEND));
	bind_text(s, C_TIER, event_str(ev, F_RUN_TIER));
	bind_u64(s, C_STARTED, event_u64(ev, F_TIME));
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_fact(x, FACT_SECRET, v[i], err);
	return r < 0 ? r : join_command(x, ev);
}

static int add_event(void *arg, const struct event *ev, struct err *err)
{
	struct indexer *x = arg;

	x->records++;
	switch (ev->kind) {
	case WIRE_SESSION_START:
		return add_start(x, ev, err);
	case WIRE_SESSION_STOP:
		bind_text(x->session, C_REASON, event_str(ev, F_RUN_REASON));
		bind_u64(x->session, C_ENDED, event_u64(ev, F_TIME));
		sqlite3_bind_int64(x->session, C_EXIT + 1,
				   (sqlite3_int64)event_u64(ev, F_EXIT_CODE));
		return 0;
	case WIRE_EXEC:
		return add_fact(x, FACT_EXE, event_str(ev, F_PROC_EXE), err);
	case WIRE_FILE_OPEN:
	case WIRE_FILE_WRITE:
	case WIRE_FILE_RENAME:
	case WIRE_FILE_DELETE:
	case WIRE_FILE_LINK:
	case WIRE_FILE_ATTR:
	case WIRE_FILE_MKDIR:
	case WIRE_WORKSPACE_CHANGE:
		return add_fact(x, FACT_PATH, event_str(ev, F_FILE_PATH), err);
	case WIRE_NET_CONNECT:
	case WIRE_NET_SEND:
		return add_destination(x, ev, err);
	case WIRE_DNS_QUERY:
		return add_fact(x, FACT_NAME, event_str(ev, F_DNS_NAME), err);
	case WIRE_ESCAPE:
		return add_fact(x, FACT_ESCAPE, event_str(ev, F_ESCAPE_TYPE), err);
	case WIRE_RULE_ALERT:
		x->alerts++;
		return add_fact(x, FACT_RULE, event_str(ev, F_RULE_NAME), err);
	case WIRE_ACTION:
		bind_text(x->session, C_RULE, event_str(ev, F_RULE_NAME));
		return 0;
	default:
		return 0;
	}
}

/* ---- one bundle ---- */

struct bundle_facts {
	char mark[96]; /* changes whenever the bundle does */
	bool readable, sealed;
	struct manifest_info manifest;
	uint64_t bytes;
	bool is_signed;
	struct err damage; /* code 0: as many bytes as were sealed */
};

/* Who reads the manifest while it is sealed looks again: the seal comes behind it. */
static void check_sizes(int fd, struct bundle_facts *b)
{
	if (!b->sealed || store_check_sizes(fd, &b->manifest, false, &b->damage) == 0)
		return;
	if (store_has_writer(fd) || store_check_sizes(fd, &b->manifest, false, &b->damage) == 0)
		b->damage = (struct err){ 0 };
}

static void look_at(int fd, struct bundle_facts *ret)
{
	auto_buf struct buf text = { 0 };
	uint64_t mark = 0;
	struct stat st;

	*ret = (struct bundle_facts){ 0 };
	buf_init(&text, MANIFEST_MAX);
	ret->readable = manifest_load(fd, &text) == 0 &&
			manifest_parse((struct str){ text.p, text.n }, &ret->manifest) == 0;
	ret->sealed = ret->readable && ret->manifest.sealed;
	check_sizes(fd, ret);
	if (store_size(fd, &ret->bytes, &mark) < 0)
		mark = 0; /* as much as was seen; read again when it can be */
	ret->is_signed = fstatat(fd, "checkpoints.log", &st, AT_SYMLINK_NOFOLLOW) == 0;
	snprintf(ret->mark, sizeof(ret->mark), "%d %llu %llx %.16s", ret->sealed,
		 (unsigned long long)ret->bytes, (unsigned long long)mark, ret->manifest.head);
}

/* A whole record of another session, put where this one was, is none of this session. */
static struct str state_of(const struct indexer *x, const struct bundle_facts *b, bool damaged)
{
	if (damaged || b->damage.code)
		return STR("damaged");
	if (!x->strict && b->readable && strcmp(b->manifest.session, x->id) != 0)
		return STR("other");
	return b->sealed ? STR("sealed") : STR("open");
}

/* `why`: it could not be read to its end. */
static void bind_bundle(struct indexer *x, const struct bundle_facts *b, const struct err *why)
{
	sqlite3_stmt *s = x->session;

	bind_text(s, C_ID, str_from(x->id));
	bind_text(s, C_MARK, str_from(b->mark));
	bind_text(s, C_STATE, state_of(x, b, why->code));
	bind_text(s, C_HEAD, str_from(b->manifest.head));
	bind_u64(s, C_RECORDS, b->sealed ? b->manifest.records : x->records);
	bind_u64(s, C_ALERTS, x->alerts);
	bind_u64(s, C_LOST, b->manifest.gaps);
	bind_u64(s, C_BYTES, b->bytes);
	bind_u64(s, C_SIGNED, b->is_signed);
	bind_u64(s, C_CUT, x->cut);
	if (why->code || b->damage.code)
		bind_text(s, C_DAMAGE, str_from(err_text(b->damage.code ? &b->damage : why)));
}

static int replace_rows(struct indexer *x, int fd, const struct bundle_facts *b, struct err *err)
{
	auto_stmt sqlite3_stmt *drop =
		catalog_prepare(x->c, "DELETE FROM fact WHERE session = ?", err);
	struct err why = { 0 };
	int r;

	x->session = catalog_prepare(
		x->c,
		"INSERT OR REPLACE INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		err);
	x->fact = catalog_prepare(x->c,
				  "INSERT INTO fact VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET "
				  "count = count + 1 RETURNING count",
				  err);
	if (!drop || !x->session || !x->fact)
		return -EIO;
	sqlite3_bind_text(drop, 1, x->id, -1, SQLITE_STATIC);
	if (sqlite3_step(drop) != SQLITE_DONE)
		return catalog_error(x->c, err);
	r = session_walk(fd, add_event, x, NULL, &why);
	if (r == -ENOMEM || x->failed || (r < 0 && x->strict))
		return err_set(err, r, "%s", err_text(&why));
	if (r < 0 && !why.code)
		err_set(&why, r, "the record cannot be read: %m");
	if (r >= 0)
		why = (struct err){ 0 };
	bind_bundle(x, b, &why);
	return sqlite3_step(x->session) == SQLITE_DONE ? 0 : catalog_error(x->c, err);
}

static int index_bundle(struct catalog *c, int fd, const char *id, const struct bundle_facts *b,
			bool strict, struct err *err)
{
	struct indexer x = { .c = c, .id = id, .strict = strict };
	int r = catalog_exec(c, "BEGIN IMMEDIATE", err);

	if (r < 0)
		return r;
	r = replace_rows(&x, fd, b, err);
	sqlite3_finalize(x.session);
	sqlite3_finalize(x.fact);
	if (r == 0)
		return catalog_exec(c, "COMMIT", err);
	catalog_exec(c, "ROLLBACK", NULL);
	return r;
}

int catalog_index(struct catalog *c, int bundle_fd, const char *id, struct err *err)
{
	struct bundle_facts b;

	look_at(bundle_fd, &b);
	b.sealed = true; /* asked for by name: as far as it goes */
	return index_bundle(c, bundle_fd, id, &b, true, err);
}

/* ---- all of them ---- */

/* Nothing changed since it was read. What is being written changes all the time: a large one is read again when it
 * grew by a quarter, so that all the readings of a session together cost a few of it. */
static bool is_known(struct catalog *c, const char *id, const struct bundle_facts *b)
{
	auto_stmt sqlite3_stmt *s = catalog_prepare(
		c, "SELECT mark = ?2, state, bytes FROM session WHERE id = ?1", NULL);
	const char *state;
	uint64_t bytes;

	if (!s)
		return false;
	sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, b->mark, -1, SQLITE_STATIC);
	if (sqlite3_step(s) != SQLITE_ROW)
		return false;
	if (sqlite3_column_int(s, 0))
		return true;
	state = (const char *)sqlite3_column_text(s, 1);
	bytes = (uint64_t)sqlite3_column_int64(s, 2);
	return !b->sealed && state && !strcmp(state, "open") && b->bytes > OPEN_SMALL &&
	       b->bytes >= bytes && b->bytes - bytes < bytes / 4;
}

static int sync_one(struct catalog *c, int sessions_fd, const char *id, struct catalog_sync *ret,
		    struct err *err)
{
	auto_close int fd =
		openat(sessions_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct bundle_facts b;
	int r;

	if (fd < 0)
		return 0; /* gone, or no directory */
	look_at(fd, &b);
	if (!b.bytes && !b.readable)
		return 0; /* no bundle */
	ret->sessions++;
	if (is_known(c, id, &b))
		return 0;
	r = index_bundle(c, fd, id, &b, false, err);
	ret->indexed += r == 0;
	return r;
}

struct names {
	char (*v)[ULID_LEN + 1];
	size_t n, cap;
};

/* Ids only: what else lies there is nobody's session. */
static int read_names(int sessions_fd, struct names *ret, struct err *err)
{
	int fd = openat(sessions_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	int r = 0;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return err_set(err, r, "sessions: %m");
	}
	while (r == 0 && (d = readdir(dir))) {
		if (strlen(d->d_name) != ULID_LEN || d->d_name[0] == '.' || ret->n == SESSIONS_MAX)
			continue;
		if (ret->n == ret->cap) {
			size_t cap = ret->cap ? 2 * ret->cap : 256;
			void *p = reallocarray(ret->v, cap, sizeof(*ret->v));

			if (!p) {
				r = err_set(err, ENOMEM, "%m");
				break;
			}
			ret->v = p;
			ret->cap = cap;
		}
		memcpy(ret->v[ret->n++], d->d_name, ULID_LEN + 1);
	}
	closedir(dir);
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Rows of sessions that are not there any more. */
static int drop_gone(struct catalog *c, const struct names *there, struct catalog_sync *ret,
		     struct err *err)
{
	auto_stmt sqlite3_stmt *all = catalog_prepare(c, "SELECT id FROM session", err);
	auto_stmt sqlite3_stmt *row = catalog_prepare(c, "DELETE FROM session WHERE id = ?", err);
	auto_stmt sqlite3_stmt *facts =
		catalog_prepare(c, "DELETE FROM fact WHERE session = ?", err);
	int r;

	if (!all || !row || !facts)
		return -EIO;
	while ((r = sqlite3_step(all)) == SQLITE_ROW) {
		const char *id = (const char *)sqlite3_column_text(all, 0);
		char key[ULID_LEN + 1];

		if (!id || (snprintf(key, sizeof(key), "%s", id) == ULID_LEN && there->n &&
			    bsearch(key, there->v, there->n, sizeof(*there->v), compare_names)))
			continue;
		for (int i = 0; i < 2; i++) {
			sqlite3_stmt *s = i ? facts : row;

			sqlite3_bind_text(s, 1, id, -1, SQLITE_TRANSIENT);
			sqlite3_step(s);
			sqlite3_reset(s);
		}
		ret->gone++;
	}
	return r == SQLITE_DONE ? 0 : catalog_error(c, err);
}

int catalog_sync(struct catalog *c, int sessions_fd, catalog_progress_fn fn, void *arg,
		 struct catalog_sync *ret, struct err *err)
{
	struct names names = { 0 };
	int r = read_names(sessions_fd, &names, err);

	*ret = (struct catalog_sync){ 0 };
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), compare_names);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		r = sync_one(c, sessions_fd, names.v[i], ret, err);
		if (fn)
			fn(arg, i + 1, names.n);
	}
	if (r == 0)
		r = drop_gone(c, &names, ret, err);
	free(names.v);
	return r;
}
