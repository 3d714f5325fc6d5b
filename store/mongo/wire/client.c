#include "store/mongo/wire/client.h"

#include "base/library.h"
#include "base/mem.h"
#include "store/mongo/wire/field.h"

#include <errno.h>
#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The protocol's limits, for a server that does not name its own. */
#define UPDATES_DEFAULT 1000
#define BYTES_DEFAULT   (16 << 20)

/* clang-format off */
#define FUNCTIONS(X) \
    X(mongoc_init) X(mongoc_log_set_handler) X(mongoc_uri_new_with_error) X(mongoc_uri_destroy) \
    X(mongoc_uri_get_database) X(mongoc_uri_get_hosts) X(mongoc_uri_has_option) \
    X(mongoc_uri_get_option_as_int32) X(mongoc_uri_set_option_as_int32) X(mongoc_uri_set_option_as_bool) \
    X(mongoc_uri_get_option_as_bool) X(mongoc_uri_get_option_as_utf8) X(mongoc_uri_get_write_concern) \
    X(mongoc_uri_set_write_concern) X(mongoc_write_concern_new) X(mongoc_write_concern_destroy) \
    X(mongoc_write_concern_set_wmajority) X(mongoc_write_concern_set_journal) X(mongoc_write_concern_get_w) \
    X(mongoc_write_concern_get_wmajority) \
    X(mongoc_write_concern_is_acknowledged) X(mongoc_client_new_from_uri_with_error) \
    X(mongoc_client_destroy) X(mongoc_client_set_error_api) \
    X(mongoc_client_read_command_with_opts) X(mongoc_client_write_command_with_opts) \
    X(mongoc_client_set_appname) X(mongoc_client_set_read_prefs) \
    X(mongoc_client_get_collection) X(mongoc_collection_destroy) X(mongoc_collection_find_with_opts) \
    X(mongoc_collection_aggregate) \
    X(mongoc_cursor_next) X(mongoc_cursor_error) X(mongoc_cursor_destroy) \
    X(mongoc_client_select_server) X(mongoc_server_description_hello_response) \
    X(mongoc_server_description_destroy)
/* clang-format on */

LIBRARY(libmongoc, FUNCTIONS, "libmongoc-1.0.so.0", "libmongoc-1.0-0");

struct mongo_client {
    mongoc_client_t *client;
    char *database;
    char *name;
    int32_t socket_ms;
    bool is_unsafe;
    char concern[64]; /* write concern in the URI, for errors */
};

/* The library's last warning: it only warns of options in a URI that it does not know. */
static _Thread_local char warning[256];

/* Keeps warnings instead of printing them: errors are returned as values. */
static void keep_warning(mongoc_log_level_t level, const char *domain, const char *message, void *context)
{
    (void)domain, (void)context;
    if (level == MONGOC_LOG_LEVEL_WARNING)
        snprintf(warning, sizeof warning, "%s", message);
}

/* The library keeps statistics in a file of shared memory per process, which a SIGKILL leaves behind; the
 * next process with that number then prints a warning when it loads the library. Nobody reads them: use plain
 * memory. This runs before main(), while no other thread can read the environment. */
__attribute__((constructor)) static void leave_no_shared_memory(void)
{
    setenv("MONGOC_DISABLE_SHM", "1", 1);
}

static void begin(void)
{
    lib.mongoc_log_set_handler(keep_warning, NULL); /* before the library logs anything */
    lib.mongoc_init();
}

/* FerretDB returns PostgreSQL's error codes in PostgreSQL's packed form: six bits a character. */
static bool may_pass_in_postgresql(uint32_t code)
{
    /* conflict or deadlock of updates; no room, memory or connections; shutdown, crash or startup */
    static const char *const states[] = {"40001", "40P01", "53100", "53200",
                                         "53300", "57P01", "57P02", "57P03"};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        uint32_t packed = 0;
        for (unsigned at = 0; at < 5; at++)
            packed |= (uint32_t)(states[i][at] - '0') << 6 * at;
        if (packed == code)
            return true;
    }
    return false;
}

/* Codes of a server that is not the primary (any more), is shutting down, or has no room or too much load;
 * or that reaches too few members, does not know yet where its data is, or was interrupted. */
