"""Kernels for GPUs with torch and Triton (torch also runs on the CPU), and the choice of the device.

Only this module can be imported without torch.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from multiprocessing import current_process
from typing import Any

CHOICES = "'cpu', 'auto', 'cuda' ('cuda:1' for the second GPU), or 'torch-cpu' to try the GPU code without a GPU"


def find(device: str) -> str | None:
    """Torch device for a parameter ``device``, or None for the CPU kernels.

    "auto" is a GPU if torch sees one. "cuda" is the first GPU; worker process number k takes GPU k, so that several
    processes share several GPUs.
    """
    if not isinstance(device, str) or device.split(":")[0] not in ("cpu", "auto", "cuda", "torch-cpu"):
        raise ValueError(f"device={device!r} is not known: choose {CHOICES}")
    if device == "cpu" or (device == "auto" and not _sees_gpu()):
        return None
    torch = _torch(device)
    if device == "torch-cpu":
        os.environ.setdefault("MKL_CBWR", "AUTO")  # makes MKL's products of a subset the same in any batch
        return "cpu"
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}, but torch {torch.__version__} sees no GPU: check the driver with nvidia-smi and that "
            "torch is a CUDA build, or use device='cpu' (or 'auto', which falls back to it)"
        )
    return f"cuda:{_number(device, torch.cuda.device_count())}"


def count(device: str) -> int:
    """Number of devices: of all GPUs, or 1 if one is named."""
    return _torch(device).cuda.device_count() if device in ("auto", "cuda") else 1


def free_cache() -> None:
    """Return the memory of batches that have ended to the GPU, for other processes."""
    _torch("auto").cuda.empty_cache()


def has_triton(device: str) -> bool:
    return device.startswith("cuda") and find_spec("triton") is not None


def _sees_gpu() -> bool:
    return find_spec("torch") is not None and _torch("auto").cuda.is_available()


def _torch(device: str) -> Any:
    try:
        import torch

        return torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs torch: python -m pip install 'probewise[gpu]', or use device='cpu'"
        ) from error


def _number(device: str, n_gpus: int) -> int:
    """Number of the GPU: the one named, or one for each worker process in turn."""
    if ":" in device:
        number = device.split(":")[1]
        if not number.isdigit() or int(number) >= n_gpus:
            raise ValueError(f"device={device!r}: there are GPUs 0 to {n_gpus - 1} here")
        return int(number)
    worker = current_process().name.rpartition("-")[2]
    return int(worker) % n_gpus if worker.isdigit() else 0
