// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/agent_show.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/cli/bundle.h"
#include "userspace/event/json_read.h"
#include "userspace/pipeline/confine_files.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/run_status.h"
#include "userspace/pipeline/snapshots.h"
#include "userspace/store/terminal.h"

#define PART_MAX  (16 * 1024)
#define FOLLOW_MS 50

DEFINE_AUTO(terminal_reader, terminal_reader_free)

/* ---- ps ---- */

/* What its engine says, in the directory of that unprivileged process: read again and written anew. */
static bool add_part(struct json *j, const char *session, const char *part, struct arena *arena)
{
	auto_free char *text = NULL;
	struct json_reader r;
	struct str object;
	char path[PATH_MAX];
	size_t n = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/sessions/%s/%s.json", run_dir(), session,
			     part) >= sizeof(path) ||
	    file_read_at(AT_FDCWD, path, PART_MAX, &text, &n) < 0)
		return false;
	arena_reset(arena);
	if (json_reader_init(&r, arena, (struct str){ text, n }) < 0 ||
	    !json_read_members(&r, &object))
		return false;
	json_key(j, part);
	json_raw(j, object);
	return true;
}

static bool has_part(const char *session, const char *part)
{
	char path[PATH_MAX];
	struct stat st;

	return (size_t)snprintf(path, sizeof(path), "%s/sessions/%s/%s.json", run_dir(), session,
				part) < sizeof(path) &&
	       stat(path, &st) == 0 && st.st_size > 2;
}

static const char *state_of(const struct registry_entry *e)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/sessions/%s", run_dir(), e->session) < 0 ||
	    access(path, F_OK) < 0)
		return "starting";
	return has_part(e->session, "questions") ? "held"
	       : has_part(e->session, "frozen")	 ? "frozen"
						 : "running";
}

static void add_text(struct json *j, const char *key, const char *z)
{
	json_key(j, key);
	if (*z)
		json_strz(j, z);
	else
		json_null(j);
}

static void add_number(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void add_entry(struct json *j, const struct registry_entry *e, struct arena *arena)
{
	char created[RFC3339_NS_LEN + 1];

	rfc3339_ns(created, e->created_ns);
	json_object_begin(j);
	add_text(j, "session", e->session);
	add_text(j, "name", e->name);
	add_text(j, "tenant", e->tenant);
	add_text(j, "state", state_of(e));
	add_text(j, "created", created);
	add_number(j, "uid", e->uid);
	add_number(j, "memory", e->memory);
	add_number(j, "pids", e->pids);
	add_number(j, "cpu_milli", e->cpu_milli);
	add_number(j, "disk", e->disk);
	add_number(j, "ttl_ms", e->ttl_ns / NSEC_PER_MSEC);
	if (e->metadata[0]) {
		json_key(j, "metadata");
		json_raw(j, str_from(e->metadata));
	}
	add_text(j, "workspace", e->workspace);
	json_key(j, "tty");
	json_bool(j, e->tty);
	add_part(j, e->session, "run", arena);
	json_object_end(j);
}

int agent_show(int client, const char *tenant, const char *word, struct err *err)
{
	struct registry_entry one;
	auto_free struct registry_entry *v = calloc(REGISTRY_MAX, sizeof(*v));
	int n = v ? registry_list(v, REGISTRY_MAX, err) : err_set(err, ENOMEM, "%m");
	struct arena arena;
	int r = 0;

	if (n >= 0 && word)
		n = MIN(registry_find(&one, word, tenant, err), n);
	if (n < 0)
		return n;
	if (word) {
		v[0] = one;
		n = 1;
	}
	arena_init(&arena, 8 * PART_MAX);
	for (int i = 0; r == 0 && i < n; i++) {
		auto_buf struct buf out = { 0 };
		struct json j;

		if (tenant && strcmp(tenant, v[i].tenant))
			continue;
		json_init(&j, &out);
		json_object_begin(&j);
		json_key(&j, "line");
		add_entry(&j, &v[i], &arena);
		json_object_end(&j);
		if (!out.failed && out.n <= AGENT_FRAME_MAX)
			r = agent_send(client, out.p, out.n, -1, 0);
	}
	arena_done(&arena);
	return r < 0 ? r : agent_send(client, "{\"exit\":0}", 10, -1, 0);
}

static int send_snapshot(void *arg, const struct snapshots_row *row)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "line");
	snapshots_json(&j, row);
	json_object_end(&j);
	return out.failed ? -ENOMEM : agent_send(*(const int *)arg, out.p, out.n, -1, 0);
}

