// SPDX-License-Identifier: Apache-2.0
/* Command lines of package managers. */
#include "userspace/enrich/packages.h"
#include "userspace/enrich/packages_files.h"

#include <string.h>
#include <strings.h>

#include "userspace/base/auto.h"

enum spelling {
	S_PIP, /* name==1, name[extra]>=1, name @ url */
	S_AT,  /* name@1, @scope/name@1 */
	S_EQ,  /* name=1, name/release */
	S_RPM, /* name, name-1.2-3.x86_64 is not split: it cannot be told from a name */
	S_GEM, /* name:1, version by -v */
	S_DEB, /* files: dir/name_1_arch.deb */
};

struct manager {
	const char *tool;
	const char *verbs[6]; /* one of them must be there; none: every call installs */
	const char *name;     /* package.manager */
	enum spelling spelling;
	const char *values;   /* options that take the next word, each between blanks */
	const char *registry; /* of those, the ones that name a registry */
	const char *version;  /* and the version of all that is named */
};

#define PIP_VALUES                                                                             \
	" -r --requirement -c --constraint -e --editable -t --target -i --index-url "          \
	"--extra-index-url -f --find-links --prefix --root --platform --python-version "       \
	"--implementation --abi --proxy --retries --timeout --cert --client-cert --cache-dir " \
	"--log --src --upgrade-strategy --no-binary --only-binary --progress-bar --report "    \
	"--python -p --index --default-index --trusted-host "
#define PIP_REGISTRY " -i --index-url --extra-index-url -f --find-links --index --default-index "
#define NPM_VALUES \
	" --registry --prefix -C --cache --userconfig --tag --workspace -w --omit --include "

static const struct manager managers[] = {
	{ "pip", { "install", "download" }, "pip", S_PIP, PIP_VALUES, PIP_REGISTRY, NULL },
	{ "pip3", { "install", "download" }, "pip", S_PIP, PIP_VALUES, PIP_REGISTRY, NULL },
	{ "pipx", { "install", "run" }, "pip", S_PIP, PIP_VALUES, PIP_REGISTRY, NULL },
	{ "uv", { "install", "add" }, "pip", S_PIP, PIP_VALUES, PIP_REGISTRY, NULL },
	{ "poetry", { "add" }, "pip", S_AT, " --source -G --group ", NULL, NULL },
	{ "conda",
	  { "install", "create" },
	  "conda",
	  S_EQ,
	  " -c --channel -n --name -p --prefix ",
	  " -c --channel ",
	  NULL },
	{ "mamba",
	  { "install", "create" },
	  "conda",
	  S_EQ,
	  " -c --channel -n --name -p --prefix ",
	  " -c --channel ",
	  NULL },
	{ "npm",
	  { "install", "i", "add", "in", "exec" },
	  "npm",
	  S_AT,
	  NPM_VALUES,
	  " --registry ",
	  NULL },
	{ "npx",
	  { NULL },
	  "npm",
	  S_AT,
	  " -p --package -c --call --registry ",
	  " --registry ",
	  NULL },
	{ "pnpm", { "install", "i", "add", "dlx" }, "npm", S_AT, NPM_VALUES, " --registry ", NULL },
	{ "yarn", { "add", "dlx" }, "npm", S_AT, NPM_VALUES, " --registry ", NULL },
	{ "bun", { "add", "install", "i" }, "npm", S_AT, NPM_VALUES, " --registry ", NULL },
	{ "apt", { "install", "reinstall" }, "apt", S_EQ, " -o -c -t -a ", NULL, NULL },
	{ "apt-get",
	  { "install", "reinstall", "build-dep" },
	  "apt",
	  S_EQ,
	  " -o -c -t -a ",
	  NULL,
	  NULL },
	{ "aptitude", { "install" }, "apt", S_EQ, " -o -t ", NULL, NULL },
	{ "dpkg",
	  { "-i", "--install", "--unpack" },
	  "deb",
	  S_DEB,
	  " --admindir --root --instdir ",
	  NULL,
	  NULL },
	{ "apk",
	  { "add" },
	  "apk",
	  S_EQ,
	  " -X --repository -p --root -t --virtual ",
	  " -X --repository ",
	  NULL },
	{ "dnf",
	  { "install", "reinstall" },
	  "rpm",
	  S_RPM,
	  " -c --repo --repoid --enablerepo --installroot ",
	  NULL,
	  NULL },
	{ "microdnf", { "install" }, "rpm", S_RPM, " --repo --enablerepo ", NULL, NULL },
	{ "yum", { "install", "localinstall" }, "rpm", S_RPM, " -c --enablerepo ", NULL, NULL },
	{ "zypper", { "install", "in" }, "rpm", S_RPM, " -r --repo -R --root ", NULL, NULL },
	{ "rpm",
	  { "-i", "-ivh", "-U", "-Uvh", "--install", "--upgrade" },
	  "rpm",
	  S_RPM,
	  " --root ",
	  NULL,
	  NULL },
	{ "pacman",
	  { "-S", "-Sy", "-Syu", "-U" },
	  "pacman",
	  S_EQ,
	  " -r --root -b --dbpath ",
	  NULL,
	  NULL },
	{ "cargo",
	  { "install", "add" },
	  "cargo",
	  S_AT,
	  " --version --vers --git --path --registry --index --root --features -F --branch --rev --tag ",
	  " --registry --index --git ",
	  " --version --vers " },
	{ "gem",
	  { "install" },
	  "gem",
	  S_GEM,
	  " -v --version -s --source -i --install-dir -n ",
	  " -s --source ",
	  " -v --version " },
	{ "go", { "install", "get" }, "go", S_AT, " -modfile -C -tags -ldflags ", NULL, NULL },
	{ "composer", { "require" }, "composer", S_GEM, " -d --working-dir ", NULL, NULL },
};

