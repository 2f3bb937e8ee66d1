#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# smoke.sh BUILD [WORD...]: each fuzz target for FUZZ_SECONDS. A crash is kept in BUILD/crashes; copy it to
# tests/fuzz/corpus/<parser>/, where `make check` replays it for good.
set -euo pipefail
build=$1
shift
seconds=${FUZZ_SECONDS:-20}
here=$(dirname "$0")
mkdir -p "$build/crashes"
passed=0 failed=0
for src in "$here"/fuzz_*.c; do
	[ -e "$src" ] || continue
	name=$(basename "$src" .c)
	parser=${name#fuzz_}
	if [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qF -- "$parser"; then
		continue
	fi
	# New finds stay in the build folder; the seeds in the tree are read only.
	mkdir -p "$build/corpus/$parser"
	seeds=()
	[ ! -d "$here/corpus/$parser" ] || seeds=("$here/corpus/$parser")
	dict=()
	[ ! -e "$here/$parser.dict" ] || dict=("-dict=$here/$parser.dict")
	echo "== $parser: $seconds s"
	log=$build/crashes/$parser.log
	if "$build/tests/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		-print_final_stats=1 "${dict[@]}" -artifact_prefix="$build/crashes/$parser-" \
		"$build/corpus/$parser" "${seeds[@]}" >"$log" 2>&1; then
		grep -E 'stat::(number_of_executed_units|average_exec_per_sec)' "$log"
		passed=$((passed + 1))
	else
		tail -40 "$log"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
