// SPDX-License-Identifier: Apache-2.0
/* Choosing, loading and attaching; families as `doctor` and `degraded` show them. */
#include "userspace/capture/hooks.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "userspace/capture/ktypes.h"
#include "warder.skel.h"

#define PROG(name) offsetof(struct warder, progs.name)

/* What is done at the end of a system call, by slot (bpf/lib/calls.bpf.h). */
struct handler {
	uint32_t slot;
	bool denied;		/* told of what seccomp refused, too */
	size_t prog[WAY_COUNT]; /* offsets in the skeleton */
	size_t after_seccomp;
};

#define HANDLER(slot, denied, name)                                                          \
	{                                                                                    \
		slot, denied, { PROG(name##_k), PROG(name##_f), PROG(name) }, PROG(name##_s) \
	}

static const struct handler handlers[] = {
	HANDLER(1, false, sys_open),  HANDLER(2, false, sys_file),   HANDLER(3, true, sys_net),
	HANDLER(4, true, sys_escape), HANDLER(5, true, sys_foreign), HANDLER(6, false, sys_exec),
	HANDLER(7, false, sys_limit), HANDLER(8, false, sys_write),  HANDLER(9, false, sys_close),
	HANDLER(10, false, sys_mmap),
};

/* Sends by sockets that were passed in: in front of them in the full tier, else at the end of the call. */
#define SLOT_SEND 11

/* Who hands over to them. */
static const struct {
	size_t prog;
	enum way way;
	uint32_t seen; /* bit that shows it fired */
	bool optional; /* a way is good without it */
} entries[] = {
	{ PROG(on_call_end), WAY_MULTI, SEEN_CALL_END, false },
	{ PROG(on_x64_call), WAY_FEXIT, SEEN_X64_CALL, false },
	{ PROG(on_ia32_call), WAY_FEXIT, SEEN_IA32_CALL, true },
	{ PROG(on_x32_call), WAY_FEXIT, SEEN_X64_CALL, true },
	{ PROG(on_sys_exit), WAY_TRACEPOINT, 0, false },
};

static const char *const way_text[WAY_COUNT] = {
	[WAY_MULTI] = "kretprobe.multi/__x64_sys_*, ia32_sys_call",
	[WAY_FEXIT] = "fexit/x64_sys_call, ia32_sys_call",
	[WAY_TRACEPOINT] = "tp_btf/sys_exit",
};

#define FAMILY_PROGS 9
#define FAMILY_SLOTS 6

/* Probe families: what has to be there for the family to work. */
struct family {
	const char *name;
	const char *hook; /* besides the system calls */
	bool vital;
	size_t progs[FAMILY_PROGS]; /* offsets; 0 ends them */
	size_t need;		    /* how many of them must be there */
	uint32_t slots[FAMILY_SLOTS];
};

static const struct family families[] = {
	{ "process",
	  "tp_btf/sched_process_exec, sched_process_exit",
	  true,
	  { PROG(on_exec), PROG(on_exit) },
	  2,
	  { 6 } },
	{ "lineage",
	  "tp_btf/task_newtask, cgroup_attach_task",
	  true,
	  { PROG(on_newtask), PROG(on_cgroup_attach) },
	  2,
	  { 0 } },
	{ "file", "", false, { 0 }, 0, { 1, 2, 8, 9, 10 } },
	{ "net",
	  "cgroup/connect4+6, sendmsg4+6, sock_create, sock_release, tp_btf/inet_sock_set_state",
	  false,
	  { PROG(on_connect4), PROG(on_connect6), PROG(on_sendmsg4), PROG(on_sendmsg6),
	    PROG(on_sock_state), PROG(on_sock_made), PROG(on_sock_release), PROG(on_sock_send),
	    PROG(sys_send) },
	  8, /* one of the last two */
	  { 3 } },
	{ "io_uring",
	  "tp_btf/io_uring_submit_req, io_uring_complete",
	  false,
	  { PROG(on_uring_req), PROG(on_uring_sqe), PROG(on_uring_done) },
	  2,
	  { 0 } },
	{ "dns",
	  "cgroup_skb/egress, ingress",
	  false,
	  { PROG(on_egress), PROG(on_ingress) },
	  2,
	  { 0 } },
	{ "oom", "tp_btf/mark_victim", false, { PROG(on_oom) }, 1, { 0 } },
	{ "limit", "", false, { 0 }, 0, { 7 } },
	{ "signal", "tp_btf/signal_generate", false, { PROG(on_signal) }, 1, { 0 } },
	{ "escape", "", false, { 0 }, 0, { 4, 5 } },
	{ "metadata",
	  "cgroup/connect4+6, cgroup/sendmsg4+6",
	  false,
	  { PROG(on_metadata_connect4), PROG(on_metadata_connect6), PROG(on_metadata_sendmsg4),
	    PROG(on_metadata_sendmsg6) },
	  4,
	  { 0 } },
};

static struct bpf_program *prog_at(const struct warder *skel, size_t offset)
{
	return *(struct bpf_program *const *)((const char *)skel + offset);
}

static const char *refusal(const struct hooks *h, const char *prog)
{
	for (size_t i = 0; i < h->refused_n; i++)
		if (strcmp(h->refused[i].prog, prog) == 0)
			return h->refused[i].why;
	return NULL;
}

static const char *refusal_at(const struct hooks *h, const struct warder *skel, size_t offset)
{
	return refusal(h, bpf_program__name(prog_at(skel, offset)));
}

/* Loaded and attached? */
static bool is_there(const struct hooks *h, const struct warder *skel, size_t offset)
{
	return bpf_program__fd(prog_at(skel, offset)) >= 0 && !refusal_at(h, skel, offset);
}

/* ---- what is wanted ---- */

static const struct {
	const char *name;
	bool may[WAY_COUNT];
} wishes[] = {
	{ "auto", { true, true, true } },	  { "portable", { false, false, true } },
	{ "full", { true, true, false } },	  { "full-multi", { true, false, false } },
	{ "full-fexit", { false, true, false } },
};

int hooks_init(struct hooks *h, struct err *err)
{
	const char *wish = getenv("WARDER_TIER");
	size_t i;
	int r;

	if (!wish || !*wish)
		wish = "auto";
	memset(h, 0, sizeof(*h));
	for (i = 0; i < ARRAY_SIZE(h->multi); i++)
		h->multi[i] = -1;
	for (i = 0; i < ARRAY_SIZE(wishes); i++)
		if (strcmp(wishes[i].name, wish) == 0)
			break;
	if (i == ARRAY_SIZE(wishes))
		return err_set(err, EINVAL,
			       "WARDER_TIER=%s: auto, portable, full, full-multi or full-fexit",
			       wish);
	memcpy(h->may, wishes[i].may, sizeof(h->may));
	h->may_prevent = h->may[WAY_MULTI] || h->may[WAY_FEXIT];
	snprintf(h->why_no_prevent, sizeof(h->why_no_prevent), "%s",
		 h->may_prevent ? "" : "not wanted (WARDER_TIER)");
	for (i = 0; i < WAY_COUNT; i++)
		if (!h->may[i])
			snprintf(h->why[i], sizeof(h->why[i]), "not wanted (WARDER_TIER=%s)", wish);
	r = ktypes_load(&h->types, err);
	if (r < 0)
		return r;
	ways_probe(h);
	return 0;
}

int hooks_refuse(struct hooks *h, struct warder *skel, const char *prog, const char *why)
{
	if (h->refused_n == HOOK_REFUSED_MAX || refusal(h, prog) ||
	    !bpf_object__find_program_by_name(skel->obj, prog))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		for (size_t j = 0; j < FAMILY_PROGS && families[i].progs[j]; j++)
			if (families[i].vital &&
			    strcmp(bpf_program__name(prog_at(skel, families[i].progs[j])), prog) ==
				    0)
				return -ENOENT;
	snprintf(h->refused[h->refused_n].prog, sizeof(h->refused[0].prog), "%s", prog);
	snprintf(h->refused[h->refused_n].why, sizeof(h->refused[0].why), "%s", why);
	h->refused_n++;
	return 0;
}

/* ---- choosing ---- */

static enum way way_of(const struct hooks *h, const struct warder *skel, const struct handler *row)
{
	for (enum way w = 0; w < WAY_COUNT; w++)
		if (h->may[w] && !refusal_at(h, skel, row->prog[w]))
			return w;
	return WAY_NONE;
}

static bool is_used(const struct hooks *h, const struct warder *skel, enum way way)
{
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (way_of(h, skel, &handlers[i]) == way)
			return true;
	return false;
}

/* On the tracepoint what seccomp refused shows by itself. */
static bool wants_seccomp(const struct hooks *h, const struct warder *skel,
			  const struct handler *row)
{
	enum way w = way_of(h, skel, row);

	return row->denied && (w == WAY_MULTI || w == WAY_FEXIT) &&
	       !refusal_at(h, skel, row->after_seccomp) && !refusal_at(h, skel, PROG(on_seccomp)) &&
	       ktypes_func(h->types, "__secure_computing") >= 0;
}

static bool sends_by_call(const struct hooks *h, const struct warder *skel)
{
	return way_of(h, skel, &handlers[2]) == WAY_TRACEPOINT; /* sys_net */
}

static void want(struct warder *skel, size_t offset, bool wanted)
{
	bpf_program__set_autoload(prog_at(skel, offset), wanted);
}

/* fmod_ret/security_*: refused before it happens. */
static const struct {
	size_t prog;
	const char *hook;
} prevention[] = {
	{ PROG(prevent_open), "security_file_open" },
	{ PROG(prevent_create), "security_path_mknod" },
	{ PROG(prevent_mkdir), "security_path_mkdir" },
	{ PROG(prevent_unlink), "security_path_unlink" },
	{ PROG(prevent_rmdir), "security_path_rmdir" },
	{ PROG(prevent_symlink), "security_path_symlink" },
	{ PROG(prevent_link), "security_path_link" },
	{ PROG(prevent_rename), "security_path_rename" },
	{ PROG(prevent_chmod), "security_path_chmod" },
	{ PROG(prevent_chown), "security_path_chown" },
	{ PROG(prevent_truncate), "security_path_truncate" },
	{ PROG(prevent_exec), "security_bprm_check" },
	{ PROG(prevent_mmap), "security_mmap_file" },
	{ PROG(prevent_connect), "security_socket_connect" },
	{ PROG(prevent_socket), "security_socket_create" },
};
_Static_assert(ARRAY_SIZE(prevention) == HOOK_PREVENT_MAX, "share.c has a link for each");

struct bpf_program *hooks_prevention(const struct hooks *h, const struct warder *skel, size_t i)
{
	if (i >= ARRAY_SIZE(prevention) || refusal_at(h, skel, prevention[i].prog) ||
	    bpf_program__fd(prog_at(skel, prevention[i].prog)) < 0)
		return NULL;
	return prog_at(skel, prevention[i].prog);
}

static bool prevents(const struct warder *skel, const struct bpf_program *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(prevention); i++)
		if (prog_at(skel, prevention[i].prog) == p)
			return true;
	return false;
}

/* Who says what a name led to: programs that are there anyway, else one on all hooks together. */
static enum names_mode choose_names(const struct hooks *h, const struct warder *skel)
{
	enum way w = way_of(h, skel, &handlers[1]); /* sys_file */

	/* Without kprobe.multi (6.1) there is nobody: seen not to note anything there. */
	if (w != WAY_MULTI || !h->may[WAY_MULTI])
		return NAMES_NOBODY;
	/* Shared ones that prevent come and go. */
	if (h->may_prevent && skel->rodata->enforce_mode != ENFORCE_MODE_OFF &&
	    !skel->rodata->shared)
		return NAMES_PREVENT;
	return refusal_at(h, skel, PROG(on_name)) ? NAMES_NOBODY : NAMES_MULTI;
}

static void choose_prevention(struct hooks *h, struct warder *skel)
{
	bool wanted = skel->rodata->enforce_mode != ENFORCE_MODE_OFF;

	for (size_t i = 0; i < ARRAY_SIZE(prevention); i++)
		want(skel, prevention[i].prog,
		     wanted && h->may_prevent && ktypes_func(h->types, prevention[i].hook) >= 0);
}

/* Only where something is to be enforced. What cannot be prevented is killed when its call ends. */
static void prevention_family(const struct hooks *h, const struct warder *skel, struct capture *c)
{
	struct capture_family_state *s = &c->families[c->families_n];
	size_t missing = 0;

	if (skel->rodata->enforce_mode == ENFORCE_MODE_OFF)
		return;
	*s = (struct capture_family_state){ .name = "prevent", .tier = "full", .ok = true };
	snprintf(s->hook, sizeof(s->hook),
		 "fmod_ret/security_file_open, path_*, bprm_check, mmap_file, socket_*");
	for (size_t i = 0; i < ARRAY_SIZE(prevention); i++) {
		const char *why = refusal_at(h, skel, prevention[i].prog);

		if (!why && bpf_program__fd(prog_at(skel, prevention[i].prog)) >= 0)
			continue;
		missing++;
		snprintf(s->detail, sizeof(s->detail), "%s: %.120s", prevention[i].hook,
			 why		      ? why
			 : *h->why_no_prevent ? h->why_no_prevent
					      : "not in this kernel");
	}
	if (missing == ARRAY_SIZE(prevention)) {
		s->tier = "portable";
		snprintf(s->hook, sizeof(s->hook),
			 "cgroup/connect, sendmsg, sock_create, dev, sysctl; others are killed");
		snprintf(s->detail, sizeof(s->detail), "%s", h->why_no_prevent);
		s->ok = h->may_prevent || *h->why_no_prevent;
	} else {
		s->ok = missing == 0;
	}
	c->families_n++;
}

void hooks_choose(struct hooks *h, struct warder *skel)
{
	bool seccomp = false;

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		const struct handler *row = &handlers[i];
		enum way mine = way_of(h, skel, row);

		for (enum way w = 0; w < WAY_COUNT; w++)
			want(skel, row->prog[w], w == mine);
		want(skel, row->after_seccomp, wants_seccomp(h, skel, row));
		seccomp |= wants_seccomp(h, skel, row);
	}
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		want(skel, entries[i].prog,
		     is_used(h, skel, entries[i].way) && !refusal_at(h, skel, entries[i].prog));
	skel->rodata->has_x32 = ktypes_func(h->types, "x32_sys_call") >= 0;
	if (!skel->rodata->has_x32)
		want(skel, PROG(on_x32_call), false);
	want(skel, PROG(on_seccomp), seccomp);
	want(skel, PROG(on_first_run),
	     (is_used(h, skel, WAY_MULTI) || is_used(h, skel, WAY_FEXIT)) &&
		     ktypes_func(h->types, "schedule_tail") >= 0);
	skel->rodata->sends_by_call = sends_by_call(h, skel);
	want(skel, PROG(sys_send), sends_by_call(h, skel));
	want(skel, PROG(on_sock_send), !sends_by_call(h, skel));
	if (!sends_by_call(h, skel)) {
		want(skel, PROG(on_passed_get), false);
		want(skel, PROG(on_passed_req), false);
		want(skel, PROG(on_passed_sqe), false);
	}
	skel->rodata->names_mode = choose_names(h, skel);
	want(skel, PROG(on_name), skel->rodata->names_mode == NAMES_MULTI);
	choose_prevention(h, skel);
	for (size_t i = 0; i < h->refused_n; i++)
		bpf_program__set_autoload(
			bpf_object__find_program_by_name(skel->obj, h->refused[i].prog), false);
}

