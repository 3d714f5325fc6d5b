#include "store/mongo/writer/member.h"

/* Escapes dots and $: names of members must not have a dot, or begin with $. */
char *mongo_partition_key(const struct range *range)
{
    struct text key = {0};
    text_percent(&key, slice_text(range->source), ".$");
    text_putc(&key, '/');
    text_percent(&key, slice_text(range->partition), ".$");
    return key.ptr;
}

const char *mongo_partition_member(struct mongo_store *m, const struct mongo_partition *p, const char *name)
{
    text_clear(&m->id);
    text_printf(&m->id, "partitions.%s.%s", p->key, name);
    return m->id.ptr;
}
