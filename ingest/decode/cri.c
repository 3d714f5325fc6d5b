#include "ingest/decode/cri.h"

#include "ingest/timestamp.h"

/* The byte behind `word` and a space; NULL: something else is at `p`. */
static const char *take_word(const char *p, const char *end, struct slice word)
{
    bool is = (size_t)(end - p) > word.len && memcmp(p, word.ptr, word.len) == 0 && p[word.len] == ' ';
    return is ? p + word.len + 1 : NULL;
}

/* The stream's name and the space behind it. */
static const char *take_stream(const char *p, const char *end)
{
    const char *next = take_word(p, end, slice_text("stdout"));
    return next != NULL ? next : take_word(p, end, slice_text("stderr"));
}

bool cri_parse(struct slice line, struct cri_text *found, const char **at)
{
    const char *p = line.ptr, *end = slice_end(line), *next;
    int64_t at_ms;
    enum reject_reason reason;
    if (line.len > 0 && end[-1] == '\r')
        end--;
    const size_t len = timestamp_take(slice_of(p, (size_t)(end - p)), &at_ms, &reason);
    *at = p;
    if (len == 0) /* perhaps of a message without bytes, which has no address */
        return false;
    *at = p += len;
    if (p == end || *p != ' ')
        return false;
    *at = ++p;
    if ((next = take_stream(p, end)) == NULL)
        return false;
    *at = p = next;
    if (p == end || (*p != 'F' && *p != 'P'))
        return false;
    found->is_part = *p == 'P';
    if (++p < end && *p != ' ' && *p != ':') /* more tags may follow, as F:x */
        return false;
    const char *space = p < end ? memchr(p, ' ', (size_t)(end - p)) : NULL;
    p = space != NULL ? space + 1 : end;
    found->text = slice_of(p, (size_t)(end - p));
    return true;
}
