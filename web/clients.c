#include "web/clients.h"

#include "base/mem.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define LOOK_MS 250

enum doing { WAITS, WORKS, SENDS };

struct client {
    struct client *next, *previous;
    struct clients *clients;
    struct in6_addr address; /* IPv4 is mapped */
    int socket;
    enum doing doing;
    int64_t since_ms; /* monotonic: when it began to do that */
    uint64_t bytes;   /* of the response that is being sent */
    bool is_dropped;
};

struct clients {
    struct clients_options options;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* bytes were released, a client waits or is gone, or `ending` was set */
    pthread_t thread;
    struct client *list;
    size_t count;     /* connections that are not dropped */
    uint64_t sending; /* bytes reserved */
    bool ending;
};

static struct in6_addr mapped(const struct sockaddr *address)
{
    struct in6_addr a = {{{[10] = 0xff, [11] = 0xff}}};
    if (address->sa_family == AF_INET6)
        return ((const struct sockaddr_in6 *)address)->sin6_addr;
    if (address->sa_family == AF_INET)
        memcpy(&a.s6_addr[12], &((const struct sockaddr_in *)address)->sin_addr, 4);
    return a;
}

static bool is_loopback(const struct in6_addr *a)
{
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

/* Call under the lock. */
static void drop(struct client *cl)
{
    cl->is_dropped = true;
    cl->clients->count--;
    shutdown(cl->socket, SHUT_RDWR);
}

static bool took_too_long(const struct client *cl, int64_t now_ms)
{
    int64_t limit_ms = cl->clients->options.timeout_ms;
    if (cl->doing == SENDS)
        limit_ms += (int64_t)(cl->bytes / CLIENTS_SLOWEST) * 1000;
    return cl->doing != WORKS && now_ms - cl->since_ms >= limit_ms;
}

/* Has the client sent what nobody has read yet? It may be a whole request, so the client is not slow. */
static bool has_unread(const struct client *cl)
{
    int bytes = 0;
    return ioctl(cl->socket, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* The connection that waits longest for a request, of which nothing more has come. A new one is spared: its
 * client may be about to send. Call under the lock. */
static struct client *find_idle(const struct clients *c, int64_t now_ms)
{
    struct client *longest = NULL;
    for (struct client *cl = c->list; cl != NULL; cl = cl->next) {
        bool is_longer = longest == NULL || cl->since_ms <= longest->since_ms;
        bool is_new = now_ms - cl->since_ms < CLIENTS_NEW_MS;
        if (cl->doing == WAITS && !cl->is_dropped && !is_new && is_longer && !has_unread(cl))
            longest = cl;
    }
    return longest;
}

/* The connection that has done so for longest; NULL: there is none. Call under the lock. */
static struct client *find_longest(const struct clients *c, enum doing doing)
{
    struct client *longest = NULL;
    for (struct client *cl = c->list; cl != NULL; cl = cl->next) {
        if (cl->doing == doing && !cl->is_dropped && (longest == NULL || cl->since_ms <= longest->since_ms))
            longest = cl;
    }
    return longest;
}

static void *run(void *context)
{
    struct clients *c = context;
    pthread_mutex_lock(&c->lock);
    while (!c->ending) {
        int64_t now_ms = clock_mono_ms(c->options.clock);
        for (struct client *cl = c->list; cl != NULL; cl = cl->next) {
            if (!cl->is_dropped && took_too_long(cl, now_ms))
                drop(cl);
        }
        struct client *idle;
        while (c->count > c->options.connections_max && (idle = find_idle(c, now_ms)) != NULL)
            drop(idle);
        bool is_full = c->count > c->options.connections_max;
        (void)clock_wait(c->options.clock, &c->changed, &c->lock,
                         now_ms + (is_full ? CLIENTS_NEW_MS : LOOK_MS));
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

struct clients *clients_start(const struct clients_options *options)
{
    struct clients *c = xcalloc(1, sizeof *c);
    c->options = *options;
    pthread_mutex_init(&c->lock, NULL);
    clock_cond_init(&c->changed);
    if (pthread_create(&c->thread, NULL, run, c) == 0)
        return c;
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL;
}

void clients_free(struct clients *c)
{
    if (c == NULL)
        return;
    ASSERT(c->list == NULL && c->sending == 0);
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void clients_settle(struct clients *c, int64_t for_ms)
{
    bool in_time = true;
    pthread_mutex_lock(&c->lock);
    int64_t until_ms = clock_mono_ms(c->options.clock) + for_ms;
    while (in_time && (find_longest(c, WORKS) != NULL || find_longest(c, SENDS) != NULL))
        in_time = clock_wait(c->options.clock, &c->changed, &c->lock, until_ms);
    pthread_mutex_unlock(&c->lock);
}

bool clients_take(struct clients *c, const struct sockaddr *address)
{
    const struct in6_addr from = mapped(address);
    size_t count = 0;
    if (c->options.per_address_max == 0 || is_loopback(&from))
        return true;
    pthread_mutex_lock(&c->lock);
    for (const struct client *cl = c->list; cl != NULL; cl = cl->next)
        count += !cl->is_dropped && memcmp(&cl->address, &from, sizeof from) == 0;
    pthread_mutex_unlock(&c->lock);
    return count < c->options.per_address_max;
}

struct client *clients_add(struct clients *c, int socket, const struct sockaddr *address)
{
    struct client *cl = xcalloc(1, sizeof *cl);
    cl->since_ms = clock_mono_ms(c->options.clock);
    pthread_mutex_lock(&c->lock);
    if (c->count >= c->options.connections_max) {
        struct client *longest = find_idle(c, cl->since_ms);
        if (longest != NULL)
            drop(longest);
        else
            pthread_cond_broadcast(&c->changed);
    }
    cl->next = c->list;
    if (c->list != NULL)
        c->list->previous = cl;
    c->list = cl;
    c->count++;
    cl->clients = c;
    cl->address = mapped(address);
    cl->socket = socket;
    pthread_mutex_unlock(&c->lock);
    return cl;
}

void clients_remove(struct client *cl)
{
    struct clients *c = cl->clients;
    pthread_mutex_lock(&c->lock);
    if (cl->previous != NULL)
        cl->previous->next = cl->next;
    else
        c->list = cl->next;
    if (cl->next != NULL)
        cl->next->previous = cl->previous;
    c->count -= !cl->is_dropped;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    free(cl);
}

bool clients_are_busy(struct clients *c)
{
    size_t busy = 0;
    pthread_mutex_lock(&c->lock);
    for (const struct client *cl = c->list; cl != NULL; cl = cl->next)
        busy += cl->doing != WAITS && !cl->is_dropped;
    pthread_mutex_unlock(&c->lock);
    return busy >= c->options.connections_max;
}

static void set(struct client *cl, enum doing doing, uint64_t bytes)
{
    pthread_mutex_lock(&cl->clients->lock);
    cl->doing = doing;
    cl->bytes = bytes;
    cl->since_ms = clock_mono_ms(cl->clients->options.clock);
    if (doing == WAITS)
        pthread_cond_broadcast(&cl->clients->changed);
    pthread_mutex_unlock(&cl->clients->lock);
}

void client_waits(struct client *cl)
{
    set(cl, WAITS, 0);
}

void client_works(struct client *cl)
{
    set(cl, WORKS, 0);
}

void client_sends(struct client *cl, uint64_t bytes)
{
    set(cl, SENDS, bytes);
}

/* Drops the slowest readers until `bytes` will fit. Call under the lock. */
static void make_room(struct clients *c, uint64_t bytes, int64_t now_ms)
{
    uint64_t leaving = 0;
    for (const struct client *cl = c->list; cl != NULL; cl = cl->next)
        leaving += cl->is_dropped && cl->doing == SENDS ? cl->bytes : 0;
    while (c->sending - (leaving < c->sending ? leaving : c->sending) + bytes > c->options.sending_max) {
        struct client *longest = find_longest(c, SENDS);
        if (longest == NULL || now_ms - longest->since_ms < CLIENTS_GRACE_MS)
            return;
        leaving += longest->bytes;
        drop(longest);
    }
}

bool clients_reserve(struct clients *c, uint64_t bytes, struct deadline *deadline)
{
    bool fits, in_time = true;
    pthread_mutex_lock(&c->lock);
    int64_t until_ms = clock_mono_ms(c->options.clock) + 2 * (int64_t)CLIENTS_GRACE_MS;
    while (!(fits = c->sending + bytes <= c->options.sending_max) && in_time && !deadline_is_over(deadline)) {
        int64_t now_ms = clock_mono_ms(c->options.clock), next_ms = now_ms + DEADLINE_LOOK_MS;
        make_room(c, bytes, now_ms);
        in_time = now_ms < until_ms;
        (void)clock_wait(c->options.clock, &c->changed, &c->lock, next_ms < until_ms ? next_ms : until_ms);
    }
    c->sending += fits ? bytes : 0;
    pthread_mutex_unlock(&c->lock);
    return fits;
}

void clients_release(struct clients *c, uint64_t bytes)
{
    pthread_mutex_lock(&c->lock);
    ASSERT(c->sending >= bytes);
    c->sending -= bytes;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}
