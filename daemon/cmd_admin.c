#include "daemon/commands.h"

#include "daemon/options.h"
#include "daemon/setup.h"
#include "store/mongo.h"
#include "store/mongo_admin.h"

#include <stdio.h>

static const char usage[] =
    "usage: tallyd admin indexes|shard|validator [OPTIONS]\n"
    "\n"
    "Says what a MongoDB database needs for what is configured, as commands for its shell, each with the\n"
    "reason, and what of it is there already. What is there and differs is left alone.\n"
    "\n"
    "  indexes             those that charts are found by; `run` and `import` make them, too, and alone\n"
    "                      those by which the server ends documents (store.ttl)\n"
    "  shard               the shard keys of a sharded cluster\n"
    "  validator           the $jsonSchema of each collection, as store.validation says; `run` and\n"
    "                      `import` make them, too\n"
    "\n"
    "      --apply         do it, instead of saying it; again, it changes nothing\n"
    "  -c, --config FILE   configuration (default: built in)\n"
    "      --store URL     store (default: that of the configuration)\n"
    "  -h, --help          this text\n"
    "\n"
    "  tallyd admin shard -c tallyd.yaml\n"
    "  tallyd admin indexes --apply -c tallyd.yaml\n";

struct arguments {
    const char *config_file, *store_url;
    enum mongo_admin what;
    bool apply;
};

static int take_operands(struct arguments *args, int count, char **operands)
{
    static const char *const names[] = {
        [ADMIN_INDEXES] = "indexes", [ADMIN_SHARD] = "shard", [ADMIN_VALIDATOR] = "validator"};
    for (size_t i = 0; count == 1 && i < COUNT_OF(names); i++) {
        if (strcmp(operands[0], names[i]) == 0) {
            args->what = (enum mongo_admin)i;
            return 0;
        }
    }
    return options_bad_usage("admin", "expected one of indexes, shard and validator");
}

static int parse_arguments(struct arguments *args, int argc, char **argv)
{
    const struct option_word words[] = {{"apply", .flag = &args->apply},
                                        {"config", 'c', .text = &args->config_file},
                                        {"store", .text = &args->store_url}};
    const struct command command = {"admin", usage, words, COUNT_OF(words), NULL};
    int code = options_parse(&command, &argc, &argv);
    return code != 0 ? code : take_operands(args, argc, argv);
}

static bool administrate(const struct arguments *args, const struct config *c, struct err *e)
{
    const struct store_options options = setup_store(c);
    const struct mongo_task task = {.what = args->what,
                                    .apply = args->apply,
                                    .validation = c->store.validation,
                                    .reports = c->reports,
                                    .report_count = c->report_count,
                                    .weeks = c->jobs.weeks,
                                    .ttl = options.ttl,
                                    .raws = options.raws,
                                    .raw_count = options.raw_count};
    char shown[STORE_URL_BYTES];
    struct text out = {0};
    if (!mongo_is_url(c->store.url))
        return err_set(e, EX_USAGE,
                       "found the store %s, expected one in MongoDB: others need nothing of this",
                       store_show(c->store.url, shown));
    bool good = mongo_admin(c->store.url, &task, &out, e);
    struct err unsaid;
    if (!options_print(&out, good ? e : &unsaid))
        good = false;
    text_fini(&out);
    return good;
}

int cmd_admin(int argc, char **argv)
{
    struct arguments args = {0};
    struct err e;
    int code = parse_arguments(&args, argc, argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    struct config *c = options_load(args.config_file, args.store_url, &code);
    if (c == NULL)
        return code;
    bool good = administrate(&args, c, &e);
    config_free(c);
    return good ? EX_OK : options_complain("admin", &e);
}
