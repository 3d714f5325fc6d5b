/* load.h - the document of a configuration file into a struct config, by the table of keys.h. */
#pragma once

#include "config/config.h"
#include "config/document.h"

/* `c` holds the defaults, no sources and no reports; they stay empty where the document has none. What is
 * wrong becomes a problem of `d` and is left out of `c`. */
void load_document(struct config *c, struct document *d);
