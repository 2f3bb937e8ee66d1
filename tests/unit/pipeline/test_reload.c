// SPDX-License-Identifier: Apache-2.0
/* Rule files read, tried and handed on; when they are read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/reload.h"

#define RULE(name) \
	"- rule: " name "\n  desc: d\n  condition: kind = exec\n  output: o\n  priority: INFO\n"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_reload.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd);
}

static const char *put(const char *name, const char *text)
{
	static char path[4][128];
	static int i;
	char *p = path[i++ % 4];
	int fd;

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	fd = open(p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
	return p;
}

static void directories_are_read_in_order_of_names(void **state)
{
	const char *path[] = { dir };
	const struct rule_files files = { .path = path, .n = 1 };
	struct ruleset *rs = NULL;
	struct err err = { 0 };
	auto_buf struct buf texts = { 0 };

	(void)state;
	buf_init(&texts, RULE_TEXTS_MAX);
	put("20.yaml", "- rule: r\n  desc: changed\n  override: {desc: replace}\n");
	put("10.yml", RULE("r"));
	put("05.txt", "not rules");
	put(".hidden.yaml", "not rules");
	assert_int_equal(rule_texts_read(&texts, &files, &err), 0);
	assert_int_equal(
		rule_texts_compile(&rs, (struct str){ texts.p, texts.n }, 0, NULL, NULL, &err), 0);
	assert_int_equal(ruleset_count(rs), 1);
	assert_string_equal(ruleset_get(rs, 0)->desc, "changed");
	ruleset_free(rs);
}

static void what_is_no_block_of_texts_is_refused(void **state)
{
	const char *path[] = { put("a.yaml", RULE("r")) };
	const struct rule_files files = { .path = path, .n = 1 };
	auto_buf struct buf texts = { 0 };
	struct err err = { 0 };
	unsigned whole = 0;

	(void)state;
	buf_init(&texts, RULE_TEXTS_MAX);
	assert_int_equal(rule_texts_read(&texts, &files, &err), 0);
	for (size_t n = 1; n < texts.n; n++) {
		struct ruleset *rs = NULL;

		/* Cut between two files it is the first one alone: the library, which has no rule. */
		if (rule_texts_compile(&rs, (struct str){ texts.p, n }, 0, NULL, NULL, &err) < 0)
			continue;
		whole++;
		assert_int_equal(ruleset_count(rs), 0);
		ruleset_free(rs);
	}
	assert_int_equal(whole, 1);
}

static void missing_files_are_named(void **state)
{
	const char *path[] = { "/nowhere/rules.yaml" };
	const struct rule_files files = { .path = path, .n = 1 };
	auto_buf struct buf texts = { 0 };
	struct err err = { 0 };

	(void)state;
	buf_init(&texts, RULE_TEXTS_MAX);
	assert_int_equal(rule_texts_read(&texts, &files, &err), -ENOENT);
	assert_non_null(strstr(err.text, "rule file '/nowhere/rules.yaml'"));
}

/* ---- when ---- */

struct world {
	struct sandbox_spec spec;
	struct rule_files files;
	const char *path[1];
	struct buf texts;
	struct reloader r;
};

static void begin(struct world *w, const char *rules)
{
	struct err err = { 0 };

	memset(w, 0, sizeof(*w));
	sandbox_spec_defaults(&w->spec);
	buf_init(&w->texts, RULE_TEXTS_MAX);
	w->path[0] = put("rules.yaml", rules);
	w->files = (struct rule_files){ .path = w->path, .n = 1 };
	assert_int_equal(rule_texts_read(&w->texts, &w->files, &err), 0);
	reloader_init(&w->r, &w->files, (struct str){ w->texts.p, w->texts.n }, &w->spec);
}

static void end(struct world *w)
{
	reloader_done(&w->r);
	buf_done(&w->texts);
}

/* What the engine would be told: "none", "new", or the error. */
static const char *told(struct world *w)
{
	static char text[ERR_TEXT_MAX];
	struct reloader_result res;

	if (!reloader_run(&w->r, &res))
		return "none";
	reloader_answered(&w->r);
	if (res.texts_fd >= 0)
		close(res.texts_fd);
	snprintf(text, sizeof(text), "%s", res.rules ? "new" : err_text(&res.err));
	assert_int_equal(res.texts_fd >= 0, res.rules != NULL);
	return text;
}

/* After a change the file is looked at when it has settled. */
static const char *told_later(struct world *w)
{
	reloader_look(&w->r);
	if (w->r.due) {
		assert_string_equal(told(w), "none");
		assert_in_range(reloader_timeout(&w->r), 1, RELOAD_SETTLE_MS + 1);
		w->r.due = 1;
	}
	return told(w);
}

static void changes_are_seen_and_told_once(void **state)
{
	struct world w;

	(void)state;
	begin(&w, RULE("a"));
	assert_string_equal(told(&w), "none"); /* the look at the start: as it was */
	assert_int_equal(reloader_timeout(&w.r), -1);
	put("other.txt", "x");
	assert_string_equal(told_later(&w), "none");
	put("rules.yaml", RULE("b"));
	assert_string_equal(told_later(&w), "new");
	put("rules.yaml", RULE("b"));
	assert_string_equal(told_later(&w), "none");
	put("rules.yaml", "- rule: c\n");
	assert_non_null(strstr(told_later(&w), "rules.yaml:1:3: rule 'c' has no 'condition'"));
	assert_string_equal(told_later(&w), "none");
	/* Somebody asks: told even when nothing changed. */
	assert_true(reloader_ask(&w.r, "SIGHUP"));
	assert_non_null(strstr(told(&w), "rules.yaml:1:3: "));
	put("rules.new", RULE("d"));
	assert_int_equal(rename(put("rules.new", RULE("d")), w.path[0]), 0);
	assert_string_equal(told_later(&w), "new");
	end(&w);
}

