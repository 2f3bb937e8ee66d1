// SPDX-License-Identifier: Apache-2.0
/* Rows for `warder doctor`: which runsc there is, and which of its platforms run a program here. A platform may be
 * listed and never come up (kvm without the hardware): each is tried, and killed when it takes too long. */
#include "runtime/gvisor/gvisor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define TRIAL_MS 15000

static int run_true(const struct sandbox_plan *plan, struct err *err)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int stdio[] = { null, null, null };
	struct sandbox *s = NULL;
	int r;

	if (null < 0)
		return err_set(err, errno, "/dev/null: %m");
	r = sandbox_create(&s, plan, err);
	if (r == 0)
		r = sandbox_begin(s, stdio, err);
	if (r == 0)
		r = sandbox_follow(s, TRIAL_MS, err);
	if (r == SANDBOX_STARTING)
		r = err_set(err, ETIMEDOUT, "it has not come up in %d s", TRIAL_MS / 1000);
	sandbox_free(s);
	return r < 0 ? r : 0;
}

int gvisor_trial(const char *platform, uint64_t *ret_ns, struct err *err)
{
	static char name[] = "/bin/true";
	char *const argv[] = { name, NULL };
	struct sandbox_plan *plan;
	struct sandbox_spec spec;
	char session[64];
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	int r;

	snprintf(session, sizeof(session), "trial-%d-%s", (int)getpid(), platform);
	sandbox_spec_defaults(&spec);
	spec.backend = "gvisor";
	spec.platform = platform;
	spec.session = session;
	spec.argv = argv;
	r = sandbox_plan_new(&plan, &spec, err);
	if (r < 0)
		return r;
	r = run_true(plan, err);
	sandbox_plan_free(plan);
	*ret_ns = clock_ns(CLOCK_MONOTONIC) - begun;
	return r;
}

static void try_platform(struct sandbox_feature *f, const char *name, const char *platform,
			 bool listed)
{
	struct err err = { 0 };
	uint64_t ns;

	*f = (struct sandbox_feature){ .name = name, .what = "a program run under gVisor" };
	if (!listed) {
		snprintf(f->detail, sizeof(f->detail), "this runsc does not have it");
	} else if (geteuid() != 0) {
		snprintf(f->detail, sizeof(f->detail), "not tried: run as root");
	} else if (gvisor_trial(platform, &ns, &err) < 0) {
		snprintf(f->detail, sizeof(f->detail), "%.140s", err_text(&err));
	} else {
		f->ok = true;
		snprintf(f->detail, sizeof(f->detail), "works, %llu ms from start to end%s",
			 (unsigned long long)(ns / NSEC_PER_MSEC),
			 strcmp(platform, "ptrace")
				 ? "; the guest's calls do not show to this kernel"
				 : "");
	}
}

size_t gvisor_features(struct sandbox_feature *rows, size_t max)
{
	const struct gvisor_runsc *r;
	struct err err = { 0 };

	if (max < 3)
		return 0;
	rows[0] =
		(struct sandbox_feature){ .name = "gvisor", .what = "runsc, for --backend gvisor" };
	if (gvisor_runsc_get(&r, &err) < 0) {
		snprintf(rows[0].detail, sizeof(rows[0].detail), "%.140s", err_text(&err));
		return 1;
	}
	rows[0].ok = true;
	snprintf(rows[0].detail, sizeof(rows[0].detail), "%.80s, version %.50s", r->path,
		 r->version);
	try_platform(rows + 1, "gvisor.ptrace", "ptrace", r->has_ptrace);
	try_platform(rows + 2, "gvisor.systrap", "systrap", r->has_systrap);
	return 3;
}
