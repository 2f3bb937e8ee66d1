#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs shellcheck over every script of ours.
set -euo pipefail
# shellcheck source=files.sh
. "$(dirname "$0")/files.sh"
if ! command -v shellcheck >/dev/null; then
	echo "skipped: needs shellcheck"
	exit 77
fi
mapfile -t list < <(files '*.sh')
shellcheck -x -P SCRIPTDIR "${list[@]}" .ci/run .ci/deps .ci/runsc tests/vm/vmtest tests/vm/check
