#include "ingest/decode/part_names.h"

#include "base/suggest.h"

bool part_names_add(struct part_names *names, struct slice text, unsigned number, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    suggest_quote(text, quote);
    if (!slice_is_name(text, FIELD_NAME_BYTES))
        return err_set(e, EX_CONFIG, "found %s, expected a name of small letters, digits and _", quote);
    for (size_t i = 0; i < names->count; i++) {
        if (slice_is(text, names->list[i].text))
            return err_set(e, EX_CONFIG, "found %s twice, expected each name once", quote);
    }
    if (names->count == PART_NAMES_MAX)
        return err_set(e, EX_CONFIG, "found more names than %d, expected at most so many", PART_NAMES_MAX);
    struct part_name *name = &names->list[names->count++];
    *name = (struct part_name){.number = number};
    memcpy(name->text, text.ptr, text.len);
    return true;
}
