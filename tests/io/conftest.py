"""Fixtures for tests of readers."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file and returns its path."""

    def put(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put
