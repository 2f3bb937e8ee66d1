/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces made ahead. Making one costs as much as the rest of a start together, and the
 * launcher has time for it: while probes are loaded, and while the sandbox before it runs. Each is used
 * once. */
#ifndef WARDER_RUNTIME_NETNS_H
#define WARDER_RUNTIME_NETNS_H

/* Begin to make one if none is ready or being made. Cheap; failure shows as none being there. */
void netns_prepare(void);
/* The one made ahead, the caller's to close; waits if it is being made. -1: there is none. */
int netns_take(void);
/* Configure the calling thread's own: lo up, any port free to serve. `proc_sys` is a /proc/sys. 0 or
 * -errno; *ret_what says which. */
int netns_configure(int proc_sys, const char **ret_what);

#endif
