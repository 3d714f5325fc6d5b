#include "ingest/decode/clf.h"

#include "base/check.h"
#include "ingest/decode/clf_fast.h"

static const char *const names[CLF_FORMAT_COUNT + 1] = {"auto", "common", "combined", "vhost_combined"};

void clf_init(struct clf *c, enum clf_format format)
{
    ASSERT((unsigned)format < CLF_FORMAT_COUNT);
    bool fast_first = clf_fast_can_run() && format != CLF_COMMON;
    *c = (struct clf){.decoder = {fast_first ? clf_fast_decode : clf_decode_any},
                      .format = format,
                      .minutes = {{CLF_NOBODY, 0}, {CLF_NOBODY, 0}}};
}

const char *clf_format_name(enum clf_format format)
{
    ASSERT((unsigned)format < CLF_FORMAT_COUNT);
    return names[format];
}

bool clf_format_parse(struct slice name, enum clf_format *format)
{
    int i = slice_find(name, names);
    if (i >= 0)
        *format = (enum clf_format)i;
    return i >= 0;
}
