/* Prints or makes validators, one by one; mongo/catalog/validator.c makes them at start. */
#include "store/mongo/admin/run.h"

#include "store/mongo/admin/admin.h"
#include "store/mongo/catalog/catalog.h"
#include "store/mongo/catalog/schema.h"
#include "store/mongo/catalog/validator.h"

static const char *say_state(enum mongo_validator state)
{
    static const char *const found[] = {[VALIDATOR_IS_THERE] = "is there",
                                        [VALIDATOR_NO_COLLECTION] = "is missing, and so is the collection",
                                        [VALIDATOR_DIFFERS] = "is missing, or another one of tallyd",
                                        [VALIDATOR_FOREIGN] = "is not tallyd's, and is left alone"};
    return found[state];
}

static void print_validator(struct mongo_admin_run *r, const struct mongo_collection *c,
                            enum store_validation v, enum mongo_validator state)
{
    static const char *const why[] = {[VALIDATION_OFF] = "no validator",
                                      [VALIDATION_WARN] = "the server logs what other programs write wrongly",
                                      [VALIDATION_ERROR] =
                                          "the server refuses wrong writes, except to damaged documents"};
    bson_t command;
    text_printf(r->out, "\n// %s: %s", c->name, why[v]);
    if (r->is_there)
        text_printf(r->out, "; %s",
                    v == VALIDATION_OFF && state == VALIDATOR_DIFFERS ? "there is one of tallyd"
                                                                      : say_state(state));
    text_putc(r->out, '\n');
    if (v == VALIDATION_OFF && state != VALIDATOR_DIFFERS)
        return;
    mongo_validator_command(r->m, c, v, state == VALIDATOR_NO_COLLECTION, true, &command);
    text_puts(r->out, state == VALIDATOR_FOREIGN ? "// " : "");
    mongo_admin_database(r);
    text_puts(r->out, ".runCommand(");
    mongo_admin_json(r->out, &command);
    text_puts(r->out, ")\n");
    bson_destroy(&command);
}

static bool make_validator(struct mongo_admin_run *r, const struct mongo_collection *c,
                           enum store_validation v, enum mongo_validator state, struct err *e)
{
    bool is_wanted = state == VALIDATOR_NO_COLLECTION || state == VALIDATOR_DIFFERS,
         is_off = v == VALIDATION_OFF;
    if (is_wanted && !mongo_make_validator(r->m, c, v, state == VALIDATOR_NO_COLLECTION, e))
        return false;
    text_printf(r->out, "%s: validator %s\n", c->name,
                is_wanted                               ? is_off ? "was taken away" : "was made"
                : is_off && state == VALIDATOR_IS_THERE ? "is none there"
                                                        : say_state(state));
    return true;
}

bool mongo_admin_validate(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e)
{
    enum store_validation v = r->validation;
    if (!mongo_has_schema(c))
        return true;
    if (r->is_there && !mongo_options_of(r->m, c->name, r->has_options, &r->options, e))
        return false;
    enum mongo_validator state = mongo_validator_state(r->m, c, v, &r->options);
    if (r->task->apply)
        return make_validator(r, c, v, state, e);
    print_validator(r, c, v, state);
    return true;
}