static bool may_pass(uint32_t code)
{
    /* clang-format off */
    static const uint32_t codes[] = {
        6, 7, 89, 9001,           /* HostUnreachable, HostNotFound, NetworkTimeout, SocketException */
        91, 11600, 11601, 11602,  /* ShutdownInProgress, Interrupted… */
        189, 10058, 10107,        /* PrimarySteppedDown, LegacyNotPrimary, NotWritablePrimary */
        13435, 13436,             /* NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary */
        64, 133, 134,             /* WriteConcernTimeout, no member to read, no majority to read */
        63, 150, 249, 13388,      /* routing: StaleShardVersion, StaleEpoch, StaleDbVersion, StaleConfig */
        82, 358, 406, 412,        /* NoProgressMade, InternalTransaction…, Migration…, Updates… */
        24, 46, 107, 112,         /* LockTimeout, LockBusy, LockFailed, WriteConflict */
        43, 175, 237, 314,        /* CursorNotFound, QueryPlanKilled, CursorKilled, ObjectIsBusy */
        239, 246, 250, 272,       /* Snapshot…, …, StaleChunkHistory, MigrationConflict */
        50, 202, 262, 290, 407,   /* time limits */
        14031, 365, 402,          /* OutOfDiskSpace, TemporarilyUnavailable, ResourceExhausted */
        433, 449, 450, 462,       /* AdmissionQueueOverflow, RateLimitExceeded, …Rejected, …Exceeded */
        215, 355, 371, 453,       /* DatabaseDropPending, Interrupted…, UserWritesBlocked, Interrupted… */
        234, 391, 46841, 91331,   /* RetryChangeStream, Reauthentication…, ClientMarkedKilled, Retriable… */
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (codes[i] == code)
            return true;
    }
    return may_pass_in_postgresql(code);
}

/* This error may pass: a certificate may be renewed, and another member of the replica set may have a good
 * one. */
#define CERTIFICATE      "certificate verify failed"
#define CERTIFICATE_HINT ": check tlsCAFile in store.url, and the server's certificate"

#define CODE_UNAUTHORIZED          13
#define CODE_AUTHENTICATION_FAILED 18
#define AUTHENTICATION_FAILED      "authentication failed"

/* Length of a sentence without its full stop, so that it can be continued. */
static size_t length_without_stop(const char *sentence)
{
    size_t len = strlen(sentence);
    return len > 0 && sentence[len - 1] == '.' ? len - 1 : len;
}

/* Has a login of this process ever succeeded? */
static atomic_bool was_let_in;

static bool note_let_in(void)
{
    atomic_store_explicit(&was_let_in, true, memory_order_relaxed);
    return true;
}

/* The library returns the same code for every failure during login, also if the connection breaks or the
 * server shuts down. So only the server's own message of a wrong password is final, and only if no login
 * ever succeeded. */
static bool fail_login(const struct mongo_client *c, const bson_error_t *error, const char *what,
                       struct err *e)
{
    int len = (int)length_without_stop(error->message);
    if (strcasestr(error->message, AUTHENTICATION_FAILED) != NULL &&
        !atomic_load_explicit(&was_let_in, memory_order_relaxed))
        return err_set(e, EX_NOPERM, "%s: %s: %.*s: check user, password and rights in store.url", c->name,
                       what, len, error->message);
    return err_set_retryable(
        e, EX_UNAVAILABLE, "%s: %s: cannot log in: %.*s: if that stays, check user and password in store.url",
        c->name, what, len, error->message);
}

static bool fail(const struct mongo_client *c, const bson_error_t *error, const char *what, struct err *e)
{
    bool is_server = error->domain == MONGOC_ERROR_SERVER || error->domain == MONGOC_ERROR_WRITE_CONCERN ||
                     error->domain == MONGOC_ERROR_QUERY || error->domain == MONGOC_ERROR_COMMAND ||
                     error->domain == MONGOC_ERROR_CURSOR;
    if ((error->domain == MONGOC_ERROR_CLIENT && error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE) ||
        (is_server && error->code == CODE_AUTHENTICATION_FAILED))
        return fail_login(c, error, what, e);
    if (is_server && error->code == CODE_UNAUTHORIZED)
        return err_set(e, EX_NOPERM, "%s: %s: %.*s: check user, password and rights in store.url", c->name,
                       what, (int)length_without_stop(error->message), error->message);
    /* If a connection breaks while it is made, the library returns a stream's code in some other domain. */
    bool is_connection = error->domain == MONGOC_ERROR_STREAM ||
                         error->domain == MONGOC_ERROR_SERVER_SELECTION ||
                         (!is_server && error->code <= MONGOC_ERROR_CLIENT_NOT_READY);
    if (is_connection || error->domain == MONGOC_ERROR_WRITE_CONCERN || (is_server && may_pass(error->code)))
        return err_set_retryable(e, EX_UNAVAILABLE, "%s: %s: %s%s", c->name, what, error->message,
                                 strstr(error->message, CERTIFICATE) != NULL ? CERTIFICATE_HINT : "");
    return err_set(e, EX_IOERR, "%s refuses: %s: %s (code %u)", c->name, what, error->message, error->code);
}

