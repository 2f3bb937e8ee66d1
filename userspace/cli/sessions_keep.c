// SPDX-License-Identifier: Apache-2.0
/* How long records are kept: holds and pruning. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/cursor.h"
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/cli/sessions.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/trail.h"
#include "userspace/store/files.h"
#include "userspace/store/hostlog.h"

#define HOLDS_MAX 100000

/* ---- holds ---- */

struct session_holds {
	char (*v)[ULID_LEN + 1];
	size_t n, cap;
	bool failed;
};

static size_t find_hold(const struct session_holds *h, struct str id)
{
	size_t i = 0;

	while (i < h->n && !str_eqz(id, h->v[i]))
		i++;
	return i;
}

static int read_hold(void *arg, const struct hostlog_line *l)
{
	struct session_holds *h = arg;
	bool hold = str_eqz(l->kind, "hold");
	size_t at;

	if ((!hold && !str_eqz(l->kind, "release")) || l->session.n != ULID_LEN)
		return 0;
	at = find_hold(h, l->session);
	if (!hold && at < h->n)
		memcpy(h->v[at], h->v[--h->n], sizeof(*h->v));
	if (!hold || at < h->n)
		return 0;
	if (h->n == h->cap) {
		size_t cap = h->cap ? 2 * h->cap : 64;
		void *p = cap > HOLDS_MAX ? NULL : reallocarray(h->v, cap, sizeof(*h->v));

		h->failed = !p;
		if (!p)
			return 1;
		h->v = p;
		h->cap = cap;
	}
	memcpy(h->v[h->n], l->session.p, ULID_LEN);
	h->v[h->n++][ULID_LEN] = 0;
	return 0;
}

int session_holds_read(struct session_holds **ret, struct err *err)
{
	struct session_holds *h = calloc(1, sizeof(*h));
	struct hostlog_report rep;
	auto_close int dirfd = -1;
	int r;

	if (!h)
		return err_set(err, ENOMEM, "%m");
	*ret = h;
	r = trail_open(&dirfd, err);
	if (r == 0)
		r = hostlog_walk(dirfd, NULL, read_hold, h, &rep, err);
	if (r == -ENOENT) {
		*err = (struct err){ 0 };
		return 0;
	}
	if (r < 0)
		return r;
	if (h->failed)
		return err_set(err, E2BIG, "holds: more than %d", HOLDS_MAX);
	return rep.good ? 0 : err_set(err, EBADMSG, "host log: %s", rep.text);
}

bool session_is_held(const struct session_holds *h, const char *id)
{
	return find_hold(h, str_from(id)) < h->n;
}

void session_holds_free(struct session_holds *h)
{
	if (h)
		free(h->v);
	free(h);
}

/* ---- pruning ---- */

struct prune {
	const struct prune_options *opt;
	struct session_holds *holds;
	int sessions_fd, cursors_fd; /* the latter -1: no sink ever kept one */
	uint64_t now, kept_bytes, deleted, freed, held, unsent;
	struct err *err;
};

static int tell_prune(const struct catalog_row *row, const char *why, struct err *err)
{
	auto_buf struct buf data = { 0 };
	struct json j;

	json_init(&j, &data);
	json_object_begin(&j);
	json_key(&j, "why");
	json_strz(&j, why);
	json_key(&j, "records");
	json_u64(&j, row->records);
	json_key(&j, "bytes");
	json_u64(&j, row->bytes);
	json_key(&j, "head");
	json_strz(&j, row->head);
	json_object_end(&j);
	if (data.failed)
		return err_set(err, ENOMEM, "%m");
	return trail_add("prune", row->id, (struct str){ data.p, data.n }, err);
}

enum sent { SENT_NOT_REQUIRED, SENT_BEHIND, SENT_ALL };

/* How far the sinks have come that the session must be kept for. Unreadable is not sent. */
static enum sent how_sent(const struct prune *p, const struct catalog_row *row,
			  char sink[CURSOR_SINK_MAX])
{
	uint64_t floor;

	*sink = 0;
	if (p->cursors_fd < 0)
		return SENT_NOT_REQUIRED;
	if (cursor_floor(p->cursors_fd, row->id, &floor, sink) < 0)
		return SENT_BEHIND;
	if (floor == UINT64_MAX)
		return SENT_NOT_REQUIRED;
	return floor < row->records ? SENT_BEHIND : SENT_ALL;
}

