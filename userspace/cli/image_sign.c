// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/image_sign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/trust.h"
#include "userspace/pipeline/run.h"
#include "userspace/store/chain.h"
#include "userspace/store/hostlog_line.h"
#include "userspace/store/keys.h"

#define HEAD	     "warder-image-signature-1 "
#define STATEMENT    "warder-image-1 %s\n"
#define KEYS_MAX     64
#define KEY_FILE_MAX (64 << 10)

static int statement(char *ret, size_t size, const char *digest)
{
	return snprintf(ret, size, STATEMENT, digest);
}

int image_sign(struct buf *ret, const char *digest, struct err *err)
{
	struct key_signature sig;
	auto_close int fd = -1;
	char text[128];
	int n = statement(text, sizeof(text), digest);
	int r = keys_open(&fd, false, err);

	if (r == -ENOENT)
		return err_set(err, r, "this host has no key to sign with: warder keys init");
	if (r == 0)
		r = keys_sign(fd, clock_ns(CLOCK_REALTIME), text, (size_t)n, &sig, err);
	if (r < 0)
		return r;
	buf_printf(ret, HEAD "%s ", digest);
	hostlog_sig_text(ret, &sig);
	return buf_addc(ret, '\n');
}

static int read_keys(const struct option_list *files, uint8_t keys[][KEY_LEN], size_t *ret_n,
		     struct err *err)
{
	*ret_n = 0;
	for (size_t i = 0; i < files->n; i++) {
		auto_free char *text = NULL;
		size_t size = 0;
		int r = file_read_trusted(files->v[i], KEY_FILE_MAX, &text, &size, "key file", err);

		if (r < 0)
			return r;
		for (char *p = text, *end; p < text + size; p = end + 1) {
			end = memchr(p, '\n', (size_t)(text + size - p));
			end = end ? end : text + size;
			if (end == p)
				continue;
			if (*ret_n == KEYS_MAX)
				return err_set(err, E2BIG, "more than %d keys", KEYS_MAX);
			if (key_parse((struct str){ p, (size_t)(end - p) }, keys[(*ret_n)++]) < 0)
				return err_set(
					err, EINVAL,
					"key file '%s': no public key of a host (warder keys "
					"public)",
					files->v[i]);
		}
	}
	return *ret_n ? 0 : err_set(err, EINVAL, "image keys: the files hold none");
}

/* Of this image, whoever signed. */
static int parse(struct str text, const char *digest, struct key_signature *ret, struct err *err)
{
	const struct str head = STR(HEAD);

	while (text.n && text.p[text.n - 1] == '\n')
		text.n--;
	if (!str_starts(text, head) || text.n < head.n + IMAGE_DIGEST_LEN + 2 ||
	    text.p[head.n + IMAGE_DIGEST_LEN] != ' ')
		return err_set(err, EPERM, "the signature of image '%s' is not one", digest);
	if (memcmp(text.p + head.n, digest, IMAGE_DIGEST_LEN) != 0)
		return err_set(err, EPERM, "the signature is of another image than '%s'", digest);
	text.p += head.n + IMAGE_DIGEST_LEN + 1;
	text.n -= head.n + IMAGE_DIGEST_LEN + 1;
	return hostlog_sig_parse(text, ret) < 0
		       ? err_set(err, EPERM, "the signature of image '%s' is damaged", digest)
		       : 0;
}

int image_sign_check(struct str text, const char *digest, const struct option_list *files,
		     char *ret_key, struct err *err)
{
	uint8_t keys[KEYS_MAX][KEY_LEN];
	struct key_signature sig;
	char signed_text[128];
	int n = statement(signed_text, sizeof(signed_text), digest);
	size_t keys_n;
	int r = read_keys(files, keys, &keys_n, err);

	if (r == 0)
		r = parse(text, digest, &sig, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < keys_n; i++)
		if (key_signature_is_good(keys[i], &sig, signed_text, (size_t)n)) {
			if (ret_key)
				hash_to_hex(ret_key, keys[i]);
			return 0;
		}
	return err_set(err, EPERM, "image '%s' is signed, but by none of the listed keys", digest);
}

int image_check_signed(const struct image_ref *ref, const struct option_list *files, char *ret_key,
		       struct err *err)
{
	auto_buf struct buf text = { 0 };
	int r = image_signature(ref, &text);

	if (r == -ENOENT)
		return err_set(err, EPERM, "image '%s' is not signed", ref->digest);
	if (r < 0)
		return err_set(err, r, "image '%s': signature: %m", ref->digest);
	return image_sign_check((struct str){ text.p, text.n }, ref->digest, files, ret_key, err);
}