/* ---- attaching ---- */

static int put(struct bpf_map *table, uint32_t slot, int fd, struct err *err)
{
	if (bpf_map_update_elem(bpf_map__fd(table), &slot, &fd, BPF_ANY) < 0)
		return err_set(err, errno, "probe table: %m");
	return 0;
}

static int fill_tables(struct hooks *h, struct warder *skel, struct err *err)
{
	struct bpf_map *tables[WAY_COUNT] = {
		[WAY_MULTI] = skel->maps.handlers_k,
		[WAY_FEXIT] = skel->maps.handlers_f,
		[WAY_TRACEPOINT] = skel->maps.handlers,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(handlers); i++) {
		const struct handler *row = &handlers[i];
		enum way w = way_of(h, skel, row);

		if (w == WAY_NONE)
			continue;
		r = put(tables[w], row->slot, bpf_program__fd(prog_at(skel, row->prog[w])), err);
		if (r == 0 && wants_seccomp(h, skel, row))
			r = put(skel->maps.handlers_s, row->slot,
				bpf_program__fd(prog_at(skel, row->after_seccomp)), err);
	}
	if (r == 0 && is_there(h, skel, PROG(sys_send)))
		r = put(skel->maps.handlers, SLOT_SEND, bpf_program__fd(skel->progs.sys_send), err);
	return r;
}

