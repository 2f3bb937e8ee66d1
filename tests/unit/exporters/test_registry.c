// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "exporters/exporter.h"
#include "userspace/base/auto.h"

static void parse_ok(struct exporter_config *cfg, const char *text)
{
	struct err err = { 0 };

	if (exporter_config_parse(cfg, text, &err) != 0)
		fail_msg("'%s': %s", text, err_text(&err));
}

static void parse_bad(const char *text, const char *expected)
{
	struct exporter_config cfg;
	struct err err = { 0 };
	int r = exporter_config_parse(&cfg, text, &err);

	assert_int_equal(r, -err.code);
	assert_true(err.code > 0);
	if (!strstr(err.text, expected))
		fail_msg("'%s': got '%s', expected '%s' in it", text, err.text, expected);
}

static void test_main_property(void **state)
{
	struct exporter_config cfg;

	(void)state;
	parse_ok(&cfg, "file:/tmp/a=b.jsonl");
	assert_string_equal(cfg.class->name, "file");
	assert_string_equal(exporter_config_get(&cfg, "path"), "/tmp/a=b.jsonl");
	assert_string_equal(exporter_config_get(&cfg, "sync"), "yes");
	exporter_config_done(&cfg);
}

static void test_format(void **state)
{
	struct exporter_config cfg;

	(void)state;
	parse_ok(&cfg, "file:/tmp/a,format=native");
	assert_null(cfg.format); /* costs nothing */
	exporter_config_done(&cfg);
	parse_bad("file:/tmp/a,format=natve", "did you mean 'native'");
	parse_bad("file:/tmp/a,fromat=native", "did you mean 'format'");
	parse_bad("metrics:127.0.0.1:9464,format=native", "no property 'format'");
}

static void test_lists_and_pass_through(void **state)
{
	struct exporter_config cfg;

	(void)state;
	parse_ok(&cfg, "kafka:a:9092,b:9093,topic=events,kafka.compression.type=lz4,"
		       "kafka.sasl.oauthbearer.config=scope=x,y,name=siem");
	assert_string_equal(exporter_config_get(&cfg, "brokers"), "a:9092,b:9093");
	assert_string_equal(exporter_config_get(&cfg, "topic"), "events");
	assert_string_equal(exporter_config_get(&cfg, "alerts-topic"), "warder.alerts");
	assert_string_equal(exporter_config_get(&cfg, "kafka.compression.type"), "lz4");
	assert_string_equal(exporter_config_get(&cfg, "kafka.sasl.oauthbearer.config"),
			    "scope=x,y");
	assert_string_equal(cfg.name, "siem");
	exporter_config_done(&cfg);
	exporter_config_done(&cfg); /* harmless */
}

static void test_escaped_comma(void **state)
{
	struct exporter_config cfg;

	(void)state;
	parse_ok(&cfg, "kafka:h:1,kafka.x=a\\,b=c,topic=t");
	assert_string_equal(exporter_config_get(&cfg, "kafka.x"), "a,b=c");
	assert_string_equal(exporter_config_get(&cfg, "topic"), "t");
	exporter_config_done(&cfg);
}

static void test_later_value_wins(void **state)
{
	struct exporter_config cfg;

	(void)state;
	parse_ok(&cfg, "kafka:h:1,topic=a,topic=b");
	assert_string_equal(exporter_config_get(&cfg, "topic"), "b");
	exporter_config_done(&cfg);
}

static void test_secret_from_file(void **state)
{
	char path[] = "/tmp/warder-secret-XXXXXX", text[256];
	int fd = mkstemp(path);
	struct exporter_config cfg;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "hunter,2=x\r\n", 12), 12);
	close(fd);
	snprintf(text, sizeof(text), "kafka:h:1,kafka.sasl.password=@%s,kafka.y=@@z", path);
	parse_ok(&cfg, text);
	assert_string_equal(exporter_config_get(&cfg, "kafka.sasl.password"), "hunter,2=x");
	assert_string_equal(exporter_config_get(&cfg, "kafka.y"), "@z");
	exporter_config_done(&cfg);
	unlink(path);
	parse_bad(text, path);
}

