// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/evidence.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/event/event.h"
#include "userspace/pipeline/trail.h"
#include "userspace/store/format.h"
#include "userspace/store/hostlog.h"
#include "userspace/store/manifest.h"

#define BIT(p) (1u << PROOF_##p)

const struct requirement requirements[] = {
	{ "PCI DSS 4.0", "10.2.1", "audit logs are active for system components",
	  BIT(RECORDED) | BIT(COMPLETE) },
	{ "PCI DSS 4.0", "10.2.2", "each entry: user, type, time, outcome, origin, resource",
	  BIT(RECORDED) },
	{ "PCI DSS 4.0", "10.3.1", "read access to logs is limited and known", BIT(ACCESS) },
	{ "PCI DSS 4.0", "10.3.2", "logs are protected against modification", BIT(INTACT) },
	{ "PCI DSS 4.0", "10.4.1", "logs are reviewed", BIT(REVIEWED) },
	{ "PCI DSS 4.0", "10.5.1", "logs are retained", BIT(RETAINED) },
	{ "PCI DSS 4.0", "10.6.1", "clocks are synchronised", BIT(TIME) },
	{ "PCI DSS 4.0", "10.7.2", "failures of the audit itself are detected", BIT(COMPLETE) },
	{ "SOC 2", "CC7.2", "components are monitored for anomalies",
	  BIT(WATCHED) | BIT(COMPLETE) },
	{ "SOC 2", "CC7.3", "security events are evaluated", BIT(REVIEWED) },
	{ "SOC 2", "CC7.4", "incidents are responded to", BIT(WATCHED) },
	{ "ISO 27001:2022", "A.8.15", "logs are produced, kept, protected and analysed",
	  BIT(RECORDED) | BIT(INTACT) | BIT(RETAINED) },
	{ "ISO 27001:2022", "A.8.16", "activities are monitored for anomalous behaviour",
	  BIT(WATCHED) },
	{ "HIPAA", "164.312(b)", "activity in information systems is recorded and examined",
	  BIT(RECORDED) | BIT(REVIEWED) },
	{ "EU AI Act", "Art. 12", "events are recorded automatically over the system's lifetime",
	  BIT(RECORDED) | BIT(COMPLETE) },
	{ "EU AI Act", "Art. 19", "automatically generated logs are kept",
	  BIT(RETAINED) | BIT(INTACT) },
};

const size_t requirements_n = ARRAY_SIZE(requirements);

const char *proof_kind_name(enum proof_kind k)
{
	static const char *const names[] = {
		[PROOF_RECORDED] = "recorded", [PROOF_COMPLETE] = "complete",
		[PROOF_INTACT] = "intact",     [PROOF_TIME] = "time",
		[PROOF_WATCHED] = "watched",   [PROOF_REVIEWED] = "reviewed",
		[PROOF_RETAINED] = "retained", [PROOF_ACCESS] = "access",
	};

	return names[k];
}

const char *proof_state_name(enum proof_state s)
{
	static const char *const names[] = { "shown", "partly", "missing" };

	return names[s];
}

enum proof_state requirement_state(const struct requirement *r,
				   const struct proof proofs[PROOF_COUNT])
{
	enum proof_state worst = PROOF_SHOWN;

	for (unsigned i = 0; i < PROOF_COUNT; i++)
		if (r->proofs >> i & 1)
			worst = MAX(worst, proofs[i].state);
	return worst;
}

__attribute__((format(printf, 3, 4))) static void set(struct proof *p, enum proof_state state,
						      const char *fmt, ...)
{
	va_list ap;

	p->state = state;
	va_start(ap, fmt);
	vsnprintf(p->text, sizeof(p->text), fmt, ap);
	va_end(ap);
}

/* ---- the record ---- */

static uint64_t number(struct str object, const char *key)
{
	struct str v;
	uint64_t n;

	return scan_find(object, key, &v) && scan_u64(v, &n) ? n : 0;
}

static struct str text(struct str object, const char *key)
{
	struct str v, s;

	return scan_find(object, key, &v) && scan_string(v, &s) ? s : (struct str){ 0 };
}

static unsigned length(struct str object, const char *key)
{
	struct str list, v;
	unsigned n = 0;

	if (!scan_find(object, key, &list))
		return 0;
	for (struct scan s = scan_of(list); scan_element(&s, &v);)
		n++;
	return n;
}

