// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/privdrop.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "userspace/base/auto.h"

#define ENGINE_ID 0x6ffffff0u
#define CAP_SCAN  64

void engine_ids(uid_t *ret_uid, gid_t *ret_gid)
{
	const struct passwd *pw = getpwnam("warder");

	*ret_uid = pw ? pw->pw_uid : ENGINE_ID;
	*ret_gid = pw ? pw->pw_gid : ENGINE_ID;
}

/* `kept`: bits of capabilities below 32. */
static int drop_capabilities(uint32_t kept)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { .effective = kept, .permitted = kept } };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

int privdrop(uid_t uid, gid_t gid, struct err *err)
{
	return privdrop_keep(uid, gid, 0, err);
}

int privdrop_keep(uid_t uid, gid_t gid, uint32_t kept, struct err *err)
{
	const struct rlimit no_core = { 0, 0 };
	int r;

	if (uid == 0 || gid == 0)
		return err_set(err, EINVAL, "engine must not run as root");
	/* Bounding set first: it needs CAP_SETPCAP. A number past the last capability is EINVAL. */
	for (int cap = 0; cap < CAP_SCAN; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return err_set(err, errno, "dropping capability %d: %m", cap);
	if (kept && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "keeping a capability: %m");
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_set(err, errno, "becoming user %u: %m", uid);
	r = drop_capabilities(kept);
	if (r < 0)
		return err_set(err, r, "dropping capabilities: %m");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_set(err, errno, "locking the engine down: %m");
	if (setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || getuid() != uid || geteuid() != uid)
		return err_set(err, EPERM, "root could be regained");
	return 0;
}
