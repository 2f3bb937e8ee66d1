/* SPDX-License-Identifier: Apache-2.0 */
/* Public resolvers that speak DNS inside TLS or HTTPS. One row each:
 *   DOH_NAME(name)      this name and every one below it
 *   DOH_IP(address)
 *   OPAQUE_PORT(port, tcp, udp)   what speaks there; NULL = nothing of the kind
 * From the operators' own pages. Only port 443 is looked at for names and addresses: plain DNS to the
 * same addresses is read as it is. A resolver that is missing here is one more HTTPS server to us. */
/* clang-format off */
#ifndef DOH_NAME
#define DOH_NAME(name)
#endif
#ifndef DOH_IP
#define DOH_IP(address)
#endif
#ifndef OPAQUE_PORT
#define OPAQUE_PORT(port, tcp, udp)
#endif

OPAQUE_PORT(853, "dot", "doq")	/* RFC 7858, 9250 */
OPAQUE_PORT(784, NULL, "doq")	/* drafts of it */
OPAQUE_PORT(8853, "dot", "doq")

DOH_NAME("cloudflare-dns.com") DOH_NAME("one.one.one.one") DOH_NAME("cloudflare-gateway.com")
DOH_IP("1.1.1.1") DOH_IP("1.0.0.1") DOH_IP("1.1.1.2") DOH_IP("1.0.0.2") DOH_IP("1.1.1.3") DOH_IP("1.0.0.3")
DOH_IP("2606:4700:4700::1111") DOH_IP("2606:4700:4700::1001") DOH_IP("2606:4700:4700::1112")
DOH_IP("2606:4700:4700::1002") DOH_IP("2606:4700:4700::1113") DOH_IP("2606:4700:4700::1003")
DOH_IP("2606:4700:4700::64") DOH_IP("2606:4700:4700::6400")
DOH_NAME("dns.google") DOH_NAME("dns.google.com")
DOH_IP("8.8.8.8") DOH_IP("8.8.4.4") DOH_IP("2001:4860:4860::8888") DOH_IP("2001:4860:4860::8844")
DOH_IP("2001:4860:4860::64") DOH_IP("2001:4860:4860::6464")
DOH_NAME("dns.quad9.net") DOH_NAME("dns9.quad9.net") DOH_NAME("dns10.quad9.net") DOH_NAME("dns11.quad9.net")
DOH_IP("9.9.9.9") DOH_IP("149.112.112.112") DOH_IP("9.9.9.10") DOH_IP("149.112.112.10") DOH_IP("9.9.9.11")
DOH_IP("149.112.112.11") DOH_IP("149.112.112.9") DOH_IP("2620:fe::fe") DOH_IP("2620:fe::9")
DOH_IP("2620:fe::10") DOH_IP("2620:fe::fe:10") DOH_IP("2620:fe::11") DOH_IP("2620:fe::fe:11")
DOH_NAME("dns.adguard.com") DOH_NAME("adguard-dns.com") DOH_NAME("dns-family.adguard.com")
DOH_NAME("dns-unfiltered.adguard.com")
DOH_IP("94.140.14.14") DOH_IP("94.140.15.15") DOH_IP("94.140.14.15") DOH_IP("94.140.15.16")
DOH_IP("94.140.14.140") DOH_IP("94.140.14.141") DOH_IP("2a10:50c0::ad1:ff") DOH_IP("2a10:50c0::ad2:ff")
DOH_NAME("doh.opendns.com") DOH_NAME("dns.opendns.com") DOH_NAME("doh.familyshield.opendns.com")
DOH_NAME("dns.umbrella.com") DOH_NAME("doh.umbrella.com")
DOH_IP("208.67.222.222") DOH_IP("208.67.220.220") DOH_IP("208.67.222.123") DOH_IP("208.67.220.123")
DOH_IP("146.112.41.2") DOH_IP("2620:119:35::35") DOH_IP("2620:119:53::53")
DOH_NAME("dns.nextdns.io") DOH_NAME("doh.nextdns.io") DOH_NAME("doh3.dns.nextdns.io")
DOH_NAME("controld.com") DOH_IP("76.76.2.0") DOH_IP("76.76.10.0") DOH_IP("76.76.2.11") DOH_IP("76.76.10.11")
DOH_NAME("doh.cleanbrowsing.org") DOH_IP("185.228.168.9") DOH_IP("185.228.169.9") DOH_IP("185.228.168.10")
DOH_IP("185.228.169.11") DOH_IP("185.228.168.168") DOH_IP("185.228.169.168")
DOH_NAME("dns.mullvad.net") DOH_NAME("doh.mullvad.net")
DOH_IP("194.242.2.2") DOH_IP("194.242.2.3") DOH_IP("194.242.2.4") DOH_IP("194.242.2.5") DOH_IP("194.242.2.6")
DOH_IP("194.242.2.9")
DOH_NAME("dns0.eu") DOH_IP("193.110.81.0") DOH_IP("185.253.5.0")
DOH_NAME("dns.alidns.com") DOH_IP("223.5.5.5") DOH_IP("223.6.6.6")
DOH_NAME("doh.pub") DOH_NAME("dot.pub") DOH_IP("1.12.12.12") DOH_IP("120.53.53.53")
DOH_NAME("doh.360.cn") DOH_NAME("dot.360.cn")
DOH_NAME("doh.dns.sb") DOH_NAME("doh.sb") DOH_IP("185.222.222.222") DOH_IP("45.11.45.11")
DOH_NAME("dot.dns.yandex.net") DOH_IP("77.88.8.8") DOH_IP("77.88.8.1")
DOH_NAME("doh.libredns.gr") DOH_IP("116.202.176.26")
DOH_NAME("doh.applied-privacy.net") DOH_NAME("dot1.applied-privacy.net")
DOH_NAME("dns.digitale-gesellschaft.ch") DOH_IP("185.95.218.42") DOH_IP("185.95.218.43")
DOH_NAME("canadianshield.cira.ca") DOH_IP("149.112.121.10") DOH_IP("149.112.122.10")
DOH_NAME("blahdns.com") DOH_NAME("dns.switch.ch") DOH_IP("130.59.31.248") DOH_NAME("public.dns.iij.jp")
DOH_NAME("wikimedia-dns.org") DOH_IP("185.71.138.138") DOH_NAME("uncensoreddns.org") DOH_IP("91.239.100.100")
DOH_NAME("doh.xfinity.com") DOH_NAME("doh.cox.net") DOH_NAME("dns.twnic.tw") DOH_NAME("dns.njal.la")
DOH_NAME("doh.ffmuc.net") DOH_NAME("doh.tiar.app") DOH_NAME("jp.tiar.app") DOH_NAME("dns.rubyfish.cn")

#undef DOH_NAME
#undef DOH_IP
#undef OPAQUE_PORT
