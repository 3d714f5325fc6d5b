#include "ingest/decode/csv_header.h"

#include "base/check.h"
#include "ingest/decode/csv.h"

#include <stdio.h>

/* Names of times; the first ones are known by default (parts.h). */
static const char *const times[] = {"timestamp",  "time",     "ts",        "date",       "datetime",
                                    "event_time", "log_time", "date_time", "created_at", "at"};
#define DEFAULT_TIMES 3

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static struct slice trim(struct slice s)
{
    while (s.len > 0 && s.ptr[0] == ' ')
        s = slice_of(s.ptr + 1, s.len - 1);
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\r'))
        s.len--;
    if (s.len >= 2 && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"')
        s = slice_of(s.ptr + 1, s.len - 2);
    return s;
}

/* The name of a cell; "-": none. False: a header has no such cell. */
static bool name_of(struct slice cell, char name[FIELD_NAME_BYTES])
{
    memcpy(name, "-", sizeof "-");
    if (cell.len == 0)
        return true;
    if ((!is_letter(cell.ptr[0]) && cell.ptr[0] != '_' && cell.ptr[0] != '@') ||
        memchr(cell.ptr, '"', cell.len) != NULL)
        return false;
    bool is_good = is_letter(cell.ptr[0]) && cell.len < FIELD_NAME_BYTES;
    for (size_t i = 0; i < cell.len && is_good; i++) {
        char c = cell.ptr[i];
        name[i] = is_letter(c) ? (char)(c | 0x20) : c >= '0' && c <= '9' ? c : '_';
        name[i + 1] = '\0';
    }
    return true;
}

static bool is_in(const char names[][FIELD_NAME_BYTES], size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i < count;
}

static bool find_time(const char names[][FIELD_NAME_BYTES], size_t count, char time[CSV_HEADER_TIME_BYTES])
{
    size_t i = 0;
    while (i < COUNT_OF(times) && !is_in(names, count, times[i]))
        i++;
    if (i == COUNT_OF(times))
        return false;
    time[0] = '\0';
    if (i >= DEFAULT_TIMES)
        snprintf(time, CSV_HEADER_TIME_BYTES, "/%s", times[i]);
    return true;
}

bool csv_header(struct slice line, char separator, struct text *columns, char time[CSV_HEADER_TIME_BYTES])
{
    char names[CSV_COLUMNS_MAX][FIELD_NAME_BYTES];
    size_t count = 0;
    const char *p = line.ptr, *end = slice_end(line), *next;
    if (line.len >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    for (bool more = true; more; p = more ? next + 1 : end) {
        next = p < end ? memchr(p, separator, (size_t)(end - p)) : NULL;
        more = next != NULL;
        char *name = names[count];
        if (count == CSV_COLUMNS_MAX || !name_of(trim(slice_of(p, (size_t)((more ? next : end) - p))), name))
            return false;
        if (is_in((const char(*)[FIELD_NAME_BYTES])names, count, name))
            memcpy(name, "-", sizeof "-");
        count++;
    }
    if (count < 2 || !find_time((const char(*)[FIELD_NAME_BYTES])names, count, time))
        return false;
    for (size_t i = 0; i < count; i++)
        text_printf(columns, "%s%s", i > 0 ? "," : "", names[i]);
    return true;
}
