// SPDX-License-Identifier: Apache-2.0
/* A payload's output and terminal, within a session. */
#include "userspace/pipeline/run_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "userspace/base/fd.h"
#include "userspace/pipeline/run.h"

#define OUTPUT_WAIT_MS 5000 /* for a reader that takes nothing, once all is over */

bool run_hear_console(struct run *run)
{
	switch (console_event(run->console)) {
	case CONSOLE_INTERRUPT:
		if (!run_ends_stopped(run, SIGINT))
			break;
		sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
		return true;
	case CONSOLE_GONE:
		sandbox_signal(run->sandbox, SIGHUP);
		break;
	case CONSOLE_NOTHING:
		break;
	}
	return false;
}

void run_take_output(struct run *run)
{
	struct run_facts *facts = &run->result->facts;
	struct relay_counts counts;

	if (run->console)
		console_stop(run->console);
	if (!run->relay)
		return;
	relay_finish(run->relay, OUTPUT_WAIT_MS, &counts);
	facts->stdout_bytes = counts.out;
	facts->stderr_bytes = counts.err;
	facts->truncated = counts.cut;
	console_free(take_ptr(run->console), facts->signal != 0);
}

int run_open_output(struct run *run, int stdio[3], struct err *err)
{
	uint64_t cap = run->opt->output_max ? run->opt->output_max : RELAY_ALL;

	stdio[0] = STDIN_FILENO;
	if (!run->spec.tty && run_has_first(run) && run->opt->stderr_fd)
		return relay_new_on(&run->relay, cap,
				    (const int[]){ STDOUT_FILENO, run->opt->stderr_fd }, stdio + 1,
				    err);
	if (!run->spec.tty && run_has_first(run))
		return relay_new(&run->relay, cap, stdio + 1, err);
	run->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (run->null_fd < 0)
		return err_set(err, errno, "'/dev/null': %m");
	stdio[0] = stdio[1] = stdio[2] = run->null_fd;
	if (!run_has_first(run))
		return 0;
	return relay_new_tty(&run->relay, cap, err);
}

/* The payload runs: its terminal and ours become one. */
static int start_output(struct run *run, struct err *err)
{
	int record = run->output_fds[0], r = 0;
	struct console_options co = {
		.in = STDIN_FILENO,
		.master = sandbox_tty_fd(run->sandbox),
		.copy = record,
		.record_input = run->opt->input_recorded,
	};

	if (!run_has_first(run))
		return 0;
	if (run->spec.tty)
		r = console_start(&run->console, &co, err);
	if (r == 0 && run->spec.tty)
		r = relay_tty(run->relay, co.master, err);
	if (r == 0 && record >= 0)
		relay_copy_to(run->relay, take_fd(run->output_fds[0]));
	return r < 0 ? r : relay_start(run->relay, err);
}

int run_connect_output(struct run *run, struct err *err)
{
	if (run->connected || (run->spec.tty && run_has_first(run) &&
			       (!run_has_begun(run) || sandbox_tty_fd(run->sandbox) < 0)))
		return 0;
	run->connected = true;
	return start_output(run, err);
}
