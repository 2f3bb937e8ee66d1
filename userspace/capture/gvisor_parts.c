// SPDX-License-Identifier: Apache-2.0
#include "userspace/capture/gvisor_parts.h"

#include <string.h>
#include <sys/syscall.h>

#include "userspace/base/auto.h"

/* Those of the Go runtime, whatever it works on. */
#define GO                                                                                        \
	SYS_futex, SYS_nanosleep, SYS_epoll_pwait, SYS_getpid, SYS_tgkill, SYS_madvise, SYS_read, \
		SYS_write, SYS_close, SYS_rt_sigreturn, SYS_munmap, SYS_mmap, SYS_sched_yield,    \
		SYS_rt_sigprocmask, SYS_gettid, SYS_sigaltstack, SYS_clone, SYS_exit,             \
		SYS_exit_group, SYS_rt_sigaction, SYS_clock_gettime, SYS_restart_syscall,         \
		SYS_mincore, SYS_clock_nanosleep, SYS_epoll_ctl, SYS_epoll_create1, SYS_eventfd2, \
		SYS_getrandom, SYS_pipe2, SYS_timer_create, SYS_timer_delete, SYS_timer_settime,  \
		SYS_membarrier

static const uint16_t gofer[] = {
	GO,
	SYS_fstat,
	SYS_openat,
	SYS_fcntl,
	SYS_sendmsg,
	SYS_recvmsg,
	SYS_dup,
	SYS_unlinkat,
	SYS_fchownat,
	SYS_shutdown,
	SYS_fchmod,
	SYS_ftruncate,
	SYS_renameat,
	SYS_mkdirat,
	SYS_symlinkat,
	SYS_linkat,
	SYS_utimensat,
	SYS_readlinkat,
	SYS_fallocate,
	SYS_fgetxattr,
	SYS_newfstatat,
	SYS_pread64,
	SYS_pwrite64,
	SYS_fsync,
	SYS_getdents64,
	SYS_lseek,
	SYS_fstatfs,
	SYS_ppoll,
	SYS_mknodat,
	SYS_socketpair,
	SYS_accept,
	SYS_accept4,
	SYS_fsetxattr,
	SYS_flistxattr,
	SYS_fremovexattr,
	SYS_recvfrom,
	SYS_sendto,
	SYS_statx,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
};

/* The filter allows no open, exec or socket: what is not here would be the end of it by SIGSYS anyway, but for what a
 * fault in the filter lets through. */
static const uint16_t sentry[] = {
	GO,
	SYS_ptrace,
	SYS_wait4,
	SYS_fallocate,
	SYS_pread64,
	SYS_pwrite64,
	SYS_pwritev2,
	SYS_preadv2,
	SYS_preadv,
	SYS_pwritev,
	SYS_writev,
	SYS_readv,
	SYS_recvmsg,
	SYS_sendmsg,
	SYS_shutdown,
	SYS_statx,
	SYS_ppoll,
	SYS_fsync,
	SYS_fstat,
	SYS_fcntl,
	SYS_dup,
	SYS_lseek,
	SYS_ftruncate,
	SYS_ioctl,
	SYS_mprotect,
	SYS_waitid,
	SYS_tkill,
	SYS_getcpu,
	SYS_mlock,
	SYS_munlock,
	SYS_msync,
	SYS_memfd_create,
	SYS_recvmmsg,
	SYS_recvfrom,
	SYS_getrusage,
	SYS_sysinfo,
	SYS_setitimer,
	SYS_accept,
	SYS_accept4,
	SYS_sync_file_range,
	SYS_sendmmsg,
	SYS_dup3,
	SYS_newfstatat,
	SYS_setpriority,
	SYS_fdatasync,
	SYS_poll,
	SYS_seccomp,
	SYS_prctl,
	SYS_epoll_wait,
	SYS_select,
	SYS_mremap,
	SYS_getsockopt,
	SYS_sched_getaffinity,
	SYS_fstatfs,
};

static const uint16_t sentry_net[] = {
	SYS_socket,	SYS_connect,	 SYS_bind,	  SYS_listen, SYS_sendto,
	SYS_setsockopt, SYS_getsockname, SYS_getpeername, SYS_accept,
};

static const uint16_t stub[] = {
	SYS_mmap,	    SYS_munmap,	     SYS_clone,
	SYS_wait4,	    SYS_prctl,	     SYS_kill,
	SYS_getppid,	    SYS_getpid,	     SYS_seccomp,
	SYS_setsid,	    SYS_arch_prctl,  SYS_futex,
	SYS_rt_sigreturn,   SYS_sigaltstack, SYS_rt_sigaction,
	SYS_rt_sigprocmask, SYS_exit,	     SYS_exit_group,
	SYS_gettid,	    SYS_tgkill,	     SYS_restart_syscall,
	SYS_sched_yield,    SYS_mprotect,    SYS_rseq,
};

static void add(uint64_t *bits, const uint16_t *calls, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bits[calls[i] / 64] |= (uint64_t)1 << (calls[i] % 64);
}

void gvisor_baseline_fill(uint64_t bits[GVISOR_PARTS][GVISOR_WORDS], bool net)
{
	memset(bits, 0, GVISOR_PARTS * sizeof(bits[0]));
	add(bits[GVISOR_GOFER], gofer, ARRAY_SIZE(gofer));
	add(bits[GVISOR_SENTRY], sentry, ARRAY_SIZE(sentry));
	if (net)
		add(bits[GVISOR_SENTRY], sentry_net, ARRAY_SIZE(sentry_net));
	add(bits[GVISOR_STUB], stub, ARRAY_SIZE(stub));
}
