/* SPDX-License-Identifier: Apache-2.0 */
/* An image's signature: a file of one line, "warder-image-signature-1 sha256:HEX WORD". The word is an Ed25519 signature by
 * an epoch's key of a host and what binds that to the host's public key (store/FORMAT.md, section 10), in base64; signed is
 * "warder-image-1 sha256:HEX\n". The digest pins all that is in the image. */
#ifndef WARDER_CLI_IMAGE_SIGN_H
#define WARDER_CLI_IMAGE_SIGN_H

#include "userspace/base/option.h"
#include "userspace/image/image.h"

/* Signs by this host's key (warder keys init). */
int image_sign(struct buf *ret, const char *digest, struct err *err);
/* Is it a signature of this image by one of the keys in `files`? -EPERM; with `ret_key` (65 bytes) the key in hex. */
int image_sign_check(struct str text, const char *digest, const struct option_list *files,
		     char *ret_key, struct err *err);
/* The stored one of an image, likewise; -EPERM too when there is none. */
int image_check_signed(const struct image_ref *ref, const struct option_list *files, char *ret_key,
		       struct err *err);

#endif
