// SPDX-License-Identifier: Apache-2.0
/* Seccomp profiles of others: what is accepted compiles, or says why not, and never lets through what we deny. */
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/seccomp_profile.h"
#include "userspace/base/auto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sock_filter own[] = { BPF_STMT(BPF_RET | BPF_K,
							   SECCOMP_RET_ERRNO | 1) };
	auto_free struct sock_filter *insn = NULL;
	struct seccomp_profile p;
	struct err err = { 0 };
	struct arena mem;
	size_t n = 0;

	arena_init(&mem, 8u << 20);
	if (seccomp_profile_parse(&p, &mem, "fuzz", (struct str){ (const char *)data, size },
				  "6.1.0", &err) < 0) {
		if (!err.code)
			abort();
	} else if (p.n <= 64) { /* libseccomp is slow */
		int r = seccomp_profile_compile(&p, own, ARRAY_SIZE(own), &insn, &n, &err);

		if (r < 0 && !err.code)
			abort();
		/* An allow is a jump to our own part, or it would be the last word. */
		for (size_t i = 0; r == 0 && i < n; i++)
			if (insn[i].code == (BPF_RET | BPF_K) && insn[i].k == SECCOMP_RET_ALLOW)
				abort();
	}
	arena_done(&mem);
	return 0;
}
