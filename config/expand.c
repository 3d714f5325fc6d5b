#include "config/expand.h"

#include "base/mem.h"
#include "base/suggest.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool begins(struct slice text, size_t at, const char *with)
{
    size_t len = strlen(with);
    return text.len - at >= len && memcmp(text.ptr + at, with, len) == 0;
}

bool expand_is_reference(struct slice raw)
{
    return raw.len > 0 && memmem(raw.ptr, raw.len, "${", 2) != NULL;
}

void expand_escape(struct slice text, struct text *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (begins(text, i, "${"))
            text_putc(out, '$');
        text_putc(out, text.ptr[i]);
    }
}

static bool is_variable(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.len > 0;
}

/* Adds the variable whose ${ begins `rest`; *used is the length of its reference. */
static bool add_variable(struct slice rest, struct text *out, size_t *used, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    const char *end = memchr(rest.ptr, '}', rest.len);
    struct slice name = {0};
    if (end != NULL)
        name = slice_of(rest.ptr + 2, (size_t)(end - rest.ptr) - 2);
    if (!is_variable(name))
        return err_set(e, EX_CONFIG, "found %s, expected ${NAME} (or $${ for the text ${)",
                       suggest_quote(rest, quote));
    *used = name.len + 3;
    char *variable = xstrndup(name.ptr, name.len);
    const char *value = getenv(variable);
    free(variable);
    if (value == NULL)
        return err_set(e, EX_CONFIG, "found %s, expected a variable that is set in the environment",
                       suggest_quote(slice_of(rest.ptr, *used), quote));
    text_puts(out, value);
    return true;
}

static bool read_open_file(int fd, struct text *out, struct err *e)
{
    char bytes[EXPAND_FILE_BYTES_MAX + 1];
    struct stat st;
    size_t len = 0;
    ssize_t n = 1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, EX_CONFIG, "it is not a regular file");
    while (n > 0 && len < sizeof bytes) {
        n = read(fd, bytes + len, sizeof bytes - len);
        if (n < 0)
            return err_set(e, EX_CONFIG, "%s", strerror(errno));
        len += (size_t)n;
    }
    if (len > EXPAND_FILE_BYTES_MAX)
        return err_set(e, EX_CONFIG, "it is longer than %d bytes", EXPAND_FILE_BYTES_MAX);
    if (len > 0 && bytes[len - 1] == '\n')
        len--;
    if (len > 0 && bytes[len - 1] == '\r')
        len--;
    text_add(out, bytes, len);
    return true;
}

/* Opens the file without blocking: a FIFO must not hang the start of the daemon. */
static bool add_file(const char *path, struct slice raw, struct text *out, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES];
    struct err why;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool good = fd >= 0 ? read_open_file(fd, out, &why) : err_set(&why, EX_CONFIG, "%s", strerror(errno));
    if (fd >= 0)
        close(fd);
    if (!good)
        err_set(e, EX_CONFIG, "found %s, expected a file that can be read: %s", suggest_quote(raw, quote),
                why.text);
    return good;
}

bool expand_text(struct slice raw, bool may_be_file, struct text *out, bool *referred, struct err *e)
{
    static const char file[] = "file:";
    struct text text = {0};
    size_t used = 1;
    bool good = true;
    *referred = false;
    for (size_t i = 0; i < raw.len && good; i += used) {
        used = 1;
        if (begins(raw, i, "$${")) {
            text_puts(&text, "${");
            used = 3;
        } else if (begins(raw, i, "${")) {
            *referred = true;
            good = add_variable(slice_of(raw.ptr + i, raw.len - i), &text, &used, e);
        } else {
            text_putc(&text, raw.ptr[i]);
        }
    }
    if (good && may_be_file && text.len > 0 && begins(text_slice(&text), 0, file)) {
        *referred = true;
        good = add_file(text.ptr + sizeof file - 1, raw, out, e);
    } else if (good) {
        text_add(out, text.ptr, text.len);
    }
    text_fini(&text);
    return good;
}

static unsigned code_point(const unsigned char *p, size_t n)
{
    unsigned c = n == 1 ? p[0] : p[0] & (0x7FU >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3FU);
    return c;
}

/* Can double quotes hold the character unescaped? YAML reads some characters as line breaks and refuses
 * others. */
static bool is_plain(unsigned c)
{
    return c >= 0x20 && c != '"' && c != '\\' && (c < 0x7F || c > 0xA0) && c != 0x2028 && c != 0x2029 &&
           c != 0xFEFF && c != 0xFFFE && c != 0xFFFF;
}

void expand_quote(struct slice s, struct text *out)
{
    const unsigned char *p = (const unsigned char *)s.ptr, *end = p + s.len;
    text_putc(out, '"');
    while (p < end) {
        size_t n = utf8_len(p, end);
        ASSERT(n > 0); /* the file's check or keys_parse() made sure of UTF-8 */
        unsigned c = code_point(p, n);
        if (is_plain(c))
            text_add(out, (const char *)p, n);
        else
            text_printf(out, "\\u%04x", c);
        p += n;
    }
    text_putc(out, '"');
}
