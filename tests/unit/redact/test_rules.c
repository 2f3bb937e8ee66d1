// SPDX-License-Identifier: Apache-2.0
/* The built-in rules: what each must find, and what lies near and must stay. */
#include "tests/unit/redact/redact_test.h"

#define ALNUM "aB3dE5gH7jK9mN1pQ4sT6vW8yZ0cF2hJ4lM6oP8rS1uV3xY5zA7bD9eG"
#define HEX64 "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

/* {1} .. : so many letters and digits; the rule that finds it, NULL = none. */
static const struct row {
	const char *rule, *text;
} ROWS[] = {
	{ "aws-access-key", "id AKI"
			    "A2B4C6D8E0F2G4H6J end" },
	{ "aws-access-key", "aki"
			    "aq3egtv7hyp2mzk4n.example.com" },
	{ NULL, "asiapacificregionlist" },
	{ NULL, "AKI"
		"A2B4C6D8E0F2G4H6JK7" },
	{ "aws-secret-key", "aws_secret_access_key = wJa{37}" },
	{ "gcp-api-key", "key=AI"
			 "za{35}" },
	{ "google-oauth", "ya2"
			  "9.{40}" },
	{ "azure-storage-key", "AccountName=x;AccountKey={86}==;Suffix" },
	{ "azure-sas", "https://h/b?sv=1&sig={43}%3D" },
	{ "github-token", "gh"
			  "p_{36}" },
	{ "github-token", "github_p"
			  "at_{60}" },
	{ NULL, "ghp_short" },
	{ NULL, "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
	{ "gitlab-token", "glp"
			  "at-{20}" },
	{ "slack-token", "xox"
			 "b-{30}" },
	{ "slack-webhook", "https://hooks.slack"
			   ".com/services/T{8}/B{8}/{24}" },
	{ "stripe-key", "sk_li"
			"ve_{24}" },
	{ "npm-token", "np"
		       "m_{36}" },
	{ "npmrc", "//registry.npmjs.org/:_authToken={20}" },
	{ "pypi-token", "pypi-A"
			"gEIc{60}" },
	{ "jwt", "x eyJh{20}.ey"
		 "Jz{30}.{43} y" },
	{ "ai-key", "sk-an"
		    "t-{40}" },
	{ "ai-key", "hf"
		    "_{34}" },
	{ "cloud-token", "S"
			 "G.{22}.{43}" },
	{ "cloud-token", "hv"
			 "s.{30}" },
	{ "private-key", "a -----BEGIN RSA PRIVATE "
			 "KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b" },
	{ "private-key", "-----BEGIN OPENSSH PRIVATE "
			 "KEY-----\nMIIE and no end" },
	{ NULL, "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----" },
	{ "url-password", "git clone https://me:hunter2@git.example.com/x" },
	{ "url-password", "redis://:hunter2@db:6379/0" },
	{ NULL, "https://example.com:8443/a@b" },
	{ NULL, "http://user@host/" },
	{ "authorization", "Authorization: Basic dXNlcjpwYXNz" },
	{ "bearer", "{\"authorization\":\"Bearer {24}\"}" },
	{ "key-header", "X-Api-Key: {20}" },
	{ "cookie", "Set-Cookie: session=abcdef; Path=/" },
	{ "assignment", "password=hunter2" },
	{ "assignment", "  password: hunter2" },
	{ "assignment", "\"token\": \"{20}\"" },
	{ "assignment", "{\\\"api_key\\\":\\\"{20}\\\"}" },
	{ "assignment", "PGPASSWORD=correcthorse psql" },
	{ "assignment", "Server=db;Uid=sa;Pwd=hunter2;" },
	{ NULL, "PWD=/workspace" },
	{ NULL, "password = os.environ['X']" },
	{ NULL, "token = getToken()" },
	{ NULL, "password=$PASSWORD" },
	{ NULL, "password: ********" },
	{ NULL, "def f(token: str)" },
	{ NULL, "if password == other" },
	{ "option", "tool --password hunter2 --verbose" },
	{ "option", "tool --api-key={20}" },
	{ NULL, "tool --password --verbose" },
	{ NULL, "tool --password-stdin x" },
	{ NULL, "tool --token-file /etc/token" },
	{ "credentials-of", "curl -s -u me:hunter2 https://x" },
	{ "credentials-of", "mysql -h db -phunter2 app" },
	{ "credentials-of", "sshpass -p hunter2 ssh x" },
	{ NULL, "mysql -h db app" },
	{ "payment-card", "card 4111 1111 1111 1111." },
	{ "payment-card", "378282246310005" },
	{ NULL, "card 4111 1111 1111 1112" },
	{ NULL, "1764489345123456789" },
	{ NULL, "id 4111111111111111222" },
	/* what must not be eaten */
	{ NULL, "sha256:" HEX64 },
	{ NULL, "commit 3f786850e387550fdab836ed7e6dc881de23001b" },
	{ NULL, "550e8400-e29b-41d4-a716-446655440000" },
	{ NULL,
	  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4" },
	{ NULL, "/usr/lib/python3/dist-packages/secrets.py" },
	{ NULL, "/usr/lib/x86_64-linux-gnu/libpam_passwdqc.so" },
	{ NULL, "tokenizer.json tokens=15" },
};

static void expand(char *out, size_t size, const char *in)
{
	size_t n = 0;

	while (*in && n + 1 < size) {
		int count, used = 0;

		if (sscanf(in, "{%d}%n", &count, &used) == 1 && used) {
			for (int i = 0; i < count && n + 1 < size; i++)
				out[n++] = ALNUM[i % (int)(sizeof(ALNUM) - 1)];
			in += used;
		} else {
			out[n++] = *in++;
		}
	}
	out[n] = 0;
}

static void test_rows(void **state)
{
	struct fixture f;
	char text[1024], want[64];

	(void)state;
	fixture_start(&f, NULL, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		const char *got;

		expand(text, sizeof(text), ROWS[i].text);
		got = shown(&f, text);
		snprintf(want, sizeof(want), "[%s]", ROWS[i].rule ? ROWS[i].rule : "");
		if (ROWS[i].rule ? !strstr(got, want) : strcmp(got, text) != 0)
			fail_msg("'%s': wanted %s, got '%s'", text, want, got);
	}
	fixture_end(&f);
}

/* Each rule of the packs has a row: one that finds nothing is no rule. */
static void test_all_rules_have_rows(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f, NULL, NULL, NULL);
	for (size_t i = 0; i < redactor_rules(f.r); i++) {
		static const char *const elsewhere[] = { "age-key", "aws-session-token", "netrc",
							 "webhook" };
		bool found = false;

		for (size_t k = 0; k < ARRAY_SIZE(ROWS); k++)
			found |= ROWS[k].rule && !strcmp(ROWS[k].rule, redactor_rule_name(f.r, i));
		for (size_t k = 0; k < ARRAY_SIZE(elsewhere); k++)
			found |= !strcmp(elsewhere[k], redactor_rule_name(f.r, i));
		if (!found)
			fail_msg("rule '%s' has no row", redactor_rule_name(f.r, i));
	}
	fixture_end(&f);
}

static void test_rest_of_rules(void **state)
{
	struct fixture f;
	char text[1024];

	(void)state;
	fixture_start(&f, NULL, NULL, NULL);
	assert_string_equal(shown(&f, "AGE-SECRET-"
				      "KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
				      "QQPZRY9X8GF2TVDW0S3JN54KH"),
			    "[age-key]");
	expand(text, sizeof(text), "aws_session_token={120}");
	assert_non_null(strstr(shown(&f, text), "[aws-session-token]"));
	expand(text, sizeof(text), "sent Bearer {30}.");
	assert_non_null(strstr(shown(&f, text), "[bearer]"));
	assert_non_null(strstr(shown(&f, "machine h login me password hunter2\n"), "[netrc]"));
	expand(text, sizeof(text), "https://discord.com/api/webhooks/123456789012345678/{60}");
	assert_non_null(strstr(shown(&f, text), "[webhook]"));
	fixture_end(&f);
}

static void test_what_surrounds_stays(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f, NULL, NULL, NULL);
	assert_string_equal(shown(&f, "a https://me:hunter2@h/x and password=twofold b"),
			    "a https://me:[url-password]@h/x and password=[assignment] b");
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_all_rules_have_rows),
		cmocka_unit_test(test_rest_of_rules),
		cmocka_unit_test(test_what_surrounds_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
