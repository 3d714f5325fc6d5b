#include "cli/commands.h"

#include "base/clock.h"
#include "cli/options.h"
#include "daemon/service/stop.h"
#include "daemon/setup.h"
#include "store/backend/backend.h"
#include "store/backend/copy.h"
#include "store/mongo/admin/admin.h"
#include "store/mongo/mongo.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const char usage[] =
    "usage: tallyd admin indexes|shard|validator [OPTIONS]\n"
    "       tallyd admin backup|restore [OPTIONS] PATH\n"
    "       tallyd admin copy [OPTIONS] FROM TO\n"
    "       tallyd admin upgrade [OPTIONS]\n"
    "\n"
    "indexes, shard and validator print what a MongoDB database needs for this configuration, as commands "
    "for\n"
    "its shell, with the reason of each, and what exists already. They leave alone what exists and differs.\n"
    "\n"
    "  indexes             the indexes that find charts; `run` and `import` create them, too. Only these "
    "two\n"
    "                      create the indexes by which the server expires documents (store.ttl)\n"
    "  shard               the shard keys of a sharded cluster\n"
    "  validator           the $jsonSchema of each collection, as store.validation says; `run` and `import`\n"
    "                      set them, too\n"
    "  backup PATH         copy the store to PATH, while daemons count into it: SQLite to a file, MongoDB to "
    "a\n"
    "                      directory in the format of mongodump\n"
    "  restore PATH        replace the store by such a copy, while no daemon runs. The next daemon resumes "
    "at\n"
    "                      the copy's positions, and counts again what came after the backup\n"
    "  copy FROM TO        copy the store FROM into the empty store TO, both as URLs: from SQLite to "
    "MongoDB, "
    "or\n"
    "                      back. Daemons may count into an SQLite file meanwhile, but not into MongoDB. "
    "Counting\n"
    "                      goes on in TO where it was. Raw events are not copied\n"
    "  upgrade             bring a store that an older version wrote to the present format. `run` and "
    "`import`\n"
    "                      do it, too. The file as it was stays beside it as PATH-formatN\n"
    "\n"
    "      --apply         indexes, shard, validator: do it; a second time changes nothing\n"
    "      --dry-run       copy, upgrade: say what would be done, and write nothing\n"
    "      --force         backup: replace what is at PATH; restore: replace the content of the store\n"
    "  -c, --config FILE   configuration (default: built in)\n"
    "      --store URL     store (default: that of the configuration)\n"
    "  -h, --help          this text\n"
    "\n"
    "  tallyd admin shard -c tallyd.yaml\n"
    "  tallyd admin indexes --apply -c tallyd.yaml\n"
    "  tallyd admin backup -c tallyd.yaml /backup/tallyd-$(date +%F)\n"
    "  tallyd admin restore -c tallyd.yaml /backup/tallyd-2026-11-23\n"
    "  tallyd admin copy sqlite:tallyd.db mongodb://127.0.0.1/tallyd\n";

enum what { WHAT_INDEXES, WHAT_SHARD, WHAT_VALIDATOR, WHAT_BACKUP, WHAT_RESTORE, WHAT_COPY, WHAT_UPGRADE };

struct arguments {
    const char *config_file, *store_url;
    enum what what;
    const char *path;      /* path of the backup */
    const char *from, *to; /* URLs of a copy */
    bool apply, dry, force;
};

static bool is_backup(enum what what)
{
    return what == WHAT_BACKUP || what == WHAT_RESTORE;
}

static int check_operands(const struct arguments *args, int count)
{
    bool is_shell = args->what < WHAT_BACKUP, takes_none = is_shell || args->what == WHAT_UPGRADE;
    if (is_backup(args->what) && (count != 1 || args->path[0] == '\0'))
        return options_bad_usage("admin", "backup and restore take one PATH: that of the copy");
    if (args->what == WHAT_COPY && count != 2)
        return options_bad_usage("admin", "copy takes the URLs of two stores: FROM and TO");
    if (takes_none && count != 0)
        return options_bad_usage("admin", "indexes, shard, validator and upgrade take no operand");
    if ((args->apply && !is_shell) || (args->force && !is_backup(args->what)) ||
        (args->dry && args->what < WHAT_COPY))
        return options_bad_usage("admin", "--apply is for indexes, shard and validator, --force for backup "
                                          "and restore, --dry-run for copy and upgrade");
    if (args->what == WHAT_COPY && args->store_url != NULL)
        return options_bad_usage("admin", "copy takes its stores as FROM and TO, not by --store");
    return 0;
}

