/* load.h - loads the document of a configuration file into a struct config, by the table of keys.h.
 *
 *   load.c         sections, and every key by its type
 *   load_source.c  sources, their decodings, librdkafka's properties, and the rules between sources
 *   load_derive.c  rules of derived fields, and what asks for these fields
 *   load_report.c  reports, and which fields they may use
 */
#pragma once

#include "config/config.h"
#include "config/document.h"
#include "config/keys.h"

struct load {
    struct config *c;
    struct document *d;
    yaml_mark_t source_marks[CONFIG_SOURCES_MAX]; /* positions of the names of c->sources */
    bool sources_are_good;                        /* no source had a problem */
};

/* Loads the document into `c`. Pre: `c` holds the defaults, no sources and no reports. A wrong value is noted
 * as a problem of `d` and left out of `c`. */
void load_document(struct config *c, struct document *d);

/* Loads the keys of a section, or of one source or report, into its struct. */
void load_keys(struct load *ld, const char *section, const char *path, yaml_node_t *map, void *base);
/* Is the value one text? If not, a problem is noted. */
bool load_is_text(struct load *ld, const yaml_node_t *node, const char *path, const char *expected);
/* Remembers that the key's value came from the reference `raw`. */
void load_note_reference(struct load *ld, const char *path, struct slice raw);

void load_source_read(struct load *ld, const struct pair *pr);
void load_source_paths(struct load *ld, const struct pair *pr, struct config_source *source);
void load_source_properties(struct load *ld, const struct key *k, const struct pair *pr);
/* Checks the rules between sources and sections; call it after all of them are loaded. */
void load_source_rules(struct load *ld);

void load_report_read(struct load *ld, const struct pair *pr);
/* May a report use the field that the piece names, if it names one? If not, a problem is noted. If the
 * sources had problems, nobody knows: false, without a problem of its own. */
bool load_may_use(struct load *ld, const yaml_node_t *node, const char *path, enum report_piece kind);

void load_derive_routes(struct load *ld, const struct key *k, const struct pair *pr);
/* Asks for a derived field, if `name` is one and some source does not say itself where it comes from. False:
 * it cannot be; *e says why. */
bool load_derive_ask(struct load *ld, struct slice name, bool *is_derived, struct err *e) MUST_CHECK;
/* Gives the report the settings of its derived fields, in an order that does not depend on the process. */
void load_derive_given(const struct derive *d, struct report *r);
