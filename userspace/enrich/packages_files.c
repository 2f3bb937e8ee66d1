// SPDX-License-Identifier: Apache-2.0
/* Where package managers put what they install. */
#include "userspace/enrich/packages_files.h"

#include <string.h>

#include "userspace/base/auto.h"

/* What stands behind the last `mark` in the path. */
static bool behind(struct str path, const char *mark, struct str *ret)
{
	size_t n = strlen(mark);
	bool found = false;

	for (const char *p = path.p; (p = memmem(p, path.n - (size_t)(p - path.p), mark, n)); p++) {
		*ret = (struct str){ p + n, path.n - (size_t)(p - path.p) - n };
		found = true;
	}
	return found;
}

static struct str component(struct str s)
{
	const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;

	return slash ? (struct str){ s.p, (size_t)(slash - s.p) } : s;
}

/* "name-1.2.3": at the last dash that a digit follows. */
static bool split_dash(struct str s, struct package *p)
{
	for (size_t i = s.n; i-- > 1;) {
		if (s.p[i] != '-' || i + 1 == s.n || s.p[i + 1] < '0' || s.p[i + 1] > '9')
			continue;
		p->name = (struct str){ s.p, i };
		p->version = (struct str){ s.p + i + 1, s.n - i - 1 };
		return true;
	}
	return false;
}

static bool cut_end(struct str *s, const char *end)
{
	size_t n = strlen(end);

	if (s->n <= n || memcmp(s->p + s->n - n, end, n) != 0)
		return false;
	s->n -= n;
	return true;
}

/* site-packages/NAME-1.2.dist-info/METADATA */
static bool from_python(struct str path, struct package *p)
{
	struct str s;

	if (!behind(path, "/site-packages/", &s) && !behind(path, "/dist-packages/", &s))
		return false;
	s = component(s);
	p->manager = "pip";
	return (cut_end(&s, ".dist-info") || cut_end(&s, ".egg-info")) && split_dash(s, p);
}

/* node_modules/NAME/package.json, node_modules/@SCOPE/NAME/package.json: no version in the path. */
static bool from_node(struct str path, struct package *p)
{
	struct str s = { 0 }, name;

	if (!behind(path, "/node_modules/", &s) || !s.n || s.p[0] == '.')
		return false;
	name = component(s);
	if (name.p[0] == '@' && name.n < s.n) {
		struct str rest = component((struct str){ s.p + name.n + 1, s.n - name.n - 1 });

		name = (struct str){ s.p, name.n + 1 + rest.n };
	}
	p->manager = "npm";
	p->name = name;
	return str_eqz((struct str){ s.p + name.n, s.n - name.n }, "/package.json");
}

/* var/lib/dpkg/info/NAME[:ARCH].list */
static bool from_dpkg(struct str path, struct package *p)
{
	const char *colon;
	struct str s;

	if (!behind(path, "/var/lib/dpkg/info/", &s) || !cut_end(&s, ".list"))
		return false;
	colon = memchr(s.p, ':', s.n);
	p->manager = "deb";
	p->name = colon ? (struct str){ s.p, (size_t)(colon - s.p) } : s;
	return p->name.n > 0;
}

/* registry/src/INDEX/NAME-1.2/Cargo.toml */
static bool from_cargo(struct str path, struct package *p)
{
	struct str s, index;

	if (!behind(path, "/registry/src/", &s))
		return false;
	index = component(s);
	if (index.n == s.n)
		return false;
	s = (struct str){ s.p + index.n + 1, s.n - index.n - 1 };
	p->manager = "cargo";
	return cut_end(&s, "/Cargo.toml") && !memchr(s.p, '/', s.n) && split_dash(s, p);
}

/* specifications/NAME-1.2.gemspec */
static bool from_gem(struct str path, struct package *p)
{
	struct str s;

	p->manager = "gem";
	return behind(path, "/specifications/", &s) && cut_end(&s, ".gemspec") &&
	       !memchr(s.p, '/', s.n) && split_dash(s, p);
}

/* pkg/mod/cache/download/PATH/@v/v1.2.zip */
static bool from_go(struct str path, struct package *p)
{
	struct str s, version;

	if (!behind(path, "/pkg/mod/cache/download/", &s) || !cut_end(&s, ".zip") ||
	    !behind(s, "/@v/", &version))
		return false;
	p->manager = "go";
	p->name = (struct str){ s.p, s.n - version.n - 4 };
	p->version = version;
	return p->name.n && version.n;
}

/* Most paths cannot be one: a look instead of six searches. */
static bool may_be_package(struct str path)
{
	static const char *const ends[] = { ".json", ".list", ".toml", ".gemspec", ".zip" };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (path.n > strlen(ends[i]) &&
		    memcmp(path.p + path.n - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
			return true;
	return memmem(path.p, path.n, "-info", 5) != NULL; /* of Python: somewhere */
}

void packages_from_files(struct packages *ret, struct packages_seen *seen, const struct event *ev)
{
	bool (*const ways[])(struct str, struct package *) = { from_python, from_node, from_dpkg,
							       from_cargo,  from_gem,  from_go };
	struct str path = event_str(ev, F_FILE_PATH);

	if (!may_be_package(path) || (ev->kind == WIRE_FILE_OPEN && !event_u64(ev, F_FILE_WRITE)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct package p = { .from_files = true };

		if (!ways[i](path, &p))
			continue;
		packages_add(ret, seen, &p);
		return;
	}
}
