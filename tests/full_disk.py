"""A limit on the size of files, which stands for a full disk."""

import signal
from contextlib import contextmanager

import pytest


@contextmanager
def files_no_longer_than():
    """A function that lets the kernel refuse longer files to this process (EFBIG), until the block ends."""
    resource = pytest.importorskip("resource", reason="limits of a process are of POSIX")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN  # as Python has it: a long file is an error, not the end
    try:
        yield lambda n_bytes: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
