# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Sourced by vmtest: from what --kernel said to an image and its modules. Downloads through a private apt
# directory, so that any Debian release's kernels can be had and the system's apt state stays as it is.
# Uses vmtest's prog, kernel, cache, update, modules_option and die.
# Sets kernel_dir (downloaded kernels only), vmlinuz, modules_dir ('' = the image has everything built in).
kernel_dir='' vmlinuz='' modules_dir=''

need() { # need PROGRAM...
	local t
	for t in "$@"; do
		command -v "$t" >/dev/null || die "$t is not installed: sudo make deps"
	done
}

# Suites that hold a series; the rest come from trixie-backports.
suites_of() {
	case $1 in
	5.10) echo bullseye-security ;;
	6.1) echo bookworm bookworm-security ;;
	6.12) echo bookworm-security ;;
	*) echo trixie-backports ;;
	esac
}

apt_sources() { # apt_sources SUITE...
	local uris main security s key=''
	uris=$(apt-get --print-uris update 2>/dev/null | sed -n "s#^'\([^']*/\)dists/.*#\1#p" | sort -u)
	main=$(grep -E '/debian/$' <<<"$uris" | head -n 1)
	security=$(grep -E '/debian-security/$' <<<"$uris" | head -n 1)
	[ -z "${DEBIAN_MIRROR:-}" ] || main=${DEBIAN_MIRROR%/}/ security=''
	if [ -z "$main" ]; then
		echo "$prog: apt knows no Debian mirror; name one: DEBIAN_MIRROR=URL (it ends in /debian)" >&2
		return 1
	fi
	[ -n "$security" ] || security=${main%/debian/}/debian-security/
	[ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
	for s in "$@"; do
		case $s in
		*-security) echo "deb $key$security $s main" ;;
		*) echo "deb $key$main $s main" ;;
		esac
	done
}