int agent_snapshots(int client, const char *tenant, struct err *err)
{
	int r = snapshots_each(tenant, send_snapshot, &client, err);

	return r < 0 ? r : agent_send(client, "{\"exit\":0}", 10, -1, 0);
}

/* ---- logs ---- */

static int send_data(int client, struct terminal_record *rec)
{
	char packet[1 + AGENT_DATA_MAX];
	int r = 0;

	packet[0] = rec->stream == TERMINAL_STDERR ? 'e' : 'o';
	while (r == 0 && rec->type == TERMINAL_OUTPUT && rec->data.n) {
		size_t n = MIN(rec->data.n, (size_t)AGENT_DATA_MAX);

		memcpy(packet + 1, rec->data.p, n);
		r = agent_send(client, packet, 1 + n, -1, 0);
		rec->data.p += n;
		rec->data.n -= n;
	}
	return r;
}

static bool is_sealed(int bundle)
{
	auto_free char *text = NULL;

	return file_read_at(bundle, "manifest.json", MANIFEST_MAX, &text, NULL) == 0 &&
	       strstr(text, "\"state\":\"sealed\"");
}

static int send_log(int client, int bundle, bool follow, struct err *err)
{
	AUTO(terminal_reader) struct terminal_reader *reader = NULL;
	struct pollfd p = { .fd = client, .events = 0 };
	struct terminal_record rec;
	uint64_t seq = 0;
	int r = 0;

	while (r == 0) {
		bool last = is_sealed(bundle);

		if (!reader)
			r = terminal_reader_open(&reader, bundle, err);
		while (r == 0 && (r = terminal_reader_next(reader, &rec, &seq, err)) == 1)
			r = send_data(client, &rec);
		if (r == 0 && last)
			r = bundle_check_end(bundle, UINT64_MAX, err);
		if (r < 0 || last || !follow)
			break;
		if (poll(&p, 1, FOLLOW_MS) == 1 && p.revents & (POLLHUP | POLLERR))
			break;
	}
	return r;
}

/* Who a dead one belonged to is in its record, which is not for others to open. */
int agent_bundle(int *ret_fd, const char *tenant, const char *word, struct err *err)
{
	char path[PATH_MAX], session[ULID_LEN + 1];
	struct registry_entry e;
	int r;

	if (!word)
		return err_set(err, EINVAL, "which sandbox?");
	r = registry_find(&e, word, tenant, err);
	if (r == -ENOENT && !tenant) {
		*err = (struct err){ 0 };
		return bundle_open_id(ret_fd, session, word, err);
	}
	if (r < 0)
		return r;
	if ((size_t)snprintf(path, sizeof(path), "%s/sessions/%s", state_dir(), e.session) >=
	    sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_set(err, errno, "record of sandbox %s: %m", e.session) : 0;
}

int agent_bundle_unprivileged(int *ret_fd, const char *tenant, const char *word, struct err *err)
{
	uid_t uid;
	gid_t gid;
	int r = agent_bundle(ret_fd, tenant, word, err);

	if (r < 0)
		return r;
	engine_ids(&uid, &gid);
	r = privdrop(uid, gid, err);
	return r < 0 ? r : confine_files_only(&(struct confine_place){ .fd = *ret_fd }, 1, err);
}

int agent_logs(int client, const char *tenant, const struct agent_request *q, struct err *err)
{
	auto_close int bundle = -1;
	int r = agent_bundle_unprivileged(&bundle, tenant, q->sandbox, err);

	if (r == 0)
		r = agent_send(client, "{\"opened\":true}", 15, -1, 0);
	if (r == 0)
		r = send_log(client, bundle, q->follow, err);
	return r < 0 ? r : agent_send(client, "{\"exit\":0}", 10, -1, 0);
}
