// SPDX-License-Identifier: Apache-2.0
/* Hostile bundles through verify, reader and recovery. Input: flags, u16 length and bytes of
 * events.0001.seg, the same for events.0002.seg and, with flag 8, checkpoints.log; the rest is
 * manifest.json. Flag 1: make all
 * checksums and links right first, so that what lies behind them is reached; flag 2: no manifest;
 * flag 4: no second segment. Besides crashes it looks for verify calling intact what cannot be read,
 * and for a recovery that does not lead to a bundle that can go on. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/store/chain.h"
#include "userspace/store/crc32c.h"
#include "userspace/store/format.h"
#include "userspace/store/signer.h"
#include "userspace/store/store.h"

#define INPUT_MAX  65536
#define ROUNDS_MAX 1000000

static char dir_path[64];
static int dir_fd = -1;
static uint8_t copy[INPUT_MAX];

struct part {
	uint8_t *p;
	size_t n;
};

static void remove_dir(void)
{
	unlinkat(dir_fd, "events.0001.seg", 0);
	unlinkat(dir_fd, "events.0002.seg", 0);
	unlinkat(dir_fd, MANIFEST_NAME, 0);
	unlinkat(dir_fd, CHECKPOINTS_NAME, 0);
	rmdir(dir_path);
}

static void make_dir(void)
{
	snprintf(dir_path, sizeof(dir_path), "/dev/shm/fuzz-bundle-XXXXXX");
	if (!mkdtemp(dir_path)) {
		snprintf(dir_path, sizeof(dir_path), "/tmp/fuzz-bundle-XXXXXX");
		if (!mkdtemp(dir_path))
			abort();
	}
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		abort();
	atexit(remove_dir);
}

static void put_file(const char *name, struct part part, bool there)
{
	int fd;

	unlinkat(dir_fd, name, 0);
	if (!there)
		return;
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, part.p, part.n) != (ssize_t)part.n)
		abort();
	close(fd);
}

static struct part take(uint8_t **p, size_t *n)
{
	struct part part = { *p, 0 };

	if (*n < 2)
		return part;
	part.n = (size_t)(*p)[0] | (size_t)(*p)[1] << 8;
	*p += 2;
	*n -= 2;
	if (part.n > *n)
		part.n = *n;
	part.p = *p;
	*p += part.n;
	*n -= part.n;
	return part;
}

/* Checksums, links and the manifest's hash as a writer would have made them. */
static void make_right(struct chain *c, struct part s, uint8_t link[STORE_HASH_LEN],
		       struct part manifest)
{
	size_t at = SEGMENT_HEADER_LEN;

	if (s.n < SEGMENT_HEADER_LEN)
		return;
	memcpy(s.p + 104, link, STORE_HASH_LEN);
	put_le32(s.p + 188, crc32c(s.p, 188));
	chain_hash(c, link, s.p, SEGMENT_HEADER_LEN, NULL, 0);
	while (s.n - at >= FRAME_HEADER_LEN) {
		uint8_t *h = s.p + at;
		size_t comp = get_le32(h + 24);

		if (comp > s.n - at - FRAME_HEADER_LEN)
			comp = s.n - at - FRAME_HEADER_LEN;
		if (h[4] == FRAME_SEAL && comp == SEAL_LEN) {
			chain_hash(c, h + FRAME_HEADER_LEN + 64, manifest.p, manifest.n, NULL, 0);
			put_le64(h + FRAME_HEADER_LEN + 56, manifest.n);
		}
		put_le32(h + 28, crc32c(h + FRAME_HEADER_LEN, comp));
		memcpy(h + 48, link, STORE_HASH_LEN);
		put_le32(h + 124, crc32c(h, 124));
		chain_hash(c, link, h, FRAME_HEADER_LEN + comp, NULL, 0);
		at += FRAME_HEADER_LEN + comp;
	}
}

static int64_t read_all(void)
{
	struct journal_reader *r = NULL;
	struct err err = { 0 };
	int64_t n = 0;
	uint64_t seq;
	struct str rec;
	int s;

	if (journal_reader_open(&r, dir_fd, &err) < 0)
		abort();
	while ((s = journal_reader_next(r, &rec, &seq, &err)) == 1) {
		if (rec.n == 0 || rec.n > STORE_RECORD_MAX || ++n > ROUNDS_MAX)
			abort();
		/* every byte of it must be ours to read */
		if (memchr(rec.p, 0, rec.n) == rec.p + rec.n)
			abort();
	}
	if (s == 0) {
		/* from the middle it must be the same end */
		int64_t rest = 0;

		if (journal_reader_seek(r, (uint64_t)n / 2, &err) < 0)
			abort();
		while (journal_reader_next(r, &rec, &seq, &err) == 1)
			rest++;
		if (rest != n - n / 2)
			abort();
	}
	journal_reader_free(r);
	return s < 0 ? -1 : n;
}

static void recover_and_go_on(void)
{
	struct journal_options opt = { .session = NULL, .no_sync = true };
	struct journal_seal seal = { .gaps = 0 };
	struct verify_report rep;
	struct journal *j = NULL;
	struct err err = { 0 };
	uint64_t cut;

	if (journal_recover(&j, dir_fd, &opt, &cut, &err) < 0)
		return;
	if (journal_append(j, STR("{}")) < 0 || journal_seal(j, &seal) < 0)
		abort();
	journal_free(j);
	/* Recovery keeps whole frames and does not look into them: what they hold may be wrong. */
	if (store_verify(dir_fd, &rep, NULL, NULL, &err) < 0 || rep.state == VERIFY_OPEN)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t link[STORE_HASH_LEN] = { 0 }, flags, *p = copy + 1;
	static struct chain *chain;
	struct part first, second, manifest, log = { NULL, 0 };
	struct verify_report rep;
	struct err err = { 0 };
	int64_t n;
	int r;

	if (size < 1 || size > INPUT_MAX)
		return 0;
	if (dir_fd < 0)
		make_dir();
	if (!chain && chain_new(&chain) < 0)
		abort();
	memcpy(copy, data, size);
	flags = copy[0];
	size--;
	first = take(&p, &size);
	second = take(&p, &size);
	if (flags & 8)
		log = take(&p, &size);
	manifest = (struct part){ p, size };
	if (flags & 1) {
		make_right(chain, first, link, manifest);
		make_right(chain, second, link, manifest);
	}
	put_file("events.0001.seg", first, true);
	put_file("events.0002.seg", second, !(flags & 4));
	put_file(MANIFEST_NAME, manifest, !(flags & 2));
	put_file(CHECKPOINTS_NAME, log, flags & 8);
	r = store_verify(dir_fd, &rep, NULL, NULL, &err);
	n = read_all();
	if (r == 0 && (rep.state == VERIFY_OK || rep.state == VERIFY_GAPS) &&
	    n != (int64_t)rep.records)
		abort();
	if (memchr(rep.text, 0, sizeof(rep.text)) == NULL)
		abort();
	recover_and_go_on();
	return 0;
}
