#include "prom/names.h"

#include <stdio.h>

const char *names_metric(const struct report *r, size_t measure, char buf[NAMES_METRIC_BYTES])
{
    snprintf(buf, NAMES_METRIC_BYTES, "%s:%s", r->name, r->measures[measure].name);
    return buf;
}

static bool is_legal(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_taken(const struct names *n, size_t before, const char *label)
{
    for (size_t d = 0; d < before; d++) {
        if (strcmp(n->labels[d], label) == 0)
            return true;
    }
    return strcmp(label, "__name__") == 0;
}

void names_of(const struct report *r, struct names *n)
{
    for (size_t d = 0; d < r->dimension_count; d++) {
        const char *name = r->dimensions[d].name;
        char *label = n->labels[d];
        size_t len = 0;
        if (*name >= '0' && *name <= '9')
            label[len++] = '_';
        for (; *name != '\0'; name++)
            label[len++] = is_legal(*name) ? *name : '_';
        label[len] = '\0';
        while (is_taken(n, d, label)) {
            label[len++] = '_';
            label[len] = '\0';
        }
    }
}

int names_find(const struct report *r, const struct names *n, struct slice label)
{
    for (size_t d = 0; d < r->dimension_count; d++) {
        if (slice_is(label, n->labels[d]))
            return (int)d;
    }
    return -1;
}