/* What the sandbox did, and not what warder says of itself (bpf/abi/wire.h: ids below 0x4000). */
static bool is_act(struct str name)
{
	const struct kind_def *k = event_kind_by_name(name);

	return k && k->id < 0x4000;
}

static void prove_recorded(struct proof *p, const struct verify_report *rep, struct str sum)
{
	struct str kinds, name, count;
	unsigned long long acts = 0, others = 0;
	unsigned n = 0;

	if (!sum.n) {
		set(p, rep->records ? PROOF_PARTLY : PROOF_MISSING,
		    "%llu records; no seal states their kinds", (unsigned long long)rep->records);
		return;
	}
	if (scan_find(sum, "by_kind", &kinds))
		for (struct scan s = scan_of(kinds); scan_member(&s, &name, &count);) {
			bool act = is_act(name);
			uint64_t v = 0;

			scan_u64(count, &v);
			n += act;
			*(act ? &acts : &others) += v;
		}
	set(p, acts ? PROOF_SHOWN : PROOF_MISSING,
	    "%llu acts of %u kinds, each with process, user, time, outcome and object; %llu records of warder's own "
	    "(start, end, verdicts, losses)",
	    acts, n, others);
}

static void prove_complete(struct proof *p, const struct verify_report *rep, struct str sum)
{
	unsigned degraded = length(sum, "degraded"), gaps = length(sum, "gaps");

	if (!sum.n || rep->state == VERIFY_OPEN || rep->state == VERIFY_ALTERED)
		set(p, PROOF_MISSING, "the record has no sealed statement of what it covers");
	else
		set(p, degraded || rep->gaps ? PROOF_PARTLY : PROOF_SHOWN,
		    "%llu events lost, in %u gaps with their bounds; %u probes degraded, by name",
		    (unsigned long long)rep->gaps, gaps, degraded);
}

static void prove_intact(struct proof *p, const struct verify_report *rep)
{
	bool whole = rep->state == VERIFY_OK || rep->state == VERIFY_GAPS;

	set(p,
	    !whole	      ? PROOF_MISSING
	    : rep->is_trusted ? PROOF_SHOWN
			      : PROOF_PARTLY,
	    "%s%s", rep->text,
	    whole && rep->is_signed && !rep->is_trusted ? "; give the host's key with --key" : "");
}

static void prove_time(struct proof *p, struct str sum)
{
	struct str clock = { 0 }, synced = { 0 }, source;

	scan_find(sum, "clock", &clock);
	scan_find(clock, "synced", &synced);
	source = text(clock, "source");
	if (!synced.n)
		set(p, PROOF_MISSING, "the record does not say how the clock was kept");
	else
		set(p, str_eqz(synced, "true") ? PROOF_SHOWN : PROOF_PARTLY,
		    "one monotonic clock (%.*s) for all events; the host's time was%s synchronised when it began",
		    (int)MIN(source.n, (size_t)32), source.n ? source.p : "",
		    str_eqz(synced, "true") ? "" : " not");
}

static void prove_watched(struct proof *p, struct str sum)
{
	unsigned sets = length(sum, "rules");

	if (!sum.n) {
		set(p, PROOF_MISSING, "no seal states which rules judged it");
		return;
	}
	set(p, sets ? PROOF_SHOWN : PROOF_MISSING,
	    "judged by %u rule set%s (by hash in the record); %llu alerts, %llu actions", sets,
	    sets == 1 ? "" : "s", (unsigned long long)number(sum, "alerts"),
	    (unsigned long long)number(sum, "actions"));
}

/* ---- the host log ---- */

struct logged {
	const char *id, *head;
	bool began, ended, same, held;
	uint64_t reviews, accesses;
	char verdict[24], who[64], when[32];
};

static void copy(char *d, size_t size, struct str s)
{
	snprintf(d, size, "%.*s", (int)MIN(s.n, size - 1), s.n ? s.p : "");
}

