/* mongo/admin/validator.h - validators: prints or makes them for a task. */
#pragma once

#include "store/mongo/admin/run.h"
#include "store/mongo/catalog/catalog.h"

bool mongo_admin_validate(struct mongo_admin_run *r, const struct mongo_collection *c,
                          struct err *e) MUST_CHECK;
