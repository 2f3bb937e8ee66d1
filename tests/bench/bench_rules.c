// SPDX-License-Identifier: Apache-2.0
/* Judging speed on one core: a mix of decoded events through rule sets of growing size. The mix is what
 * a build or an agent session makes: mostly files, then processes, then the network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules/rule.h"
#include "tests/bench/made_rules.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

DEFINE_AUTO(ruleset, ruleset_free)

#define TURNS  5
#define ROUNDS 30000

static const char *const mix[] = {
	"{\"kind\":\"exec\",\"outcome\":\"success\",\"syscall\":\"execve\",\"mono\":5000000000,\"proc\":{\"pid\":311,"
	"\"tid\":311,\"ppid\":300,\"uid\":1000,\"gid\":1000,\"comm\":\"python3\",\"exe\":\"/usr/bin/python3.11\",\"args\":"
	"[\"python3\",\"-m\",\"pip\",\"install\",\"--index-url\",\"https://pypi.example.org/simple\",\"requests\"],"
	"\"argc\":7,\"cwd\":\"/workspace/project\",\"start\":4000000000,\"stdin\":\"pipe\",\"memfd\":false,"
	"\"dropped\":false,\"pexe\":\"/usr/bin/bash\",\"pcomm\":\"bash\",\"ancestors\":[{\"pid\":300,\"start\":1,"
	"\"comm\":\"bash\",\"exe\":\"/usr/bin/bash\"},{\"pid\":290,\"start\":1,\"comm\":\"node\",\"exe\":"
	"\"/usr/bin/node\"},{\"pid\":280,\"start\":1,\"comm\":\"init\",\"exe\":\"/init\"}]}}",
	"{\"kind\":\"exec\",\"outcome\":\"success\",\"syscall\":\"execve\",\"mono\":5000000000,\"proc\":{\"pid\":312,"
	"\"comm\":\"cc1\",\"exe\":\"/usr/lib/gcc/x86_64-linux-gnu/12/cc1\",\"args\":[\"cc1\",\"-quiet\",\"-I\","
	"\"include\",\"-imultiarch\",\"x86_64-linux-gnu\",\"src/main.c\",\"-O2\",\"-o\",\"/tmp/ccX1.s\"],"
	"\"cwd\":\"/workspace\",\"start\":4000000000,\"stdin\":\"pipe\",\"pexe\":\"/usr/bin/gcc\",\"pcomm\":\"gcc\"}}",
	"{\"kind\":\"fork\",\"outcome\":\"success\",\"proc\":{\"pid\":300,\"comm\":\"bash\",\"exe\":\"/usr/bin/bash\"},"
	"\"child\":{\"pid\":311,\"nspid\":11}}",
	"{\"kind\":\"exit\",\"proc\":{\"pid\":311,\"comm\":\"python3\",\"exe\":\"/usr/bin/python3.11\"},\"exit\":{"
	"\"code\":0}}",
	"{\"kind\":\"file.open\",\"outcome\":\"success\",\"syscall\":\"openat\",\"proc\":{\"pid\":311,\"comm\":\"python3\","
	"\"exe\":\"/usr/bin/python3.11\",\"cwd\":\"/workspace/project\"},\"file\":{\"path\":"
	"\"/workspace/project/.venv/lib/python3.11/site-packages/requests/api.py\",\"name\":\"api.py\",\"flags\":["
	"\"O_WRONLY\",\"O_CREAT\",\"O_TRUNC\",\"O_CLOEXEC\"],\"write\":true,\"created\":true,\"mode\":438,\"fd\":5}}",
	"{\"kind\":\"file.open\",\"outcome\":\"success\",\"syscall\":\"openat\",\"proc\":{\"pid\":312,\"comm\":\"cc1\"},"
	"\"file\":{\"path\":\"/tmp/ccX1.s\",\"name\":\"ccX1.s\",\"flags\":[\"O_WRONLY\",\"O_TRUNC\"],\"write\":true,"
	"\"fd\":3}}",
	"{\"kind\":\"file.open\",\"outcome\":\"success\",\"syscall\":\"openat\",\"proc\":{\"pid\":313,\"comm\":\"git\"},"
	"\"file\":{\"path\":\"/workspace/project/.git/index.lock\",\"name\":\"index.lock\",\"flags\":[\"O_RDWR\","
	"\"O_CREAT\",\"O_EXCL\"],\"write\":true,\"created\":true,\"mode\":438,\"fd\":4}}",
	"{\"kind\":\"file.rename\",\"outcome\":\"success\",\"syscall\":\"rename\",\"proc\":{\"pid\":313,\"comm\":\"git\"},"
	"\"file\":{\"path\":\"/workspace/project/.git/index\",\"old_path\":\"/workspace/project/.git/index.lock\"}}",
	"{\"kind\":\"file.delete\",\"outcome\":\"success\",\"syscall\":\"unlink\",\"proc\":{\"pid\":312,\"comm\":\"cc1\"},"
	"\"file\":{\"path\":\"/tmp/ccX1.s\",\"name\":\"ccX1.s\"}}",
	"{\"kind\":\"net.connect\",\"outcome\":\"pending\",\"syscall\":\"connect\",\"proc\":{\"pid\":311,\"comm\":"
	"\"python3\",\"exe\":\"/usr/bin/python3.11\"},\"net\":{\"family\":\"inet\",\"proto\":\"tcp\",\"src\":{\"ip\":"
	"\"10.0.0.2\",\"port\":41000},\"dst\":{\"ip\":\"151.101.0.223\",\"port\":443,\"name\":\"pypi.example.org\"}}}",
	"{\"kind\":\"dns.query\",\"proc\":{\"pid\":311,\"comm\":\"python3\"},\"net\":{\"family\":\"inet\",\"proto\":\"udp\","
	"\"dst\":{\"ip\":\"10.0.0.1\",\"port\":53}},\"dns\":{\"id\":7,\"name\":\"files.pypi.example.org\",\"type\":\"A\"}}",
	"{\"kind\":\"escape\",\"outcome\":\"denied\",\"errno\":\"EPERM\",\"syscall\":\"io_uring_setup\",\"proc\":{\"pid\":"
	"290,\"comm\":\"node\",\"exe\":\"/usr/bin/node\"},\"escape\":{\"type\":\"io_uring\"}}",
};
/* How often each stands in a round of 32. */
static const int weight[] = { 2, 2, 3, 3, 7, 4, 3, 2, 2, 2, 1, 1 };

