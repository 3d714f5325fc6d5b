/* cri.h - takes the header off a line of a container's log, as the kubelet's runtimes (containerd, CRI-O)
 * write it. chain.c calls it.
 *
 *   2026-01-05T10:00:01.123456789Z stdout F text     a whole line, or the last part of one
 *   2026-01-05T10:00:01.123456789Z stdout P text     a part of a line (of 16 KiB, mostly)
 *
 * Time : is checked but not used: the text has a time of its own.
 * Parts: are told, not joined. The next part may be in another block, batch or message, and a range must hold
 *        all of what it counts.
 */
#pragma once

#include "base/slice.h"

/* The text behind the header. */
struct cri_text {
    struct slice text;
    bool is_part; /* another part of the line follows */
};

/* False: *at is the byte that does not fit. True: *at is the tag. */
bool cri_parse(struct slice line, struct cri_text *found, const char **at);
