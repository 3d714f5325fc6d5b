/* mongo/admin/validator.h - validators, as a task has them. */
#pragma once

#include "store/mongo/admin/run.h"
#include "store/mongo/catalog/catalog.h"

bool mongo_admin_validate(struct mongo_admin_run *r, const struct mongo_collection *c, struct err *e);
