// SPDX-License-Identifier: Apache-2.0
/* Written as a program by hand: libseccomp takes longer to make one than all the rest of a start. */
#include "userspace/pipeline/confine_calls.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture is this?"
#endif
#define X32_BIT 0x40000000u

#define LOOK   CONFINE_LOOK
#define KEEP   CONFINE_KEEP
#define TALK   CONFINE_TALK
#define DIAL   CONFINE_DIAL
#define THREAD CONFINE_THREAD
#define ANSWER CONFINE_ANSWER
#define TTY    CONFINE_TTY
#define EVERY  (~0u)
#define SELF   0xffffffffu /* stands for the number of the process itself */

/* One row a call, or one an argument: `arg` is its number plus one, 0 = whatever the arguments are. The lower 32 bits
 * count: of these calls the kernel looks at no more. */
struct row {
	int nr;
	uint32_t groups;
	unsigned arg;
	uint32_t mask, value;
};

#define CALL(name, groups)                  \
	{                                   \
		SYS_##name, groups, 0, 0, 0 \
	}
#define CALL_IF(name, groups, arg, mask, value)            \
	{                                                  \
		SYS_##name, groups, (arg) + 1, mask, value \
	}
#define IOCTL(groups, command) CALL_IF(ioctl, groups, 1, ~0u, (uint32_t)(command))
#define PRCTL(groups, what)    CALL_IF(prctl, groups, 0, ~0u, what)
#define FAMILY(family)	       CALL_IF(socket, DIAL, 0, ~0u, family)

