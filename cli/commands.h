/* commands.h - the subcommands, which main() calls. Each takes its own arguments (argv[0] is its name) and
 * returns the exit status: 0 or one of <sysexits.h>. `verify` also returns 1 for differences, 2 for a source
 * that it was not given or could not judge, 3 for records that are gone, 4 for lines that are not counted. */
#pragma once

int cmd_admin(int argc, char **argv);
int cmd_backfill(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_detect(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_forget(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_job(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_verify(int argc, char **argv);
