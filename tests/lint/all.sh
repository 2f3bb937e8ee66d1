#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs each check of this folder: silent when all is well, exit 77 = skipped with its reason.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
failed=0
for check in format init layers tree shell web; do
	out=$("./$check.sh" 2>&1)
	case $? in
	0) echo "ok      $check" ;;
	77) echo "        $check: $out" ;;
	*)
		printf 'FAILED  %s\n%s\n' "$check" "$out"
		failed=1
		;;
	esac
done
exit $failed
