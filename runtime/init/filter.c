// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/init/sys.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "name the audit architecture"
#endif

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define ALLOW(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)

int init_filter_install(void)
{
	struct sock_filter insn[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(wait4),
		ALLOW(ppoll),
		ALLOW(read),
		ALLOW(recvfrom),
		ALLOW(sendto),
		ALLOW(kill),
		ALLOW(restart_syscall),
		ALLOW(exit_group),
		RETURN(SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { .len = sizeof(insn) / sizeof(insn[0]), .filter = insn };

	return (int)SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog, 0, 0, 0);
}