apt_private() { # apt_private TOOL SUITES ARG...: apt-get or apt-cache with nothing of the system's state
	local tool=$1 dir=$cache/apt/${2// /+}
	shift 2
	"$tool" -q -o Dir::State="$dir/state" -o Dir::State::status="$dir/state/status" -o Dir::Cache="$dir/cache" \
		-o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::Etc::preferences=/dev/null \
		-o APT::Sandbox::User=root -o APT::Update::Error-Mode=any \
		-o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 "$@"
}

apt_update() { # apt_update SUITES
	local dir=$cache/apt/${1// /+}
	mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" || die "cannot write $cache"
	: >"$dir/state/status"
	# shellcheck disable=SC2086  # a list of words
	apt_sources $1 >"$dir/sources.list" || exit 125
	apt_private apt-get "$1" update >"$dir/log" 2>&1 && return
	tail -n 3 "$dir/log" >&2
	die "cannot reach the Debian mirror; offline, use a kernel image (--kernel PATH) or a filled cache ($cache)"
}

# The uncompressed kernel inside a bzImage, if its decompressor is installed: it boots through PVH, without
# being unpacked under emulation.
unpack_vmlinux() { # unpack_vmlinux BZIMAGE OUT
	local image=$1 out=$2 n off len size
	number() { od -An -j "$2" -N "$3" -t "u$3" "$1" | tr -d ' '; }
	[ "$(dd if="$image" bs=1 skip=514 count=4 2>/dev/null | od -An -c | tr -d ' ')" = HdrS ] || return 1
	n=$(number "$image" 497 1)
	[ "$n" != 0 ] || n=4
	off=$(((n + 1) * 512 + $(number "$image" 584 4)))
	len=$(number "$image" 588 4)
	size=$(number "$image" $((off + len - 4)) 4)
	for n in "zstd -qdc" "lz4 -dc" "gzip -dc" "xz -dc"; do
		command -v "${n%% *}" >/dev/null || continue
		tail -c +$((off + 1)) "$image" | head -c "$len" | $n >"$out" 2>/dev/null
		[ "$(head -c 4 "$out" | od -An -c | tr -d ' ')" = '177ELF' ] && [ "$(stat -c %s "$out")" -ge "$size" ] &&
			return 0
	done
	rm -f "$out"
	return 1
}

# From 7.x on the image package is empty and depends on those that hold the files.
package_parts() { # package_parts SUITES PACKAGE
	local f
	apt_private apt-cache "$1" show --no-all-versions "$2" | sed -n 's/^Depends: //p' | tr ',|' '\n' |
		sed -n 's/^ *\(linux-\(binary\|modules\|base\)-[0-9][^ ]*\).*/\1/p' | sort -u |
		while read -r f; do
			! apt_private apt-cache "$1" policy "$f" | grep -q 'Candidate: [0-9]' || echo "$f"
		done
}

fetch_package() { # fetch_package SUITES PACKAGE: into $cache/kernels/PACKAGE
	local suites=$1 pkg=$2 out=$cache/kernels/$2 tmp=$cache/kernels/.new parts f m
	[ ! -e "$out/ok" ] || return 0
	rm -rf "$tmp"
	mkdir -p "$tmp/debs" "$tmp/x" "$tmp/modules" "$tmp/depmod/lib" || return 1
	mapfile -t parts < <(package_parts "$suites" "$pkg")
	echo "$prog: downloading $pkg" >&2
	(cd "$tmp/debs" && apt_private apt-get "$suites" download "$pkg" "${parts[@]}") >"$tmp/log" 2>&1 || {
		tail -n 3 "$tmp/log" >&2
		return 1
	}
	for f in "$tmp"/debs/*.deb; do dpkg-deb -x "$f" "$tmp/x" || return 1; done
	m=$(find "$tmp/x/lib/modules" "$tmp/x/usr/lib/modules" -mindepth 1 -maxdepth 1 -type d 2>/dev/null | head -n 1)
	[ -n "$m" ] && mv "$m" "$tmp/modules/" || return 1
	m=$tmp/modules/${m##*/}
	for f in "$tmp"/x/boot/vmlinuz-* "$m/vmlinuz"; do [ ! -f "$f" ] || cp "$f" "$tmp/vmlinuz"; done
	[ -f "$tmp/vmlinuz" ] || return 1
	ln -s ../../modules "$tmp/depmod/lib/modules" && depmod -b "$tmp/depmod" "${m##*/}" || return 1
	unpack_vmlinux "$tmp/vmlinuz" "$tmp/vmlinux"
	rm -rf "$tmp/debs" "$tmp/x" "$tmp/depmod" "$tmp/log"
	touch "$tmp/ok"
	rm -rf "$out"
	mv "$tmp" "$out"
}

newest_package() { # newest_package SERIES SUITES
	local re="^linux-image-${1//./\\.}[.-][0-9][^ ]*-cloud-amd64\$"
	apt_private apt-cache "$2" search --names-only "$re" | cut -d' ' -f1 | sort -V | tail -n 1
}

resolve_package() { # resolve_package SERIES [PACKAGE]
	local series=$1 pkg=${2:-} suites name=$cache/kernels/$1.name
	suites=$(suites_of "$series")
	mkdir -p "$cache/kernels" || die "cannot write $cache"
	cache=$(cd "$cache" && pwd)
	exec 8>"$cache/lock"
	flock 8 # two at once want the same kernel
	if [ -z "$pkg" ]; then
		[ "$update" = 0 ] || rm -f "$name"
		if [ ! -s "$name" ]; then
			apt_update "$suites"
			pkg=$(newest_package "$series" "$suites")
			[ -n "$pkg" ] || die "no kernel $series: no linux-image-$series*-cloud-amd64 in $suites"
			echo "$pkg" >"$name"
		fi
		pkg=$(cat "$name")
	elif [ ! -e "$cache/kernels/$pkg/ok" ]; then
		apt_update "$suites"
	fi
	if ! fetch_package "$suites" "$pkg"; then
		rm -rf "$cache/kernels/.new"
		rm -f "$name" # the package may be gone from the mirror: look again next time
		die "cannot get $pkg"
	fi
	exec 8>&-
	kernel_dir=$cache/kernels/$pkg
}

image_release() { # image_release BZIMAGE: as uname -r will say
	local off
	off=$(od -An -j 526 -N 2 -t u2 "$1" 2>/dev/null | tr -d ' ')
	[ "${off:-0}" -gt 0 ] && tail -c +$((off + 513)) "$1" | head -c 200 | tr '\0' '\n' | head -n 1 | cut -d' ' -f1
}

resolve_kernel() {
	local d
	if [ -d "$kernel" ] && [ -f "$kernel/vmlinuz" ]; then
		kernel_dir=$(cd "$kernel" && pwd)
	elif [ -f "$kernel" ]; then
		vmlinuz=$(readlink -f "$kernel") modules_dir=$modules_option
		if [ -z "$modules_dir" ]; then
			d=/lib/modules/$(image_release "$vmlinuz")
			[ ! -f "$d/modules.dep" ] || modules_dir=$d
		fi
		[ -z "$modules_dir" ] || [ -f "$modules_dir/modules.dep" ] || die "no modules.dep in $modules_dir"
		return 0
	elif [[ $kernel =~ ^linux-image-([0-9]+\.[0-9]+)[^/]*$ ]]; then
		resolve_package "${BASH_REMATCH[1]}" "$kernel"
	elif [[ $kernel =~ ^[0-9]+\.[0-9]+$ ]]; then
		resolve_package "$kernel"
	else
		die "no such kernel: '$kernel' (a series like 6.1, a linux-image-* package, or a path)"
	fi
	vmlinuz=$kernel_dir/vmlinuz
	[ ! -f "$kernel_dir/vmlinux" ] || vmlinuz=$kernel_dir/vmlinux
	modules_dir=$(find "$kernel_dir/modules" -mindepth 1 -maxdepth 1 -type d | head -n 1)
}

unpack_image() { # unpack_image DIR: of a kernel image that was given by its path
	[ -z "$kernel_dir" ] && unpack_vmlinux "$vmlinuz" "$1/vmlinux" && vmlinuz=$1/vmlinux
}

module_files() { # module_files NAME...: paths below $modules_dir, with what they need, in the order of loading
	awk -v want="$*" '
		function base(f) { sub(/.*\//, "", f); sub(/\.ko.*/, "", f); gsub(/-/, "_", f); return f }
		function load(f,   n, i, d) {
			if (done[f]++)
				return
			n = split(needs[f], d, " ")
			for (i = n; i > 0; i--)
				load(d[i])
			print f
		}
		{ split($0, a, ": *"); file[base(a[1])] = a[1]; needs[a[1]] = a[2] }
		END {
			n = split(want, w, " ")
			for (i = 1; i <= n; i++)
				if (w[i] in file)
					load(file[w[i]])
		}
	' "$modules_dir/modules.dep"
}
