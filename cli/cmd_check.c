#include "cli/commands.h"

#include "base/suggest.h"
#include "cli/options.h"
#include "config/network.h"
#include "daemon/budget.h"
#include "daemon/setup.h"
#include "ingest/file/family.h"
#include "store/mongo/mongo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: tallyd check [FILE] [--print [--secrets]]\n"
    "\n"
    "Checks a configuration, without FILE the built-in one. It prints every problem with its file, line and\n"
    "column; the exit status is then 78.\n"
    "\n"
    "  -c, --config FILE  the same as FILE\n"
    "      --print        show what is in effect, with all defaults, as YAML, and how much memory its "
    "limits\n"
    "                     allow `run`; passwords and tokens in it are hidden\n"
    "      --secrets      with --print: do not hide them\n"
    "  -h, --help         this text\n";

static int finish(struct text *out)
{
    struct err e;
    bool good = options_print(out, &e);
    text_fini(out);
    return good ? EX_OK : options_complain("check", &e);
}

/* Warn, but do not refuse: --store may name another store. */
static void note_store(const struct config *c, const char *prefix, struct text *out)
{
    if (mongo_is_url(c->store.url))
        return;
    if (c->store.ttl)
        text_printf(out,
                    "%snote: store.ttl needs a store in MongoDB: `tallyd run` and `import` refuse it with "
                    "store.url as it is\n",
                    prefix);
    for (size_t i = 0; i < c->source_count; i++) {
        if (c->sources[i].raw.kind != RAW_OFF)
            text_printf(out,
                        "%snote: raw events (sources.%s.raw) need a store in MongoDB: `tallyd run` and "
                        "`import` refuse them with store.url as it is\n",
                        prefix, c->sources[i].name);
    }
    for (size_t i = 0; i < c->report_count; i++) {
        if (report_cell(&c->reports[i]) != SPAN_MINUTE)
            text_printf(out,
                        "%snote: seconds (reports.%s.layout) need a store in MongoDB: `tallyd run` and "
                        "`import` refuse them with store.url as it is\n",
                        prefix, c->reports[i].name);
    }
}

/* Is it of the sums that a running total makes meaningless: each sample would count the total again? */
static bool adds_values(const struct measure *m)
{
    return (m->kind == MEASURE_SUM || m->kind == MEASURE_MEAN || m->kind == MEASURE_HISTOGRAM) &&
           m->field == FIELD_VALUE;
}

/* Warn, but do not refuse: other sources and conditions may leave a report without totals. */
static void note_totals(const struct config *c, const char *prefix, struct text *out)
{
    size_t s = 0;
    while (s < c->source_count && !decode_keeps_totals(&c->sources[s].decode))
        s++;
    for (size_t i = 0; s < c->source_count && i < c->report_count; i++) {
        const struct report *r = &c->reports[i];
        for (size_t m = 0; m < r->measure_count; m++) {
            if (adds_values(&r->measures[m]))
                text_printf(out,
                            "%snote: reports.%s.measures.%s: %s counts a total of sources.%s again with each "
                            "sample; last(value) keeps it\n",
                            prefix, r->name, r->measures[m].name, r->measures[m].expression,
                            c->sources[s].name);
        }
    }
}

/* Warn, but do not refuse: in JSON and the like a field may have any name, also one that is like another. */
static void note_own_fields(const struct config *c, const char *prefix, struct text *out)
{
    const char *known[FIELD_MAX + 1] = {NULL};
    uint64_t declared = ((uint64_t)1 << FIELD_COUNT) - 1;
    size_t count = 0;
    for (size_t i = 0; i < c->source_count; i++)
        declared |= decode_fields(&c->sources[i].decode);
    for (int f = 0; f < field_count(); f++) {
        if ((declared >> f & 1) != 0)
            known[count++] = field_name((enum field)f);
    }
    for (int f = FIELD_COUNT; f < field_count(); f++) {
        const char *name = field_name((enum field)f), *nearest = suggest_slip(slice_text(name), known);
        if ((declared >> f & 1) != 0 || derive_has(&c->derive, (enum field)f) || nearest == NULL)
            continue;
        for (size_t i = 0; i < c->report_count; i++) {
            if (report_uses(&c->reports[i], (enum field)f))
                text_printf(out, "%snote: reports.%s: %s is a field of your own; did you mean %s?\n", prefix,
                            c->reports[i].name, name, nearest);
        }
    }
}

/* Warn, but do not refuse: the registry may be away for a while. */
static void note_registry(const struct config *c, const char *prefix, struct text *out)
{
    struct err e;
    if (c->registry.is_asked && !registry_probe(&c->registry, &e))
        text_printf(out, "%snote: the schema registry cannot be reached: %s\n", prefix, e.text);
}

struct noting {
    const char *prefix;
    struct text *out;
};

/* A network_fn. */
static void note_elsewhere(void *context, const char *key, struct slice host)
{
    const struct noting *n = context;
    text_printf(
        n->out,
        "%snote: %s has %.*s: as a service, `tallyd run` needs the drop-in network.conf to reach, or be "
        "reached by, other computers\n",
        n->prefix, key, (int)host.len, host.ptr);
}