static void test_names(void **state)
{
	struct exporter_config a, b, c;

	(void)state;
	parse_ok(&a, "kafka:h:1,topic=t");
	parse_ok(&b, "kafka:h:1,topic=t,kafka.linger.ms=5");
	parse_ok(&c, "kafka:h:1,topic=u");
	assert_string_equal(a.name, b.name); /* tuning does not make another sink */
	assert_string_not_equal(a.name, c.name);
	exporter_config_done(&a);
	exporter_config_done(&b);
	exporter_config_done(&c);
	parse_bad("file:/x,name=a/b", "a/b");
	parse_bad("file:/x,name=.a", ".a");
	parse_bad("file:/x,name=", "expected");
}

static void test_bad(void **state)
{
	char longest[10000];

	(void)state;
	parse_bad("kafak:h:1", "did you mean 'kafka'");
	parse_bad("zzzzzzzzz", "unknown sink class");
	parse_bad("", "unknown sink class");
	parse_bad("kafka", "'brokers'");
	parse_bad("kafka:", "'brokers'");
	parse_bad("kafka:topic=t", "'brokers'");
	parse_bad("kafka:h:1,topik=t", "did you mean 'topic'");
	parse_bad("kafka:h:1,kafka.=t", "unknown property");
	parse_bad("kafka:h:1,compression.type=lz4", "kafka.<name>");
	parse_bad("file:/x,kafka.a=b", "unknown property");
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "file:", 5);
	longest[sizeof(longest) - 1] = 0;
	parse_bad(longest, "longer");
}

static void test_too_many_properties(void **state)
{
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text), "kafka:h:1");

	(void)state;
	for (int i = 0; i < EXPORTER_PROPS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",kafka.k%d=v", i);
	parse_bad(text, "more than 64");
}

/* Conditions hold commas and "=" themselves. */
static void test_common_properties(void **state)
{
	struct exporter_config cfg, plain;

	(void)state;
	parse_ok(&cfg, "kafka:h:1,filter=kind in (exec, exit) and proc.pid = 3,rate=10,topic=t");
	assert_string_equal(exporter_config_get(&cfg, "filter"),
			    "kind in (exec, exit) and proc.pid = 3");
	assert_string_equal(exporter_config_get(&cfg, "rate"), "10");
	assert_string_equal(exporter_config_get(&cfg, "topic"), "t");
	assert_string_equal(exporter_config_get(&cfg, "required"), "no");
	parse_ok(&plain, "kafka:h:1,topic=t");
	assert_string_not_equal(cfg.name, plain.name); /* two sinks, two cursors */
	exporter_config_done(&cfg);
	exporter_config_done(&plain);
	parse_bad("file:/x,filtre=a", "did you mean 'filter'");
}

static void hides_secrets(void **state)
{
	static const char *const cases[][2] = {
		{ "splunk:https://h:8088,token=geheim,index=i",
		  "splunk:https://h:8088,token=******,index=i" },
		{ "splunk:https://h,token=@/etc/token", "splunk:https://h,token=@/etc/token" },
		{ "splunk:https://h,token=@@x", "splunk:https://h,token=***" },
		{ "elastic:http://me:pw@h/x,password=a,b\\,c,gzip=no",
		  "elastic:http://*****@h/x,password=*,****,gzip=no" },
		{ "webhook:https://h/services/T1?k=v,timeout=1s",
		  "webhook:https://h/***************,timeout=1s" },
		{ "kafka:a:1,b:2,kafka.sasl.password=p\\,q,topic=t",
		  "kafka:a:1,b:2,kafka.sasl.password=****,topic=t" },
		{ "kafka:a:1,filter=x = \"://a@b\"", "kafka:a:1,filter=x = \"://a@b\"" },
		{ "webhook:https://h,secret=x\\", "webhook:https://h,secret=**" },
		{ "file:/x", "file:/x" },
		{ "file", "file" },
		{ "", "" },
		{ ":", ":" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[128];

		snprintf(text, sizeof(text), "%s", cases[i][0]);
		exporter_hide_secrets(text);
		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hides_secrets),
		cmocka_unit_test(test_main_property),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_lists_and_pass_through),
		cmocka_unit_test(test_escaped_comma),
		cmocka_unit_test(test_later_value_wins),
		cmocka_unit_test(test_secret_from_file),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_too_many_properties),
		cmocka_unit_test(test_common_properties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