/* Checks the files of the URI: the library would only say that it cannot connect. */
static bool can_read_files(const mongoc_uri_t *uri, struct err *e)
{
    static const char *const options[] = {"tlsCAFile", "tlsCertificateKeyFile"};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        const char *path = lib.mongoc_uri_get_option_as_utf8(uri, options[i], NULL);
        if (path != NULL && access(path, R_OK) != 0)
            return err_set(e, EX_CONFIG, "store.url: cannot read %s %s: %s", options[i], path,
                           strerror(errno));
    }
    return true;
}

static int32_t socket_ms(const mongoc_uri_t *uri)
{
    return lib.mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, MONGO_SOCKET_MS);
}

/* Completes the URI with our defaults. A write concern times out before its reply does. */
static bool complete(mongoc_uri_t *uri, int64_t wait_max_ms, struct err *e)
{
    const struct {
        const char *option;
        int32_t ms;
    } timeouts[] = {{MONGOC_URI_SERVERSELECTIONTIMEOUTMS, MONGO_SELECT_MS},
                    {MONGOC_URI_CONNECTTIMEOUTMS, MONGO_CONNECT_MS},
                    {MONGOC_URI_SOCKETTIMEOUTMS, MONGO_SOCKET_MS}};
    for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
        int32_t ms = lib.mongoc_uri_get_option_as_int32(uri, timeouts[i].option, timeouts[i].ms);
        bool is_longer = wait_max_ms > 0 && (ms <= 0 || ms > wait_max_ms);
        lib.mongoc_uri_set_option_as_int32(uri, timeouts[i].option, is_longer ? (int32_t)wait_max_ms : ms);
    }
    lib.mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYWRITES, false);
    if (wait_max_ms > 0) /* a second try would wait as long again */
        lib.mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYREADS, false);
    if (!lib.mongoc_write_concern_is_acknowledged(lib.mongoc_uri_get_write_concern(uri)))
        return err_set(e, EX_CONFIG,
                       "store.url: found w=%d, expected w=majority or at least w=1: unacknowledged writes "
                       "cannot be counted exactly once",
                       lib.mongoc_write_concern_get_w(lib.mongoc_uri_get_write_concern(uri)));
    if (lib.mongoc_uri_has_option(uri, MONGOC_URI_W))
        return true;
    mongoc_write_concern_t *safe = lib.mongoc_write_concern_new();
    lib.mongoc_write_concern_set_wmajority(
        safe, lib.mongoc_uri_get_option_as_int32(uri, MONGOC_URI_WTIMEOUTMS, socket_ms(uri) / 2));
    lib.mongoc_write_concern_set_journal(safe,
                                         lib.mongoc_uri_get_option_as_bool(uri, MONGOC_URI_JOURNAL, true));
    lib.mongoc_uri_set_write_concern(uri, safe);
    lib.mongoc_write_concern_destroy(safe);
    return true;
}

/* A failover keeps what a majority has on disk. It may lose what fewer members have, or have only in
 * memory. */
static void note_concern(struct mongo_client *c, const mongoc_uri_t *uri)
{
    const mongoc_write_concern_t *concern = lib.mongoc_uri_get_write_concern(uri);
    bool is_journaled = lib.mongoc_uri_get_option_as_bool(uri, MONGOC_URI_JOURNAL, true);
    c->is_unsafe = !lib.mongoc_write_concern_get_wmajority(concern) || !is_journaled;
    if (!is_journaled)
        snprintf(c->concern, sizeof c->concern, "journal=false");
    else if (lib.mongoc_write_concern_get_w(concern) >= 0)
        snprintf(c->concern, sizeof c->concern, "w=%d", lib.mongoc_write_concern_get_w(concern));
    else
        snprintf(c->concern, sizeof c->concern, "a w of its own");
}

