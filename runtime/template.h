/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that lives in a root with all that sandboxes share: /usr, /etc, devices. A set-up task cloned
 * from there has nothing left to mount but its own, nothing to pivot away from, and a dozen mounts to
 * copy instead of the host's. Made when a process starts its second sandbox; a plan that does not fit
 * goes the long way. */
#ifndef WARDER_RUNTIME_TEMPLATE_H
#define WARDER_RUNTIME_TEMPLATE_H

#include <linux/sched.h>
#include <sys/types.h>

struct setup;

/* clone3 from the thread, the child going on in setup_run(t) with t->templated set. The pid, -1 with
 * errno as of clone3, or 0 when there is no template that fits t->plan: clone yourself then. */
pid_t template_clone(struct setup *t, struct clone_args *args);

#endif
