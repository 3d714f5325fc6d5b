#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sysexits.h>

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static bool load(struct library *l, struct err *e)
{
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return err_set(e, EX_OSFILE, "%s is needed for this: install the package %s (%s)", l->file,
                       l->package, dlerror());
    for (size_t i = 0; i < l->count; i++) {
        void *function = dlsym(handle, l->symbols[i].name);
        if (function == NULL)
            return err_set(e, EX_OSFILE, "%s has no %s: install another version of the package %s", l->file,
                           l->symbols[i].name, l->package);
        memcpy(l->symbols[i].pointer, &function, sizeof function);
    }
    l->loaded = true;
    return true;
}

bool library_load(struct library *l, struct err *e)
{
    pthread_mutex_lock(&loading);
    bool good = l->loaded || load(l, e);
    pthread_mutex_unlock(&loading);
    return good;
}
