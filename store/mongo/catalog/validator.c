/* Makes validators at start: each collection gets the one that the configuration asks for. One that tallyd
 * did not write is the operator's choice: it is logged, and left alone. Counting goes on if the server does
 * not support validators, or does not allow us to make one.
 *
 * The level is "moderate": a document that is already damaged does not stop counting.
 */
#include "store/mongo/catalog/validator.h"

#include "base/check.h"
#include "base/log.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/catalog/schema.h"
#include "store/mongo/wire/field.h"

#define CODE_NAMESPACE_EXISTS 48
#define LEVEL                 "moderate"

static const char *const actions[] = {
    [VALIDATION_OFF] = "off", [VALIDATION_WARN] = "warn", [VALIDATION_ERROR] = "error"};

/* Finds "options" of the only collection in a reply of listCollections; false: there is none. */
static bool find_options(const bson_t *reply, bson_iter_t *options)
{
    bson_iter_t batch, one;
    return mongo_find_member(reply, "cursor.firstBatch", &batch) && bson_iter_recurse(&batch, &one) &&
           bson_iter_next(&one) && bson_iter_recurse(&one, options) && bson_iter_find(options, "options");
}

static bool option_is(const bson_iter_t *options, const char *name, const char *value)
{
    bson_iter_t at;
    return bson_iter_recurse(options, &at) && bson_iter_find(&at, name) && BSON_ITER_HOLDS_UTF8(&at) &&
           strcmp(bson_iter_utf8(&at, NULL), value) == 0;
}

static bool is_wanted(const struct mongo_store *m, const struct mongo_collection *c, bool whole,
                      const bson_t *found)
{
    bson_t wanted;
    mongo_schema(m, c, whole, &wanted);
    bool is = bson_equal(&wanted, found);
    bson_destroy(&wanted);
    return is;
}

static enum mongo_validator judge(const struct mongo_store *m, const struct mongo_collection *c,
                                  enum store_validation v, const bson_iter_t *options)
{
    bson_iter_t at;
    const uint8_t *bytes;
    uint32_t len = 0;
    bson_t found = BSON_INITIALIZER;
    if (bson_iter_recurse(options, &at) && bson_iter_find(&at, "validator") &&
        BSON_ITER_HOLDS_DOCUMENT(&at)) {
        bson_iter_document(&at, &len, &bytes);
        ASSERT(bson_init_static(&found, bytes, len));
    }
    if (bson_empty(&found))
        return v == VALIDATION_OFF ? VALIDATOR_IS_THERE : VALIDATOR_DIFFERS;
    if (!mongo_schema_is_ours(&found))
        return VALIDATOR_FOREIGN;
    /* A schema that is not the whole is as much as this server supports. */
    bool is_same = v != VALIDATION_OFF && option_is(options, "validationAction", actions[v]) &&
                   option_is(options, "validationLevel", LEVEL) &&
                   (is_wanted(m, c, true, &found) || is_wanted(m, c, false, &found));
    return is_same ? VALIDATOR_IS_THERE : VALIDATOR_DIFFERS;
}

bool mongo_find_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          enum mongo_validator *state, struct err *e)
{
    bson_iter_t options;
    bson_t reply;
    bson_t *command =
        BCON_NEW("listCollections", BCON_INT32(1), "filter", "{", "name", BCON_UTF8(c->name), "}");
    bool good = mongo_read(m->client, command, &reply, e);
    *state = v == VALIDATION_OFF ? VALIDATOR_IS_THERE : VALIDATOR_NO_COLLECTION;
    if (good && find_options(&reply, &options))
        *state = judge(m, c, v, &options);
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

void mongo_validator_command(const struct mongo_store *m, const struct mongo_collection *c,
                             enum store_validation v, bool create, bool whole, bson_t *command)
{
    bson_t validator;
    if (!mongo_schema(m, c, whole, &validator) || v == VALIDATION_OFF)
        bson_reinit(&validator);
    bson_init(command);
    BSON_APPEND_UTF8(command, create ? "create" : "collMod", c->name);
    BSON_APPEND_DOCUMENT(command, "validator", &validator);
    BSON_APPEND_UTF8(command, "validationLevel", v == VALIDATION_OFF ? "off" : LEVEL);
    if (v != VALIDATION_OFF)
        BSON_APPEND_UTF8(command, "validationAction", actions[v]);
    bson_destroy(&validator);
}

static bool run(struct mongo_store *m, const bson_t *command, struct err *e)
{
    bson_t reply;
    bson_iter_t code;
    bool good =
        mongo_write(m->client, command, &reply, e) ||
        /* another was quicker */
        (bson_iter_init_find(&code, &reply, "code") && bson_iter_as_int64(&code) == CODE_NAMESPACE_EXISTS);
    bson_destroy(&reply);
    return good;
}

/* Makes as much as the server supports: the whole schema, or only members with fixed names. */
static bool make(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                 bool create, struct err *e)
{
    bool good = false;
    for (int whole = 1; whole >= 0 && !good; whole--) {
        bson_t command;
        mongo_validator_command(m, c, v, create, whole, &command);
        good = run(m, &command, e);
        bson_destroy(&command);
        if (!good && (e->retryable || e->code == EX_NOPERM))
            return false;
    }
    return good;
}

/* FerretDB makes a collection and drops its validator, so this reads it back. */
bool mongo_make_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          bool create, struct err *e)
{
    enum mongo_validator state = VALIDATOR_DIFFERS;
    if (create && (!make(m, c, v, true, e) || !mongo_find_validator(m, c, v, &state, e)))
        return false;
    return state != VALIDATOR_DIFFERS || make(m, c, v, false, e);
}

