#include "store/mongo/ledger/copies.h"

#include "base/clock.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>

bool mongo_has_hold(const bson_t *ledger, int64_t now_ms)
{
    bson_iter_t at;
    bool found = false;
    for (bool more = mongo_begin_members(ledger, "backups", &at); more && bson_iter_next(&at);) {
        bson_iter_t until;
        bool has = mongo_find_in(&at, "until", &until) && BSON_ITER_HOLDS_DATE_TIME(&until);
        int64_t until_ms = has ? bson_iter_date_time(&until) : 0;
        if (until_ms >= now_ms && until_ms <= now_ms + MONGO_HOLD_MS + MONGO_CLOCK_SLACK_MS)
            found = true;
    }
    return found;
}

bool mongo_backup_holds(struct mongo_store *m, bool *holds, struct err *e)
{
    bson_t ledger, *options = BCON_NEW("projection", "{", "backups", BCON_BOOL(true), "}");
    const int64_t now_ms = clock_wall_ms(m->store.clock);
    bool good = mongo_read_part(m->client, MONGO_LEDGER, MONGO_LEDGER, options, &ledger, e);
    *holds = good && mongo_has_hold(&ledger, now_ms);
    bson_destroy(&ledger);
    return good;
}

/* Fails if one has begun since the ledger was read, too. */
static bool remove_notes(struct mongo_store *m, const bson_t *ledger, bool *removed, struct err *e)
{
    int64_t noted = mongo_number_at(ledger, "noted", 0);
    bson_t filter = BSON_INITIALIZER;
    mongo_add_ledger(m, &filter);
    mongo_match_number(&filter, "noted", noted, noted > 0);
    return mongo_change(m->client, MONGO_LEDGER, &filter, BCON_NEW("$unset", "{", "backups", "", "}"), false,
                        removed, e);
}

bool mongo_end_backups(struct mongo_store *m, struct err *e)
{
    bson_t ledger;
    bool good = mongo_read_home(m, &ledger, e), ended = false;
    if (good && !mongo_has_hold(&ledger, clock_wall_ms(m->store.clock)))
        good = remove_notes(m, &ledger, &ended, e);
    bson_destroy(&ledger);
    return good && (ended || err_set_retryable(
                                 e, EX_TEMPFAIL,
                                 "%s: a backup is being taken, or was killed in the last ten minutes: wait "
                                 "until it has ended",
                                 mongo_client_name(m->client)));
}

bool mongo_is_unfinished(const bson_t *ledger)
{
    bson_iter_t it;
    return mongo_find_member(ledger, "restoring.copy", &it);
}

bool mongo_check_format(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    int64_t format = mongo_number_at(ledger, "v", 1);
    const char *needs = mongo_text_at(ledger, "needs");
    return format <= MONGO_FORMAT ||
           err_set(e, EX_DATAERR, "%s has format %" PRId64 ", this tallyd knows 1 to %d: use %s%s%s",
                   mongo_client_name(m->client), format, MONGO_FORMAT,
                   needs[0] != '\0' ? "tallyd " : "the later version that wrote it", needs,
                   needs[0] != '\0' ? " or later" : "");
}

bool mongo_check_opens(struct mongo_store *m, const bson_t *ledger, struct err *e)
{
    if (!mongo_check_format(m, ledger, e))
        return false;
    if (mongo_is_unfinished(ledger))
        return err_set(
            e, EX_TEMPFAIL,
            "%s is an unfinished copy: wait for `tallyd admin copy`, or run the same command again",
            mongo_client_name(m->client));
    return !bson_has_field(ledger, "restoring") ||
           err_set_retryable(
               e, EX_TEMPFAIL,
               "%s is being restored, or its restore has not ended, or another program put back what `tallyd "
               "admin backup` made: wait for it, or run `tallyd admin restore --force` (again)",
               mongo_client_name(m->client));
}

void mongo_add_restored(bson_t *filter)
{
    mongo_match_nothing(filter, "restoring");
}
