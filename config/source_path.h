/* source_path.h - does a file belong to a source, and which fields does its name set? Which files
 * do sources have? Import, verify, backfill and the follower ask.
 *
 * Match  : a path matches as it is written; or else its real path does (realpath(3)), behind the real path
 *          of the folder with which the pattern begins. A path that does not exist is taken for a real one:
 *          it may be the label under which a file was counted.
 * Errors : of matching, none; a file that cannot be resolved does not match.
 */
#pragma once

#include "config/config.h"
#include "ingest/decode/constants.h"
#include "ingest/file/listing.h"

/* Does a pattern of the source match this path? If so, and unless it is NULL, *k has the fields of the first
 * that does; the caller frees it with constants_fini(). */
bool source_path_match(const struct config_source *source, const char *path, struct constants *k);
/* The olddir of the source to which a log belongs; NULL: there is none. */
const char *source_path_olddir(const struct config *c, const char *path);
/* List the files of all sources, as far as they are there. The caller frees them, also after a failure. */
bool source_path_list(const struct config *c, struct listing *files, struct err *e) MUST_CHECK;
