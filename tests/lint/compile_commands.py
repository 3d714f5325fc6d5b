#!/usr/bin/env python3
"""Prints compile_commands.json: `compile_commands.py COMPILER FLAG… -- FILE…`."""

import json
import os
import sys

split = sys.argv.index("--")
json.dump([{"directory": os.getcwd(), "file": file, "arguments": [*sys.argv[1:split], "-c", file]}
           for file in sys.argv[split + 1:]], sys.stdout, indent=1)
