#include "cli/commands.h"

#include "base/log.h"
#include "cli/options.h"
#include "daemon/service/control.h"

#include <stdio.h>
#include <string.h>

static const char usage[] = "usage: tallyd reload\n"
                            "\n"
                            "Asks the daemon of a systemd unit to read its configuration again, and waits "
                            "for what came of it: 0 if it\n"
                            "took it, 78 if the configuration has mistakes, which are printed. The units run "
                            "it for `systemctl reload`.\n"
                            "\n"
                            "  -h, --help          this text\n"
                            "\n"
                            "Without systemd: kill -HUP PID. The log says what came of it.\n"
                            "\n"
                            "  systemctl reload tallyd\n"
                            "  RUNTIME_DIRECTORY=/run/tallyd tallyd reload\n";

int cmd_reload(int argc, char **argv)
{
    char said[CONTROL_TEXT_BYTES + 1];
    struct err e;
    const struct command command = {"reload", usage, NULL, 0, NULL};
    int code = options_parse(&command, &argc, &argv);
    if (code != 0)
        return code == OPTIONS_DONE ? EX_OK : code;
    if (argc > 0)
        return options_bad_usage("reload",
                                 "it takes no operands: " CONTROL_FOLDER " names the daemon's folder");
    bool good = control_ask(said, &e);
    options_print_lines(said, good ? "" : log_error_prefix());
    return good ? EX_OK : options_complain("reload", &e);
}
