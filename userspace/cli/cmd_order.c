// SPDX-License-Identifier: Apache-2.0
/* approve, deny, freeze, thaw, kill: what an operator says to a running session (control.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/control.h"
#include "userspace/pipeline/hold.h"
#include "userspace/pipeline/run_status.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

struct order_args {
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct order_args, json), NULL,
	  "one JSON object: what was done, or why not" },
	{ "help", 'h', OPT_FLAG, offsetof(struct order_args, help), NULL, "this text" },
	{ 0 },
};

struct verb {
	const char *name, *usage, *purpose;
	const char *behalf; /* whom an agent asks for; NULL */
	bool question;	    /* takes the id of one, else a session */
};

/* A session by the whole id, its first or last characters (four at least), or a question's id. */
static bool is_meant(const char *session, const char *word, const struct verb *verb)
{
	size_t n = strlen(word), len = strlen(session);
	uint32_t id;

	if (verb->question)
		return hold_name_parse(word, session, &id);
	return n >= 4 && n <= len &&
	       (!strncasecmp(session, word, n) || !strcasecmp(session + len - n, word));
}

static int find(int *ret_fd, char *ret_name, size_t size, const char *word, const struct verb *verb,
		struct err *err)
{
	auto_close int sessions = -1;
	auto_dir DIR *dir = NULL;
	char path[4096];
	struct dirent *de;
	int n = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/sessions", run_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	dir = opendir(path);
	sessions = open(path, DIR_FLAGS);
	if ((!dir || sessions < 0) && errno != ENOENT)
		return err_set(err, errno, "'%s': %m", path);
	while (dir && (de = readdir(dir))) {
		if (de->d_name[0] == '.' || !is_meant(de->d_name, word, verb))
			continue;
		snprintf(ret_name, size, "%s", de->d_name);
		n++;
	}
	if (n > 1)
		return err_set(err, EINVAL, "'%s' could be %d sessions", word, n);
	if (!n)
		return err_set(err, ENOENT, "no running session has the %s '%s' (warder status)",
			       verb->question ? "question" : "id", word);
	*ret_fd = openat(sessions, ret_name, DIR_FLAGS);
	return *ret_fd < 0 ? err_set(err, errno, "session '%s': %m", ret_name) : 0;
}

/* *ret: what the session says; CONTROL_TEXT bytes. */
static int ask_text(const struct verb *verb, const char *word, char *ret, struct err *err)
{
	struct control_answer answer = { 0 };
	char session[256], request[CONTROL_TEXT];
	struct registry_entry named;
	auto_close int fd = -1;
	int r;

	if (!verb->question && registry_find(&named, word, NULL, NULL) == 0)
		word = named.session; /* a name of the agent's */
	r = find(&fd, session, sizeof(session), word, verb, err);
	if (r < 0)
		return r;
	if ((size_t)snprintf(request, sizeof(request), "%s%s%s", verb->name,
			     verb->question ? " "
			     : verb->behalf ? " for "
					    : "",
			     verb->question ? word
			     : verb->behalf ? verb->behalf
					    : "") >= sizeof(request))
		return err_set(err, EINVAL, "'%s': too long", word);
	r = control_ask(fd, request, &answer);
	if (r == -EPIPE || r == -ECONNRESET || r == -ECONNREFUSED || r == -ENOENT)
		return err_set(err, ESRCH,
			       "session %s has ended or is just ending: '%s' was not done", session,
			       verb->name);
	if (r < 0)
		return err_set(err, r, "session %s does not answer: %s", session, strerror(-r));
	/* From a process that may have been taken over. */
	for (char *p = answer.text; *p; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			*p = '?';
	if (answer.result < 0)
		return err_set(err, answer.result, "session %s: %s", session, answer.text);
	snprintf(ret, CONTROL_TEXT, "session %.40s: %.200s", session, answer.text);
	return 0;
}

/* `quiet`: nothing on stdout. */
static int ask(const struct verb *verb, const char *word, bool quiet, struct err *err)
{
	char text[CONTROL_TEXT];
	int r = ask_text(verb, word, text, err);

	if (r == 0 && !quiet)
		printf("%s\n", text);
	return r;
}

int order_give(const char *order, const char *session, const char *who, char *ret_text,
	       struct err *err)
{
	const struct verb v = { order, "", "", who, false };

	return ask_text(&v, session, ret_text, err);
}

static int run_json(const struct verb *verb, const char *word)
{
	auto_buf struct buf out = { 0 };
	char text[CONTROL_TEXT];
	struct err err = { 0 };
	int r = ask_text(verb, word, text, &err);
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "type");
	json_strz(&j, r < 0 ? "error" : "done");
	json_key(&j, "message");
	json_strz(&j, r < 0 ? err_text(&err) : text);
	json_object_end(&j);
	cli_print_line(&out);
	return cli_finish_output(r < 0 ? EXIT_WARDER : 0);
}

static int run_order(const struct verb *verb, int argc, char **argv)
{
	struct order_args args = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage(verb->name, &err);
	if (args.help) {
		cli_usage(verb->usage, verb->purpose, OPTIONS);
		return 0;
	}
	if (n != 1) {
		err_set(&err, EINVAL, "it takes one %s", verb->question ? "question" : "session");
		return cli_bad_usage(verb->name, &err);
	}
	if (args.json)
		return run_json(verb, argv[1]);
	if (ask(verb, argv[1], false, &err) < 0)
		return cli_fail(&err);
	return cli_finish_output(0);
}

int order_reload(const char *session)
{
	static const struct verb v = { "reload", "", "", NULL, false };
	struct err err = { 0 };

	return ask(&v, session, false, &err) < 0 ? cli_fail(&err) : cli_finish_output(0);
}

int order_workspace(const char *session, struct err *err)
{
	static const struct verb v = { "workspace", "", "", NULL, false };

	return ask(&v, session, true, err);
}

#define ORDER(word, argument, question, purpose)                                         \
	int cmd_##word(int argc, char **argv)                                            \
	{                                                                                \
		static const struct verb v = { #word, #word " " argument, purpose, NULL, \
					       question };                               \
                                                                                         \
		return run_order(&v, argc, argv);                                        \
	}

ORDER(approve, "QUESTION", true,
      "A rule with 'action: hold' stopped a sandbox and asks: let it go on. Who answered is in the\n"
      "record. Open questions: warder status.")
ORDER(deny, "QUESTION", true,
      "A rule with 'action: hold' stopped a sandbox and asks: no, kill it. Who answered is in the\n"
      "record. Open questions: warder status.")
ORDER(freeze, "SESSION", false,
      "Stop all processes of a running sandbox. It stays until warder thaw or kill, or until\n"
      "--freeze-timeout of its run is over.")
ORDER(thaw, "SESSION", false,
      "Let a sandbox go on that a rule (action: freeze) or warder freeze stopped.")
ORDER(kill, "SESSION", false, "End a running sandbox. Who did it is in the record.")
