#include "config/config.h"

#include <stdlib.h>

void config_free(struct config *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->source_count; i++) {
        free(c->sources[i].name);
        for (size_t k = 0; k < c->sources[i].path_count; k++)
            pattern_free(c->sources[i].paths[k]);
        free(c->sources[i].paths);
        free(c->sources[i].olddir);
        free(c->sources[i].topic);
    }
    for (size_t i = 0; i < c->kafka.property_count; i++) {
        free(c->kafka.properties[i].name);
        free(c->kafka.properties[i].value);
    }
    for (size_t i = 0; i < c->report_count; i++)
        report_fini(&c->reports[i]);
    for (size_t i = 0; i < c->reference_count; i++) {
        free(c->references[i].key);
        free(c->references[i].text);
    }
    free(c->sources);
    free(c->reports);
    free(c->references);
    derive_fini(&c->derive);
    registry_fini(&c->registry);
    free(c->kafka.brokers);
    free(c->kafka.group);
    free(c->kafka.instance);
    free(c->kafka.properties);
    free(c->rejects.topic);
    free(c->rejects.file);
    free(c->store.url);
    free(c->http.listen);
    free(c->http.token);
    free(c->http.tls_cert);
    free(c->http.tls_key);
    free(c->file);
    free(c);
}
