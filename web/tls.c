#include "web/tls.h"

#include <errno.h>
#include <stdio.h>

static bool read_pem(const char *name, const char *path, struct text *pem, struct err *e)
{
    char buf[4096];
    size_t n;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return err_set(e, EX_CONFIG, "%s: cannot read %s: %s", name, path, strerror(errno));
    while (pem->len <= TLS_FILE_BYTES_MAX && (n = fread(buf, 1, sizeof buf, file)) > 0)
        text_add(pem, buf, n);
    bool good = ferror(file) == 0;
    fclose(file);
    if (!good || pem->len > TLS_FILE_BYTES_MAX || pem->len == 0 || strstr(pem->ptr, "-----BEGIN ") == NULL)
        return err_set(e, EX_CONFIG, "%s: %s is no PEM file, which has a line of -----BEGIN …", name, path);
    return true;
}

bool tls_load(struct tls *t, const char *cert, const char *key, struct err *e)
{
    *t = (struct tls){0};
    if (cert == NULL && key == NULL)
        return true;
    if (cert == NULL || key == NULL)
        return err_set(e, EX_CONFIG, "http.tls_cert and http.tls_key go together: there is no %s",
                       cert == NULL ? "http.tls_cert" : "http.tls_key");
    if (read_pem("http.tls_cert", cert, &t->cert, e) && read_pem("http.tls_key", key, &t->key, e))
        return true;
    tls_fini(t);
    return false;
}

void tls_fini(struct tls *t)
{
    if (t->key.ptr != NULL)
        explicit_bzero(t->key.ptr, t->key.len);
    text_fini(&t->cert);
    text_fini(&t->key);
}
