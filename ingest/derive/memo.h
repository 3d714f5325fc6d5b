/* memo.h - remembers what was made of a text, so that it is made once for each distinct text. derived.c has
 * one for each field that others are made of.
 *
 * Key     : a text and a number, such as a day if what is made of the text depends on it.
 * Fast    : the entries that were found last are found again by a few of their key's words, then compared
 *           whole. Only a key that is not among them is hashed. So keys that share these words cost a hash.
 * Owner   : the memo keeps copies of keys. Values live in its arena, and until memo_flush() at the least, so
 *           events may point to them.
 * Memory  : up to MEMO_TOTAL_MAX, and what the texts between two flushes take: entries, keys and values; the
 *           index and its list, each at most four and two places an entry; and MEMO_RECENT pointers.
 * Limits  : over MEMO_ENTRIES_MAX entries or MEMO_BYTES_MAX bytes, the next memo_flush() forgets all. So many
 *           different texts cost their making each time, and no more memory than the records between two
 *           flushes.
 * Threads : one at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/check.h"
#include "base/index.h"
#include "base/load.h"

#include <stdbool.h>

#define MEMO_ENTRIES_MAX 32768
#define MEMO_BYTES_MAX   ((size_t)8 << 20)
#define MEMO_VALUES_MAX  6
#define MEMO_RECENT_BITS 15
#define MEMO_RECENT      ((size_t)1 << MEMO_RECENT_BITS)
#define MEMO_WORD        sizeof(uint64_t)
#define MEMO_TOTAL_MAX                                                                          \
    (MEMO_BYTES_MAX + MEMO_ENTRIES_MAX * (4 * sizeof(struct index_slot) + 2 * sizeof(void *)) + \
     MEMO_RECENT * sizeof(void *))

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
    struct memo_entry **recent; /* MEMO_RECENT of them, by memo_sample(); NULL: none */
    struct arena memory;        /* entries, keys and values */
};

void memo_init(struct memo *m);
void memo_fini(struct memo *m);
/* Adds an entry without values. Pre: memo_find() has just found none. */
struct memo_entry *memo_add(struct memo *m, struct slice key, uint64_t number);
/* No event needs the entries any more. */
void memo_flush(struct memo *m);
/* memo_find() of an entry that is not recent: makes it so. */
struct memo_entry *memo_search(struct memo *m, struct slice key, uint64_t number);

/* A place in `recent`, by the first and the last bytes of the key, since versions stand at the end of agents
 * and names at the end of paths. Pre: MEMO_WORD bytes at least. */
static inline size_t memo_sample(struct slice key, uint64_t number)
{
    const char *last = key.ptr + key.len - MEMO_WORD;
    uint64_t k = 0x9E3779B97F4A7C15u, h = ((number ^ load64(key.ptr)) * k ^ load64(last)) * k;
    if (key.len >= 3 * MEMO_WORD) {
        h = (h ^ load64(last - MEMO_WORD)) * k;
        h = (h ^ load64(last - 2 * MEMO_WORD)) * k;
        h = (h ^ load64(key.ptr + key.len / 4)) * k;
    }
    return (size_t)(h >> (64 - MEMO_RECENT_BITS));
}

/* Pre: MEMO_WORD bytes at least. */
static inline bool memo_is(const struct memo_entry *entry, struct slice key, uint64_t number)
{
    const char *a = key.ptr, *b = entry->key.ptr;
    size_t last = key.len - MEMO_WORD;
    if (entry->key.len != key.len || entry->number != number)
        return false;
    if (key.len <= 2 * MEMO_WORD)
        return ((load64(a) ^ load64(b)) | (load64(a + last) ^ load64(b + last))) == 0;
    return memcmp(a, b, key.len) == 0;
}

/* Finds an entry. NULL: there is none. */
static inline struct memo_entry *memo_find(struct memo *m, struct slice key, uint64_t number)
{
    if (LIKELY(key.len >= MEMO_WORD)) {
        struct memo_entry *entry = m->recent[memo_sample(key, number)];
        if (LIKELY(entry != NULL && memo_is(entry, key, number)))
            return entry;
    }
    return memo_search(m, key, number);
}
