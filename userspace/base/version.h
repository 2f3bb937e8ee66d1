/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_BASE_VERSION_H
#define WARDER_BASE_VERSION_H

#define WARDER_VERSION "0.1.0"

#endif
