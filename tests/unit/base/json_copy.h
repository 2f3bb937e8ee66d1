/* SPDX-License-Identifier: Apache-2.0 */
/* json_copy_plain against the plainest code, for every length and every byte at every place. Included twice: with what
 * the processor offers, and in plain C. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void copies_until_the_first_odd_byte(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 70; n++) {
		for (size_t at = 0; at <= n; at++) { /* at == n: none */
			for (int c = 0; c < 256; c++) {
				char *in = malloc(n + !n),
				     *out = malloc(n + !n); /* for ASan: not a byte more */
				size_t got, may = 0;

				for (size_t i = 0; i < n; i++)
					in[i] = (char)('a' + i % 26);
				if (at < n)
					in[at] = (char)c;
				while (may < n && is_plain((unsigned char)in[may]))
					may++;
				got = json_copy_plain(out, in, n);
				if (got > may || (may == n && got < n) || memcmp(in, out, got))
					fail_msg("%zu bytes, %#x at %zu: %zu copied", n, c, at,
						 got);
				free(in);
				free(out);
				if (at == n)
					break;
			}
		}
	}
}
