// SPDX-License-Identifier: Apache-2.0
/* What belongs to the kernel and the machine: P12 to P15, P23 to P30, P33, P35 to P37. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "userspace/scenarios/payload/payload.h"

#define SYS_PIDFD_OPEN	434
#define SYS_PIDFD_GETFD 438
#define SYS_IO_URING	425
#ifndef AF_XDP
#define AF_XDP 44
#endif

static int crash(void)
{
	raise(SIGSEGV);
	return 0;
}

static void p12(void)
{
	try_rewrite("/proc/sys/kernel/core_pattern");
	did(in_child(crash), "crash");
}

static void p12_twin(void)
{
	did(open("/proc/sys/kernel/hostname", O_RDONLY | O_CLOEXEC), "read a kernel setting");
}

static void p13(void)
{
	try_rewrite("/proc/sys/kernel/modprobe");
	try_rewrite("/proc/sys/kernel/hotplug");
	try_open("/proc/sys/fs/binfmt_misc/register", O_WRONLY);
	try_rewrite("/sys/kernel/uevent_helper");
}

static void p14(void)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	tried(fd < 0 ? fd : write(fd, "h", 1), "'h' into /proc/sysrq-trigger");
	if (fd >= 0)
		close(fd);
}

static void p15(void)
{
	try_read("/proc/kcore");
	try_read("/dev/mem");
	try_read("/dev/kmsg");
	try_read("/dev/port");
	try_read("/proc/kpageflags");
}

static void p15_twin(void)
{
	did(open("/proc/meminfo", O_RDONLY | O_CLOEXEC), "read /proc/meminfo");
	did(open("/dev/zero", O_RDONLY | O_CLOEXEC), "open /dev/zero");
}

static void p23(void)
{
	tried(syscall(SYS_init_module, NULL, 0UL, ""), "init_module");
	tried(syscall(SYS_finit_module, -1, "", 0), "finit_module");
	tried(syscall(SYS_delete_module, "warder_no_such_module", O_NONBLOCK), "delete_module");
}

static void p24(void)
{
	tried(syscall(SYS_kexec_load, 0UL, 0UL, NULL, ~0UL), "kexec_load");
	tried(syscall(SYS_reboot, 0, 0, 0, NULL), "reboot with wrong magic");
	tried(syscall(SYS_swapon, "/nonexistent", 0), "swapon");
	tried(syscall(SYS_acct, "/nonexistent"), "acct");
	tried(syscall(SYS_settimeofday, NULL, NULL), "settimeofday");
}

static void p24_twin(void)
{
	struct timespec t;

	did(clock_gettime(CLOCK_REALTIME, &t), "ask the time");
}

static void p25(void)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};
	struct bpf_insn insn[] = { { .code = 0xb7 }, { .code = 0x95 } }; /* r0 = 0; exit */
	union bpf_attr prog = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
				.insn_cnt = 2,
				.insns = (uintptr_t)insn,
				.license = (uintptr_t) "GPL" };

	tried(syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)), "make a BPF map");
	tried(syscall(SYS_bpf, BPF_PROG_LOAD, &prog, sizeof(prog)), "load a BPF program");
}

static void p26(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK };

	tried(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), "perf_event_open");
	tried(syscall(SYS_userfaultfd, O_CLOEXEC), "userfaultfd");
}

static void p26_twin(void)
{
	struct rusage u;
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	did(getrusage(RUSAGE_SELF, &u), "getrusage");
	did(p == MAP_FAILED ? -1 : munmap(p, 1 << 20), "map memory");
}

static void p27(void)
{
	struct io_uring_params p = { 0 };

	tried(syscall(SYS_IO_URING, 8, &p), "io_uring_setup");
}

static void p27_twin(void)
{
	did(epoll_create1(EPOLL_CLOEXEC), "epoll");
}

static void p28(void)
{
	char b[8];
	struct iovec mine = { b, sizeof(b) }, theirs = { (void *)0x400000, sizeof(b) };
	int fd;

	if (tried(ptrace(PTRACE_SEIZE, 1, NULL, NULL), "ptrace of pid 1"))
		ptrace(PTRACE_DETACH, 1, NULL, NULL);
	tried(process_vm_readv(1, &mine, 1, &theirs, 1, 0), "process_vm_readv of pid 1");
	fd = (int)syscall(SYS_PIDFD_OPEN, 1, 0);
	tried(syscall(SYS_PIDFD_GETFD, fd, 0, 0), "pidfd_getfd from pid 1");
	try_open("/proc/1/mem", O_RDWR);
}

