/* constants.h - fields that have one text in all events of a file, such as the `vhost` in its name. Import,
 * verify and the follower make them for each file; its chain puts them into every event.
 *
 * Wins   : a constant replaces the field of the line itself.
 * Absent : "-" in a built-in field sets nothing, as everywhere (chain_field.h).
 * Cost   : the texts are parsed once; an event gets their slices, and no byte is copied.
 * Owner  : constants_fini() frees the texts. Constants of zeros are empty, and own nothing. Events borrow the
 *          texts, so they must live until the events are counted.
 * Limits : CONSTANTS_MAX fields; only fields that decode_add_constant() takes.
 */
#pragma once

#include "ingest/event.h"

#define CONSTANTS_MAX 8

struct constant {
    enum field field;
    struct slice text;
    int64_t number; /* valid if its `numeric` bit is set */
};

struct constants {
    size_t count;
    uint64_t bits, odd, numeric; /* bit per enum field, as in struct event */
    struct constant list[CONSTANTS_MAX];
};

/* Adds a copy of `text`. Pre: the field is not there yet. */
void constants_add(struct constants *k, enum field f, struct slice text);
void constants_fini(struct constants *k);

static inline void constants_put(const struct constants *k, struct event *ev)
{
    ev->present |= k->bits;
    ev->odd = (ev->odd & ~k->bits) | k->odd;
    ev->literal |= k->odd;
    ev->numeric = (ev->numeric & ~k->bits) | k->numeric;
    for (size_t i = 0; i < k->count; i++) {
        ev->field[k->list[i].field] = k->list[i].text;
        ev->number[k->list[i].field] = k->list[i].number;
    }
}
