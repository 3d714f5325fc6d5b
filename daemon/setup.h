/* setup.h - the configuration as the options of what is built from it. */
#pragma once

#include "config/config.h"
#include "daemon/pipeline.h"

/* For import; `run` changes what differs. threads 0: as configured, or one per processor, at most 8. */
struct pipeline_options setup_pipeline(const struct config *c, size_t threads);
/* The format of files named on the command line: that of the first source. */
enum clf_format setup_format(const struct config *c);
