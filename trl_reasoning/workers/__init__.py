"""
Work that may never end, eat all memory or crash, done in processes that can be killed: see [`run_limited`].

Why not a library's pool: pebble's breaks as a whole when an idle worker is killed, leaves a busy worker behind when
its parent is killed, needs a `__main__` guard in the user's script, and refuses to start in the daemonic processes
of a data loader; loky and `concurrent.futures` have no time limit for one item.
"""

from .limited import Outcome, run_limited


__all__ = ["Outcome", "run_limited"]
