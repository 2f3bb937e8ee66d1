// SPDX-License-Identifier: Apache-2.0
// ours: capture
/* What the kernel says of each of our programs once it is loaded, one a line:
 *   NAME VERIFIED XLATED JITED
 * instructions that the verifier looked at, bytes of the program after it, bytes of machine code. All that this kernel
 * takes: each tier in turn, with everything that can be asked for (rules to enforce, files to watch), as it is without
 * (then names are told by on_name), and for many sessions, so a name comes more than once. With an argument: the names of all programs, whatever this kernel has. */
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>

#include "userspace/base/auto.h"
#include "userspace/capture/capture.h"
#include "userspace/capture/internal.h"
#include "warder.skel.h"

static size_t print_programs(const struct capture *c)
{
	struct bpf_program *p;
	size_t found = 0;

	bpf_object__for_each_program(p, c->skel->obj)
	{
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);
		int fd = bpf_program__fd(p);

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
			continue;
		printf("%s %u %u %u\n", bpf_program__name(p), info.verified_insns,
		       info.xlated_prog_len, info.jited_prog_len);
		found++;
	}
	return found;
}

static int print_names(void)
{
	struct warder *skel = warder__open();
	struct bpf_program *p;

	if (!skel)
		return 1;
	bpf_object__for_each_program(p, skel->obj) puts(bpf_program__name(p));
	warder__destroy(skel);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const tiers[] = { "full-multi", "full-fexit", "portable",
					     "auto",	   "auto",	 "auto" };
	const struct watch_entry watched = { .text = "/etc/passwd", .host_path = "/etc/passwd" };
	struct capture_options opt = { .quiet_libbpf = true,
				       .enforce = true,
				       .gvisor = true,
				       .watch = &watched,
				       .watch_n = 1 };
	size_t found = 0;

	(void)argv;
	if (argc > 1)
		return print_names();
	for (size_t i = 0; i < ARRAY_SIZE(tiers); i++) {
		struct capture *c = NULL;
		struct err err = { 0 };

		if (i >= ARRAY_SIZE(tiers) - 2)
			opt = (struct capture_options){ .quiet_libbpf = true,
							.shared = i == ARRAY_SIZE(tiers) - 1,
							.enforce = i == ARRAY_SIZE(tiers) - 1 };
		if (setenv("WARDER_TIER", tiers[i], 1) < 0)
			return 1;
		if (capture_open(&c, &opt, &err) < 0) {
			fprintf(stderr, "prog_cost: %s: %s\n", tiers[i], err_text(&err));
			continue; /* this kernel does not have it */
		}
		found += print_programs(c);
		capture_close(c);
	}
	return found ? 0 : 1;
}
