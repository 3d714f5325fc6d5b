#include "store/mongo/ledger/slots.h"

#include "base/clock.h"
#include "store/mongo/ledger/identity.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

bool mongo_name_host(char buf[MONGO_HOST_BYTES])
{
    char boot[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool good = file != NULL && fgets(boot, sizeof boot, file) != NULL;
    if (file != NULL)
        fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    int n = snprintf(buf, MONGO_HOST_BYTES, "%s ", boot);
    ssize_t len = readlink("/proc/self/ns/pid", buf + n, (size_t)(MONGO_HOST_BYTES - n - 1));
    if (len > 0)
        buf[n + len] = '\0';
    return good && len > 0;
}

/* The process that took the slot, if it is or was on this machine; else 0. */
static pid_t process_here(const bson_t *ledger, const char *slot)
{
    char path[MONGO_SLOT_PATH_BYTES], host[MONGO_HOST_BYTES];
    bool is_here = mongo_name_host(host) &&
                   strcmp(mongo_text_at(ledger, mongo_slot_path(slot, "host", path)), host) == 0;
    return is_here ? (pid_t)mongo_slot_at(ledger, slot, "pid", 0) : 0;
}

/* How good a slot is to take. A slot that is alive cannot be taken. A slot that was given back, or whose
 * process is gone, is best. */
enum { SLOT_LIVES, SLOT_SILENT, SLOT_NEW, SLOT_FREE };

static int slot_state(const bson_t *ledger, const char *slot, int64_t now_ms)
{
    int64_t lease_ms = mongo_slot_at(ledger, slot, "lease", -1);
    if (lease_ms <= 0)
        return lease_ms < 0 ? SLOT_NEW : SLOT_FREE;
    pid_t pid = process_here(ledger, slot);
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
        return SLOT_FREE;
    bool lives = now_ms - lease_ms <= MONGO_LEASE_MS && lease_ms - now_ms <= MONGO_CLOCK_SLACK_MS;
    return lives ? SLOT_LIVES : SLOT_SILENT;
}

bool mongo_slot_lives(const bson_t *ledger, const char *slot, int64_t now_ms)
{
    return slot_state(ledger, slot, now_ms) == SLOT_LIVES;
}

bool mongo_slot_is_others(const struct mongo_store *m, const bson_t *ledger, const char *slot)
{
    return slot_state(ledger, slot, clock_wall_ms(m->store.clock)) == SLOT_LIVES &&
           process_here(ledger, slot) != getpid();
}

bool mongo_find_free(const struct mongo_store *m, const bson_t *ledger, char slot[MONGO_SLOT_BYTES])
{
    int64_t now_ms = clock_wall_ms(m->store.clock);
    int best = SLOT_LIVES;
    for (int i = 0; i < MONGO_SLOTS; i++) {
        int state = slot_state(ledger, mongo_slots[i], now_ms);
        if (state > best) {
            best = state;
            memcpy(slot, mongo_slots[i], MONGO_SLOT_BYTES);
        }
    }
    return best != SLOT_LIVES;
}

const char *mongo_find_living(const struct mongo_store *m, const bson_t *ledger)
{
    int64_t now_ms = clock_wall_ms(m->store.clock);
    for (int i = 0; i < MONGO_SLOTS; i++) {
        if (slot_state(ledger, mongo_slots[i], now_ms) == SLOT_LIVES)
            return mongo_slots[i];
    }
    return NULL;
}

bool mongo_set_lease(struct mongo_store *m, int64_t lease_ms, struct err *e)
{
    char path[MONGO_SLOT_PATH_BYTES];
    bson_t query = BSON_INITIALIZER;
    mongo_add_own(m, &query);
    bson_t *update =
        BCON_NEW("$set", "{", mongo_slot_path(m->writer.slot, "lease", path), BCON_DATE_TIME(lease_ms), "}");
    m->writer.leased_ms = clock_mono_ms(m->store.clock);
    /* If not found, mongo_keep_slot() says so. */
    return mongo_change(m->client, MONGO_LEDGER, &query, update, false, NULL, e);
}

bool mongo_renew_lease(struct mongo_store *m, struct err *e)
{
    return m->writer.slot[0] == '\0' ||
           clock_mono_ms(m->store.clock) - m->writer.leased_ms < MONGO_LEASE_MS / 3 ||
           mongo_set_lease(m, clock_wall_ms(m->store.clock), e);
}