bool mongo_client_is_safe(const struct mongo_client *c, struct err *e)
{
    return !c->is_unsafe || err_set(e, EX_CONFIG,
                                    "store.url: found %s, expected w=majority, or none, which is the same: a "
                                    "failover may lose acknowledged writes, and counts with them. "
                                    "`store.unsafe_write_concern: true` takes it as it is",
                                    c->concern);
}

/* Are special characters of user and password escaped? If not, the library would show the password, or take
 * the part behind an @ for a host. */
static bool is_escaped(const char *url)
{
    const char *user = strstr(url, "://");
    if (user == NULL)
        return true;
    user += strlen("://");
    size_t len = strcspn(user, "/");
    const char *at = memrchr(user, '@', len);
    if (at == NULL)
        return true;
    len = (size_t)(at - user);
    const char *colon = memchr(user, ':', len);
    return memchr(user, '@', len) == NULL &&
           (colon == NULL || memchr(colon + 1, ':', (size_t)(at - colon - 1)) == NULL);
}

/* NULL: it is not a URI, or has an option that the library does not know. */
static mongoc_uri_t *parse(const char *url, struct err *e)
{
    bson_error_t error;
    if (!is_escaped(url)) {
        err_set(e, EX_CONFIG,
                "store.url: found a user or password with @ or : in it, expected these as %%40 "
                "and %%3A");
        return NULL;
    }
    warning[0] = '\0';
    mongoc_uri_t *uri = lib.mongoc_uri_new_with_error(url, &error);
    if (uri != NULL && warning[0] == '\0')
        return uri;
    err_set(e, EX_CONFIG, "store.url: %s", uri == NULL ? error.message : warning);
    if (uri != NULL)
        lib.mongoc_uri_destroy(uri);
    return NULL;
}

struct mongo_client *mongo_client_open(const char *url, bool primary, int64_t wait_max_ms, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bson_error_t error;
    if (!library_load(&libmongoc, e))
        return NULL;
    pthread_once(&once, begin);
    mongoc_uri_t *uri = parse(url, e);
    if (uri == NULL)
        return NULL;
    struct mongo_client *c = NULL;
    if (can_read_files(uri, e) && complete(uri, wait_max_ms, e)) {
        c = xcalloc(1, sizeof *c);
        const char *database = lib.mongoc_uri_get_database(uri);
        const mongoc_host_list_t *host = lib.mongoc_uri_get_hosts(uri);
        c->database = xstrdup(database != NULL ? database : MONGO_DATABASE_DEFAULT);
        c->socket_ms = socket_ms(uri);
        note_concern(c, uri);
        c->name = bson_strdup_printf("mongodb://%s/%s", host != NULL ? host->host_and_port : "", c->database);
        c->client = lib.mongoc_client_new_from_uri_with_error(uri, &error);
        if (c->client == NULL) {
            /* mongodb+srv: the library looks hosts up in DNS now. */
            bool is_name = error.domain == MONGOC_ERROR_STREAM;
            (void)(is_name ? err_set_retryable(e, EX_UNAVAILABLE, "store.url: %s", error.message)
                           : err_set(e, EX_CONFIG, "store.url: %s", error.message));
            mongo_client_close(c);
            c = NULL;
        } else {
            lib.mongoc_client_set_error_api(c->client, MONGOC_ERROR_API_VERSION_2);
            lib.mongoc_client_set_appname(c->client, "tallyd");
            if (primary)
                lib.mongoc_client_set_read_prefs(c->client, NULL);
        }
    }
    lib.mongoc_uri_destroy(uri);
    return c;
}

void mongo_client_close(struct mongo_client *c)
{
    if (c == NULL)
        return;
    if (c->client != NULL)
        lib.mongoc_client_destroy(c->client);
    bson_free(c->name);
    free(c->database);
    free(c);
}

static size_t limit_of(const bson_t *hello, const char *name, int64_t otherwise)
{
    int64_t limit = mongo_number_at(hello, name, 0);
    return (size_t)(limit > 0 ? limit : otherwise);
}

bool mongo_is_router(const bson_t *hello)
{
    return strcmp(mongo_text_at(hello, "msg"), "isdbgrid") == 0;
}

bool mongo_client_limits(struct mongo_client *c, struct mongo_limits *limits, struct err *e)
{
    bson_error_t error;
    mongoc_server_description_t *server = lib.mongoc_client_select_server(c->client, true, NULL, &error);
    if (server == NULL)
        return fail(c, &error, "hello", e);
    const bson_t *hello = lib.mongoc_server_description_hello_response(server);
    limits->updates = limit_of(hello, "maxWriteBatchSize", UPDATES_DEFAULT);
    limits->bytes = limit_of(hello, "maxBsonObjectSize", BYTES_DEFAULT);
    limits->document_bytes = limits->bytes;
    limits->is_router = mongo_is_router(hello);
    lib.mongoc_server_description_destroy(server);
    return true;
}

