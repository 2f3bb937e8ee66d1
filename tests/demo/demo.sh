#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sudo make demo: two real sandboxes on this kernel, watched live; one misbehaves and is killed. Then the
# evidence is verified, tampered with, and read back from Kafka. Exits non-zero if any of it did not happen.
# KAFKA=host:port uses a broker of yours, otherwise librdkafka's mock cluster is started.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
warder=$build/warder
dns=127.77.0.53 # loopback, and nobody else's
topic=warder.events

if [ -t 1 ]; then bold=$'\e[1m' red=$'\e[31;1m' green=$'\e[32m' dim=$'\e[2m' off=$'\e[0m'; else bold='' red='' green='' dim='' off=''; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$off"; }
die() {
	echo "demo: $*" >&2
	exit 1
}

[ "$(id -u)" -eq 0 ] || die "needs root: sudo make demo"
for tool in jq kcat python3; do
	command -v "$tool" >/dev/null || die "$tool is not installed: sudo make deps"
done

work=$(mktemp -d -t warder-demo.XXXXXX)
export WARDER_STATE=$work/state # nothing of the demo stays, and the host's log does not tell of it
helpers=() # pids of what we started
cleanup() {
	for pid in "${helpers[@]}"; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# ---- checks: each says what it saw, and the demo fails when one did not happen ----
failures=0
check() { # check TEXT COMMAND...
	local text=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		printf '  %sseen%s  %s\n' "$green" "$off" "$text"
	else
		printf '  %sNOT SEEN%s  %s\n' "$red" "$off" "$text"
		sed 's/^/            /' "$work/check.out" | head -5
		failures=$((failures + 1))
	fi
}
event() { # event NAME FILTER: an event of session NAME for which the jq filter is true
	jq -es "any(.[]; $2)" "$work/$1.jsonl"
}
equal() { [ "$1" = "$2" ] || {
	echo "'$1' is not '$2'"
	return 1
}; }

# ---- one line an event, for people ----
show() {
	jq --unbuffered -r '
	def args: (.proc.args // []) | map(if length > 60 then .[0:57] + "..." else . end) | join(" ") | gsub("\n"; " ") | .[0:90];
	"  " + .time[11:23] + "  " + ((.kind + "                ")[0:15]) + " " + (
	if .kind == "exec" then args
	elif .kind == "exit" then (.proc.comm // "") + (if .exit.signal then " died of " + .exit.signal else " code \(.exit.code // 0)" end)
	elif .kind == "file.rename" then "\(.file.old_path) -> \(.file.path)"
	elif .kind[0:5] == "file." then .file.path
	elif .kind == "net.connect" then "\(.net.dst.ip // .net.path // "?")" + (if .net.dst.port then ":\(.net.dst.port)" else "" end)
		+ (if .net.dst.name then " (\(.net.dst.name))" else "" end) + " " + (.outcome // "")
	elif .kind == "dns.query" then "\(.dns.name) \(.dns.type)?"
	elif .kind == "dns.answer" then "\(.dns.name) = " + ([.dns.answers[]?.data] | join(", "))
	elif .kind == "escape" then "ESCAPE ATTEMPT \(.escape.type) by \(.proc.comm // "?")" + (if .outcome then ": \(.outcome)" else "" end) + (if .escape.killed then ", killed before the call returned" else "" end)
	elif .kind == "rule.alert" then "ALERT [\(.rule.priority)] \(.rule.name)"
	elif .kind == "action" then "\(.action.type | ascii_upcase) \(.action.scope // "") by rule \"\(.rule.name)\", \(.action.latency_ns / 1000 | floor) us after the event"
	elif .kind == "session.stop" then "reason: \(.run.reason)"
	elif .kind == "session.start" then (.run.command // []) | map(.[0:40]) | join(" ") | gsub("\n"; " ") | .[0:90]
	else "" end)'
}

# ---- run NAME OPTIONS... -- COMMAND...: a sandbox, its events live beside it ----
code=0
run() {
	local name=$1 follower
	shift
	"$warder" run --name "demo-$name" --session-dir "$work/$name" --result "$work/$name.json" --kafka "$brokers" \
		"$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
	local pid=$!
	# The journal is readable while it grows.
	while kill -0 "$pid" 2>/dev/null && [ ! -e "$work/$name/manifest.json" ]; do sleep 0.02; done
	{ "$warder" events --follow "$work/$name" | show; } 2>"$work/$name.follow.err" &
	follower=$!
	code=0
	wait "$pid" || code=$?
	# It ends by itself when the session is sealed.
	wait "$follower" || cat "$work/$name.follow.err"
	"$warder" events "$work/$name" >"$work/$name.jsonl"
	echo "${dim}  its own output:${off}"
	sed 's/^/    /' "$work/$name.out" "$work/$name.err"
}

# ---- the stage: a broker, and a name server on loopback ----
brokers=${KAFKA:-}
if [ -z "$brokers" ]; then
	mkfifo "$work/kafka.in"
	"$build/tests/helpers/mock-kafka" <"$work/kafka.in" >"$work/kafka.addr" &
	helpers+=($!)
	exec 8>"$work/kafka.in" # it ends when this closes
	for _ in $(seq 200); do
		[ -s "$work/kafka.addr" ] && break
		sleep 0.05
	done
	brokers=$(head -1 "$work/kafka.addr")
	[ -n "$brokers" ] || die "mock-kafka did not start"
	say "Kafka: librdkafka's mock cluster at $brokers (KAFKA=host:port for a real one)"
else
	say "Kafka: $brokers"
fi
mkfifo "$work/dns.in"
python3 tests/demo/dns.py $dns updates.example.test=127.0.0.1 <"$work/dns.in" >"$work/dns.out" &
helpers+=($!)
exec 9>"$work/dns.in"
for _ in $(seq 200); do
	[ -s "$work/dns.out" ] && break
	sleep 0.05
done
[ -s "$work/dns.out" ] || die "the name server did not start"

say "1. A harmless job: runs programs, writes files, looks up a name (host network, so that it can)"
run work --net host --ro "$PWD/tests/demo" -- sh -c "
	echo 'print(6 * 7)' > /workspace/job.py
	python3 /workspace/job.py > /workspace/part
	mv /workspace/part /workspace/result
	cat /workspace/result
	python3 $PWD/tests/demo/dns.py --ask $dns updates.example.test
	rm /workspace/job.py"
check "it ended by itself with code 0" equal "$code" 0
check "its output came through" grep -qx 42 "$work/work.out"
check "exec of python3 with its arguments" event work '.kind == "exec" and .proc.args == ["python3", "/workspace/job.py"]'
check "the file it wrote" event work '.kind == "file.open" and .file.path == "/workspace/job.py"'
check "the rename, both names absolute" \
	event work '.kind == "file.rename" and .file.old_path == "/workspace/part" and .file.path == "/workspace/result"'
check "the delete" event work '.kind == "file.delete" and .file.path == "/workspace/job.py"'
check "the DNS question" event work '.kind == "dns.query" and .dns.name == "updates.example.test"'
check "the DNS answer" event work '.kind == "dns.answer" and any(.dns.answers[]; .data == "127.0.0.1")'

say "2. A hostile one: asks the cloud for credentials, then tries to break out (no network, default rules)"
run evil -- sh -c "
	echo loot > /tmp/loot
	python3 -c 'import socket
try: socket.create_connection((\"169.254.169.254\", 80), 2)
except OSError as e: print(\"metadata service:\", e, flush=True)'
	unshare --mount sh -c 'echo I am out'
	sleep 5
	echo still here"
check "killed: exit code 137" equal "$code" 137
check "the result says a rule did it: $(jq -r '.rule // "?"' "$work/evil.json")" jq -e '.reason == "rule"' "$work/evil.json"
check "the connection attempt, and that it failed" \
	event evil '.kind == "net.connect" and .net.dst.ip == "169.254.169.254" and .outcome != "success"'
check "the escape attempt" event evil '.kind == "escape" and .escape.type == "unshare"'
check "the alert" event evil '.kind == "rule.alert"'
check "the kill, with rule and latency" event evil '.kind == "action" and .action.type == "kill" and .action.latency_ns > 0'
check "it did not get out" bash -c "! grep -q 'I am out' '$work/evil.out'"
check "its siblings went with it" bash -c "! grep -q 'still here' '$work/evil.out'"

say "3. The evidence"
for name in work evil; do
	check "$name: verified, intact and sealed" "$warder" verify "$work/$name"
	check "$name: sequence numbers without holes" jq -es 'map(.seq) == [range(1; length + 1)]' "$work/$name.jsonl"
done
segment=$(find "$work/evil" -name 'events.*.seg' | sort | head -1)
middle=$(($(stat -c %s "$segment") / 2))
cp "$segment" "$work/segment"
# One bit of one byte.
byte=$(od -An -tu1 -j "$middle" -N 1 "$segment")
printf '%b' "\\x$(printf %02x $((byte ^ 1)))" | dd of="$segment" bs=1 seek="$middle" conv=notrunc status=none
code=0
"$warder" verify "$work/evil" >"$work/tampered" 2>&1 || code=$?
sed 's/^/  /' "$work/tampered"
check "one flipped bit is found: verify says 1" equal "$code" 1
cp "$work/segment" "$segment"
check "put back, it verifies again" "$warder" verify "$work/evil"

say "4. Read back from Kafka by kcat"
timeout 60 kcat -b "$brokers" -C -t $topic -o beginning -e -q -J >"$work/kafka.jsonl" || die "kcat failed"
for name in work evil; do
	session=$(jq -r .session "$work/$name.json")
	jq -c "select(.key == \"$session\")" "$work/kafka.jsonl" >"$work/$name.kafka"
	jq -r '.payload | fromjson | .id' "$work/$name.kafka" | awk '!seen[$0]++' >"$work/$name.kafka.ids"
	jq -r .id "$work/$name.jsonl" >"$work/$name.ids"
	echo "  $name: $(wc -l <"$work/$name.kafka.ids") messages with key $session"
	check "$name: every event of the journal, in order" cmp "$work/$name.ids" "$work/$name.kafka.ids"
done
echo "  for example:"
jq -r '.payload | fromjson | select(.kind == "action") | {id, kind, time, rule: (.rule | {name, priority, attack, trigger}), action}' "$work/evil.kafka" | sed 's/^/    /'

say "5. What is left on this host"
check "no control group" bash -c "! find /sys/fs/cgroup -maxdepth 4 -type d -name '*$(jq -r .session "$work/evil.json")*' | grep ."
check "no mount" bash -c "! grep -F '$(jq -r .session "$work/evil.json")' /proc/self/mountinfo"

echo
if [ "$failures" -ne 0 ]; then
	printf '%sdemo: %d things did not happen%s\n' "$red" "$failures" "$off"
	exit 1
fi
echo "${green}demo: all of it happened${off}"
