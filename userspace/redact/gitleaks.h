/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of gitleaks (its TOML) as rules of ours. What a rule of ours cannot say is told, and why. */
#ifndef WARDER_REDACT_GITLEAKS_H
#define WARDER_REDACT_GITLEAKS_H

#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define GITLEAKS_FILE_MAX (1u << 20)
#define GITLEAKS_PREFIX	  "gitleaks." /* before the names of its rules, which stand beside ours */

struct gitleaks_result {
	size_t rules, left_out; /* of the file; of them, those that are not in the result */
	size_t unknown;		/* keys that are none of gitleaks: a slip of the pen? */
};

/* What of a rule ("" = of all) is not as it was there: `text`, for a person; `out`: the rule is not in the result. */
typedef void (*gitleaks_note_fn)(void *arg, const char *rule, const char *text, bool out);

/* Appends the YAML that redactor_add_rules takes. `note` may be NULL. -EINVAL: no TOML, no rule in it, or none
 * that can be used. */
int gitleaks_import(const char *name, struct str toml, struct buf *yaml, gitleaks_note_fn note,
		    void *arg, struct gitleaks_result *ret, struct err *err);

#endif
