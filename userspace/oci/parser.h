/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the reader of config.json. Each function: 0, or -errno with the place in err. */
#ifndef WARDER_OCI_PARSER_H
#define WARDER_OCI_PARSER_H

#include "userspace/event/json_tree.h"
#include "userspace/oci/config.h"

struct oci_parser {
	struct oci_config *c; /* NULL: a process alone */
	struct arena *mem;
	const char *name;
	struct str text;
	struct err *err;
};

/* parser.c */
int oci_bad(struct oci_parser *s, const struct json_node *at, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Each once. */
void oci_note(struct oci_parser *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* NULL or absent: *ret NULL. */
int oci_text(struct oci_parser *s, const struct json_node *object, const char *key,
	     const char **ret);
int oci_text_of(struct oci_parser *s, const struct json_node *node, const char **ret);
int oci_flag(struct oci_parser *s, const struct json_node *object, const char *key, bool *ret);
/* Absent: *ret stays. */
int oci_number(struct oci_parser *s, const struct json_node *object, const char *key, uint64_t max,
	       uint64_t *ret);
/* The member, of this type; absent or null: *ret NULL. */
int oci_member(struct oci_parser *s, const struct json_node *object, const char *key,
	       enum json_type type, const struct json_node **ret);

/* What a key is for that no function reads: one that asks for something (not for 0, false, -1 or "") is refused, or noted
 * as not applied. */
struct oci_key {
	const char *key;
	const char *never; /* why */
	bool noted;
};

/* Each member of the object is one of these, or noted as not known, as the specification has it. */
int oci_check_keys(struct oci_parser *s, const struct json_node *object, const char *where,
		   const struct oci_key *keys, size_t n);
bool oci_is_one_of(const char *word, const char *const *words, size_t n);

/* config.c, linux.c, mounts.c, process.c, resources.c */
int oci_parse_process(struct oci_parser *s, const struct json_node *node, struct oci_process *ret);
int oci_parse_mounts(struct oci_parser *s, const struct json_node *list);
int oci_parse_linux(struct oci_parser *s, const struct json_node *node);
int oci_parse_resources(struct oci_parser *s, const struct json_node *node);
int oci_parse_annotations(struct oci_parser *s, const struct json_node *node);

#endif
