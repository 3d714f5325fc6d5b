/* Prints the steps of a chain as a configuration has them, in YAML's flow style. */
#include "ingest/decode/decode.h"

/* Some bytes need quotes there. */
static void print_pointer(const struct decode *d, size_t i, struct text *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/@._-~";
    const char *pointer = d->steps[i].pointer;
    struct text whole = {0};
    decode_print_step(d, i, &whole);
    if (pointer[strspn(pointer, plain)] == '\0')
        text_puts(out, whole.ptr);
    else
        text_json(out, text_slice(&whole));
    text_fini(&whole);
}

/* Prints a text in single quotes, in which only these need an escape. */
static void print_quoted(struct slice text, struct text *out)
{
    text_putc(out, '\'');
    for (size_t i = 0; i < text.len; i++)
        text_puts(out, text.ptr[i] == '\'' ? "''" : (char[]){text.ptr[i], '\0'});
    text_putc(out, '\'');
}

void decode_print_steps(const struct decode *d, struct text *out)
{
    text_putc(out, '[');
    for (size_t i = 0; i < d->step_count; i++) {
        struct slice text;
        const char *name = decode_named_step(d, i, &text);
        if (i > 0)
            text_puts(out, ", ");
        if (name != NULL) {
            text_printf(out, "{%s: ", name);
            print_quoted(text, out);
            text_putc(out, '}');
        } else if (d->steps[i].kind == STEP_JSON_STRING) {
            print_pointer(d, i, out);
        } else {
            decode_print_step(d, i, out);
        }
    }
    text_putc(out, ']');
}
