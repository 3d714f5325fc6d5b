#include "store/mongo/catalog/keys.h"

#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

static bool see_report(void *context, const bson_t *document)
{
    struct mongo_found_report *found = context;
    if (found->count++ > 0)
        return true;
    snprintf(found->key, sizeof found->key, "%s", mongo_text_at(document, "_id"));
    found->generation = (int)mongo_number_at(document, "generation", 0);
    found->is_dropping = bson_has_field(document, MONGO_DROPPING);
    found->is_decimal = bson_has_field(document, MONGO_DECIMAL);
    return true;
}

static bool find(struct mongo_store *m, bson_t *filter, struct mongo_found_report *found, struct err *e)
{
    bson_t *options = BCON_NEW("sort", "{", "generation", BCON_INT32(-1), "}");
    *found = (struct mongo_found_report){.count = 0};
    return mongo_look(m->client, MONGO_REPORTS, filter, options, see_report, found, e);
}

bool mongo_find_report(struct mongo_store *m, const char *name, int generation,
                       struct mongo_found_report *found, struct err *e)
{
    return find(m, BCON_NEW("name", BCON_UTF8(name), "generation", BCON_INT32(generation)), found, e);
}

bool mongo_find_newest(struct mongo_store *m, const char *name, struct mongo_found_report *found,
                       struct err *e)
{
    return find(m, BCON_NEW("name", BCON_UTF8(name)), found, e);
}
