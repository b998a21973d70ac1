"""What each process of a Ray cluster of the tests does first: it takes new variables, and starts fast."""

import json
import os
import sys
from pathlib import Path

# Ray's import of jsonschema would import it, if it is there, and compile 39 grammars that Ray does not need: 3 seconds.
sys.modules["rfc3987_syntax"] = None
later = Path(os.environ.get("LATER_VARIABLES", os.devnull))
"""A file with variables that can change under a running node."""
if later.is_file():
    os.environ.update(json.loads(later.read_text()))
