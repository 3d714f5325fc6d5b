"""Sketches that others wrote, by which histograms and distinct counts are judged: DataSketches and DDSketch with the generators of
DataDog's data sets, and HdrHistogram with its logs. They are installed once, in half a minute.
"""

import glob
import json
import os
import shutil
import sys
import tarfile

from process import CACHE, Missing, making, run

PACKAGES = ("datasketches==5.2.0", "ddsketch==3.0.1", "hdrhistogram==0.10.8", "numpy<3", "xxhash==4.1.0")
DATA_SETS = "ddsketch==3.0.1"  # whose source has the generators in its tests
LOGS = "github.com/HdrHistogram/hdrhistogram-go@v1.1.2"  # whose source has the logs in its tests
HOME = os.path.join(CACHE, f"sketches-5.2.0-3.0.1-0.10.8-{sys.version_info[0]}.{sys.version_info[1]}")
INSTALL_S = 300


def get_data_sets(part):
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=:all:", "--dest", part]
    run([*pip, DATA_SETS], "getting the source of DDSketch by pip", INSTALL_S)
    source, = glob.glob(f"{part}/ddsketch-*.tar.gz")
    with tarfile.open(source) as archive:
        member, = (member for member in archive if member.name.endswith("/tests/datasets.py"))
        with open(os.path.join(part, "datadog_datasets.py"), "wb") as file:
            file.write(archive.extractfile(member).read())
    os.remove(source)


def get_logs(part):
    if not shutil.which("go"):
        raise Missing("go is not installed: it gets the logs of HdrHistogram")
    folder = json.loads(run(["go", "mod", "download", "-json", LOGS], "getting the logs of HdrHistogram by go", INSTALL_S, GOFLAGS="-mod=mod"))["Dir"]
    for path in glob.glob(f"{folder}/**/*.logV2.hlog", recursive=True):
        shutil.copyfile(path, os.path.join(part, os.path.basename(path)))


def logs():
    """Their paths."""
    return sorted(glob.glob(f"{HOME}/*.logV2.hlog"))


def install():
    """Get them if they are missing; `import datasketches` and the others find them then."""
    with making(HOME) as part:
        if part is not None:
            run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", part, *PACKAGES],
                "getting sketches by pip", INSTALL_S)
            get_data_sets(part)
            get_logs(part)
            os.rename(part, HOME)
    if HOME not in sys.path:
        sys.path.append(HOME)
