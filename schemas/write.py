"""Writes the published schemas beside this file; `python schemas/write.py` after a change of the models."""

import json
from pathlib import Path

from interlock.contract.schemas import FILES, published_schema

for name in FILES:
    text = json.dumps(published_schema(name), indent=1) + "\n"
    Path(__file__).with_name(name).write_text(text, encoding="utf-8")