#define TOOL_WORDS 3 /* the tool is among the first words: "node /usr/bin/npm", "python -m pip" */

static struct str base_name(struct str s)
{
	const char *slash = s.n ? memrchr(s.p, '/', s.n) : NULL;

	return slash ? (struct str){ slash + 1, s.n - (size_t)(slash + 1 - s.p) } : s;
}

/* pip3.11 is pip3; npm-cli.js, as node runs it, is npm. */
static bool is_tool(struct str word, const char *tool)
{
	struct str s = base_name(word), t = str_from(tool);

	if (!str_starts(s, t))
		return false;
	s = (struct str){ s.p + t.n, s.n - t.n };
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] == '.' || (s.p[i] >= '0' && s.p[i] <= '9')))
			return str_eqz(s, ".js") || str_eqz(s, "-cli.js") || str_eqz(s, ".exe");
	return true;
}

/* Programs that run the one behind them. */
static bool is_runner(struct str word)
{
	static const char *const names[] = { "python", "pypy", "node", "nodejs", "ruby",
					     "perl",   "php",  "bun",  "env",	 "sudo",
					     "nice",   "sh",   "bash", "dash" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_tool(word, names[i]))
			return true;
	return false;
}

static const struct manager *find_manager(const struct str *args, size_t n, size_t *ret_at)
{
	for (size_t i = 0; i < MIN(n, (size_t)TOOL_WORDS); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(managers); k++) {
			if (is_tool(args[i], managers[k].tool)) {
				*ret_at = i + 1;
				return &managers[k];
			}
		}
		/* "python -m pip", but neither "grep pip" nor the text behind -c. */
		if (i == 0 ? !is_runner(args[0])
			   : !args[i].n || args[i].p[0] != '-' || str_eqz(args[i], "-c") ||
				     str_eqz(args[i], "-e"))
			return NULL;
	}
	return NULL;
}

static bool is_listed(const char *list, struct str word)
{
	for (const char *p = list; p && word.n; p++) {
		p = memmem(p, strlen(p), word.p, word.n);
		if (!p)
			return false;
		if (p > list && p[-1] == ' ' && p[word.n] == ' ')
			return true;
	}
	return false;
}

static bool is_verb(const struct manager *m, struct str word)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->verbs) && m->verbs[i]; i++)
		if (str_eqz(word, m->verbs[i]))
			return true;
	return false;
}

/* ---- one word ---- */

