"""A process that publishes one package, for tests that kill it: publish_once.py FOLDER URL."""

import asyncio
import os
import sys
from pathlib import Path

from engine.publishing import package
from engine.publishing.publisher import Publisher, PublishWaits
from engine.publishing.repository import ModelRepository


def main():
    folder, url = sys.argv[1:]
    built = package.read(Path(folder), recipe="films", key="key")
    waits = PublishWaits(stale=0.0, lease=0.5, settle=0.0)
    publisher = Publisher(ModelRepository(url, writes=True), built, waits=waits)
    print("begins", flush=True)
    result = asyncio.run(publisher.publish())
    print(result.state, result.version, flush=True)
    os._exit(0)  # as `recipe` ends: a thread of obstore may abort a Python that is shutting down


if __name__ == "__main__":
    main()
