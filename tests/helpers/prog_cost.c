// SPDX-License-Identifier: Apache-2.0
// ours: capture
/* What the kernel says of each of our programs once it is loaded, one a line:
 *   NAME VERIFIED XLATED JITED
 * instructions that the verifier looked at, bytes of the program after it, bytes of machine code. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/capture/capture.h"

/* False: not a program. Other objects have other structures behind the same call. */
static bool print_prog(int fd)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	char link[64], path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0 || strncmp(link, "anon_inode:bpf-prog", 19) != 0 ||
	    bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return false;
	printf("%s %u %u %u\n", info.name, info.verified_insns, info.xlated_prog_len,
	       info.jited_prog_len);
	return true;
}

int main(void)
{
	struct capture *c = NULL;
	struct err err = { 0 };
	struct dirent *de;
	size_t found = 0;
	DIR *dir;

	if (capture_open(&c, &(struct capture_options){ .quiet_libbpf = true }, &err) < 0) {
		fprintf(stderr, "prog_cost: %s\n", err_text(&err));
		return 1;
	}
	dir = opendir("/proc/self/fd");
	while (dir && (de = readdir(dir)))
		found += print_prog(atoi(de->d_name));
	if (dir)
		closedir(dir);
	capture_close(c);
	return found ? 0 : 1;
}
