// SPDX-License-Identifier: Apache-2.0
/* The writer's side of checkpoints.log. An entry is signed when its frame is closed, and written when
 * the frame is on disk: the log never promises what a crash may take back. */
#include "userspace/store/journal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/clock.h"

int journal_checkpoint(struct journal *j, enum checkpoint_type type, uint64_t offset, uint64_t seq,
		       const uint8_t head[STORE_HASH_LEN], const uint8_t link[STORE_HASH_LEN],
		       const struct merkle *tree)
{
	struct checkpoint c = {
		.type = type,
		.seq = seq,
		.segment = j->n_segments,
		.offset = offset,
		.real_ns = clock_real_ns(),
		.boot_ns = clock_boot_ns(),
		.lost = j->lost,
		.redactions = j->redactions,
	};
	int r;

	r = buf_reserve(&j->log, CHECKPOINT_LEN);
	if (r < 0) {
		j->log.failed = false;
		return r == -EMSGSIZE ? -ENOBUFS : r;
	}
	memcpy(c.head, head, STORE_HASH_LEN);
	memcpy(c.link, link, STORE_HASH_LEN);
	r = merkle_root(tree, j->chain, c.root);
	if (r == 0)
		r = signer_sign(j->signer, &c, (uint8_t *)j->log.p + j->log.n);
	if (r < 0)
		return r;
	j->log.n += CHECKPOINT_LEN;
	return 0;
}

int journal_begin_log(struct journal *j, struct err *err)
{
	struct checkpoint c = {
		.seq = j->next_seq - 1,
		.segment = j->n_segments,
		.offset = j->off,
		.lost = j->lost,
		.redactions = j->redactions,
	};
	int r;

	if (j->log_fd < 0)
		j->log_fd = openat(j->dirfd, CHECKPOINTS_NAME,
				   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (j->log_fd < 0)
		return err_set(err, errno, "bundle directory: " CHECKPOINTS_NAME ": %m");
	memcpy(c.head, j->head, STORE_HASH_LEN);
	memcpy(c.link, j->link, STORE_HASH_LEN);
	r = buf_reserve(&j->log, GENESIS_LEN);
	if (r == 0)
		r = merkle_root(&j->tree, j->chain, c.root);
	if (r < 0)
		return err_set(err, r, "signing: %m");
	r = signer_genesis(j->signer, &c, j->session, (uint8_t *)j->log.p + j->log.n, err);
	if (r < 0)
		return r;
	j->log.n += GENESIS_LEN;
	r = journal_flush_log(j, false);
	return r < 0 ? err_set(err, r, "bundle directory: " CHECKPOINTS_NAME ": %m") : 0;
}

int journal_flush_log(struct journal *j, bool sync)
{
	size_t done = 0;

	while (done < j->log.n) {
		ssize_t w = pwrite(j->log_fd, j->log.p + done, j->log.n - done,
				   (off_t)(j->log_off + done));

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			int r = w < 0 ? -errno : -ENOSPC;

			/* no half entry stays; all of them come again */
			if (ftruncate(j->log_fd, (off_t)j->log_off) < 0)
				r = -errno;
			return r;
		}
		done += (size_t)w;
	}
	j->log_off += done;
	buf_reset(&j->log);
	if (sync && !j->no_sync && fdatasync(j->log_fd) < 0)
		return -errno;
	return 0;
}
