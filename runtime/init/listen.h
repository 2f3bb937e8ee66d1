/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_RUNTIME_INIT_LISTEN_H
#define WARDER_RUNTIME_INIT_LISTEN_H

#include <linux/filter.h>

#include "runtime/init/frame.h"

/* The filter for this task and all that it starts, its listener for the launcher (FRAME_LISTENER). `is_init`: this is
 * process 1. Where the kernel gives no listener, the filter's notified calls are refused by itself. 0 or -errno. */
long filter_install(struct sock_fprog *filter, enum init_notify how, int is_init);

#endif
