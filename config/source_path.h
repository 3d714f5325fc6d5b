/* source_path.h - does a file belong to a source, and which fields does its name set? Import, verify and the
 * follower ask.
 *
 * Match  : a path matches as it is written; or else its real path does (realpath(3)), behind the real path
 *          of the folder with which the pattern begins. A path that does not exist is taken for a real one:
 *          it may be the label under which a file was counted.
 * Errors : none; a file that cannot be resolved does not match.
 */
#pragma once

#include "config/config.h"
#include "ingest/decode/constants.h"

/* Does a pattern of the source match this path? If so, and unless it is NULL, *k has the fields of the first
 * that does; the caller frees it with constants_fini(). */
bool source_path_match(const struct config_source *source, const char *path, struct constants *k);
