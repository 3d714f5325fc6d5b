/* mongo/send/send.h - the log of a batch is carried out, over several connections. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Carry out the log of a batch, over several connections of the handle. On failure some of it has been. */
bool mongo_send(struct mongo_store *m, const struct mongo_open *of, struct slice packed, struct err *e);
