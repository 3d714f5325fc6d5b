#include "prom/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX        17   /* enough to tell any double from its neighbours */
#define WHOLE_MAX         1e15 /* below it, every whole number is written as it is */
#define NUMBER_PARSED_MAX 63
#define NUMBER_TEXT_BYTES 400 /* enough for the least double, with its zeros */

/* Writes the digits of d.ddde+xx, and `zeros` behind them. */
static void write_digits(const char *text, int zeros, struct text *out)
{
    for (; *text != 'e'; text++) {
        if (*text != '.')
            text_putc(out, *text);
    }
    for (; zeros > 0; zeros--)
        text_putc(out, '0');
}

void number_write(double value, struct text *out)
{
    char text[NUMBER_TEXT_BYTES];
    if (isnan(value) || isinf(value)) {
        text_puts(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    if (fabs(value) < WHOLE_MAX && value == floor(value)) {
        text_printf(out, "%.0f", value);
        return;
    }
    int digits = DIGITS_MAX - 2;
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
    while (strtod(text, NULL) != value && digits++ < DIGITS_MAX);
    int exponent = atoi(strchr(text, 'e') + 1), decimals = digits - 1 - exponent;
    if (decimals < 0) { /* zeros behind the digits that matter */
        write_digits(text, -decimals, out);
        return;
    }
    snprintf(text, sizeof text, "%.*f", decimals, value);
    size_t len = strlen(text);
    while (decimals > 0 && text[len - 1] == '0')
        len--;
    text_add(out, text, len);
}

bool number_parse(struct slice text, double *value)
{
    char copy[NUMBER_PARSED_MAX + 1], *end;
    if (text.len == 0 || text.len > NUMBER_PARSED_MAX || text.ptr[0] == ' ')
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *value = strtod(copy, &end);
    return end == copy + text.len;
}
