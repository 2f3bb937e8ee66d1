// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/capture/capture.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/measured.h"
#include "userspace/cli/util.h"
#include "userspace/redact/redact.h"

#define ROWS_MAX 64

struct doctor_args {
	bool json, measure, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct doctor_args, json), NULL, "one JSON object" },
	{ "measure", 0, OPT_FLAG, offsetof(struct doctor_args, measure), NULL,
	  "only measure how fast a rule kills here, for `rules explain` (ten seconds)" },
	{ "help", 'h', OPT_FLAG, offsetof(struct doctor_args, help), NULL, "this text" },
	{ 0 },
};

/* One row whatever part it comes from. */
struct row {
	const char *name, *what, *detail;
	bool ok, required;
};

struct report {
	struct row features[2 * ROWS_MAX + 1];
	size_t features_n;
	struct capture_family_state families[ROWS_MAX];
	size_t families_n;
	struct capture_test tests[CAPTURE_TESTS_MAX];
	size_t tests_n;
	char tier[16];
	char load_error[ERR_TEXT_MAX], test_error[ERR_TEXT_MAX];
	bool ready, degraded;
};

static const char *const seen_text[] = {
	[CAPTURE_SEEN] = "seen",
	[CAPTURE_UNSEEN] = "unseen",
	[CAPTURE_UNTRIED] = "untried",
};

static void probe_families(struct report *rep)
{
	struct capture *c = NULL;
	struct err err = { 0 };
	int n;

	if (capture_open(&c, &(struct capture_options){ .quiet_libbpf = true, .enforce = true },
			 &err) < 0) {
		snprintf(rep->load_error, sizeof(rep->load_error), "%s", err_text(&err));
		snprintf(rep->tier, sizeof(rep->tier), "none");
		return;
	}
	n = capture_selftest(c, true, rep->tests, ARRAY_SIZE(rep->tests), &err);
	if (n < 0)
		snprintf(rep->test_error, sizeof(rep->test_error), "%s", err_text(&err));
	else
		rep->tests_n = (size_t)n;
	rep->families_n = capture_families(c, rep->families, ROWS_MAX);
	snprintf(rep->tier, sizeof(rep->tier), "%s", capture_tier(c));
	capture_close(c);
}

static struct row redaction_row(void)
{
	struct row r = { .name = "hyperscan", .what = "redaction of long output" };

	r.ok = redact_has_hyperscan(&r.detail);
	return r;
}

static void collect(struct report *rep)
{
	static struct capture_feature cf[ROWS_MAX];
	static struct sandbox_feature sf[ROWS_MAX];
	size_t n;

	n = capture_features(cf, ROWS_MAX);
	for (size_t i = 0; i < n; i++)
		rep->features[rep->features_n++] =
			(struct row){ cf[i].name, cf[i].what, cf[i].detail, cf[i].ok,
				      cf[i].required };
	n = sandbox_features(sf, ROWS_MAX);
	for (size_t i = 0; i < n; i++)
		rep->features[rep->features_n++] =
			(struct row){ sf[i].name, sf[i].what, sf[i].detail, sf[i].ok,
				      sf[i].required };
	rep->features[rep->features_n++] = redaction_row();
	probe_families(rep);
	rep->ready = !rep->load_error[0];
	for (size_t i = 0; i < rep->features_n; i++)
		if (rep->features[i].required && !rep->features[i].ok)
			rep->ready = false;
	for (size_t i = 0; i < rep->families_n; i++)
		rep->degraded |= !rep->families[i].ok;
}

static void print_row(const char *mark, const char *name, const char *what, const char *detail)
{
	printf("  %s %-22s %s%s%s\n", mark, name, what, detail[0] ? ": " : "", detail);
}

/* Under its family, what was done in the scratch sandbox: in one line when all of it was seen. */
static void print_tests(const struct report *rep, const char *family, const char *no)
{
	size_t seen = 0;

	for (size_t i = 0; i < rep->tests_n; i++)
		seen += !strcmp(rep->tests[i].family, family) && rep->tests[i].seen == CAPTURE_SEEN;
	if (seen)
		printf("       %-22s seen:", "");
	for (size_t i = 0, n = 0; i < rep->tests_n; i++)
		if (!strcmp(rep->tests[i].family, family) && rep->tests[i].seen == CAPTURE_SEEN)
			printf("%s %s", n++ ? "," : "", rep->tests[i].what);
	if (seen)
		putchar('\n');
	for (size_t i = 0; i < rep->tests_n; i++)
		if (!strcmp(rep->tests[i].family, family) && rep->tests[i].seen != CAPTURE_SEEN)
			printf("  %s %-22s %s: %s\n",
			       rep->tests[i].seen == CAPTURE_UNSEEN ? no : "    ", "",
			       rep->tests[i].what, rep->tests[i].why);
}

static const char *conclusion(const struct report *rep)
{
	if (!rep->ready)
		return "Not ready: what is marked MISS is needed.";
	return rep->degraded
		       ? "Ready, but degraded: sandboxes run here, and each session names the probe "
			 "families above that miss something."
		       : "Ready: sandboxes can be run and watched here.";
}

