// SPDX-License-Identifier: Apache-2.0
/* Has another process make one system call: inject PID NR [ARG|"text"|@ADDRESS]... Its filter is suspended for it
 * (PTRACE_O_SUSPEND_SECCOMP), so it does what a process would whose filter has a hole. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

static void fail(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void stop_at(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) != pid)
		fail("waitpid");
	if (!WIFSTOPPED(status)) {
		printf("died %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		exit(0);
	}
}

/* Below the red zone. */
static unsigned long long put_text(pid_t pid, unsigned long long sp, const char *text)
{
	struct iovec from = { (void *)(size_t)text, strlen(text) + 1 }, to = { NULL, 0 };

	to.iov_base = (void *)(size_t)sp;
	to.iov_len = from.iov_len;
	if (process_vm_writev(pid, &from, 1, &to, 1, 0) < 0)
		fail("writing text");
	return sp;
}

int main(int argc, char **argv)
{
	struct user_regs_struct was, now;
	unsigned long long args[6] = { 0 };
	int quiet = argc > 1 && !strcmp(argv[1], "-q"); /* its filter stays */
	pid_t pid;
	long word;

	argv += quiet;
	argc -= quiet;
	if (argc < 3) {
		fprintf(stderr, "usage: inject [-q] PID NR ARG...\n");
		return 2;
	}
	pid = atoi(argv[1]);
	if (ptrace(PTRACE_SEIZE, pid, 0, quiet ? 0 : PTRACE_O_SUSPEND_SECCOMP) < 0)
		fail("seize");
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		fail("interrupt");
	stop_at(pid);
	if (ptrace(PTRACE_GETREGS, pid, 0, &was) < 0)
		fail("registers");
	for (int i = 3; i < argc && i < 9; i++) {
		char *end;

		args[i - 3] = (unsigned long long)strtoll(argv[i], &end, 0);
		if (*end)
			args[i - 3] = put_text(pid, was.rsp - 1024 - 256 * (unsigned)i, argv[i]);
	}
	/* It waits in a system call: the instruction in front of it is `syscall`. Nothing is written into the code, which
	 * other threads run. */
	word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(size_t)(was.rip - 2), 0);
	if ((word & 0xffff) != 0x050f) {
		ptrace(PTRACE_DETACH, pid, 0, 0);
		fprintf(stderr, "inject: it is not in a system call\n");
		return 3;
	}
	now = was;
	now.rip -= 2;
	now.orig_rax = (unsigned long long)-1;
	now.rax = strtoull(argv[2], NULL, 0);
	now.rdi = args[0];
	now.rsi = args[1];
	now.rdx = args[2];
	now.r10 = args[3];
	now.r8 = args[4];
	now.r9 = args[5];
	if (ptrace(PTRACE_SETREGS, pid, 0, &now) < 0 || ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0)
		fail("step");
	stop_at(pid);
	if (ptrace(PTRACE_GETREGS, pid, 0, &now) < 0)
		fail("registers");
	ptrace(PTRACE_SETREGS, pid, 0, &was);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	printf("result %lld\n", (long long)now.rax);
	return 0;
}
