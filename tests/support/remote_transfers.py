"""A process that pushes a whole store to a remote, or pulls a whole remote into a store; it may be killed."""

SCRIPT = """
import os, sys
from pathlib import Path
from engine.store.remote import keys
from engine.store.remote.settings import RemoteSettings
from engine.store.remote.tier import Tier
from engine.store.remote.trust import Trust, TrustedKey
from engine.store.store import Store

what, root, url, key = sys.argv[1:]
pair = keys.signer({}, Path(key))
store = Store(Path(root))
trust = Trust((TrustedKey(pair.public),))
store.tier = tier = Tier(store, RemoteSettings(url, os.environ, trust, pair, pushes=True), brief=False)
print("begun", flush=True)
if what == "push":
    for record in store.records():
        tier.push(record)
    error = tier.wait()
    if error:
        sys.exit(str(error))
else:
    records = tier.take_all()
    tier.bring_all(records)
    print(len(records), flush=True)
os._exit(0)  # as the program does: a thread of obstore that comes back during Python's clean-up aborts the process
"""
