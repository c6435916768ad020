"""The environment record: what travels with every number that was measured here."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("interlock", "numpy", "onnxruntime", "torch", "onnx", "onnxscript", "mujoco")


def environment() -> dict[str, Any]:
    """Processor, kernel, power policy, competing load and versions; a value that cannot be read is None."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "system": platform.system(),
        "kernel": platform.release(),
        "kernel_preemption": _read("/sys/kernel/debug/sched/preempt") or _preemption(),
        "is_realtime_kernel": _read("/sys/kernel/realtime") == "1",
        "virtual_machine": "hypervisor" in (_read("/proc/cpuinfo") or ""),
        "load_average_1_min": os.getloadavg()[0],
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "temperature_c": _temperature_c(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "packages": {name: version for name in PACKAGES if (version := version_of(name))},
    }


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _cpu_model() -> str | None:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith(("model name", "Model", "CPU part")):
            return line.partition(":")[2].strip()
    return None


def _preemption() -> str | None:
    version = platform.version()
    for word in ("PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"):
        if word in version:
            return word
    return None


def _temperature_c() -> float | None:
    readings = [_read(str(zone / "temp")) for zone in Path("/sys/class/thermal").glob("thermal_zone*")]
    values = [int(reading) / 1000 for reading in readings if reading and reading.lstrip("-").isdigit()]
    return max(values) if values else None


def version_of(package: str) -> str:
    """Installed version, empty where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
