#include "store/backup.h"
bool mongo_backup(const struct backup *b, struct text *said, struct err *e)
{
    (void)b, (void)said;
    return err_set(
        e, EX_USAGE,
        "this copies stores in SQLite: of MongoDB stop the daemons and use mongodump and mongorestore");
}
bool mongo_restore(const struct backup *b, struct text *said, struct err *e)
{
    (void)b, (void)said;
    return err_set(
        e, EX_USAGE,
        "this copies stores in SQLite: of MongoDB stop the daemons and use mongodump and mongorestore");
}
