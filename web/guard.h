/* guard.h - may this request be answered? The token of the configuration, as http.token has it.
 *
 *   Authorization: Bearer TOKEN           programs: curl, Prometheus, Grafana
 *   Authorization: Basic base64(X:TOKEN)  browsers, which then ask for it and send it along, with streams
 * too; X may be anything
 *
 * Open    : /healthz and /readyz, which say nothing about what is counted.
 * Compare : in a time that does not depend on how much of a guess is right.
 */
#pragma once

#include <stdbool.h>

/* Both are sent with a 401. */
#define GUARD_BEARER "Bearer realm=\"tallyd\""
#define GUARD_BASIC  "Basic realm=\"tallyd\", charset=\"UTF-8\""

bool guard_is_open(const char *path);
/* `authorization`: the header, or NULL. */
bool guard_allows(const char *authorization, const char *token);
