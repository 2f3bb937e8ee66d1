// SPDX-License-Identifier: Apache-2.0
/* A bundle's config.json, and process.json of exec: what is taken is within its limits and has no NUL in it, what is not
 * taken says why. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/oci/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct oci_config *c, struct str text)
{
	const struct sandbox_container *b = &c->container;

	assert(c->root && c->process.argc && c->process.cwd[0] == '/');
	assert(!c->process.argv[c->process.argc]);
	assert(c->binds_n <= SANDBOX_MOUNTS_MAX && b->tmpfs_n <= SANDBOX_TMPFS_MAX);
	assert(b->masked_n <= SANDBOX_PROC_MAX && b->proc_ro_n <= SANDBOX_PROC_MAX);
	assert(b->rlimits_n <= SANDBOX_RLIMITS_MAX && b->sysctls_n <= SANDBOX_SYSCTLS_MAX);
	assert(c->process.env_n <= SANDBOX_ENV_MAX && c->notes_n <= OCI_NOTES_MAX);
	assert(c->words_n <= OCI_WORDS_MAX && c->annotations_n <= OCI_ANNOTATIONS_MAX);
	assert((c->net == OCI_NET_GIVEN) == (b->netns && b->netns[0] == '/'));
	for (size_t i = 0; i < c->binds_n; i++)
		assert(c->binds[i].source[0] == '/' && c->binds[i].target[0] == '/');
	for (size_t i = 0; i < b->masked_n; i++)
		assert(!strncmp(b->masked[i], "/proc/", 6) && !strstr(b->masked[i], "/.."));
	for (size_t i = 0; i < b->sysctls_n; i++)
		assert(!strstr(b->sysctls[i].path, "..") && b->sysctls[i].path[0] != '/');
	if (c->seccomp.n)
		assert(c->seccomp.p >= text.p && c->seccomp.p + c->seccomp.n <= text.p + text.n &&
		       c->seccomp.p[0] == '{' && c->seccomp.p[c->seccomp.n - 1] == '}');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct oci_config c;
	const struct str text = { (const char *)data, size };
	static struct oci_process p;
	struct err err = { 0 };
	struct arena mem;

	arena_init(&mem, 16u << 20);
	if (oci_config_parse(&c, &mem, "fuzz", text, &err) == 0)
		check(&c, text);
	else
		assert(err.code && err.text[0]);
	arena_reset(&mem);
	err = (struct err){ 0 };
	if (oci_process_parse(&p, &mem, "fuzz", text, &err) == 0)
		assert(p.argc && p.env_n <= SANDBOX_ENV_MAX);
	else
		assert(err.code && err.text[0]);
	arena_done(&mem);
	return 0;
}
