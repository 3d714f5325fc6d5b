#include "config/secret.h"

#include <string.h>

bool secret_is_property(const char *name)
{
    static const char *const marks[] = {"password", "secret", "ssl.key.pem", "oauthbearer.config", "jaas"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (strstr(name, marks[i]) != NULL)
            return true;
    }
    return false;
}
