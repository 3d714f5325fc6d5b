"""OpenTelemetry's own Python packages: they make the messages of OTLP that tests decode. Missing says why they are not here."""

import os
import site
import sys

from process import CACHE, making, run

VERSION = "1.45.2"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
HOME = os.path.join(CACHE, f"opentelemetry-{VERSION}-{PYTHON}")
INSTALL_S = 300


def provide():
    """Make the packages importable."""
    with making(HOME) as part:
        if part is not None:
            run([sys.executable, "-m", "venv", part], "making a virtual environment (Debian package python3-venv)", INSTALL_S)
            run([f"{part}/bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 f"opentelemetry-sdk=={VERSION}", f"opentelemetry-exporter-otlp-proto-common=={VERSION}"],
                "getting OpenTelemetry by pip", INSTALL_S)
            os.rename(part, HOME)
    site.addsitedir(os.path.join(HOME, "lib", f"python{PYTHON}", "site-packages"))
