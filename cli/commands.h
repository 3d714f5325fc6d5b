/* commands.h - the subcommands. Each takes its own arguments (argv[0] is its name) and returns the exit
 * status, one of <sysexits.h> or 0; `verify` returns 1 for differences, 2 for a source it was not given. */
#pragma once

int cmd_admin(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_job(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_verify(int argc, char **argv);