/* May it go? Says why not, where a person has to know. */
static bool may_go(struct prune *p, const struct catalog_row *row, enum sent sent, const char *sink)
{
	if (session_is_held(p->holds, row->id)) {
		p->held++;
		return false;
	}
	if (sent == SENT_BEHIND && !p->opt->unsent) {
		p->unsent++;
		printf("keeping %s: sink '%s' has not taken all of it\n", row->id, sink);
		return false;
	}
	return true;
}

static int remove_session(struct prune *p, const struct catalog_row *row, const char *why)
{
	int r = tell_prune(row, why, p->err);

	if (r == 0)
		r = store_remove(p->sessions_fd, row->id, p->err);
	if (r < 0 || p->cursors_fd < 0)
		return r;
	r = cursor_forget(p->cursors_fd, row->id);
	return r < 0 ? err_set(p->err, r, "session %s: its cursors: %m", row->id) : 0;
}

/* Newest first, so what is kept is known when an older one is looked at. */
static int prune_row(void *arg, const struct catalog_row *row)
{
	struct prune *p = arg;
	uint64_t last = MAX(row->ended_ns, row->started_ns);
	bool old = p->now - MIN(last, p->now) > p->opt->older_ns;
	bool over = row->bytes > p->opt->max_bytes - MIN(p->kept_bytes, p->opt->max_bytes);
	const char *why = old ? "age" : over ? "bytes" : "sent";
	char sink[CURSOR_SINK_MAX];
	enum sent sent = how_sent(p, row, sink);
	bool wanted = old || over || (p->opt->sent && sent == SENT_ALL);
	int r = 0;

	if (strcmp(row->state, "open") == 0 || !wanted || !may_go(p, row, sent, sink)) {
		p->kept_bytes += row->bytes;
		return 0;
	}
	printf("%s %s (%s, %llu bytes)\n", p->opt->dry_run ? "would delete" : "deleting", row->id,
	       why, (unsigned long long)row->bytes);
	if (!p->opt->dry_run)
		r = remove_session(p, row, why);
	p->deleted += r == 0;
	p->freed += r == 0 ? row->bytes : 0;
	return r;
}

static bool is_there(void *arg, const char *session)
{
	const struct prune *p = arg;

	return faccessat(p->sessions_fd, session, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What is left of sessions that were deleted some other way, or lay elsewhere. */
static int sweep_cursors(struct prune *p)
{
	uint64_t age = p->opt->older_ns != PRUNE_NOT_GIVEN ? p->opt->older_ns : PRUNE_CURSORS_NS;
	int r;

	if (p->cursors_fd < 0 || p->opt->dry_run)
		return 0;
	r = cursor_sweep(p->cursors_fd, age / NSEC_PER_SEC, is_there, p);
	if (r > 0)
		printf("deleted %d files that sinks kept of sessions that are gone\n", r);
	return r < 0 ? err_set(p->err, r, "cursors: %m") : 0;
}

int sessions_prune(struct catalog *c, const struct prune_options *opt, struct err *err)
{
	static const struct catalog_filter all;
	struct prune p = { .opt = opt, .now = clock_real_ns(), .err = err };
	auto_close int fd = -1, cursors = -1;
	char path[4096];
	int r = sessions_open_dir(&fd, err);

	if ((size_t)snprintf(path, sizeof(path), "%s/cursors", state_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	cursors = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (cursors < 0 && errno != ENOENT)
		return err_set(err, errno, "cursor directory '%s': %m", path);
	p.sessions_fd = fd;
	p.cursors_fd = cursors;
	if (r == 0)
		r = session_holds_read(&p.holds, err);
	if (r == 0)
		r = catalog_list(c, &all, prune_row, &p, err);
	if (r == 0)
		r = sweep_cursors(&p);
	session_holds_free(p.holds);
	if (r == 0)
		printf("%llu session%s, %llu bytes %s; %llu held, %llu not sent yet\n",
		       (unsigned long long)p.deleted, p.deleted == 1 ? "" : "s",
		       (unsigned long long)p.freed, opt->dry_run ? "would go" : "deleted",
		       (unsigned long long)p.held, (unsigned long long)p.unsent);
	return r;
}