/* clang-format off */
static const struct row allowed[] = {
	/* what is open */
	CALL(read, EVERY), CALL(pread64, EVERY), CALL(readv, EVERY), CALL(preadv, EVERY),
	CALL(write, EVERY), CALL(pwrite64, EVERY), CALL(writev, EVERY), CALL(pwritev, EVERY),
	CALL(close, EVERY), CALL(lseek, EVERY), CALL(fstat, EVERY), CALL(fcntl, EVERY),
	CALL(dup, EVERY), CALL(dup3, EVERY), CALL(pipe2, EVERY), CALL(eventfd2, EVERY),
	CALL(ppoll, EVERY), CALL(pselect6, EVERY), CALL(epoll_create1, EVERY),
	CALL(epoll_ctl, EVERY), CALL(epoll_pwait, EVERY),
	IOCTL(EVERY, TCGETS), IOCTL(EVERY, FIONREAD), IOCTL(EVERY, FIONBIO),
	/* memory, time, itself */
	CALL(brk, EVERY), CALL(mmap, EVERY), CALL(munmap, EVERY), CALL(mremap, EVERY),
	CALL(mprotect, EVERY), CALL(madvise, EVERY), CALL(mincore, EVERY), CALL(mlock, EVERY),
	CALL(munlock, EVERY),
	CALL(clock_gettime, EVERY), CALL(clock_getres, EVERY), CALL(gettimeofday, EVERY),
	CALL(nanosleep, EVERY), CALL(clock_nanosleep, EVERY), CALL(getrandom, EVERY),
	CALL(futex, EVERY), CALL(rt_sigaction, EVERY), CALL(rt_sigprocmask, EVERY),
	CALL(rt_sigpending, EVERY), CALL(rt_sigreturn, EVERY), CALL(sigaltstack, EVERY),
	CALL(restart_syscall, EVERY), CALL(exit, EVERY), CALL(exit_group, EVERY),
	CALL_IF(tgkill, EVERY, 0, ~0u, SELF), /* of its own end */
	CALL(getpid, EVERY), CALL(gettid, EVERY), CALL(getppid, EVERY), CALL(getuid, EVERY),
	CALL(geteuid, EVERY), CALL(getgid, EVERY), CALL(getegid, EVERY), CALL(getrusage, EVERY),
	CALL(getrlimit, EVERY), CALL_IF(prlimit64, EVERY, 0, ~0u, 0), CALL(uname, EVERY),
	CALL(sysinfo, EVERY), CALL(times, EVERY), CALL(umask, EVERY),
	PRCTL(EVERY, PR_SET_NAME), PRCTL(EVERY, PR_SET_PDEATHSIG), PRCTL(EVERY, 0x53564d41 /* PR_SET_VMA */),
#ifdef SYS_poll
	CALL(poll, EVERY), CALL(select, EVERY), CALL(epoll_wait, EVERY), CALL(dup2, EVERY),
	CALL(time, EVERY),
#endif
	CALL(sched_getaffinity, EVERY), CALL(sched_yield, EVERY), CALL(getcpu, EVERY),
	/* threads: processes need a call that says so */
	CALL_IF(clone, THREAD, 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM),
	CALL(set_robust_list, THREAD), CALL(rseq, THREAD), CALL(membarrier, THREAD),
	CALL(sched_setaffinity, THREAD), CALL(sched_getparam, THREAD),
	CALL(sched_getscheduler, THREAD), CALL(getpriority, THREAD),
	CALL(timerfd_create, THREAD), CALL(timerfd_settime, THREAD),
	/* files */
	CALL(openat, LOOK), CALL(openat2, LOOK), CALL(newfstatat, EVERY), CALL(statx, LOOK),
	CALL(getdents64, LOOK), CALL(readlinkat, LOOK), CALL(faccessat, LOOK),
	CALL(faccessat2, LOOK), CALL(fstatfs, LOOK), CALL(statfs, LOOK), CALL(fadvise64, LOOK),
	CALL(getcwd, LOOK), CALL(readahead, LOOK), CALL(fgetxattr, LOOK), CALL(flistxattr, LOOK),
	CALL(flock, LOOK), CALL(fchdir, LOOK),
#ifdef SYS_open
	CALL(open, LOOK), CALL(stat, LOOK), CALL(lstat, LOOK), CALL(access, LOOK),
	CALL(readlink, LOOK), CALL(unlink, KEEP), CALL(rename, KEEP), CALL(mkdir, KEEP),
	CALL(rmdir, KEEP), CALL(chmod, KEEP),
#endif
	CALL(ftruncate, KEEP), CALL(fallocate, KEEP), CALL(fsync, KEEP), CALL(fdatasync, KEEP),
	CALL(sync_file_range, KEEP), CALL(unlinkat, KEEP), CALL(renameat, KEEP),
	CALL(renameat2, KEEP), CALL(mkdirat, KEEP), CALL(linkat, KEEP), CALL(fchmod, KEEP),
	CALL(fchmodat, KEEP), CALL(utimensat, KEEP), CALL(copy_file_range, KEEP),
	CALL(sendfile, KEEP), CALL(memfd_create, KEEP),
	/* sockets */
	CALL(recvfrom, TALK), CALL(recvmsg, TALK), CALL(recvmmsg, TALK), CALL(sendto, TALK),
	CALL(sendmsg, TALK), CALL(sendmmsg, TALK), CALL(accept, TALK), CALL(accept4, TALK),
	CALL(shutdown, TALK), CALL(getsockopt, TALK), CALL(setsockopt, TALK),
	CALL(getsockname, TALK), CALL(getpeername, TALK),
	CALL_IF(socketpair, TALK, 0, ~0u, AF_UNIX),
	FAMILY(AF_INET), FAMILY(AF_INET6), FAMILY(AF_UNIX), FAMILY(AF_NETLINK),
	CALL(connect, DIAL), CALL(bind, DIAL), CALL(listen, DIAL),
	IOCTL(DIAL, 0x8912 /* SIOCGIFCONF */), IOCTL(DIAL, 0x8933 /* SIOCGIFINDEX */),
	/* of the payload's filter; of its terminal */
	IOCTL(ANSWER, SECCOMP_IOCTL_NOTIF_RECV), IOCTL(ANSWER, SECCOMP_IOCTL_NOTIF_SEND),
	IOCTL(ANSWER, SECCOMP_IOCTL_NOTIF_ID_VALID),
	IOCTL(TTY, TIOCSWINSZ), IOCTL(TTY, TIOCGWINSZ),
};
/* clang-format on */

