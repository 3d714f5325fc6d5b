/* place.h - where a text of an event stood. `tallyd explain` asks, once chain_next() has returned an event.
 *
 * Columns : count bytes from 1, both inclusive; an empty text has `to` = `from` - 1.
 * Unknown : a text that a decoder made, as by undoing escapes, stands nowhere.
 */
#pragma once

#include "ingest/decode/chain.h"

struct place {
    bool is_known;
    size_t step;     /* index of the first step whose text holds it; 0: the record itself */
    size_t from, to; /* columns in the text of that step */
};

/* `text` is a slice of the event, or the text of a step. */
struct place place_of(const struct chain *c, struct slice text);