struct set {
	struct arena arena;
	struct event ev[ARRAY_SIZE(mix)];
	const struct event *order[32];
	size_t n;
};

static int make_events(struct set *s)
{
	struct err err = { 0 };

	arena_init(&s->arena, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(mix); i++) {
		if (event_from_json(&s->ev[i], &s->arena, str_from(mix[i]), &err) < 0) {
			fprintf(stderr, "event %zu: %s\n", i, err_text(&err));
			return -EINVAL;
		}
		for (int k = 0; k < weight[i]; k++)
			s->order[s->n++] = &s->ev[i];
	}
	return 0;
}

static void say(void *arg, const struct rule_diag *d)
{
	(void)arg;
	if (!d->warning)
		fprintf(stderr, "%s:%d:%d: %s\n", d->file, d->line, d->col, d->text);
}

static double measure(const struct ruleset *rs, const struct set *s)
{
	uint64_t best = UINT64_MAX;
	struct rule_matches m;
	volatile size_t sum = 0;

	for (int t = 0; t < TURNS; t++) {
		uint64_t began = clock_ns(CLOCK_PROCESS_CPUTIME_ID), took;

		for (int i = 0; i < ROUNDS; i++)
			for (size_t k = 0; k < s->n; k++)
				sum = sum + ruleset_eval(rs, s->order[k], &m);
		took = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
		if (took < best)
			best = took;
	}
	return (double)ROUNDS * (double)s->n * 1e9 / (double)best;
}

static double run(const char *name, struct ruleset *rs, const struct set *s, const char *target)
{
	struct err err = { 0 };
	double rate;

	if (ruleset_compile(rs, &err) < 0) {
		fprintf(stderr, "%s: %s\n", name, err_text(&err));
		exit(1);
	}
	rate = measure(rs, s);
	printf("%s\t%.0f\tevents/s\t%s\n", name, rate, target);
	fflush(stdout);
	return rate;
}

static double run_made(int rules, const struct set *s, const char *target)
{
	AUTO(ruleset) struct ruleset *rs = NULL;
	auto_buf struct buf b = { 0 };
	char name[64];

	buf_init(&b, 0);
	for (int i = 0; i < rules; i++)
		add_rule(&b, i);
	if (ruleset_new(&rs, say, NULL) < 0 ||
	    ruleset_add_text(rs, "made", (struct str){ b.p, b.n }, NULL) < 0)
		exit(1);
	snprintf(name, sizeof(name), "rules: %d rules, mixed events", rules);
	return run(name, rs, s, target);
}

static void run_packs(const struct set *s)
{
	AUTO(ruleset) struct ruleset *rs = NULL;

	if (ruleset_new(&rs, say, NULL) < 0)
		exit(1);
	ruleset_allow_state(rs);
	for (size_t i = 0; i < rule_packs_n; i++)
		if (ruleset_add_text(rs, rule_packs[i].name, rule_packs[i].text, NULL) < 0)
			exit(1);
	run("rules: default packs, mixed events", rs, s, ">= 1000000");
}

/* Falco's public file is not part of the project. */
static void run_falco(const struct set *s)
{
	AUTO(ruleset) struct ruleset *rs = NULL;
	const char *path = getenv("WARDER_FALCO_RULES");

	if (!path)
		path = "../shared/corpus/falco/falco_rules.yaml";
	if (access(path, R_OK) || ruleset_new(&rs, say, NULL) < 0 ||
	    ruleset_add_file(rs, path, NULL) < 0)
		return;
	run("rules: Falco's stable rules, mixed events", rs, s, ">= 500000");
}

int main(void)
{
	static struct set s;
	double hundred, thousand;

	if (make_events(&s) < 0)
		return 1;
	run_made(50, &s, ">= 1400000");
	hundred = run_made(100, &s, ">= 1000000");
	thousand = run_made(1000, &s, "-");
	printf("rules: cost of 1000 rules over 100\t%.2f\tratio\t<= 2.0\n", hundred / thousand);
	run_packs(&s);
	run_falco(&s);
	arena_done(&s.arena);
	return 0;
}