static void print_text(const struct report *rep)
{
	bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	const char *ok = colour ? "\033[32mok  \033[0m" : "ok  ";
	const char *no = colour ? "\033[33m-   \033[0m" : "-   ";
	const char *bad = colour ? "\033[31mMISS\033[0m" : "MISS";

	puts("This host gives:");
	for (size_t i = 0; i < rep->features_n; i++) {
		const struct row *r = &rep->features[i];

		print_row(r->ok ? ok : r->required ? bad : no, r->name, r->what, r->detail);
	}
	printf("\nProbes: %s tier\n", rep->tier);
	for (size_t i = 0; i < rep->families_n; i++) {
		print_row(rep->families[i].ok ? ok : bad, rep->families[i].name,
			  rep->families[i].hook, rep->families[i].detail);
		print_tests(rep, rep->families[i].name, bad);
	}
	if (rep->test_error[0])
		printf("  %s %s\n", bad, rep->test_error);
	if (rep->load_error[0])
		printf("  %s %s\n", bad, rep->load_error);
	printf("\n%s\n", conclusion(rep));
}

static void json_row(struct json *j, const char *name, const char *key, const char *text, bool ok,
		     const char *detail)
{
	json_object_begin(j);
	json_key(j, "name");
	json_strz(j, name);
	json_key(j, key);
	json_strz(j, text);
	json_key(j, "ok");
	json_bool(j, ok);
	json_key(j, "detail");
	json_strz(j, detail);
}

static void json_tests(struct json *j, const struct report *rep, const char *family)
{
	json_key(j, "tests");
	json_array_begin(j);
	for (size_t i = 0; i < rep->tests_n; i++) {
		const struct capture_test *t = &rep->tests[i];

		if (strcmp(t->family, family))
			continue;
		json_object_begin(j);
		json_key(j, "what");
		json_strz(j, t->what);
		json_key(j, "result");
		json_strz(j, seen_text[t->seen]);
		json_key(j, "why");
		json_strz(j, t->why);
		json_object_end(j);
	}
	json_array_end(j);
}

static void print_json(const struct report *rep)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "ready");
	json_bool(&j, rep->ready);
	json_key(&j, "degraded");
	json_array_begin(&j);
	for (size_t i = 0; i < rep->families_n; i++)
		if (!rep->families[i].ok)
			json_strz(&j, rep->families[i].name);
	json_array_end(&j);
	json_key(&j, "tier");
	json_strz(&j, rep->tier);
	json_key(&j, "error");
	json_strz(&j, rep->load_error[0] ? rep->load_error : rep->test_error);
	json_key(&j, "features");
	json_array_begin(&j);
	for (size_t i = 0; i < rep->features_n; i++) {
		const struct row *r = &rep->features[i];

		json_row(&j, r->name, "what", r->what, r->ok, r->detail);
		json_key(&j, "required");
		json_bool(&j, r->required);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key(&j, "families");
	json_array_begin(&j);
	for (size_t i = 0; i < rep->families_n; i++) {
		json_row(&j, rep->families[i].name, "hook", rep->families[i].hook,
			 rep->families[i].ok, rep->families[i].detail);
		json_key(&j, "tier");
		json_strz(&j, rep->families[i].tier);
		json_tests(&j, rep, rep->families[i].name);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	cli_print_line(&out);
}

static int measure(bool json)
{
	struct err err = { 0 };
	uint64_t p50, max;

	if (geteuid() != 0)
		err_set(&err, EPERM, "measuring runs sandboxes, which needs root (try sudo)");
	if (err.code || measured_make(&p50, &max, &err) < 0)
		return cli_fail(&err);
	printf(json ? "{\"kill_p50_ns\":%llu,\"kill_max_ns\":%llu}\n"
		    : "A kill decided in user space, from the act to the sandbox empty: median %llu ns, "
		      "worst %llu ns\n",
	       (unsigned long long)p50, (unsigned long long)max);
	return cli_finish_output(0);
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_args args = { 0 };
	static struct report rep;
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("doctor", &err);
	if (args.help) {
		cli_usage(
			"doctor [OPTIONS]",
			"Ask this host what it gives: kernel features, probe tier, sandbox layers,\n"
			"what is missing and how to get it. A scratch sandbox does one of everything; what\n"
			"its events do not show makes a probe family degraded. (One process in it runs out\n"
			"of memory, which the kernel logs.) Exit code: 0 ready, 1 not, 2 ready, but degraded.\n"
			"\n"
			"WARDER_TIER=portable|full|full-multi|full-fexit forces a probe tier, here and for\n"
			"run; what cannot be had is then missing, not replaced.",
			OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "unexpected word '%s'", argv[1]);
		return cli_bad_usage("doctor", &err);
	}
	if (args.measure)
		return measure(args.json);
	collect(&rep);
	if (args.json)
		print_json(&rep);
	else
		print_text(&rep);
	return cli_finish_output(!rep.ready ? 1 : rep.degraded ? 2 : 0);
}
