// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/run.h"
#include "userspace/store/chain.h"
#include "userspace/store/keys.h"

struct keys_args {
	bool json, all, help;
};

#define FORMER_MAX 256

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct keys_args, json), NULL, "one JSON object" },
	{ "all", 'a', OPT_FLAG, offsetof(struct keys_args, all), NULL,
	  "public: and the keys before it, for records that they signed; --key takes the whole file" },
	{ "help", 'h', OPT_FLAG, offsetof(struct keys_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"The host's signing key. With one, every session's record is signed as it grows, and\n"
	"`warder verify --key FILE` proves who recorded it.\n\n"
	"  init     make the key (about a second), in /var/lib/warder/keys\n"
	"  show     the public key, and how much of it is used\n"
	"  public   only the line that a reviewer needs: warder keys public > host.pub\n"
	"  rotate   make a new key; the old one signs it over and is erased\n\n"
	"Exit code: 0 done, 125 error.";

struct key_facts {
	char hex[2 * KEY_LEN + 1];
	uint32_t epoch, epochs;
};

static int read_facts(int dirfd, struct key_facts *ret, struct err *err)
{
	uint8_t key[KEY_LEN];
	int r;

	r = keys_public(dirfd, key, err);
	if (r == -ENOENT)
		return err_set(err, r, "this host has no key: warder keys init");
	if (r == 0)
		r = keys_epochs(dirfd, &ret->epoch, &ret->epochs, err);
	if (r < 0)
		return r;
	hash_to_hex(ret->hex, key);
	return 0;
}

static void print_facts(const struct key_facts *f, bool json)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	if (!json) {
		printf("public key  %s%s\n", KEY_TEXT, f->hex);
		printf("epoch       %u of %u\n", f->epoch + 1, f->epochs);
		return;
	}
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "public_key");
	json_strz(&j, f->hex);
	json_key(&j, "epoch");
	json_u64(&j, f->epoch);
	json_key(&j, "epochs");
	json_u64(&j, f->epochs);
	json_object_end(&j);
	cli_print(&out);
	putchar('\n');
}

static int print_public(int dirfd, const struct key_facts *f, bool all, struct err *err)
{
	uint8_t former[FORMER_MAX][KEY_LEN];
	char hex[2 * KEY_LEN + 1];
	int n = all ? keys_former(dirfd, former, FORMER_MAX, err) : 0;

	if (n < 0)
		return n;
	printf("%s%s\n", KEY_TEXT, f->hex);
	while (n-- > 0) {
		hash_to_hex(hex, former[n]);
		printf("%s%s\n", KEY_TEXT, hex);
	}
	return 0;
}

static int run_action(const char *action, const struct keys_args *args, struct err *err)
{
	bool init = !strcmp(action, "init"), rotate = !strcmp(action, "rotate");
	struct key_facts facts;
	auto_close int fd = -1;
	int r;

	r = keys_open(&fd, init, err);
	if (r == -ENOENT)
		return err_set(err, r, "this host has no key: warder keys init");
	if (r == 0 && init)
		r = keys_init(fd, NULL, err);
	if (r == 0 && rotate)
		r = keys_rotate(fd, NULL, err);
	if (r == 0)
		r = read_facts(fd, &facts, err);
	if (r < 0)
		return r;
	if (!strcmp(action, "public"))
		return print_public(fd, &facts, args->all, err);
	print_facts(&facts, args->json);
	return 0;
}

int cmd_keys(int argc, char **argv)
{
	static const char *const ACTIONS[] = { "init", "show", "public", "rotate" };
	struct keys_args args = { 0 };
	struct err err = { 0 };
	bool known = false;
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("keys", &err);
	if (args.help) {
		cli_usage("keys [OPTIONS] init|show|public|rotate", PURPOSE, OPTIONS);
		return 0;
	}
	for (size_t i = 0; n == 1 && i < ARRAY_SIZE(ACTIONS); i++)
		known |= !strcmp(argv[1], ACTIONS[i]);
	if (!known) {
		err_set(&err, EINVAL,
			n == 1 ? "'%s' is not init, show, public or rotate"
			       : "one of: init, show, public, rotate",
			argv[1]);
		return cli_bad_usage("keys", &err);
	}
	if (run_action(argv[1], &args, &err) < 0)
		return cli_fail(&err);
	return cli_finish_output(0);
}