static bool is_handler(const struct warder *skel, const struct bpf_program *p)
{
	if (p == skel->progs.sys_send)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		for (enum way w = 0; w < WAY_COUNT; w++)
			if (prog_at(skel, handlers[i].prog[w]) == p)
				return true;
		if (prog_at(skel, handlers[i].after_seccomp) == p)
			return true;
	}
	return false;
}

static int attach_one(struct hooks *h, struct bpf_program *p)
{
	bool slow = bpf_program__expected_attach_type(p) != BPF_TRACE_RAW_TP;
	size_t *n = slow ? &h->slow_n : &h->links_n;
	struct bpf_link *l;

	if (*n == HOOK_LINKS_MAX)
		return -E2BIG;
	l = bpf_program__attach(p);
	if (!l)
		return -errno;
	(slow ? h->slow : h->links)[(*n)++] = l;
	return 0;
}

/* What is found wanting here is not chosen again; what only this program did is lost. */
static int attach_tracing(struct hooks *h, struct warder *skel, struct err *err)
{
	struct bpf_program *p;
	int r;

	bpf_object__for_each_program(p, skel->obj)
	{
		if (bpf_program__fd(p) < 0 || bpf_program__type(p) != BPF_PROG_TYPE_TRACING ||
		    is_handler(skel, p) || p == skel->progs.on_sys_exit) /* watch.c */
			continue;
		if (skel->rodata->shared && prevents(skel, p)) /* share.c */
			continue;
		r = attach_one(h, p);
		if (r == 0)
			continue;
		if (hooks_refuse(h, skel, bpf_program__name(p), "attach failed") < 0)
			return err_set(err, r, "attaching %s: %s", bpf_program__name(p),
				       strerror(-r));
		snprintf(h->refused[h->refused_n - 1].why, HOOK_TEXT_MAX, "attach: %s",
			 strerror(-r));
	}
	return 0;
}

