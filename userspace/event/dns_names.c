// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/dns_names.h"

#include <stddef.h>

#include "userspace/base/auto.h"

static const char *const TYPES[] = {
	[1] = "A",	     [2] = "NS",       [3] = "MD",	    [4] = "MF",
	[5] = "CNAME",	     [6] = "SOA",      [7] = "MB",	    [8] = "MG",
	[9] = "MR",	     [10] = "NULL",    [11] = "WKS",	    [12] = "PTR",
	[13] = "HINFO",	     [14] = "MINFO",   [15] = "MX",	    [16] = "TXT",
	[17] = "RP",	     [18] = "AFSDB",   [19] = "X25",	    [20] = "ISDN",
	[21] = "RT",	     [24] = "SIG",     [25] = "KEY",	    [28] = "AAAA",
	[29] = "LOC",	     [33] = "SRV",     [35] = "NAPTR",	    [36] = "KX",
	[37] = "CERT",	     [39] = "DNAME",   [41] = "OPT",	    [42] = "APL",
	[43] = "DS",	     [44] = "SSHFP",   [45] = "IPSECKEY",   [46] = "RRSIG",
	[47] = "NSEC",	     [48] = "DNSKEY",  [49] = "DHCID",	    [50] = "NSEC3",
	[51] = "NSEC3PARAM", [52] = "TLSA",    [53] = "SMIMEA",	    [55] = "HIP",
	[59] = "CDS",	     [60] = "CDNSKEY", [61] = "OPENPGPKEY", [62] = "CSYNC",
	[63] = "ZONEMD",     [64] = "SVCB",    [65] = "HTTPS",	    [99] = "SPF",
	[104] = "NID",	     [105] = "L32",    [106] = "L64",	    [107] = "LP",
	[108] = "EUI48",     [109] = "EUI64",  [249] = "TKEY",	    [250] = "TSIG",
	[251] = "IXFR",	     [252] = "AXFR",   [253] = "MAILB",	    [254] = "MAILA",
	[255] = "ANY",	     [256] = "URI",    [257] = "CAA",
};

static const char *const RCODES[] = {
	"NOERROR",  "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP",   "REFUSED",
	"YXDOMAIN", "YXRRSET", "NXRRSET",  "NOTAUTH",  "NOTZONE",  "DSOTYPENI",
	NULL,	    NULL,      NULL,	   NULL,       "BADVERS",  "BADKEY",
	"BADTIME",  "BADMODE", "BADNAME",  "BADALG",   "BADTRUNC", "BADCOOKIE",
};

const char *dns_type_name(unsigned type)
{
	return type < ARRAY_SIZE(TYPES) ? TYPES[type] : NULL;
}

const char *dns_rcode_name(unsigned rcode)
{
	return rcode < ARRAY_SIZE(RCODES) ? RCODES[rcode] : NULL;
}
