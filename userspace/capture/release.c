// SPDX-License-Identifier: Apache-2.0
/* Letting go of trampolines and multi-function probes. The kernel waits 0.1 s for each of them until
 * nobody can be running in it any more. Who has only to wait for that should not be the operator: a
 * process of its own closes them. */
#include <bpf/bpf.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/capture/hooks.h"
#include "userspace/capture/ktypes.h"

/* It ends when the descriptors are closed, holds nothing else, and is nobody's child. */
void hooks_release(int *fds, size_t n)
{
	pid_t pid = fork();
	int null;

	if (pid != 0) {
		if (pid > 0)
			while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
				;
		return; /* without a child the closing is done here */
	}
	if (fork() != 0)
		_exit(0);
	setsid();
	prctl(PR_SET_NAME, "warder-detach");
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	if (chdir("/") < 0 || fd_keep_only(fds, n) < 0)
		_exit(1);
	_exit(0); /* closes them */
}

void hooks_detach(struct hooks *h)
{
	int slow[HOOK_LINKS_MAX + ARRAY_SIZE(h->multi)];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(h->multi); i++)
		if (h->multi[i] >= 0)
			slow[n++] = h->multi[i];
	for (size_t i = 0; i < h->slow_n; i++)
		slow[n++] = bpf_link__fd(h->slow[i]);
	if (n && !h->shared)
		hooks_release(slow, n);
	for (size_t i = 0; i < h->slow_n; i++)
		bpf_link__destroy(h->slow[i]);
	for (size_t i = 0; i < h->links_n; i++)
		bpf_link__destroy(h->links[i]);
	for (size_t i = 0; i < ARRAY_SIZE(h->multi); i++) {
		if (h->multi[i] >= 0)
			close(h->multi[i]);
		h->multi[i] = -1;
	}
	h->slow_n = h->links_n = 0;
}

void hooks_done(struct hooks *h)
{
	hooks_detach(h);
	ktypes_free(h->types);
	h->types = NULL;
}
