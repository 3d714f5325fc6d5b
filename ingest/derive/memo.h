/* memo.h - remembers what was made of a text, so that it is made once for each distinct text. derived.c has
 * one for each field that others are made of.
 *
 * Key     : a text and a number, such as a day if what is made of the text depends on it.
 * Owner   : the memo keeps copies of keys. Values live in its arena, and until memo_flush() at the least, so
 *           events may point to them.
 * Limits  : over MEMO_ENTRIES_MAX entries or MEMO_BYTES_MAX bytes, the next memo_flush() forgets all. So many
 *           different texts cost their making each time, and no more memory than the records between two
 *           flushes.
 * Threads : one at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/index.h"

#include <stdbool.h>

#define MEMO_ENTRIES_MAX 32768
#define MEMO_BYTES_MAX   ((size_t)8 << 20)
#define MEMO_VALUES_MAX  6

struct memo_entry {
    struct slice key;
    uint64_t number;                      /* second part of the key */
    uint64_t present, odd;                /* bit per enum field, of the values; as in struct event */
    struct slice values[MEMO_VALUES_MAX]; /* in an order of the caller's; valid if present */
};

struct memo {
    struct index index;
    struct memo_entry **entries; /* by the numbers of `index`, from 1 */
    size_t capacity;
    struct arena memory; /* entries, keys and values */
};

void memo_init(struct memo *m);
void memo_fini(struct memo *m);
/* Finds an entry. NULL: there is none. *hash is for memo_add(). */
struct memo_entry *memo_find(const struct memo *m, struct slice key, uint64_t number, uint64_t *hash);
/* Adds an entry without values. Pre: memo_find() has just found none. */
struct memo_entry *memo_add(struct memo *m, struct slice key, uint64_t number, uint64_t hash);
/* No event needs the entries any more. */
void memo_flush(struct memo *m);
