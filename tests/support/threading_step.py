"""A step whose module starts a thread when it is imported."""

import threading
import time

from straying import Stray

threading.Thread(target=time.sleep, args=(600,), daemon=True).start()


class Threading(Stray):
    """The step."""
