/* clf.h - decodes lines of the Common Log Format family, as Apache httpd and nginx write it. chain.c calls
 * it; a line that does not fit is a reject.
 *
 *   common          host logname user [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326
 *   combined        … common …  "referrer" "user agent"
 *   vhost_combined  server:80 … combined …
 *   auto            detects the format of each line; more fields may follow a combined line
 *
 * User   : may hold spaces and brackets; it ends before the first well-formed time that a quote follows. "-"
 *          is absent, and so are two quotes: Apache writes an empty user so. In auto, no word of it is "-"
 *          behind a logname, nor does the host end with a comma, nor has the logname a dot or colon: then
 *          something stands before the host, or is the host.
 * Host   : begins with no quote. Servers escape quotes, so one begins a text of several words.
 * Cut    : a user agent without its closing quote ends with the line. Real logs have such lines, and every
 *          number stands before it. Any other field cut off is a reject.
 * Cost   : one pass, no allocation, no copy; the minutes and zones of two times are cached.
 * Escapes: \" \\ \xhh \n \t inside quotes stay in place, and set the field's odd bit.
 * Source : mod_log_config's escaping (ap_escape_logitem); %t of the Apache HTTP Server documentation.
 */
#pragma once

#include "ingest/decode/clf_any.h"

void clf_init(struct clf *c, enum clf_format format);

const char *clf_format_name(enum clf_format format);
bool clf_format_parse(struct slice name, enum clf_format *format);
