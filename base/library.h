/* library.h - loads a shared library that few commands need, when such a command runs (dlopen(3)).
 *
 * libcurl and libarchive bring along some twenty libraries. Binding them took longer than a whole query, so
 * they are not linked. Their headers still check every call:
 *
 *   #define FUNCTIONS(X) X(curl_easy_init) X(curl_easy_perform)
 *   static struct { FUNCTIONS(LIBRARY_FUNCTION) } lib;
 *   static const struct library_symbol symbols[] = {FUNCTIONS(LIBRARY_SYMBOL)};
 *   static struct library libcurl = {"libcurl.so.4", "libcurl4", symbols, COUNT_OF(symbols), false};
 *
 *   if (library_load(&libcurl, e)) lib.curl_easy_init();
 *
 * Threads : any thread may load; a thread that has loaded the library may call its functions.
 * Memory  : loaded once and never unloaded.
 * Errors  : EX_OSFILE: the library is missing, or this version lacks a function.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define LIBRARY_FUNCTION(name) __typeof__(name) *name;
#define LIBRARY_SYMBOL(name)   {#name, &lib.name},

struct library_symbol {
    const char *name;
    void *pointer; /* address of the function pointer to set */
};

struct library {
    const char *file;    /* file name for the dynamic linker */
    const char *package; /* Debian's package, for the error */
    const struct library_symbol *symbols;
    size_t count;
    bool loaded; /* set by library_load() */
};

bool library_load(struct library *l, struct err *e) MUST_CHECK;
