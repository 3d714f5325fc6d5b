/* bson_text.h - shows members of a BSON document as text: of the types that raw_document.h writes. Answers
 * show the newest events by it. It needs no library.
 *
 * Errors : a member of another type, or one that is cut off, ends a walk: bson_member_next() is false.
 * Owner  : a member borrows the bytes of its document.
 */
#pragma once

#include "base/slice.h"
#include "base/text.h"

#include <stdint.h>

struct bson_member {
    unsigned char type;
    struct slice name, value; /* value: its bytes; of a text without its length and NUL */
};

/* The members of a document, for bson_member_next(). Nothing, if its length is wrong. */
struct slice bson_members(struct slice document);
bool bson_member_next(struct slice *members, struct bson_member *m) MUST_CHECK;
/* Adds its value as JSON: a date as milliseconds, a document or array with what is in it. */
void bson_member_json(const struct bson_member *m, struct text *out);
/* Is it a text? */
bool bson_member_is_text(const struct bson_member *m);
/* Do all members decode to the document's end, and those of documents and arrays in it? */
bool bson_is_whole(struct slice document) MUST_CHECK;