static bool is_url(struct str s)
{
	return s.n && (memmem(s.p, s.n, "://", 3) || str_starts(s, STR("git@")) ||
		       str_starts(s, STR("file:")) || str_starts(s, STR("github:")));
}

static bool is_path(struct str s)
{
	return s.n && (s.p[0] == '.' || s.p[0] == '/' || s.p[0] == '~');
}

static struct str until(struct str s, const char *ends)
{
	size_t n = 0;

	while (n < s.n && !strchr(ends, s.p[n]))
		n++;
	return (struct str){ s.p, n };
}

static struct str after(struct str s, size_t n)
{
	return n < s.n ? (struct str){ s.p + n, s.n - n } : (struct str){ s.p + s.n, 0 };
}

/* "...#sha256=ab" or "...#sha256:ab": the hash that the download is compared with. */
static void split_hash(struct package *p, struct str s)
{
	static const char *const kinds[] = { "sha256", "sha384", "sha512" };
	const char *mark = s.n ? memchr(s.p, '#', s.n) : NULL;
	struct str frag = mark ? after(s, (size_t)(mark + 1 - s.p)) : (struct str){ 0 };

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && frag.n; i++)
		if (frag.n > 7 && !memcmp(frag.p, kinds[i], 6) &&
		    (frag.p[6] == '=' || frag.p[6] == ':'))
			p->hash = until(frag, "&");
}

static void split_pip(struct package *p, struct str s)
{
	const char *at = s.n ? memchr(s.p, '@', s.n) : NULL;
	size_t n;

	p->name = until(s, "[=<>!~; @");
	if (at && is_url(after(s, (size_t)(at + 1 - s.p)))) {
		p->url = after(s, (size_t)(at + 1 - s.p));
		while (p->url.n && p->url.p[0] == ' ')
			p->url = after(p->url, 1);
		split_hash(p, p->url);
		return;
	}
	for (n = p->name.n; n < s.n && s.p[n] != '=' && s.p[n] != '<' && s.p[n] != '>' &&
			    s.p[n] != '~' && s.p[n] != '!';)
		n++;
	p->version = until(after(s, n), ";");
	if (str_starts(p->version, STR("===")))
		p->version = after(p->version, 3);
	else if (str_starts(p->version, STR("==")))
		p->version = after(p->version, 2);
}

/* The @ of a scope stands first. */
static void split_at(struct package *p, struct str s)
{
	const char *at = s.n > 1 ? memchr(s.p + 1, '@', s.n - 1) : NULL;

	p->name = at ? (struct str){ s.p, (size_t)(at - s.p) } : s;
	if (!at)
		return;
	p->version = after(s, p->name.n + 1);
	if (!is_url(p->version))
		return;
	p->url = p->version;
	p->version = (struct str){ 0 };
	split_hash(p, p->url);
}

static void split_one(struct package *p, struct str s, const char *marks)
{
	p->name = until(s, marks);
	if (p->name.n == s.n)
		return;
	p->version = after(s, p->name.n + 1);
	while (p->version.n && p->version.p[0] == '=') /* conda: name==1 */
		p->version = after(p->version, 1);
}

/* dir/name_1.2_amd64.deb; in file names of dpkg a colon is %3a, which stays. */
static void split_deb(struct package *p, struct str s)
{
	struct str name = base_name(s);

	p->url = s;
	if (!str_ends(name, STR(".deb")))
		return;
	p->name = until(name, "_");
	p->version = until(after(name, p->name.n + 1), "_");
}

static bool split(struct package *p, const struct manager *m, struct str s)
{
	if (!s.n || s.n > 512)
		return false;
	if (m->spelling == S_DEB) {
		split_deb(p, s);
		return p->name.n > 0;
	}
	if (is_url(s) &&
	    !(m->spelling == S_PIP && memchr(s.p, '@', s.n) && !str_starts(s, STR("git"))) &&
	    s.p[0] != '@') {
		p->url = s;
		split_hash(p, s);
		return true;
	}
	if (is_path(s)) {
		if (m->spelling != S_EQ && s.n == 1)
			return false; /* "." is the project itself */
		p->url = s;
		return true;
	}
	if (m->spelling == S_PIP)
		split_pip(p, s);
	else if (m->spelling == S_AT)
		split_at(p, s);
	else if (m->spelling == S_EQ)
		split_one(p, s, "=/<>~");
	else if (m->spelling == S_GEM)
		split_one(p, s, ":");
	else
		p->name = s;
	return p->name.n > 0;
}