/* Ways that were attached have to show that they fire. */
static bool all_fire(struct hooks *h, struct warder *skel)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile struct hook_seen *seen;
	uint32_t hooks;
	bool good = true;

	seen = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(skel->maps.seen),
		    0);
	if (seen == MAP_FAILED)
		return true;
	seen->armed = 1;
	ways_trigger();
	seen->armed = 0;
	hooks = seen->hooks;
	munmap((void *)(uintptr_t)seen, page);
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		enum way w = entries[i].way;

		if (w == WAY_TRACEPOINT || entries[i].optional || !is_used(h, skel, w) ||
		    hooks >> entries[i].seen & 1)
			continue;
		h->may[w] = false;
		snprintf(h->why[w], sizeof(h->why[w]), "%s: attaches but never fires", way_text[w]);
		good = false;
	}
	if (bpf_program__fd(skel->progs.on_seccomp) >= 0 && !(hooks >> SEEN_SECCOMP & 1))
		hooks_refuse(h, skel, "on_seccomp", "attaches but never fires");
	return good;
}

int hooks_attach(struct hooks *h, struct warder *skel, struct err *err)
{
	bool full = is_used(h, skel, WAY_MULTI) || is_used(h, skel, WAY_FEXIT);
	int r;

	r = fill_tables(h, skel, err);
	if (r < 0)
		return r;
	r = attach_tracing(h, skel, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		if (refusal_at(h, skel, entries[i].prog) && !entries[i].optional &&
		    h->may[entries[i].way]) {
			h->may[entries[i].way] = false;
			snprintf(h->why[entries[i].way], HOOK_TEXT_MAX, "%s",
				 refusal_at(h, skel, entries[i].prog));
			return -EAGAIN;
		}
	if (is_used(h, skel, WAY_MULTI)) {
		struct err why = { 0 };

		if (ways_attach_multi(h, bpf_program__fd(skel->progs.on_call_end),
				      skel->rodata->enforce_mode == ENFORCE_MODE_SENTENCE,
				      &why) < 0) {
			h->may[WAY_MULTI] = false;
			snprintf(h->why[WAY_MULTI], HOOK_TEXT_MAX, "%.*s", HOOK_TEXT_MAX - 1,
				 err_text(&why));
			return -EAGAIN;
		}
	}
	if (skel->rodata->names_mode == NAMES_MULTI) {
		struct err why = { 0 };

		if (ways_attach_names(h, bpf_program__fd(skel->progs.on_name), &why) < 0) {
			hooks_refuse(h, skel, "on_name", err_text(&why));
			return -EAGAIN;
		}
	}
	if (full && !all_fire(h, skel))
		return -EAGAIN;
	return 0;
}

/* ---- families ---- */

/* Why a better way than `way` does not serve this handler. */
static const char *why_not_better(const struct hooks *h, const struct warder *skel,
				  const struct handler *row, enum way way)
{
	for (enum way w = 0; w < way && w < WAY_COUNT; w++) {
		const char *why = refusal_at(h, skel, row->prog[w]);

		if (why)
			return why;
	}
	return way == WAY_MULTI ? "" : h->why[way == WAY_FEXIT ? WAY_MULTI : WAY_FEXIT];
}

static bool sees_refused(const struct hooks *h, const struct warder *skel,
			 const struct handler *row)
{
	return way_of(h, skel, row) == WAY_TRACEPOINT || wants_seccomp(h, skel, row);
}

static void family_slots(const struct hooks *h, const struct warder *skel, const struct family *f,
			 struct capture_family_state *s, enum way *ret_worst)
{
	enum way worst = WAY_MULTI;
	bool denied = true;

	for (size_t i = 0; i < FAMILY_SLOTS && f->slots[i]; i++)
		for (size_t j = 0; j < ARRAY_SIZE(handlers); j++) {
			const struct handler *row = &handlers[j];
			enum way w = way_of(h, skel, row);

			if (row->slot != f->slots[i])
				continue;
			denied &= !row->denied || sees_refused(h, skel, row);
			if (w < worst || w == WAY_MULTI)
				continue;
			worst = w;
			if (s->ok) /* else it says already what is missing */
				snprintf(s->detail, sizeof(s->detail), "%s",
					 why_not_better(h, skel, row, w));
		}
	s->ok &= worst != WAY_NONE && denied;
	if (!denied && worst != WAY_NONE)
		snprintf(s->detail, sizeof(s->detail), "calls that seccomp refuses are not seen");
	*ret_worst = worst;
}

/* Of the family of files. */
static const char *const names_text[] = {
	[NAMES_NOBODY] = "",
	[NAMES_MULTI] = ", kprobe.multi/security_path_*",
	[NAMES_PREVENT] = ", fmod_ret/security_path_*",
};

void hooks_families(const struct hooks *h, struct capture *c)
{
	const struct warder *skel = c->skel;

	c->refused_unseen = !sees_refused(h, skel, &handlers[3]); /* sys_escape */
	c->sockets_unseen = !sees_refused(h, skel, &handlers[2]); /* sys_net */
	c->families_n = 0;
	c->full = true;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		const struct family *f = &families[i];
		struct capture_family_state *s = &c->families[c->families_n];
		enum way way = WAY_NONE;
		size_t found = 0;

		*s = (struct capture_family_state){ .name = f->name, .ok = true, .tier = "common" };
		for (size_t j = 0; j < FAMILY_PROGS && f->progs[j]; j++) {
			const char *why = refusal_at(h, skel, f->progs[j]);

			found += is_there(h, skel, f->progs[j]);
			if (why)
				snprintf(s->detail, sizeof(s->detail), "%s", why);
		}
		if (found < f->need) {
			s->ok = false;
			if (!s->detail[0])
				snprintf(s->detail, sizeof(s->detail),
					 "this kernel has no such hook");
		}
		if (f->progs[0] == PROG(on_uring_req) && !s->detail[0] &&
		    !is_there(h, skel, PROG(on_uring_cqe)) &&
		    !is_there(h, skel, PROG(on_uring_res)))
			snprintf(s->detail, sizeof(s->detail), "accepts by io_uring are not seen");
		if (f->slots[0])
			family_slots(h, skel, f, s, &way);
		if (f->slots[0] && way != WAY_NONE)
			s->tier = way == WAY_TRACEPOINT ? "portable" : "full";
		c->full &= !f->slots[0] || (way != WAY_NONE && way != WAY_TRACEPOINT);
		snprintf(s->hook, sizeof(s->hook), "%s%s%s%s", way != WAY_NONE ? way_text[way] : "",
			 way < WAY_TRACEPOINT && bpf_program__fd(skel->progs.on_seccomp) >= 0
				 ? ", fexit/__secure_computing"
				 : "",
			 way != WAY_NONE && *f->hook ? ", " : "",
			 f->slots[0] == 1 ? names_text[skel->rodata->names_mode] : f->hook);
		c->families_n++;
	}
	prevention_family(h, skel, c);
}