static void p28_twin(void)
{
	int fd = (int)syscall(SYS_PIDFD_OPEN, getpid(), 0);

	did(fd, "pidfd_open of itself");
	did(kill(getpid(), 0), "is it alive");
}

static void p29(void)
{
	tried(syscall(SYS_add_key, "user", "warder-selftest", "x", 1UL, KEY_SPEC_THREAD_KEYRING),
	      "add_key");
	tried(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "warder-selftest"), "keyctl join");
	tried(syscall(SYS_request_key, "user", "warder-selftest", NULL, 0), "request_key");
}

static void try_socket(int family, int type, int proto, const char *name)
{
	int fd = socket(family, type | SOCK_CLOEXEC, proto);

	tried(fd, "socket %s", name);
	if (fd >= 0)
		close(fd);
}

static void p30(void)
{
	try_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, "NETLINK_NETFILTER");
	try_socket(AF_PACKET, SOCK_RAW, 0, "AF_PACKET");
	try_socket(AF_ALG, SOCK_SEQPACKET, 0, "AF_ALG");
	try_socket(AF_XDP, SOCK_RAW, 0, "AF_XDP");
	try_socket(AF_VSOCK, SOCK_STREAM, 0, "AF_VSOCK");
}

static void p30_twin(void)
{
	int fd[] = { socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
		     socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		     socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) };

	for (int i = 0; i < 3; i++) {
		did(fd[i], "an ordinary socket");
		close(fd[i]);
	}
}

static void p33(void)
{
	tried(personality(ADDR_NO_RANDOMIZE), "personality without randomisation");
	tried(personality(0x0400000 /* READ_IMPLIES_EXEC */), "personality with executable data");
}

static void p33_twin(void)
{
	did(personality(0xffffffff), "ask the personality");
}

static void p35(void)
{
	try_open("/sys/kernel/debug", O_RDONLY | O_DIRECTORY);
	try_open("/sys/kernel/tracing/trace", O_RDONLY);
	try_open("/sys/fs/bpf", O_RDONLY | O_DIRECTORY);
}

static void p36(void)
{
	try_open("/dev/kvm", O_RDWR);
	try_open("/dev/fuse", O_RDWR);
	try_open("/dev/net/tun", O_RDWR);
	try_open("/dev/loop-control", O_RDWR);
}

static void p36_twin(void)
{
	did(open("/dev/null", O_RDWR | O_CLOEXEC), "open /dev/null");
	did(open("/dev/urandom", O_RDONLY | O_CLOEXEC), "open /dev/urandom");
}

static void p37(void)
{
	char b[256];
	int fd;

	did(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), "read the mounts");
	did(open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC), "read the control group");
	did(open("/proc/self/status", O_RDONLY | O_CLOEXEC), "read its own state");
	fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	did(fd < 0 && errno != ENOENT && errno != EACCES ? -1 : 0, "look at /proc/kallsyms");
	tried(klogctl(3 /* read all */, b, sizeof(b)), "read the kernel's log");
}

static void p37_twin(void)
{
	struct utsname u;

	did(uname(&u), "uname");
	did(sysconf(_SC_NPROCESSORS_ONLN), "count the processors");
}

const struct attempt kernel_attempts[] = {
	{ "P12", p12, p12_twin },
	{ "P13", p13, NULL },
	{ "P14", p14, NULL },
	{ "P15", p15, p15_twin },
	{ "P23", p23, NULL },
	{ "P24", p24, p24_twin },
	{ "P25", p25, NULL },
	{ "P26", p26, p26_twin },
	{ "P27", p27, p27_twin },
	{ "P28", p28, p28_twin },
	{ "P29", p29, NULL },
	{ "P30", p30, p30_twin },
	{ "P33", p33, p33_twin },
	{ "P35", p35, NULL },
	{ "P36", p36, p36_twin },
	{ "P37", p37, p37_twin },
	{ 0 },
};
