// SPDX-License-Identifier: Apache-2.0
// libs: -static -Wno-unused-command-line-argument
/* Tries system calls from where it stands and prints "name result errno", one a line. The arguments can
 * do no harm even where nothing is denied, and are chosen so that a kernel without a filter answers
 * something else than EPERM wherever there is such a choice.
 *   try_syscall           all rows
 *   try_syscall int80     a 32-bit call (x86: kills where foreign ABIs are shut out)
 *   try_syscall x32       an x32 call (the same) */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif

static const struct {
	const char *name;
	long nr;
	long a[6];
} rows[] = {
	{ "mount", SYS_mount, { 0 } },
	{ "umount2", SYS_umount2, { (long)"/nonexistent", 0 } },
	{ "pivot_root", SYS_pivot_root, { (long)"/nonexistent", (long)"/nonexistent" } },
	{ "chroot", SYS_chroot, { (long)"/nonexistent" } },
	{ "fsopen", 430, { 0 } },
	{ "fsconfig", 431, { -1 } },
	{ "fsmount", 432, { -1 } },
	{ "fspick", 433, { -1 } },
	{ "open_tree", 428, { -1, (long)"", AT_EMPTY_PATH } },
	{ "move_mount", 429, { -1 } },
	{ "mount_setattr", 442, { -1 } },
	{ "unshare", SYS_unshare, { 0 } },
	{ "unshare_user", SYS_unshare, { CLONE_NEWUSER } },
	{ "setns", SYS_setns, { -1, 0 } },
	{ "ptrace", SYS_ptrace, { PTRACE_PEEKDATA, 0 } },
	{ "process_vm_readv", SYS_process_vm_readv, { 0 } },
	{ "process_vm_writev", SYS_process_vm_writev, { 0 } },
	{ "pidfd_getfd", 438, { -1 } },
	{ "kcmp", SYS_kcmp, { 1, 1, 0, 0, 0 } },
	{ "bpf", SYS_bpf, { -1 } },
	{ "init_module", SYS_init_module, { 0 } },
	{ "finit_module", SYS_finit_module, { -1 } },
	{ "delete_module", SYS_delete_module, { (long)"no-such-module", O_NONBLOCK } },
	{ "kexec_load", SYS_kexec_load, { 0, 0, 0, -1 } },
	{ "perf_event_open", SYS_perf_event_open, { 0 } },
	{ "userfaultfd", SYS_userfaultfd, { -1 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 0 } },
	{ "io_uring_enter", 426, { -1 } },
	{ "io_uring_register", 427, { -1 } },
	{ "add_key", SYS_add_key, { 0 } },
	{ "request_key", SYS_request_key, { 0 } },
	{ "keyctl", SYS_keyctl, { KEYCTL_GET_KEYRING_ID, -3, 0 } },
	{ "open_by_handle_at", SYS_open_by_handle_at, { -1 } },
	{ "name_to_handle_at", SYS_name_to_handle_at, { -1 } },
	{ "fanotify_init", SYS_fanotify_init, { -1 } },
	{ "acct", SYS_acct, { (long)"/nonexistent" } },
	{ "quotactl", SYS_quotactl, { -1 } },
	{ "swapon", SYS_swapon, { (long)"/nonexistent" } },
	{ "reboot", SYS_reboot, { 0 } },
	{ "settimeofday", SYS_settimeofday, { 0 } },
	{ "clock_settime", SYS_clock_settime, { -1 } },
	{ "adjtimex", SYS_adjtimex, { 0 } },
	{ "syslog", SYS_syslog, { -1 } },
	{ "personality", SYS_personality, { ADDR_NO_RANDOMIZE } },
	{ "personality_ask", SYS_personality, { 0xffffffff } },
	{ "clone_newuser", SYS_clone, { CLONE_NEWUSER | 17 } },
	{ "clone_newns", SYS_clone, { CLONE_NEWNS | 17 } },
	{ "clone3", 435, { 0 } },
	{ "tiocsti", SYS_ioctl, { -1, TIOCSTI } },
	{ "tiocsti_high", SYS_ioctl, { -1, TIOCSTI | (1l << 32) } },
	{ "tioclinux", SYS_ioctl, { -1, TIOCLINUX } },
	{ "ioctl_other", SYS_ioctl, { -1, TCGETS } },
	{ "af_unix", SYS_socket, { AF_UNIX, SOCK_STREAM } },
	{ "af_inet", SYS_socket, { AF_INET, SOCK_STREAM } },
	{ "af_inet6", SYS_socket, { AF_INET6, SOCK_DGRAM } },
	{ "netlink_route", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE } },
	{ "netlink_netfilter", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER } },
	{ "af_packet", SYS_socket, { AF_PACKET, SOCK_RAW } },
	{ "af_alg", SYS_socket, { AF_ALG, SOCK_SEQPACKET } },
	{ "af_vsock", SYS_socket, { AF_VSOCK, SOCK_STREAM } },
	{ "af_xdp", SYS_socket, { 44, SOCK_RAW } },
	{ "af_packet_high", SYS_socket, { AF_PACKET | (1l << 32), SOCK_RAW } },
	{ "raw_icmp", SYS_socket, { AF_INET, SOCK_RAW, 1 } },
	{ "ping", SYS_socket, { AF_INET, SOCK_DGRAM, 1 } },
	{ "mknod_disk", SYS_mknodat, { AT_FDCWD, (long)"node", S_IFBLK | 0600, 0x800 } },
	{ "chmod_suid", SYS_fchmodat, { AT_FDCWD, (long)"node", 04755 } },
	{ "fchmodat2_suid", 452, { AT_FDCWD, (long)"node", 04755, 0 } },
	{ "openat2", 437, { -1 } },
	{ "open_tree_attr", 467, { -1 } },
	{ "statmount", 457, { 0 } },
	{ "listmount", 458, { 0 } },
	{ "lsm_set_self_attr", 460, { 0 } },
	{ "memfd_secret", 447, { -1 } },
	{ "future", 1000, { -1 } },
	{ "first_unknown", 470, { -1 } },
};

int main(int argc, char **argv)
{
#if defined(__x86_64__)
	if (argc > 1 && !strcmp(argv[1], "int80")) {
		long ret = 20; /* getpid */

		__asm__ volatile("int $0x80" : "+a"(ret) : : "memory", "r8", "r9", "r10", "r11");
		printf("int80 %ld\n", ret);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "x32")) {
		printf("x32 %ld\n", syscall(0x40000000 | SYS_getpid));
		return 0;
	}
#endif
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const long *a = rows[i].a;
		long r;

		errno = 0;
		r = syscall(rows[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (r == 0 && rows[i].nr == SYS_clone)
			_exit(0);
		printf("%s %ld %d\n", rows[i].name, r, errno);
		fflush(stdout);
		if (r > 2 && rows[i].nr == SYS_socket)
			close((int)r);
	}
	return 0;
}
