// SPDX-License-Identifier: Apache-2.0
/* FORMAT.md section 10: what was signed against what the walk found. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/store/verify.h"

static int log_altered(struct verify *v, const char *what)
{
	v->report->first_bad = v->signed_seq + 1;
	return verify_finding(
		v, VERIFY_ALTERED,
		"altered: checkpoints.log, entry %llu: %s; the first %llu records are "
		"as they were signed",
		(unsigned long long)v->report->checkpoints, what,
		(unsigned long long)v->signed_seq);
}

static bool is_trusted(const struct verify *v, const uint8_t key[KEY_LEN])
{
	for (size_t i = 0; i < v->opt->n_keys; i++)
		if (memcmp(v->opt->keys[i], key, KEY_LEN) == 0)
			return true;
	return false;
}

static const char *check_checkpoint(struct verify *v, const struct checkpoint *c)
{
	uint8_t root[STORE_HASH_LEN];

	if (c->type == CHECKPOINT_GENESIS) {
		if (strcmp(v->log.genesis.session, v->report->session) != 0)
			return "it is about another session";
		if (!v->is_foreign)
			hash_to_hex(v->report->host_key, v->log.genesis.host_key);
		v->is_foreign |= v->opt->n_keys && !is_trusted(v, v->log.genesis.host_key);
	} else if ((c->type == CHECKPOINT_SEAL) != v->sealed) {
		return "it does not stand where it says it does";
	}
	if (merkle_root(v->tree, v->chain, root) < 0)
		return "the hash could not be computed";
	if (c->seq != v->report->records || c->redactions != v->report->redactions ||
	    memcmp(c->head, v->head, STORE_HASH_LEN) != 0 ||
	    memcmp(c->link, v->link, STORE_HASH_LEN) != 0 ||
	    memcmp(c->root, root, STORE_HASH_LEN) != 0)
		return "what was signed is not what is there: somebody who can recompute hashes "
		       "changed something since the entry before";
	return NULL;
}

int verify_log_reached(struct verify *v, uint64_t off)
{
	struct checkpoint *c = &v->log.next;
	const char *why = NULL;
	int r;

	while (v->log.fd >= 0) {
		r = checkpoint_file_next(&v->log, &why);
		if (r == -EBADMSG)
			return log_altered(v, why);
		if (r < 0)
			return r;
		if (r != READ_OK || c->segment > v->file.number ||
		    (c->segment == v->file.number && c->offset > off))
			break;
		if (c->segment < v->file.number || c->offset < off)
			return log_altered(v, "it is about a place where no frame ends");
		why = check_checkpoint(v, c);
		if (why)
			return log_altered(v, why);
		v->log.has_next = false;
		v->report->checkpoints++;
		v->signed_seq = v->report->records;
	}
	return WALK_ON;
}

int verify_log_end(struct verify *v)
{
	static const uint8_t zero[STORE_HASH_LEN];
	uint8_t root[STORE_HASH_LEN];
	const char *why = NULL;
	int r;

	if (v->log.fd < 0 && memcmp(v->seal.root, zero, sizeof(zero)) != 0)
		return verify_finding(v, VERIFY_ALTERED,
				      "altered: the bundle was signed, but its checkpoints.log is "
				      "missing");
	if (v->log.fd < 0)
		return WALK_ON;
	if (memcmp(v->seal.root, zero, sizeof(zero)) == 0)
		return verify_finding(v, VERIFY_ALTERED,
				      "altered: the bundle was sealed without signatures, and a "
				      "checkpoints.log was added");
	r = checkpoint_file_next(&v->log, &why);
	if (r == READ_OK)
		why = "it is about something that is not there";
	if (r == READ_TORN && v->log.log.ended)
		why = "bytes were added behind the last entry";
	if (why)
		return log_altered(v, why);
	if (r < 0)
		return r;
	if (!v->log.log.ended) {
		v->report->first_bad = v->signed_seq + 1;
		return verify_finding(v, VERIFY_OPEN,
				      "sealed, but the last signature is missing: crashed while "
				      "sealing, or cut; the first %llu of %llu records are as they "
				      "were signed",
				      (unsigned long long)v->signed_seq,
				      (unsigned long long)v->report->records);
	}
	if (merkle_root(v->tree, v->chain, root) < 0)
		return -EIO;
	if (memcmp(root, v->seal.root, sizeof(root)) != 0)
		return log_altered(v, "the seal has another tree root than the records");
	v->report->is_signed = true;
	v->report->is_trusted = v->opt->n_keys > 0 && !v->is_foreign;
	return WALK_ON;
}

void verify_log_signer(struct verify *v)
{
	size_t n = strlen(v->report->text);

	if (v->report->is_signed)
		snprintf(v->report->text + n, sizeof(v->report->text) - n,
			 "; signed by host key %.16s... (%s)", v->report->host_key,
			 v->report->is_trusted ? "trusted" : "not checked against a known key");
	else
		snprintf(v->report->text + n, sizeof(v->report->text) - n, "; not signed");
}

void verify_log_foreign(struct verify *v)
{
	struct verify_report *rep = v->report;
	char was[sizeof(rep->text)];

	if ((!v->is_foreign && !v->is_unsigned) || rep->state == VERIFY_ALTERED)
		return;
	memcpy(was, rep->text, sizeof(was));
	rep->is_trusted = false;
	if (v->is_unsigned) {
		verify_finding(
			v, VERIFY_ALTERED,
			"not signed: there is no checkpoints.log to check against the key; apart "
			"from that: %.*s",
			(int)sizeof(was) / 2, was);
		return;
	}
	verify_finding(
		v, VERIFY_ALTERED,
		"not trusted: signed by host key %.16s..., which is none of the keys that were "
		"given; apart from that: %.*s",
		rep->host_key, (int)sizeof(was) / 2, was);
}

int verify_log_open(struct verify *v, struct err *err)
{
	int r = checkpoint_file_open(&v->log, v->dirfd, O_RDONLY);

	if (r == -ELOOP || r == -EMEDIUMTYPE)
		return verify_finding(v, VERIFY_ALTERED,
				      "altered: checkpoints.log is no regular file");
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "checkpoints.log: %m");
	v->is_unsigned = r < 0 && v->opt->n_keys;
	if (r < 0)
		return WALK_ON;
	v->log.log.any_host = v->opt->n_keys > 0;
	v->tree = calloc(1, sizeof(*v->tree));
	return v->tree ? WALK_ON : err_set(err, ENOMEM, "verify: %m");
}
