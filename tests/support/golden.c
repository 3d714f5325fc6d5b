#include "tests/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define RUN_MIN 32 /* so many equal bytes are written as their number */

void golden_unfold(struct slice s, char open, char close, struct text *out)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != open) {
            text_putc(out, s.ptr[i]);
            continue;
        }
        char *end;
        char byte = (char)strtoul(s.ptr + i + 1, &end, 16);
        unsigned long count = *end == '*' ? strtoul(end + 1, &end, 10) : 1;
        assert_int_equal(*end, close);
        while (count-- > 0)
            text_putc(out, byte);
        i = (size_t)(end - s.ptr);
    }
}

void golden_fold(struct slice s, char open, char close, struct text *out)
{
    for (size_t i = 0, run; i < s.len; i += run) {
        unsigned char c = (unsigned char)s.ptr[i];
        for (run = 1; i + run < s.len && s.ptr[i + run] == s.ptr[i];)
            run++;
        if (run >= RUN_MIN) {
            text_printf(out, "%c%02X*%zu%c", open, c, run, close);
            continue;
        }
        run = 1;
        if (c < 0x20 || c >= 0x7F || s.ptr[i] == open || s.ptr[i] == close || (c == ' ' && i + 1 == s.len))
            text_printf(out, "%c%02X%c", open, c, close);
        else
            text_putc(out, s.ptr[i]);
    }
}