bool mongo_settle_validation(struct mongo_store *m, enum store_validation *v, bool *is_ferretdb,
                             struct err *e)
{
    bson_t reply;
    bson_t *command = BCON_NEW("buildInfo", BCON_INT32(1));
    bool good = mongo_read(m->client, command, &reply, e);
    *is_ferretdb = good && bson_has_field(&reply, "ferretdb");
    if (*is_ferretdb && *v == VALIDATION_ERROR)
        *v = VALIDATION_WARN;
    bson_destroy(&reply);
    bson_destroy(command);
    return good;
}

struct setting {
    struct mongo_store *m;
    enum store_validation validation;
    bool is_ferretdb;
    bool is_told;
};

/* Refuses a validator that stayed as it was, and under which the server loses updates. */
static bool check_loses(const struct setting *s, const struct mongo_collection *c, struct err *e)
{
    bson_iter_t options, at, member;
    bson_t reply;
    if (!s->is_ferretdb)
        return true;
    bson_t *command =
        BCON_NEW("listCollections", BCON_INT32(1), "filter", "{", "name", BCON_UTF8(c->name), "}");
    bool good = mongo_read(s->m->client, command, &reply, e);
    bool loses = good && find_options(&reply, &options) && option_is(&options, "validationAction", "error") &&
                 bson_iter_recurse(&options, &at) && bson_iter_find(&at, "validator") &&
                 BSON_ITER_HOLDS_DOCUMENT(&at) && bson_iter_recurse(&at, &member) && bson_iter_next(&member);
    bson_destroy(&reply);
    bson_destroy(command);
    return good &&
           (!loses ||
            err_set(
                e, EX_CONFIG,
                "%s: collection %s has a validator that refuses documents, and FerretDB loses updates under "
                "such: set its validationAction to warn, by collMod",
                mongo_client_name(s->m->client), c->name));
}

/* An unreachable server is an error. A refusal is not: it is logged once. */
static bool go_on_without(struct setting *s, const struct mongo_collection *c, const struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    if (!e->retryable && !s->is_told)
        log_warn("validator_refused", "collection=%s error=%s next=\"counting without a validator\"", c->name,
                 log_quote(e->text, quoted));
    s->is_told |= !e->retryable;
    return !e->retryable;
}

static bool set(void *context, const struct mongo_collection *c, struct err *e)
{
    struct setting *s = context;
    enum mongo_validator state;
    bson_t validator;
    bool has_one = mongo_schema(s->m, c, true, &validator);
    bson_destroy(&validator);
    if (!has_one)
        return true;
    if (!mongo_find_validator(s->m, c, s->validation, &state, e))
        return go_on_without(s, c, e);
    if (state == VALIDATOR_FOREIGN && s->validation != VALIDATION_OFF)
        log_warn("validator_differs", "collection=%s next=\"left alone\"", c->name);
    bool good = state == VALIDATOR_IS_THERE || state == VALIDATOR_FOREIGN ||
                mongo_make_validator(s->m, c, s->validation, state == VALIDATOR_NO_COLLECTION, e) ||
                go_on_without(s, c, e);
    return good && check_loses(s, c, e);
}

bool mongo_set_validators(struct mongo_store *m, enum store_validation validation, struct err *e)
{
    struct setting s = {.m = m, .validation = validation};
    if (!mongo_settle_validation(m, &s.validation, &s.is_ferretdb, e))
        return false;
    if (s.validation != validation)
        log_warn("validation_warns",
                 "server=FerretDB next=\"its validators only warn: it loses updates of several "
                 "clients where they refuse documents\"");
    return mongo_each_collection(m, set, &s, e);
}
