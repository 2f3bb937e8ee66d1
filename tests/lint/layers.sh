#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Includes are written from the root and point down (CONVENTIONS: where things go). Ranks:
#   cli 5 > pipeline, control 4 > rules, exporters, runtime, capture, enrich, action, store, redact, replay, workspace, image 3
#   > event, config 2 > base, bpf/abi 1. Never a sibling of one's own rank.
# layers.sh [ROOT]: another root is for the test of this check.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

# shellcheck disable=SC2016  # awk's fields
{ find bpf userspace rules runtime exporters -name '*.[ch]' -print 2>/dev/null || :; } | sort | xargs awk '
function folder(path,   p) {
	split(path, p, "/")
	if (p[1] == "userspace")
		return p[2] ~ /\.[ch]$/ ? "main" : p[2]
	if (p[1] == "bpf")
		return p[2] == "abi" ? "abi" : "bpf"
	return p[1]
}
function bad(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text
	failed = 1
}
BEGIN {
	split("abi 1 base 1 event 2 config 2 rules 3 exporters 3 runtime 3 capture 3 enrich 3 action 3 store 3 redact 3 " \
	      "replay 3 workspace 3 image 3 pipeline 4 control 4 oci 4 catalog 5 scenarios 5 api 5 cli 6 main 7", w, " ")
	for (i = 1; i in w; i += 2)
		rank[w[i]] = w[i + 1]
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, q, "\"")
	to = q[2]
	here = folder(FILENAME)
	there = folder(to)
	generated = to ~ /\.skel\.h$/
	if (here == "bpf") {
		if (to !~ /^(bpf\/(lib|abi)\/|vmlinux)/ && to !~ /\//)
			bad("\"" to "\": includes are written from the root")
		else if (to !~ /^(bpf\/(lib|abi)\/|vmlinux)/)
			bad("\"" to "\": BPF programs include only vmlinux, bpf/lib and bpf/abi")
		next
	}
	if (generated) {
		if (here != "capture")
			bad("\"" to "\": only userspace/capture includes skeletons")
		next
	}
	if (to !~ /\//) {
		bad("\"" to "\": includes are written from the root")
		next
	}
	if (!(there in rank)) {
		bad("\"" to "\": the folder \"" there "\" has no rank")
		next
	}
	if (!(here in rank)) {
		bad("the folder \"" here "\" has no rank")
		next
	}
	if (here == there)
		next
	if (here == "abi" || (here == "base" && there != "abi"))
		bad("\"" to "\": " here " includes nothing of ours")
	else if (rank[there] >= rank[here])
		bad("\"" to "\": " here " may not use " there " (includes point down)")
}
END { exit failed }
'
