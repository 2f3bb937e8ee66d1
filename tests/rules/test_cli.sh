#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `warder rules`: what it prints and how it exits.
set -u
w=${WARDER_BUILD:-build}/warder
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0
echo 1..13

# check NAME CODE TEXT COMMAND...: exit code and a piece of the output
check() {
	local name=$1 code=$2 text=$3 out got
	shift 3
	out=$("$@" 2>&1)
	got=$?
	n=$((n + 1))
	if [ "$got" = "$code" ] && [[ $out == *"$text"* ]]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		printf '%s\n' "exit code $got, said:" "$out" | sed 's/^/# /'
	fi
}

cat >"$dir/good.yaml" <<'YAML'
- rule: Setns
  desc: d
  output: o
  priority: CRITICAL
  condition: escape.type = setns
  action: kill
YAML
sed 's/setns/setnss/' "$dir/good.yaml" >"$dir/bad.yaml"
printf '%s\n' '# fires: Setns' '{"kind":"escape","escape.type":"setns"}' '{"kind":"exec"}' >"$dir/good.events"
printf '%s\n' '# fires: Setns' '{"kind":"escape","escape.type":"mount"}' >"$dir/bad.events"

check "a good file" 0 "1 rule: 1 loaded" "$w" rules check "$dir/good.yaml"
cat >"$dir/local.yaml" <<'YAML'
- rule: Local
  desc: a rule as people write it for Falco, without its default file
  condition: spawned_process and container and shell_procs and proc.tty != 0 and not proc.pname in (package_mgmt_binaries)
  output: "Shell (user=%user.name command=%proc.cmdline)"
  priority: NOTICE
YAML
check "Falco's usual macros" 0 "1 rule: 1 loaded" "$w" rules check "$dir/local.yaml"
check "a broken file" 1 "bad.yaml:5:28: " "$w" rules check "$dir/bad.yaml"
check "the default packs" 0 "Namespace changed from inside a sandbox" "$w" rules list
check "explained" 0 "killed before the call returns to the program (setns)" "$w" rules explain "$dir/good.yaml"
cat >"$dir/deny.yaml" <<'YAML'
- rule: Deny
  desc: d
  output: o
  priority: CRITICAL
  condition: kind = file.delete and file.path startswith /etc/
  action: deny
YAML
for tier in full portable; do
	check "explained, $tier tier: a kill" 0 "tier: $tier
    where: kernel
    guarantee: killed before the call returns to the program (setns)" "$w" rules explain --tier $tier "$dir/good.yaml"
done
check "explained, full tier: a deny" 0 "guarantee: prevented (file.delete)" "$w" rules explain --tier full "$dir/deny.yaml"
check "explained, portable tier: a deny" 0 "where: nowhere
    guarantee: none, a run with it fails in the portable tier" "$w" rules explain --tier portable "$dir/deny.yaml"
check "fixtures that hold" 0 "2 events, 2 as expected, 0 not" "$w" rules test "$dir/good.yaml" "$dir/good.events"
check "fixtures that do not" 1 "bad.events:2: rule 'Setns' should fire" "$w" rules test "$dir/good.yaml" "$dir/bad.events"
check "packs on their fixtures" 0 ", 0 not" "$w" rules test tests/rules/packs/*.events
check "no fixtures" 125 "which fixture file" "$w" rules test "$dir/good.yaml"
