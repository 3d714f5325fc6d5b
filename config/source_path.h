/* source_path.h - does a file belong to a source, and which fields does its name set? Which files
 * do sources have? Import, verify, backfill and the follower ask.
 *
 * Match  : a path matches as it is written; or else its real path does (realpath(3)), behind the real path
 *          of the folder with which the pattern begins. A path that does not exist is taken for a real one:
 *          it may be the label under which a file was counted.
 * Rotated: source_path_find() also knows the rotated files of a log.
 * Errors : of matching, none; a file that cannot be resolved does not match.
 */
#pragma once

#include "config/config.h"
#include "ingest/decode/constants.h"
#include "ingest/file/listing.h"

/* Does a pattern of the source match this path? If so, and unless it is NULL, *k has the fields of the first
 * that does; the caller frees it with constants_fini(). */
bool source_path_match(const struct config_source *source, const char *path, struct constants *k);
/* Find the source of the file at `path`; NULL: none. *k, unless it is NULL, gets the fields that the name of
 * its log sets; the caller frees it with constants_fini(). The first of these rules decides:
 *   1. A pattern of the source is just this path.
 *   2. The source matches a log that is there, and the file is a rotated one of it by its name (family.h), in
 *      the log's folder or the source's olddir. So shop-20261127.log is a file of shop.log, although
 *      l/{vhost}.log matches both.
 *   3. The source matches the path.
 *   4. As 2, but the log is not there now; or the file is the log, packed: shop.log.gz. */
const struct config_source *source_path_find(const struct config *c, const char *path, struct constants *k);
/* The olddir of the source to which a log belongs; NULL: there is none. */
const char *source_path_olddir(const struct config *c, const char *path);
/* List the files of all sources, as far as they are there. The caller frees them, also after a failure. */
bool source_path_list(const struct config *c, struct listing *files, struct err *e) MUST_CHECK;
