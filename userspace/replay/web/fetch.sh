#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: fetch.sh DIR
# Fetches what package-lock.json pins, with npm, into DIR/node_modules: once, until the lock changes. No script of
# a package is run; npm compares each with the hash in the lock.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

fail() {
	echo "error: $*" >&2
	exit 1
}
command -v npm >/dev/null || fail "the HTML report's terminal player is fetched by npm, which is not installed (sudo make deps)"

cp "$here/package.json" "$here/package-lock.json" .
for wait in 2 5 15 end; do
	if npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error >npm.log 2>&1; then
		exit 0
	fi
	[ "$wait" != end ] || break
	echo "npm ci failed, once more in $wait s" >&2
	sleep "$wait"
done
tail -n 15 npm.log >&2
fail "npm cannot fetch the packages of userspace/replay/web/package-lock.json (is there a network? its whole log:" \
	"$PWD/npm.log). It is needed once. Without: make PLAYER=no, and the report shows a recording's text in place of its screen"
