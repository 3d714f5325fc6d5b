/* mongo/send/send.h - applies the log of a batch over several connections of the handle. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Applies the log of batch `of`. After a failure some of it is applied; send it again. */
bool mongo_send(struct mongo_store *m, const struct mongo_open *of, struct slice packed,
                struct err *e) MUST_CHECK;