static int read_line(void *arg, const struct hostlog_line *l)
{
	struct logged *x = arg;
	bool same;

	if (!str_eqz(l->session, x->id))
		return 0;
	same = str_eqz(text(l->data, "head"), x->head);
	if (str_eqz(l->kind, "start")) {
		x->began = true;
	} else if (str_eqz(l->kind, "session")) {
		x->ended = true;
		x->same = same;
	} else if (str_eqz(l->kind, "access")) {
		x->accesses++;
	} else if (str_eqz(l->kind, "hold") || str_eqz(l->kind, "release")) {
		x->held = str_eqz(l->kind, "hold");
	} else if (str_eqz(l->kind, "review") && same && l->is_signed) {
		x->reviews++;
		copy(x->verdict, sizeof(x->verdict), text(l->data, "verdict"));
		copy(x->who, sizeof(x->who), l->who);
		copy(x->when, sizeof(x->when), l->time);
	}
	return 0;
}

static int prove_by_log(struct proof proofs[PROOF_COUNT], struct logged *x,
			const struct verify_options *keys, struct err *err)
{
	struct hostlog_report rep = { 0 };
	auto_close int dirfd = -1;
	int r = trail_open(&dirfd, err);

	if (r == 0)
		r = hostlog_walk(dirfd, keys, read_line, x, &rep, err);
	/* A reviewer has the bundle and the key; this host's log need be neither his nor his to read. */
	if (r < 0 && r != -ENOENT && r != -EACCES)
		return r;
	*err = (struct err){ 0 };
	if (r == 0 && !rep.good) {
		for (unsigned i = PROOF_REVIEWED; i < PROOF_COUNT; i++)
			set(&proofs[i], PROOF_MISSING, "host log: %s", rep.text);
		return 0;
	}
	if (x->reviews)
		set(&proofs[PROOF_REVIEWED], PROOF_SHOWN,
		    "%llu signed review%s of this record; the last: %s, %s, %s",
		    (unsigned long long)x->reviews, x->reviews == 1 ? "" : "s", x->verdict, x->who,
		    x->when);
	else
		set(&proofs[PROOF_REVIEWED], PROOF_MISSING,
		    "nobody has signed a review of this record: warder review");
	if (x->ended)
		set(&proofs[PROOF_RETAINED], x->same ? PROOF_SHOWN : PROOF_MISSING,
		    x->same ? "its end is in the chain of the host log (%llu entries)%s"
			    : "the host log (%llu entries) tells of another end%s",
		    (unsigned long long)rep.entries, x->held ? "; it is held" : "");
	else if (x->began)
		set(&proofs[PROOF_RETAINED], PROOF_PARTLY,
		    "its beginning is in the chain of the host log, its end is not: it runs, or warder was "
		    "killed");
	else
		set(&proofs[PROOF_RETAINED], PROOF_MISSING, "this host's log does not know it");
	set(&proofs[PROOF_ACCESS], x->began || x->ended ? PROOF_SHOWN : PROOF_MISSING,
	    "readable by root and the engine's user; read %llu time%s, by whom is in the host log",
	    (unsigned long long)x->accesses, x->accesses == 1 ? "" : "s");
	return 0;
}

int evidence_collect(struct proof ret[PROOF_COUNT], int bundle_fd, const char *id,
		     const struct verify_options *keys, struct verify_report *rep, struct err *err)
{
	struct logged logged = { .id = id, .head = rep->head };
	auto_buf struct buf manifest = { 0 };
	struct str sum = { 0 };
	int r = store_verify_signed(bundle_fd, keys, rep, NULL, NULL, err);

	if (r < 0)
		return r;
	if (id[0] && strcmp(id, rep->session) != 0) {
		rep->state = VERIFY_ALTERED;
		snprintf(rep->text, sizeof(rep->text), "in its place lies session %s",
			 rep->session);
	}
	buf_init(&manifest, MANIFEST_MAX);
	/* What verify accepted is bound by the seal; what it did not is nobody's statement. */
	if ((rep->state == VERIFY_OK || rep->state == VERIFY_GAPS) &&
	    manifest_load(bundle_fd, &manifest) == 0)
		scan_find((struct str){ manifest.p, manifest.n }, "summary", &sum);
	if (!id[0])
		logged.id = rep->session;
	prove_recorded(&ret[PROOF_RECORDED], rep, sum);
	prove_complete(&ret[PROOF_COMPLETE], rep, sum);
	prove_intact(&ret[PROOF_INTACT], rep);
	prove_time(&ret[PROOF_TIME], sum);
	prove_watched(&ret[PROOF_WATCHED], sum);
	return prove_by_log(ret, &logged, keys, err);
}
