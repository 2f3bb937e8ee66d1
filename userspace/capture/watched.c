/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the kernel's `watched` map: opens of these are told even if only for reading, or in vain. */
#include <bpf/bpf.h>
#include <string.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "userspace/capture/watched.h"

static const struct {
	const char *name;
	uint32_t class;
} names[] = {
	/* memory of the kernel, in /proc */
	{ "kcore", WATCHED_FILE },
	{ "kpageflags", WATCHED_FILE },
	{ "kpagecount", WATCHED_FILE },
	{ "kpagecgroup", WATCHED_FILE },
	/* password and key stores */
	{ "shadow", WATCHED_FILE },
	{ "gshadow", WATCHED_FILE },
	{ "sudoers", WATCHED_FILE },
	{ "id_rsa", WATCHED_FILE },
	{ "id_dsa", WATCHED_FILE },
	{ "id_ecdsa", WATCHED_FILE },
	{ "id_ed25519", WATCHED_FILE },
	{ "id_ed25519_sk", WATCHED_FILE },
	{ "identity", WATCHED_FILE },
	{ "authorized_keys", WATCHED_FILE },
	/* tokens of tools */
	{ "credentials", WATCHED_FILE },
	{ "credentials.db", WATCHED_FILE },
	{ "application_default_credentials.json", WATCHED_FILE },
	{ ".git-credentials", WATCHED_FILE },
	{ ".netrc", WATCHED_FILE },
	{ ".pypirc", WATCHED_FILE },
	{ ".npmrc", WATCHED_FILE },
	{ ".pgpass", WATCHED_FILE },
	{ ".my.cnf", WATCHED_FILE },
	{ ".vault-token", WATCHED_FILE },
	{ "accessTokens.json", WATCHED_FILE },
	{ "msal_token_cache.json", WATCHED_FILE },
	{ "wallet.dat", WATCHED_FILE },
	{ "key4.db", WATCHED_FILE },
	{ "logins.json", WATCHED_FILE },
	/* names too common to tell alone */
	{ "config", WATCHED_WITH_DIR },
	{ "config.json", WATCHED_WITH_DIR },
	{ "hosts.yml", WATCHED_WITH_DIR },
	{ "token", WATCHED_WITH_DIR },
	{ ".kube", WATCHED_DIR },
	{ ".docker", WATCHED_DIR },
	{ "gh", WATCHED_DIR },
	{ "serviceaccount", WATCHED_DIR },
	/* of the watcher itself: its door, its settings, its records and keys */
	{ "control.sock", WATCHED_WITH_DIR },
	{ "api.sock", WATCHED_WITH_DIR },
	{ "agent.yaml", WATCHED_WITH_DIR },
	{ "agent.lock", WATCHED_WITH_DIR },
	{ "sessions", WATCHED_WITH_DIR },
	{ "keys", WATCHED_WITH_DIR },
	{ "warder", WATCHED_DIR },
	/* whoever reaches one of these owns the host */
	{ "docker.sock", WATCHED_SOCKET },
	{ "containerd.sock", WATCHED_SOCKET },
	{ "crio.sock", WATCHED_SOCKET },
	{ "podman.sock", WATCHED_SOCKET },
	{ "buildkitd.sock", WATCHED_SOCKET },
	{ "dockershim.sock", WATCHED_SOCKET },
	{ "nri.sock", WATCHED_SOCKET },
	{ "cri-dockerd.sock", WATCHED_SOCKET },
	/* in /proc/sys, /sys and cgroups: whoever writes them has programs run by the host, or leaves */
	{ "core_pattern", WATCHED_STEERS },
	{ "core_pipe_limit", WATCHED_STEERS },
	{ "modprobe", WATCHED_STEERS },
	{ "hotplug", WATCHED_STEERS },
	{ "uevent_helper", WATCHED_STEERS },
	{ "poweroff_cmd", WATCHED_STEERS },
	{ "usermodehelper", WATCHED_STEERS },
	{ "sysrq", WATCHED_STEERS },
	{ "sysrq-trigger", WATCHED_STEERS },
	{ "binfmt_misc", WATCHED_STEERS },
	{ "release_agent", WATCHED_STEERS },
	{ "notify_on_release", WATCHED_STEERS },
	{ "cgroup.procs", WATCHED_STEERS },
	{ "cgroup.threads", WATCHED_STEERS },
	{ "cgroup.subtree_control", WATCHED_STEERS },
	{ "devices.allow", WATCHED_STEERS },
	{ "devices.deny", WATCHED_STEERS },
	/* doors to the machine, in /dev */
	{ "kvm", WATCHED_DEVICE },
	{ "mem", WATCHED_PROC_MEM }, /* /dev/mem too */
	{ "kmem", WATCHED_DEVICE },
	{ "port", WATCHED_DEVICE },
	{ "kmsg", WATCHED_DEVICE },
	{ "vhost-net", WATCHED_DEVICE },
	{ "vhost-vsock", WATCHED_DEVICE },
	{ "vfio", WATCHED_DEVICE },
	{ "loop-control", WATCHED_DEVICE },
	{ "fuse", WATCHED_DEVICE },
	{ "uinput", WATCHED_DEVICE },
	{ "nvram", WATCHED_DEVICE },
	{ "sda", WATCHED_DEVICE },
	{ "sda1", WATCHED_DEVICE },
	{ "vda", WATCHED_DEVICE },
	{ "vda1", WATCHED_DEVICE },
	{ "xvda", WATCHED_DEVICE },
	{ "nvme0n1", WATCHED_DEVICE },
	{ "nvme0n1p1", WATCHED_DEVICE },
	{ "dm-0", WATCHED_DEVICE },
};

int watched_fill(int map_fd, struct err *err)
{
	struct watched_key key;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		memset(&key, 0, sizeof(key));
		memcpy(key.name, names[i].name, strlen(names[i].name));
		if (bpf_map_update_elem(map_fd, &key, &names[i].class, BPF_ANY) < 0)
			return err_set(err, errno, "watched names: %m");
	}
	return 0;
}

static uint32_t class_of_name(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eqz(name, names[i].name))
			return names[i].class;
	return 0;
}

/* The last component of what `path` holds, which it loses. */
static struct str take_name(struct str *path)
{
	struct str name = { path->p + path->n, 0 };

	while (path->n && path->p[path->n - 1] != '/') {
		path->n--;
		name.p--;
		name.n++;
	}
	if (path->n)
		path->n--;
	return name;
}

uint32_t watched_class_of(struct str path)
{
	uint32_t class = class_of_name(take_name(&path));

	if (class != WATCHED_WITH_DIR)
		return class == WATCHED_DIR ? 0 : class;
	return class_of_name(take_name(&path)) == WATCHED_DIR ? WATCHED_FILE : 0;
}
