// SPDX-License-Identifier: Apache-2.0
/* Where a file lies on the host: by the mounts that the sandbox was built from. What was put over them
 * since is not known, so from the first change of the mount tree or of a root on nothing is said. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/enrich/sandbox.h"

static size_t size_of(const char *z)
{
	return z ? strlen(z) + 1 : 0;
}

static char *put(char **at, const char *z)
{
	char *to = *at;

	if (!z)
		return NULL;
	memcpy(to, z, strlen(z) + 1);
	*at += strlen(z) + 1;
	return to;
}

/* One block: rows, entries, texts. */
int places_init(struct sandbox *s, const struct enrich_session *from)
{
	size_t places = MIN(from->places_n, (size_t)ENRICH_PLACES_MAX),
	       watch = MIN(from->watch_n, (size_t)WATCHLIST_MAX), bytes = 0;
	struct enrich_place *rows;
	const char **texts;
	char *at;

	for (size_t i = 0; i < places; i++)
		bytes += size_of(from->places[i].inside) + size_of(from->places[i].host);
	for (size_t i = 0; i < watch; i++)
		bytes += size_of(from->watch[i]);
	rows = malloc(places * sizeof(*rows) + watch * sizeof(*texts) + bytes + 1);
	if (!rows)
		return -ENOMEM;
	texts = (const char **)(rows + places);
	at = (char *)(texts + watch);
	for (size_t i = 0; i < places; i++)
		rows[i] = (struct enrich_place){ put(&at, from->places[i].inside),
						 put(&at, from->places[i].host) };
	for (size_t i = 0; i < watch; i++)
		texts[i] = put(&at, from->watch[i]);
	s->session.places = rows;
	s->session.places_n = places;
	s->session.watch = texts;
	s->session.watch_n = watch;
	return 0;
}

void places_done(struct sandbox *s)
{
	free((void *)(uintptr_t)s->session.places);
}

static bool is_set(const struct event *ev, enum field_id f)
{
	return event_u64(ev, f);
}

static bool is_below(struct str path, const char *dir, size_t n)
{
	if (n == 1 && dir[0] == '/')
		return true;
	return path.n >= n && !memcmp(path.p, dir, n) && (path.n == n || path.p[n] == '/');
}

/* The longest one that holds it; of equals the last, which lies on top. */
static const struct enrich_place *place_of(const struct sandbox *s, struct str path, size_t *ret_n)
{
	const struct enrich_place *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < s->session.places_n; i++) {
		size_t n = strlen(s->session.places[i].inside);

		if (n < longest || !is_below(path, s->session.places[i].inside, n))
			continue;
		best = &s->session.places[i];
		longest = n;
	}
	*ret_n = longest;
	return best;
}

static int set_host_path(const struct sandbox *s, struct event *ev)
{
	struct str path = event_str(ev, F_FILE_PATH);
	const struct enrich_place *at;
	size_t n, host;
	char *full;

	if (s->moved || !path.n || path.p[0] != '/' || is_set(ev, F_FILE_PATH_TRUNCATED) ||
	    is_set(ev, F_FILE_UNREACHABLE))
		return 0;
	at = place_of(s, path, &n);
	if (!at || !at->host)
		return 0;
	if (n == 1) /* of "/" the slash belongs to what follows */
		n = 0;
	host = strlen(at->host);
	if (host == n && !memcmp(at->host, path.p, n))
		return 0; /* the same */
	full = arena_alloc(ev->arena, host + path.n - n + 1);
	if (!full)
		return -ENOMEM;
	memcpy(full, at->host, host);
	memcpy(full + host, path.p + n, path.n - n);
	full[host + path.n - n] = 0;
	event_set_str(ev, F_FILE_HOST_PATH, (struct str){ full, host + path.n - n });
	return 0;
}

/* The decoder leaves the number of the entry. */
static int set_watched(const struct sandbox *s, struct event *ev)
{
	struct str text = event_str(ev, F_FILE_WATCHED);
	unsigned int id = 0;

	for (size_t i = 1; i < text.n && i < 5; i++)
		id = id * 10 + (unsigned int)(text.p[i] - '0');
	if (text.n < 2 || text.p[0] != '#' || id == 0 || id > s->session.watch_n)
		return 0;
	text = arena_strndup(ev->arena, s->session.watch[id - 1], strlen(s->session.watch[id - 1]));
	if (!text.p)
		return -ENOMEM;
	event_set_str(ev, F_FILE_WATCHED, text);
	return 0;
}

static bool moves_paths(const struct event *ev)
{
	struct str type = event_str(ev, F_ESCAPE_TYPE);

	if (ev->kind == WIRE_MOUNT)
		return true;
	return ev->kind == WIRE_ESCAPE &&
	       (str_eqz(type, "root_change") ||
		((str_eqz(type, "chroot") || str_eqz(type, "pivot_root") ||
		  str_eqz(type, "setns") || str_eqz(type, "ns_change")) &&
		 event_succeeded(ev)));
}

int places_apply(struct sandbox *s, struct event *ev)
{
	int r;

	/* Once the payload runs: the launcher's own mounts are what the rows say. */
	if (!is_set(ev, F_PROC_RUNTIME) && moves_paths(ev))
		s->moved = true;
	if (!event_has(ev, F_FILE_PATH))
		return 0;
	r = set_watched(s, ev);
	return r < 0 || ev->kind == WIRE_MOUNT ? r : set_host_path(s, ev);
}
