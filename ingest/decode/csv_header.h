/* csv_header.h - the names of columns from the first line of a file, for `tallyd detect`.
 *
 *   Time,Client Host,,Status   →   time,client_host,-,status
 *
 * Names : small letters, with _ for other bytes. A cell that gives no name, or one that is there already, is
 *         not read: "-".
 * Times : one column must have the name of a time.
 */
#pragma once

#include "base/text.h"

#define CSV_HEADER_TIME_BYTES 32

/* Adds the names, as the step takes them. `time` becomes the source's `time`, as "/date"; "": by default.
 * False: the line is no header. */
bool csv_header(struct slice line, char separator, struct text *columns, char time[CSV_HEADER_TIME_BYTES]);
