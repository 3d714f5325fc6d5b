/* library.h - a library that few commands need, loaded by those.
 *
 * Binding what libcurl and libarchive bring along, some twenty libraries, took longer than all that a query
 * does: so they are not linked. Their headers still check every call:
 *
 *   #define FUNCTIONS(X) X(curl_easy_init) X(curl_easy_perform)
 *   static struct { FUNCTIONS(LIBRARY_FUNCTION) } lib;
 *   static const struct library_symbol symbols[] = {FUNCTIONS(LIBRARY_SYMBOL)};
 *   static struct library libcurl = {"libcurl.so.4", "libcurl4", symbols, COUNT_OF(symbols), false};
 *
 *   if (library_load(&libcurl, e)) lib.curl_easy_init();
 *
 * Threads : any may load; the functions may be called by a thread that has.
 * Memory  : loaded once and never unloaded.
 * Errors  : EX_OSFILE: there is no such library here, or another version of it.
 */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define LIBRARY_FUNCTION(name) __typeof__(name) *name;
#define LIBRARY_SYMBOL(name)   {#name, &lib.name},

struct library_symbol {
    const char *name;
    void *pointer; /* to a pointer to the function */
};

struct library {
    const char *file;    /* its name for the dynamic linker */
    const char *package; /* of Debian, for the error */
    const struct library_symbol *symbols;
    size_t count;
    bool loaded; /* by library_load() */
};

bool library_load(struct library *l, struct err *e) MUST_CHECK;
