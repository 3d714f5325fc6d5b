/* syslog.h - takes the header off a syslog message. chain.c calls it.
 *
 *   <34>1 2003-10-11T22:14:15.003Z host app 123 ID47 [id name="value"] text   RFC 5424
 *   <34>Oct 11 22:14:15 host app[123]: text                                   RFC 3164
 *   Oct 11 22:14:15 host app: text                                  without <PRI>, as in files
 *   2003-10-11T22:14:15.003+02:00 host app: text                    without <PRI>, with a complete time
 *   <190>Oct 11 22:14:15 nginx: text                                without a host, or an app
 *
 * Time : is checked but not used (RFC 3164 has no year): the text has a time of its own.
 */
#pragma once

#include "base/slice.h"

/* *text is the text behind the header. False: *at is the byte that does not fit. */
bool syslog_parse(struct slice line, struct slice *text, const char **at);
