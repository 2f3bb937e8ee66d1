/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_RUNTIME_INIT_FILTER_H
#define WARDER_RUNTIME_INIT_FILTER_H

/* Init's own system calls from now on: wait, signal, talk, end. Anything else kills it, and with it
 * the sandbox. 0 or -errno. */
int init_filter_install(void);

#endif