static int take_operands(struct arguments *args, int count, char **operands)
{
    static const char *const names[] = {[WHAT_INDEXES] = "indexes",     [WHAT_SHARD] = "shard",
                                        [WHAT_VALIDATOR] = "validator", [WHAT_BACKUP] = "backup",
                                        [WHAT_RESTORE] = "restore",     [WHAT_COPY] = "copy",
                                        [WHAT_UPGRADE] = "upgrade",     NULL};
    int i = count > 0 ? slice_find(slice_text(operands[0]), names) : -1;
    if (i < 0)
        return options_bad_usage(
            "admin", "expected one of indexes, shard, validator, backup, restore, copy and upgrade");
    args->what = (enum what)i;
    args->path = args->from = count > 1 ? operands[1] : NULL;
    args->to = count > 2 ? operands[2] : NULL;
    return check_operands(args, count - 1);
}

static int parse_arguments(struct arguments *args, int argc, char **argv)
{
    const struct option_word words[] = {{"apply", .flag = &args->apply},
                                        {"config", 'c', .text = &args->config_file},
                                        {"dry-run", .flag = &args->dry},
                                        {"force", .flag = &args->force},
                                        {"store", .text = &args->store_url}};
    const struct command command = {"admin", usage, words, COUNT_OF(words), NULL};
    int code = options_parse(&command, &argc, &argv);
    return code != 0 ? code : take_operands(args, argc, argv);
}

static bool print_shell(const struct arguments *args, const struct config *c, struct text *out, struct err *e)
{
    static const enum mongo_admin tasks[] = {
        [WHAT_INDEXES] = ADMIN_INDEXES, [WHAT_SHARD] = ADMIN_SHARD, [WHAT_VALIDATOR] = ADMIN_VALIDATOR};
    const struct store_options options = setup_store(c);
    const struct mongo_task task = {.what = tasks[args->what],
                                    .apply = args->apply,
                                    .validation = c->store.validation,
                                    .reports = c->reports,
                                    .report_count = c->report_count,
                                    .weeks = c->jobs.weeks,
                                    .ttl = options.ttl,
                                    .raws = options.raws,
                                    .raw_count = options.raw_count};
    if (!mongo_is_url(c->store.url))
        return err_set(e, EX_USAGE,
                       "found the store %s, expected one in MongoDB: other stores need none of this",
                       c->store.url);
    return mongo_admin(c->store.url, &task, out, e);
}

/* ---- copies */

#define SHOW_EVERY_MS 200

struct copying {
    const atomic_bool *stop;
    bool on_terminal;
    int64_t shown_ms; /* monotonic time of the last progress line */
};

static bool goes_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    struct copying *c = context;
    int64_t now_ms = clock_mono_ms(&clock_system);
    if (c->on_terminal && now_ms - c->shown_ms >= SHOW_EVERY_MS) {
        c->shown_ms = now_ms;
        fprintf(stderr, "\r%.60s", what);
        if (done > 0)
            fprintf(stderr, "  %" PRIu64, done);
        if (total > 0)
            fprintf(stderr, " of %" PRIu64 " (%d %%)", total, (int)(done * 100 / total));
        fputs("\033[K", stderr);
        fflush(stderr);
    }
    return !atomic_load(c->stop);
}

static bool copy_between(const struct arguments *args, const struct config *c, struct copying *copying,
                         struct text *out, struct err *e)
{
    const struct store_options all = setup_store(c);
    const struct store_options options = {.connections = all.connections,
                                          .with_unsafe_writes = all.with_unsafe_writes};
    const struct store_copying between = {.from = args->from,
                                          .to = args->to,
                                          .dry = args->dry,
                                          .goes_on = goes_on,
                                          .context = copying,
                                          .options = &options};
    return store_copy_all(&between, out, e);
}

static bool copy_store(const struct arguments *args, const struct config *c, struct text *out, struct err *e)
{
    struct copying copying = {.stop = stop_catch(), .on_terminal = isatty(STDERR_FILENO)};
    const struct backup b = {.url = c->store.url,
                             .path = args->path,
                             .force = args->force,
                             .goes_on = goes_on,
                             .context = &copying};
    bool good = args->what == WHAT_COPY      ? copy_between(args, c, &copying, out, e)
                : args->what == WHAT_UPGRADE ? store_upgrade(c->store.url, args->dry, out, e)
                : args->what == WHAT_BACKUP  ? store_backup(&b, out, e)
                                             : store_restore(&b, out, e);
    if (copying.on_terminal)
        fputs("\r\033[K", stderr);
    return good;
}

static bool administrate(const struct arguments *args, const struct config *c, struct err *e)
{
    struct text out = {0};
    bool good = args->what >= WHAT_BACKUP ? copy_store(args, c, &out, e) : print_shell(args, c, &out, e);
    struct err unsaid;
    if (out.len > 0 && !options_print(&out, good ? e : &unsaid))
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
