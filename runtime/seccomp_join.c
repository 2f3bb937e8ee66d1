// SPDX-License-Identifier: Apache-2.0
/* The operator's profile and our own filter as one program: where the first says "allow", the second is asked. So what is
 * never legitimate stays denied, by our word and with our error, whatever a profile says. */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/seccomp.h"
#include "runtime/seccomp_profile.h"
#include "userspace/base/auto.h"

static int add_rules(scmp_filter_ctx ctx, const struct seccomp_profile *p, const char **ret_call)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n; i++) {
		const struct seccomp_rule *rule = &p->rules[i];
		int nr = seccomp_call(rule->call);

		*ret_call = rule->call;
		/* What we deny is ours to answer; what is the default needs no rule. */
		if (nr < 0 || seccomp_is_denied(rule->call) || rule->action == p->action)
			continue;
		r = seccomp_rule_add_array(ctx, rule->action, nr, rule->n, rule->args);
		if (r == -EEXIST)
			r = 0;
	}
	return r;
}

static int leave_ours(scmp_filter_ctx ctx, const struct seccomp_profile *p)
{
	const char *name;
	int r = 0;

	if (p->action == SCMP_ACT_ALLOW)
		return 0;
	for (size_t i = 0; r == 0 && (name = seccomp_denied(i)); i++) {
		int nr = seccomp_call(name);

		if (nr < 0)
			continue;
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr, 0, NULL);
		if (r == -EEXIST)
			r = 0;
	}
	return r;
}

/* Each "allow" becomes a jump behind the program. */
static int join(const struct sock_filter *first, size_t first_n, const struct sock_filter *own,
		size_t own_n, struct sock_filter **ret, size_t *ret_n)
{
	struct sock_filter *v;

	if (first_n + own_n > BPF_MAXINSNS)
		return -E2BIG;
	v = malloc((first_n + own_n) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memcpy(v, first, first_n * sizeof(*v));
	memcpy(v + first_n, own, own_n * sizeof(*v));
	for (size_t i = 0; i < first_n; i++)
		if (v[i].code == (BPF_RET | BPF_K) && v[i].k == SECCOMP_RET_ALLOW)
			v[i] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA,
							    (uint32_t)(first_n - i - 1));
	*ret = v;
	*ret_n = first_n + own_n;
	return 0;
}

int seccomp_profile_compile(const struct seccomp_profile *p, const struct sock_filter *own,
			    size_t own_n, struct sock_filter **ret, size_t *ret_n, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(p->action);
	struct sock_filter *first = NULL;
	const char *call = "";
	size_t first_n = 0;
	int r = ctx ? 0 : -ENOMEM;

	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = leave_ours(ctx, p);
	if (r == 0)
		r = add_rules(ctx, p, &call);
	if (r < 0)
		r = err_set(err, -r, "seccomp profile: '%s': libseccomp: %m", call);
	else
		r = seccomp_export(ctx, 0, &first, &first_n);
	if (ctx)
		seccomp_release(ctx);
	if (r == 0)
		r = join(first, first_n, own, own_n, ret, ret_n);
	free(first);
	if (r == -E2BIG)
		return err_set(err, E2BIG, "seccomp profile: more than %d instructions with ours",
			       BPF_MAXINSNS);
	return r < 0 && (!err || !err->code) ? err_set(err, -r, "seccomp profile: %m") : r;
}
