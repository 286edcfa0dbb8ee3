"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

INFO = Path("/proc/cpuinfo")


def machine() -> str:
    """The processor's name and the number of its cores, e.g. "AMD EPYC, 2 cores"."""
    lines = INFO.read_text(encoding="utf-8").splitlines() if INFO.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"