const char *mongo_client_name(const struct mongo_client *c)
{
    return c->name;
}

const char *mongo_client_database(const struct mongo_client *c)
{
    return c->database;
}

int32_t mongo_client_socket_ms(const struct mongo_client *c)
{
    return c->socket_ms;
}

/* The name of a command is its first key. */
static const char *name_of(const bson_t *command)
{
    bson_iter_t it;
    return bson_iter_init(&it, command) && bson_iter_next(&it) ? bson_iter_key(&it) : "?";
}

bool mongo_read_in(struct mongo_client *c, const char *database, const bson_t *command, bson_t *reply,
                   struct err *e)
{
    bson_error_t error;
    return lib.mongoc_client_read_command_with_opts(c->client, database != NULL ? database : c->database,
                                                    command, NULL, NULL, reply, &error)
               ? note_let_in()
               : fail(c, &error, name_of(command), e);
}

bool mongo_read(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e)
{
    return mongo_read_in(c, NULL, command, reply, e);
}

bool mongo_write_in(struct mongo_client *c, const char *database, const bson_t *command,
                    const bson_t *concern, bson_t *reply, struct err *e)
{
    bson_error_t error;
    bson_t options = BSON_INITIALIZER;
    if (concern != NULL)
        BSON_APPEND_DOCUMENT(&options, "writeConcern", concern);
    bool good = lib.mongoc_client_write_command_with_opts(
        c->client, database != NULL ? database : c->database, command, &options, reply, &error);
    bson_destroy(&options);
    return good ? note_let_in() : fail(c, &error, name_of(command), e);
}

bool mongo_write(struct mongo_client *c, const bson_t *command, bson_t *reply, struct err *e)
{
    return mongo_write_in(c, NULL, command, NULL, reply, e);
}

bool mongo_check_write(struct mongo_client *c, const bson_iter_t *failure, const char *what, struct err *e)
{
    bson_iter_t message, code;
    uint32_t number = mongo_find_in(failure, "code", &code) ? (uint32_t)bson_iter_as_int64(&code) : 0;
    bool is_text = mongo_find_in(failure, "errmsg", &message) && BSON_ITER_HOLDS_UTF8(&message);
    const char *text = is_text ? bson_iter_utf8(&message, NULL) : "?";
    if (may_pass(number))
        return err_set_retryable(e, EX_UNAVAILABLE, "%s: %s: %.300s", c->name, what, text);
    return err_set(e, EX_IOERR, "%s refuses %s: %.300s (code %u)", c->name, what, text, number);
}

/* Fails with the first of "writeErrors" whose code is not `expected`. */
static bool check_writes(struct mongo_client *c, const bson_t *reply, const char *what, uint32_t expected,
                         struct err *e)
{
    bson_iter_t at, code;
    for (bool more = mongo_begin_members(reply, "writeErrors", &at); more && bson_iter_next(&at);) {
        if (!mongo_find_in(&at, "code", &code) || bson_iter_as_int64(&code) != expected)
            return mongo_check_write(c, &at, what, e);
    }
    return true;
}

bool mongo_check_inserts(struct mongo_client *c, const bson_t *reply, const char *what, struct err *e)
{
    return check_writes(c, reply, what, MONGO_DUPLICATE_KEY, e);
}

/* Sends a write, and destroys the command. *count: documents that it found or made. */
static bool write_checked(struct mongo_client *c, bson_t *command, const char *collection, uint32_t expected,
                          bson_t *reply, int64_t *count, struct err *e)
{
    bool good = mongo_write(c, command, reply, e) && check_writes(c, reply, collection, expected, e);
    *count = good ? mongo_number_at(reply, "n", 0) : 0;
    bson_destroy(command);
    return good;
}

bool mongo_make(struct mongo_client *c, const char *collection, const bson_t *document, struct err *e)
{
    int64_t count;
    bson_t reply,
        *command = BCON_NEW("insert", BCON_UTF8(collection), "documents", "[", BCON_DOCUMENT(document), "]");
    bool good = write_checked(c, command, collection, MONGO_DUPLICATE_KEY, &reply, &count, e);
    bson_destroy(&reply);
    return good;
}

