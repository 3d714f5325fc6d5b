/* listing.h - the files that a pattern matches now, and the folders in which others may appear. The follower
 * calls it at start, when a watched folder has changed, and now and then; verify calls it once.
 *
 * Files    : a pattern with glob characters lists regular files, also through symbolic links. A plain path
 *            lists whatever is there, but no folder. Sorted by bytes.
 * Folders  : every folder whose names decide what is listed: an entry that appears there may be a new file.
 *            Folders that do not exist yet are listed, too, as far as their names are known. Sorted by bytes.
 * Limits   : LISTING_MAX files, and as many folders.
 * Errors   : above the limits, EX_CONFIG. A folder that cannot be read, other than a missing one, does not
 *            fail: the rest is listed, and `unread` says which and why.
 * Owner    : listing_fini() frees all. A listing of zeros is empty.
 */
#pragma once

#include "base/err.h"
#include "ingest/file/pattern.h"

#define LISTING_MAX 10000

struct listing {
    char **files, **folders;
    size_t file_count, folder_count;
    size_t file_capacity, folder_capacity;
    char unread[512]; /* "cannot read the folder /x: Permission denied"; "": all were read */
};

/* Adds the files and folders of `p` to the listing; several patterns may share one, and its limits. A file or
 * folder that is there already is not added again. On failure the listing is as far as it went. */
bool listing_add(struct listing *l, const struct pattern *p, struct err *e) MUST_CHECK;
void listing_fini(struct listing *l);
