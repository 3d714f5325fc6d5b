/* library.h - loads a shared library that few commands need, when such a command runs (dlopen(3)).
 *
 * libcurl and libarchive bring along some twenty libraries. Binding them took longer than a whole query, so
 * they are not linked. Their headers still check every call:
 *
 *   #define FUNCTIONS(X) X(curl_easy_init) X(curl_easy_perform)
 *   LIBRARY(libcurl, FUNCTIONS, "libcurl.so.4", "libcurl4");
 *
 *   if (library_load(&libcurl, e)) lib.curl_easy_init();
 *
 * Threads : any thread may load; a thread that has loaded the library may call its functions.
 * Memory  : loaded once and never unloaded.
 * Errors  : EX_OSFILE: the library is missing, or this version lacks a function.
 */
#pragma once

#include "base/check.h"
#include "base/err.h"

#include <stddef.h>

/* Defines the library `variable`, and `lib` with a pointer to each function of the list `functions`. A file
 * defines one library. */
#define LIBRARY(variable, functions, file, package)                             \
    static struct {                                                             \
        functions(LIBRARY_FUNCTION)                                             \
    } lib;                                                                      \
    static const struct library_symbol symbols[] = {functions(LIBRARY_SYMBOL)}; \
    static struct library variable = {file, package, symbols, COUNT_OF(symbols), false}

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
