/* cmd_check.h - `tallyd check`: is a configuration good, and what is in effect? */
#pragma once

/* argv[0] is "check". Returns the exit status. */
int cmd_check(int argc, char **argv);
