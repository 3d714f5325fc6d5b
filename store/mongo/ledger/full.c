#include "store/mongo/ledger/full.h"

#include "base/log.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

/* Only files that have ended leave the ledger. A seat has what its writer counts. */
static const char *advice(bool is_seat)
{
    return is_seat ? "have other daemons count some of the partitions and files of this writer"
                   : "have further logs counted into another database";
}

void mongo_warn_if_full(struct mongo_store *m, const bson_t *document)
{
    struct text store = {0};
    char quoted[LOG_QUOTE_BYTES];
    const char *id = mongo_text_at(document, "_id");
    bool is_seat = strcmp(id, MONGO_LEDGER) != 0;
    bool *has_told = is_seat ? &m->has_told_seat : &m->has_told_ledger;
    if (document->len < MONGO_LEDGER_BYTES_FULL || *has_told || (is_seat && strcmp(id, m->writer.slot) != 0))
        return;
    text_url(&store, slice_text(m->uri));
    log_warn("ledger_nearly_full", "store=%s document=%s bytes=%u limit=%zu next=\"at the limit %s: %s\"",
             log_quote(store.ptr, quoted), id, document->len, MONGO_LEDGER_BYTES_MAX,
             is_seat ? "this writer counts nothing more" : "no writer claims anything more", advice(is_seat));
    text_fini(&store);
    *has_told = true;
}

bool mongo_explain_full(struct mongo_store *m, const char *id, struct err *e)
{
    bson_t document;
    struct err ignored;
    if (e->code != EX_IOERR || e->retryable)
        return false;
    bool is_full = mongo_read_document(m->client, MONGO_LEDGER, id, &document, &ignored) &&
                   document.len >= MONGO_LEDGER_BYTES_FULL;
    if (is_full)
        err_prefix(e, "document %s of collection %s has %u of %zu bytes: %s", id, MONGO_LEDGER, document.len,
                   MONGO_LEDGER_BYTES_MAX, advice(strcmp(id, MONGO_LEDGER) != 0));
    bson_destroy(&document);
    return false;
}