/* ---- the list ---- */

static bool is_new(struct packages_seen *seen, const struct package *p)
{
	const struct str v[] = { str_from(p->manager), p->name, p->version, p->url };
	uint64_t h = 0xcbf29ce484222325ull + p->from_files;
	uint64_t *slot;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		for (size_t k = 0; k < v[i].n; k++)
			h = (h ^ (unsigned char)v[i].p[k]) * 0x100000001b3ull;
		h = (h ^ 0xff) * 0x100000001b3ull;
	}
	slot = &seen->v[h % PACKAGES_SEEN];
	if (*slot == h)
		return false;
	*slot = h;
	return true;
}

void packages_add(struct packages *ret, struct packages_seen *seen, const struct package *p)
{
	if (ret->n == PACKAGES_MAX)
		ret->more++;
	else if (is_new(seen, p))
		ret->v[ret->n++] = *p;
}

/* Value of an option, in its own word or behind '='. Words used up besides the option's own. */
static size_t option(const struct manager *m, struct package *all, const struct str *word,
		     size_t left)
{
	struct str name = until(word[0], "="), value = after(word[0], name.n + 1);
	size_t used = 0;

	if (!is_listed(m->values, name))
		return 0;
	if (name.n == word[0].n && left > 1) {
		value = word[1];
		used = 1;
	}
	if (is_listed(m->registry, name))
		all->registry = value;
	if (is_listed(m->version, name))
		all->version = value;
	return used;
}

static void from_command(struct packages *ret, struct packages_seen *seen, const struct event *ev)
{
	const struct str *args = ev->v[F_PROC_ARGS].list.v;
	size_t n = ev->v[F_PROC_ARGS].list.n, at = 0;
	const struct manager *m = find_manager(args, n, &at);
	struct package all = { 0 };
	bool armed;

	if (!m)
		return;
	armed = !m->verbs[0];
	/* Options first: they stand anywhere and are for all packages. */
	all.manager = m->name;
	for (size_t i = at; i < n; i++)
		if (args[i].n && args[i].p[0] == '-')
			i += option(m, &all, &args[i], n - i);
	for (size_t i = at; i < n; i++) {
		struct package p = all, skip = { 0 };

		if (!armed) {
			armed = is_verb(m, args[i]);
			continue;
		}
		if (args[i].n && args[i].p[0] == '-')
			i += option(m, &skip, &args[i], n - i);
		else if (split(&p, m, args[i]))
			packages_add(ret, seen, &p);
		/* What follows is for the program that is run. */
		if (!m->verbs[0] && ret->n)
			break;
	}
}

void packages_find(struct packages *ret, struct packages_seen *seen, const struct event *ev)
{
	ret->n = ret->more = 0;
	if (!str_eqz(event_str(ev, F_OUTCOME), "success"))
		return;
	if (ev->kind == WIRE_EXEC && event_has(ev, F_PROC_ARGS))
		from_command(ret, seen, ev);
	else if (ev->kind == WIRE_FILE_OPEN || ev->kind == WIRE_FILE_RENAME ||
		 ev->kind == WIRE_FILE_MKDIR)
		packages_from_files(ret, seen, ev);
}

void package_event(struct event *ev, const struct package *p)
{
	const struct {
		enum field_id f;
		struct str v;
	} rows[] = {
		{ F_PACKAGE_NAME, p->name },	     { F_PACKAGE_VERSION, p->version },
		{ F_PACKAGE_REGISTRY, p->registry }, { F_PACKAGE_URL, p->url },
		{ F_PACKAGE_HASH, p->hash },
	};

	event_set_strz(ev, F_PACKAGE_MANAGER, p->manager);
	event_set_strz(ev, F_PACKAGE_FROM, p->from_files ? "files" : "command");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].v.n)
			event_set_str(ev, rows[i].f, rows[i].v);
}
