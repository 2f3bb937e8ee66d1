// SPDX-License-Identifier: Apache-2.0
/* What comes over the control socket of a sandbox: packets as init sends them, each behind two bytes of
 * length. The launcher must end its turn, and believe only an end that a process can have. */
#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/backend.h"
#include "runtime/sandbox_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sandbox s = { .stage = STAGE_RUNNING, .pidfd = -1 };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return 0;
	s.control = pair[0];
	while (size >= 2) {
		size_t n = data[0] | (size_t)data[1] << 8;

		data += 2;
		size -= 2;
		if (n > size)
			n = size;
		if (send(pair[1], data, n, MSG_DONTWAIT) < 0)
			break;
		data += n;
		size -= n;
	}
	close(pair[1]);
	for (int turn = 0; turn < 1000; turn++) {
		int r = backend_ns.dispatch(&s);

		if (r != SANDBOX_RUNNING)
			break;
		assert(turn < 999);
	}
	if (s.ended) {
		assert(s.exit_code >= 0 && s.exit_code <= 255);
		assert(s.exit_signal >= 0 && s.exit_signal < NSIG);
		assert(!s.exit_signal || s.exit_code == 128 + s.exit_signal);
	}
	close(pair[0]);
	return 0;
}
