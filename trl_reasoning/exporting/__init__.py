"""
Export: from a trained adapter, a trained model, several of them or a GGUF file to a plain model folder for any engine.

The merge is made in float32 on a copy in memory and is measured before anything is written: the merged model has to
give the logits of what was trained, and what rounding to the saved format costs is a number that the user sees.
"""

from .averaging import average
from .exported import Exported, ExportError, describe
from .folder import EXPORT_FILE, check_output, save_export
from .gguf import read_gguf
from .measuring import Difference, compare, probe_sequences, sequence_logits
from .merging import merge
from .quantized import Quantization


__all__ = [
    "EXPORT_FILE",
    "Difference",
    "ExportError",
    "Exported",
    "Quantization",
    "average",
    "check_output",
    "compare",
    "describe",
    "merge",
    "probe_sequences",
    "read_gguf",
    "save_export",
    "sequence_logits",
]