bool mongo_update_one(struct mongo_client *c, const char *collection, const bson_t *filter,
                      const bson_t *update, bool upsert, bool *matched, struct err *e)
{
    int64_t count;
    bson_t reply;
    bson_t *command =
        BCON_NEW("update", BCON_UTF8(collection), "updates", "[", "{", "q", BCON_DOCUMENT(filter), "u",
                 BCON_DOCUMENT(update), "upsert", BCON_BOOL(upsert), "}", "]");
    bool good = write_checked(c, command, collection, upsert ? MONGO_DUPLICATE_KEY : 0, &reply, &count, e);
    *matched = count == 1;
    bson_destroy(&reply);
    return good;
}

bool mongo_upsert_all(struct mongo_client *c, const char *collection, const bson_t *updates, int64_t *count,
                      struct err *e)
{
    bson_t reply, *command = BCON_NEW("update", BCON_UTF8(collection), "updates", BCON_ARRAY(updates),
                                      "ordered", BCON_BOOL(false));
    bool good = write_checked(c, command, collection, MONGO_DUPLICATE_KEY, &reply, count, e);
    bson_destroy(&reply);
    return good;
}

bool mongo_write_many(struct mongo_client *c, bson_t *command, const char *collection, int64_t *count,
                      struct err *e)
{
    bson_t reply;
    int64_t found;
    bool good = write_checked(c, command, collection, 0, &reply, &found, e);
    if (count != NULL)
        *count = good ? mongo_number_at(&reply, "nModified", found) : 0;
    bson_destroy(&reply);
    return good;
}

struct mongo_cursor {
    struct mongo_client *client;
    mongoc_collection_t *of;
    mongoc_cursor_t *cursor;
    const char *what; /* name of the command, for errors; borrowed */
};

static struct mongo_cursor *new_cursor(struct mongo_client *c, mongoc_collection_t *of,
                                       mongoc_cursor_t *cursor, const char *what)
{
    struct mongo_cursor *cu = xcalloc(1, sizeof *cu);
    *cu = (struct mongo_cursor){c, of, cursor, what};
    return cu;
}

struct mongo_cursor *mongo_cursor_open(struct mongo_client *c, const char *collection, const bson_t *filter,
                                       const bson_t *options)
{
    mongoc_collection_t *of = lib.mongoc_client_get_collection(c->client, c->database, collection);
    return new_cursor(c, of, lib.mongoc_collection_find_with_opts(of, filter, options, NULL), "find");
}

bool mongo_cursor_next(struct mongo_cursor *cu, const bson_t **document, struct err *e)
{
    bson_error_t error;
    *document = NULL;
    bool good = lib.mongoc_cursor_next(cu->cursor, document) || !lib.mongoc_cursor_error(cu->cursor, &error);
    return good ? note_let_in() : fail(cu->client, &error, cu->what, e);
}

void mongo_cursor_close(struct mongo_cursor *cu)
{
    if (cu == NULL)
        return;
    lib.mongoc_cursor_destroy(cu->cursor);
    lib.mongoc_collection_destroy(cu->of);
    free(cu);
}

static bool walk(struct mongo_cursor *cu, mongo_document_fn *fn, void *context, struct err *e)
{
    const bson_t *document;
    bool good;
    while ((good = mongo_cursor_next(cu, &document, e)) && document != NULL && fn(context, document)) {
    }
    mongo_cursor_close(cu);
    return good;
}

bool mongo_find(struct mongo_client *c, const char *collection, const bson_t *filter, const bson_t *options,
                mongo_document_fn *fn, void *context, struct err *e)
{
    return walk(mongo_cursor_open(c, collection, filter, options), fn, context, e);
}

bool mongo_aggregate(struct mongo_client *c, const char *collection, const bson_t *pipeline,
                     mongo_document_fn *fn, void *context, struct err *e)
{
    mongoc_collection_t *of = lib.mongoc_client_get_collection(c->client, c->database, collection);
    /* beyond 100 MB; for servers before 6.0 */
    bson_t *options = BCON_NEW("allowDiskUse", BCON_BOOL(true));
    mongoc_cursor_t *cursor = lib.mongoc_collection_aggregate(of, MONGOC_QUERY_NONE, pipeline, options, NULL);
    bson_destroy(options);
    return walk(new_cursor(c, of, cursor, "aggregate"), fn, context, e);
}
