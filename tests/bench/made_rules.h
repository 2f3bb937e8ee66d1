/* SPDX-License-Identifier: Apache-2.0 */
/* Any number of rules for benchmarks. */
#ifndef WARDER_BENCH_MADE_RULES_H
#define WARDER_BENCH_MADE_RULES_H

#include "userspace/base/buf.h"

/* Rules as people write them: a kind, one or two selective checks, exceptions. */
static void add_rule(struct buf *b, int i)
{
	static const char *const shapes[] = {
		"kind = exec and proc.comm in (tool%d, tool%da, tool%db) and not proc.pcomm in (make, ninja)",
		"kind = exec and proc.args contains secret-word-%d and not proc.exe startswith /usr/lib/x%d%d",
		"kind = exec and (proc.exe startswith /opt/app%d/ or proc.exe endswith /evil%d) and proc.uid = %d",
		"kind = file.open and file.write = true and file.path startswith /etc/service%d/ and not proc.comm in (dpkg%d, apt%d)",
		"kind = file.open and file.name in (key%d.pem, key%d.der, token%d)",
		"kind in (file.delete, file.rename) and file.path contains /archive%d/%d/ and not proc.comm = tool%d",
		"kind = net.connect and net.dst.ip in (203.0.%d.0/24) and net.dst.port in (%d, 1%d)",
		"kind = net.connect and proc.comm = agent%d and not net.dst.name endswith anyof (.a%d.example, .b%d.example)",
		"kind = dns.query and dns.name endswith .bad%d.example and not proc.comm in (a%d, b%d)",
		"evt.type in (open, openat) and fd.directory in (/srv/d%d, /srv/e%d) and proc.aname in (sshd, login%d)",
	};

	buf_printf(
		b,
		"- rule: r%d\n  desc: d\n  output: o %%proc.comm\n  priority: INFO\n  condition: ",
		i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	buf_printf(b, shapes[i % 10], i % 250, i % 250, i % 250);
#pragma GCC diagnostic pop
	if (i >= 250)
		buf_printf(b, " and not proc.comm = other%d", i);
	buf_addc(b, '\n');
}

#endif