static void a_change_before_the_watch_is_seen(void **state)
{
	struct world w;

	(void)state;
	begin(&w, RULE("a"));
	reloader_done(&w.r);
	put("rules.yaml", RULE("b"));
	reloader_init(&w.r, &w.files, (struct str){ w.texts.p, w.texts.n }, &w.spec);
	assert_string_equal(told(&w), "new");
	end(&w);
}

static void nothing_new_while_the_engine_is_busy(void **state)
{
	struct reloader_result res;
	struct world w;

	(void)state;
	begin(&w, RULE("a"));
	assert_string_equal(told(&w), "none");
	assert_true(reloader_ask(&w.r, "SIGHUP"));
	assert_true(reloader_run(&w.r, &res));
	close(res.texts_fd);
	assert_true(reloader_ask(&w.r, "SIGHUP"));
	assert_false(reloader_run(&w.r, &res));
	assert_int_equal(reloader_timeout(&w.r), -1);
	reloader_answered(&w.r);
	assert_string_equal(told(&w), "new");
	end(&w);
}

static void rules_within_reach_of_the_sandbox_are_final(void **state)
{
	char inner[96], link_path[96];
	struct world w;

	(void)state;
	begin(&w, RULE("a"));
	assert_string_equal(told(&w), "none");
	w.spec.workspace = dir;
	assert_true(reloader_ask(&w.r, "SIGHUP"));
	assert_non_null(strstr(told(&w), "lies where the sandbox can write"));
	w.spec.workspace = NULL;
	/* By a link, into a writable mount. */
	snprintf(inner, sizeof(inner), "%s/in", dir);
	assert_int_equal(mkdir(inner, 0755), 0);
	put("in/rules.yaml", RULE("evil"));
	snprintf(link_path, sizeof(link_path), "%s/rules.yaml", dir);
	assert_int_equal(unlink(link_path), 0);
	assert_int_equal(symlink("in/rules.yaml", link_path), 0);
	w.spec.binds[0] =
		(struct sandbox_bind){ .source = inner, .target = "/x", .writable = true };
	w.spec.binds_n = 1;
	assert_true(reloader_ask(&w.r, "SIGHUP"));
	assert_non_null(strstr(told(&w), "lies where the sandbox can write"));
	w.spec.binds[0].writable = false;
	assert_true(reloader_ask(&w.r, "SIGHUP"));
	assert_string_equal(told(&w), "new");
	end(&w);
}

static void without_files_nobody_is_served(void **state)
{
	const struct rule_files none = { .builtin = true };
	struct reloader r;

	(void)state;
	reloader_init(&r, &none, (struct str){ NULL, 0 }, NULL);
	assert_false(reloader_ask(&r, "SIGHUP"));
	assert_int_equal(reloader_timeout(&r), -1);
	reloader_done(&r);
}

/* ---- the engine's side ---- */

static void a_job_compiles_beside(void **state)
{
	struct reload_job job = { 0 };
	struct reloader_result res;
	struct ruleset *rs = NULL;
	struct err err = { 0 };
	struct world w;

	(void)state;
	begin(&w, RULE("a"));
	assert_int_equal(reload_job_take(&job, &rs, &err), -ENOENT);
	assert_int_equal(reload_job_fd(&job), -1);
	assert_string_equal(told(&w), "none");
	assert_true(reloader_ask(&w.r, "test"));
	assert_true(reloader_run(&w.r, &res));
	assert_int_equal(fcntl(res.texts_fd, F_GET_SEALS) & F_SEAL_WRITE, F_SEAL_WRITE);
	assert_int_equal(reload_job_start(&job, res.texts_fd, 0, "test"), 0);
	assert_true(reload_job_fd(&job) >= 0);
	assert_int_equal(reload_job_start(&job, -1, 0, "again"), -EBUSY);
	assert_int_equal(reload_job_take(&job, &rs, &err), 0);
	assert_string_equal(ruleset_get(rs, 0)->name, "a");
	assert_string_equal(ruleset_hash(rs), ruleset_hash(res.rules));
	ruleset_free(rs);
	end(&w);
	/* What cannot be read is an error, nothing else. */
	assert_int_equal(reload_job_start(&job, open("/dev/null", O_WRONLY | O_CLOEXEC), 0, "x"),
			 0);
	assert_true(reload_job_take(&job, &rs, &err) < 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(directories_are_read_in_order_of_names),
		CASE(what_is_no_block_of_texts_is_refused),
		CASE(missing_files_are_named),
		CASE(changes_are_seen_and_told_once),
		CASE(a_change_before_the_watch_is_seen),
		CASE(nothing_new_while_the_engine_is_busy),
		CASE(rules_within_reach_of_the_sandbox_are_final),
		CASE(without_files_nobody_is_served),
		CASE(a_job_compiles_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
