"""What each process of a Ray cluster of the tests does first, so that it starts fast."""

import sys

# Ray's import of jsonschema would import it, if it is there, and compile 39 grammars that Ray does not need: 3 seconds.
sys.modules["rfc3987_syntax"] = None