/* The units close the network by default. */
static void note_network(const struct config *c, const char *prefix, struct text *out)
{
    network_each_elsewhere(c, NULL, NULL, note_elsewhere, &(struct noting){prefix, out});
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Is the folder certainly not there? One that may not be looked at may be. */
static bool lacks_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? !S_ISDIR(status.st_mode) : errno == ENOENT || errno == ENOTDIR;
}

static bool lacks_folder_of(const char *file)
{
    char *folders[FAMILY_FOLDERS];
    family_folders(file, NULL, folders);
    bool lacks = lacks_folder(folders[0]);
    free(folders[0]);
    return lacks;
}

/* It says what is wrong with a source's path, or NULL. The text leaves the path out: that may be a secret. */
static const char *path_fault(const struct pattern *p)
{
    if (p->text[0] == '~' || p->text[0] == '$')
        return "begins with ~ or $, which stand for themselves: write the whole path, or ${HOME}/…";
    if (strncmp(p->text, "file:", strlen("file:")) == 0)
        return "begins with file:, which is no part of a path: write /var/log/…";
    if (p->plain != NULL && is_folder(p->plain))
        return "is a folder: write the path of a file, or a pattern such as /var/log/nginx/*.log";
    if (!p->is_absolute)
        return "is relative: each command takes it from the folder in which it is started";
    return NULL;
}

/* Does one of the source's logs have no such folder of rotated files? */
static bool lacks_olddir(const struct config_source *source)
{
    bool lacks = false;
    for (size_t i = 0; source->olddir != NULL && i < source->path_count; i++) {
        char *folders[FAMILY_FOLDERS];
        if (source->paths[i]->plain == NULL && source->olddir[0] != '/')
            continue; /* each file may have a folder of its own */
        family_folders(source->paths[i]->text, source->olddir, folders);
        lacks |= lacks_folder(folders[1]);
        free(folders[0]);
        free(folders[1]);
    }
    return lacks;
}

static void note_source(const struct config_source *s, const char *prefix, struct text *out)
{
    for (size_t i = 0; i < s->path_count; i++) {
        const char *fault = path_fault(s->paths[i]);
        if (fault != NULL && s->path_count == 1)
            text_printf(out, "%snote: sources.%s.path %s\n", prefix, s->name, fault);
        else if (fault != NULL)
            text_printf(out, "%snote: sources.%s.path.%zu %s\n", prefix, s->name, i, fault);
    }
    if (lacks_olddir(s))
        text_printf(out, "%snote: sources.%s.olddir: there is no such folder\n", prefix, s->name);
}

/* Warn, but do not refuse: a folder may be made later, and the file may be checked elsewhere. */
static void note_files(const struct config *c, const char *prefix, struct text *out)
{
    const char *const sqlite = "sqlite:";
    for (size_t i = 0; i < c->source_count; i++)
        note_source(&c->sources[i], prefix, out);
    if (strncmp(c->store.url, sqlite, strlen(sqlite)) == 0 && lacks_folder_of(c->store.url + strlen(sqlite)))
        text_printf(out, "%snote: store.url: there is no folder for its file\n", prefix);
    if (c->rejects.file != NULL && lacks_folder_of(c->rejects.file))
        text_printf(out, "%snote: rejects.file: there is no folder for it\n", prefix);
}

/* Notes on what the next command may stumble over. */
static void note_all(const struct config *c, const char *prefix, struct text *out)
{
    note_store(c, prefix, out);
    note_files(c, prefix, out);
    note_network(c, prefix, out);
    note_totals(c, prefix, out);
    note_own_fields(c, prefix, out);
    derive_print(&c->derive, prefix, out);
    note_registry(c, prefix, out);
}

static int check(const char *file, bool print, bool secrets)
{
    struct text out = {0};
    int code = EX_OK;
    struct config *c = options_load_to_decode(file, NULL, NULL, &code);
    if (c == NULL)
        return code;
    struct err e;
    if (mongo_is_url(c->store.url) && !mongo_check_url(c->store.url, c->store.unsafe_write_concern, &e)) {
        fprintf(stderr, "%s%s: %s\n", log_error_prefix(), file == NULL ? "built-in" : file, e.text);
        config_free(c);
        return e.code;
    }
    if (print) {
        config_print(c, !secrets, &out);
        note_all(c, "# ", &out);
        budget_print(c, &out);
    } else {
        text_printf(&out, "%s: configuration is good\n", file == NULL ? "built-in" : file);
        note_all(c, "", &out);
    }
    config_free(c);
    return finish(&out);
}

int cmd_check(int argc, char **argv)
{
    const char *file = NULL;
    bool print = false, secrets = false, document = false;
    /* --document, the page docs/CONFIG.md, is for `make docs` and not in the help. */
    const struct option_word words[] = {{"config", 'c', .text = &file},
                                        {"print", .flag = &print},
                                        {"secrets", .flag = &secrets},
                                        {"document", .flag = &document}};
    const struct command command = {"check", usage, words, COUNT_OF(words), NULL};
    struct text out = {0};
    int code = options_parse(&command, &argc, &argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    if (argc > (file == NULL ? 1 : 0))
        return options_bad_usage("check", "it takes one FILE");
    if (!document)
        return check(argc > 0 ? argv[0] : file, print, secrets);
    config_document(&out);
    return finish(&out);
}
