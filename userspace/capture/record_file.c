/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded records: a 16-byte header, then wire records one behind the other, each padded to 8 bytes.
 * wire_hdr.len tells where the next one begins. */
#include <stdlib.h>
#include <string.h>
#include "userspace/base/auto.h"
#include "userspace/capture/capture.h"

static const char magic[16] = "WARDERREC1\n";

int record_file_begin(FILE *f)
{
	return fwrite(magic, sizeof(magic), 1, f) == 1 ? 0 : -EIO;
}

int record_file_write(FILE *f, const void *rec, size_t len)
{
	static const char zeros[8];
	size_t pad = -len & 7;
	struct wire_hdr h;

	if (len < sizeof(h) || len > WIRE_RECORD_MAX)
		return -EINVAL;
	memcpy(&h, rec, sizeof(h));
	if (h.len != len)
		return -EINVAL;
	if (fwrite(rec, len, 1, f) != 1 || (pad && fwrite(zeros, pad, 1, f) != 1))
		return -EIO;
	return 0;
}

int record_file_replay(FILE *f, capture_fn fn, void *arg, struct err *err)
{
	auto_free uint8_t *rec = malloc(WIRE_RECORD_MAX + 8);
	char head[sizeof(magic)];
	unsigned long long at = sizeof(magic);
	struct wire_hdr h;
	size_t n, more;
	int r;

	if (!rec)
		return err_set(err, ENOMEM, "record file: out of memory");
	if (fread(head, sizeof(head), 1, f) != 1 || memcmp(head, magic, sizeof(magic)) != 0)
		return err_set(err, EBADMSG, "not a record file: its first bytes are not '%.10s'",
			       magic);
	for (;;) {
		n = fread(rec, 1, sizeof(h), f);
		if (n == 0 && feof(f))
			return 0;
		if (n != sizeof(h))
			return err_set(err, EBADMSG,
				       "record file ends inside a header, offset %llu", at);
		memcpy(&h, rec, sizeof(h));
		if (h.len < sizeof(h) || h.len > WIRE_RECORD_MAX)
			return err_set(err, EBADMSG, "record of %u bytes at offset %llu", h.len,
				       at);
		more = ((h.len + 7u) & ~7u) - sizeof(h);
		if (fread(rec + sizeof(h), 1, more, f) != more)
			return err_set(err, EBADMSG,
				       "record file ends inside the record at offset %llu", at);
		r = fn(arg, rec, h.len);
		if (r < 0)
			return r;
		at += sizeof(h) + more;
	}
}
