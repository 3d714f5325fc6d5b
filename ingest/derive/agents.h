/* agents.h - what a user agent says of itself, by the regular expressions of uap-core. derived.c calls it.
 *
 *   uap-core's regexes.yaml, which Debian has as a package and users may replace by a newer one:
 *
 *   user_agent_parsers: [{regex: '(Firefox)/(\d+)', family_replacement: …}, …]
 *   os_parsers: [{regex: …, os_replacement: …}, …]
 *   device_parsers: [{regex: …, device_replacement: …, regex_flag: i}, …]
 *
 * Result  : of each list, the first expression that is found decides. The result is its replacement, in which
 *           $1 to $9 stand for groups, or its first group. If none is found, it is "Other".
 * Fast    : most expressions have a text that an agent must have. They are tried only if the agent has every
 *           three letters of that text.
 * Bounded : the first AGENT_BYTES_MAX bytes of an agent are looked at, and each expression may take some
 *           steps (agents.c). If one takes more, the result is AGENT_LIMIT.
 * Threads : read-only once loaded; shared. A struct pcre_run is one thread's.
 * Errors  : EX_NOINPUT: the file cannot be read; EX_DATAERR: it is no such list; EX_OSFILE: no PCRE2.
 * Source  : docs/specification.md of uap-core.
 */
#pragma once

#include "base/arena.h"
#include "base/pcre.h"

#define AGENT_BYTES_MAX 1000
#define AGENT_GROUPS    10
#define AGENT_LIMIT     "(match limit)"
#define AGENTS_PATH     "/usr/share/uap-core/regexes.yaml"

enum agents_list { AGENTS_FAMILY, AGENTS_OS, AGENTS_DEVICE, AGENTS_LIST_COUNT };

struct agents;

struct agents *agents_load(const char *path, struct err *e) MUST_CHECK;
void agents_free(struct agents *a);
/* The number of expressions in all lists. */
size_t agents_count(const struct agents *a);
/* The hash of the file's bytes. */
uint64_t agents_hash(const struct agents *a);
/* A text of the arena, or of the process. `run` has AGENT_GROUPS groups. */
struct slice agents_find(const struct agents *a, enum agents_list list, struct pcre_run *run,
                         struct slice agent, struct arena *memory);
/* Is it a bot? Its device is "Spider". */
bool agents_is_bot(const struct agents *a, struct pcre_run *run, struct slice agent, struct arena *memory);
