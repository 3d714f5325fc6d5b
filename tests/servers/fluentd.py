"""Fluentd's own logger for Python and its encoder of MessagePack: they make the messages that tests decode. Missing says why they are not
here. Fluent Bit itself is in no registry."""

import os
import sys

from process import CACHE, making, run

LOGGER_VERSION, MSGPACK_VERSION = "0.11.1", "1.1.2"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
HOME = os.path.join(CACHE, f"fluent-{LOGGER_VERSION}-{MSGPACK_VERSION}-{PYTHON}")
INSTALL_S = 300


def provide():
    """Make the packages importable."""
    with making(HOME) as part:
        if part is not None:
            run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", part,
                 f"fluent-logger=={LOGGER_VERSION}", f"msgpack=={MSGPACK_VERSION}"], "getting Fluentd's logger by pip", INSTALL_S)
            os.rename(part, HOME)
    if HOME not in sys.path:
        sys.path.append(HOME)