/* Other programs, other processes and their memory, the kernel, privilege: who asks for these is not our program. */
static const int never[] = {
	SYS_execve,
	SYS_execveat,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_kill,
	SYS_tkill,
	SYS_pidfd_open,
	SYS_pidfd_getfd,
	SYS_pidfd_send_signal,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_io_uring_setup,
	SYS_mount,
	SYS_umount2,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_pivot_root,
	SYS_chroot,
	SYS_unshare,
	SYS_setns,
	SYS_setuid,
	SYS_setgid,
	SYS_setresuid,
	SYS_setresgid,
	SYS_setgroups,
	SYS_capset,
	SYS_init_module,
	SYS_finit_module,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_open_by_handle_at,
};

struct program {
	struct sock_filter *v;
	size_t n;
	bool full;
};

static void put(struct program *p, struct sock_filter op)
{
	if (p->n == CONFINE_CALLS_MAX)
		p->full = true;
	else
		p->v[p->n++] = op;
}

#define STMT(p, code, k)	  put(p, (struct sock_filter)BPF_STMT(code, k))
#define JUMP(p, code, k, yes, no) put(p, (struct sock_filter)BPF_JUMP(code, k, yes, no))
#define LOAD(p, at)		  STMT(p, BPF_LD | BPF_W | BPF_ABS, at)
#define ANSWER_WITH(p, what)	  STMT(p, BPF_RET | BPF_K, what)

static void put_call(struct program *p, int nr, uint32_t answer)
{
	JUMP(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1);
	ANSWER_WITH(p, answer);
}

/* Both architectures are little-endian: the lower half is first. */
static void put_row(struct program *p, const struct row *r, uint32_t own_tgid)
{
	if (!r->arg)
		return put_call(p, r->nr, SECCOMP_RET_ALLOW);
	JUMP(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->nr, 0, 5);
	LOAD(p, offsetof(struct seccomp_data, args[0]) + 8 * (r->arg - 1));
	STMT(p, BPF_ALU | BPF_AND | BPF_K, r->mask);
	JUMP(p, BPF_JMP | BPF_JEQ | BPF_K, r->value == SELF ? own_tgid : r->value, 0, 1);
	ANSWER_WITH(p, SECCOMP_RET_ALLOW);
	LOAD(p, offsetof(struct seccomp_data, nr));
}

int confine_calls_program(uint32_t groups, uint32_t own_tgid,
			  struct sock_filter ret[CONFINE_CALLS_MAX])
{
	struct program p = { .v = ret };

	LOAD(&p, offsetof(struct seccomp_data, arch));
	JUMP(&p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	ANSWER_WITH(&p, SECCOMP_RET_KILL_PROCESS);
	LOAD(&p, offsetof(struct seccomp_data, nr));
	JUMP(&p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	ANSWER_WITH(&p, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		if (allowed[i].groups == EVERY || allowed[i].groups & groups)
			put_row(&p, &allowed[i], own_tgid);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		put_call(&p, never[i], SECCOMP_RET_KILL_PROCESS);
	/* Its flags are behind a pointer; libraries go on with clone(2). */
	put_call(&p, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	ANSWER_WITH(&p, SECCOMP_RET_ERRNO | EPERM);
	return p.full ? -E2BIG : (int)p.n;
}

int confine_calls(uint32_t groups, struct err *err)
{
	struct sock_filter v[CONFINE_CALLS_MAX];
	int n = confine_calls_program(groups, (uint32_t)getpid(), v);
	struct sock_fprog prog = { .len = (unsigned short)n, .filter = v };
	long r;

	if (n < 0)
		return err_set(err, -n, "system call filter: %m");
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (r != 0) /* a thread's number: that one has another filter */
		return err_set(err, r < 0 ? errno : EBUSY, "system call filter: %m");
	return 0;
}

const char *confine_calls_death(int wait_status)
{
	return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGSYS
		       ? "it made a system call that it never makes: it may have been taken over"
		       : NULL;
}
