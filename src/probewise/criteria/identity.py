"""What a function or an object of the user is, the same in every process: its code and all that it captures."""

from __future__ import annotations

import dis
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..engine.fingerprints import fingerprint
from ..engine.settings import UNKNOWN

PLAIN = (str, bytes, bool, int, float, complex, type(None), type(...), range, slice, np.generic, np.dtype)
WITHOUT_CONSEQUENCE = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__annotations__", "__firstlineno__", "__static_attributes__", "_abc_impl")
)
STANDARD_LIBRARY = sysconfig.get_path("stdlib")
MADE_BY_PYTHON = 1 << 9  # a flag of classes, which those written in C mostly lack


def stable_text(thing: Any) -> str:
    """A description without memory addresses: class and parameters, or a name and a digest of all that matters.

    It ends in ``UNKNOWN`` where something, such as an open file or a lock, cannot be compared between processes.
    """
    if isinstance(thing, BaseEstimator):
        parts = [f"{name}={stable_text(value)}" for name, value in sorted(thing.get_params(deep=False).items())]
        return f"{class_text(type(thing))}({', '.join(parts)})"
    if isinstance(thing, list | tuple):
        opening, closing = "[]" if isinstance(thing, list) else "()"
        return f"{opening}{', '.join(map(stable_text, thing))}{closing}"
    if isinstance(thing, dict):
        return f"{{{', '.join(f'{stable_text(name)}: {stable_text(value)}' for name, value in thing.items())}}}"
    if isinstance(thing, PLAIN) or _tells_all(thing):
        return repr(thing)
    try:
        return f"{_name(thing)}#{_digest(thing)[:12]}"
    except (_Unidentified, RecursionError):
        return _name(thing) + UNKNOWN


def class_text(kind: type) -> str:
    """The name of a class, and of a user's own a digest of its code."""
    if _is_named(kind):
        return kind.__name__
    try:
        return f"{kind.__name__}#{_digest(kind)[:12]}"
    except (_Unidentified, RecursionError):
        return kind.__name__ + UNKNOWN


def _tells_all(thing: Any) -> bool:
    """Whether it is a stopping rule or the like, which shows all its fields."""
    return is_dataclass(thing) and _is_installed(type(thing).__module__) and " at 0x" not in repr(thing)


class _Unidentified(Exception):
    pass


def _name(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def _digest(thing: Any, open_: tuple[int, ...] = (), known: dict[int, Any] | None = None) -> str:
    """Of the parts that a thing is made of; one inside of itself is known by how far up it is."""
    known = {} if known is None else known
    if isinstance(thing, PLAIN):
        return _hashed(type(thing).__name__, repr(thing))
    if id(thing) in open_:
        return _hashed("itself", str(open_[::-1].index(id(thing))))
    if id(thing) not in known:
        inner = (*open_, id(thing))
        parts = [_digest(part, inner, known) for part in _parts(thing)]
        ordered = sorted(parts) if isinstance(thing, set | frozenset | dict) else parts
        known[id(thing)] = _hashed(type(thing).__qualname__, *ordered), thing  # kept, or its address is used again
    return str(known[id(thing)][0])


def _hashed(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()


def _parts(thing: Any) -> Iterator[Any]:
    """What a thing is made of; for what is installed its name, for an object what it would be pickled as."""
    match thing:
        case list() | tuple() | set() | frozenset():
            yield from thing
        case dict():
            yield from thing.items()
        case np.ndarray() if thing.dtype != object:
            yield fingerprint(thing)
        case np.ndarray():
            yield from (thing.shape, thing.tolist())
        case ModuleType():
            yield from (thing.__name__, _source(thing.__name__))
        case CodeType():
            yield from (thing.co_code, thing.co_names, thing.co_varnames, thing.co_freevars, thing.co_flags)
            yield from thing.co_consts
        case MethodType():
            yield from (thing.__func__, thing.__self__)
        case staticmethod() | classmethod():
            yield thing.__func__
        case property():
            yield from (thing.fget, thing.fset)
        case FunctionType() | type() if _is_named(thing):
            yield _name(thing)
        case FunctionType():
            yield from (thing.__code__, thing.__defaults__, thing.__kwdefaults__)
            yield from (cell.cell_contents for cell in _filled(thing.__closure__))
            yield from _attributes(thing)
            if not _is_of_a_library(thing):
                yield from _looked_up(thing)
        case type():
            yield from (_name(thing), *thing.__bases__)
            yield from sorted(
                (item for item in vars(thing).items() if item[0] not in WITHOUT_CONSEQUENCE), key=lambda item: item[0]
            )
        case BuiltinFunctionType():
            yield from (_name(thing), None if isinstance(thing.__self__, ModuleType) else thing.__self__)
        case _ if hasattr(thing, "__wrapped__") and _is_named(type(thing)):
            yield thing.__wrapped__
        case BaseEstimator():
            yield from (type(thing), vars(thing))
        case _ if sp.issparse(thing):
            yield fingerprint(thing)
        case _:
            yield from _pickled(thing)


def _pickled(thing: Any) -> Iterator[Any]:
    try:
        parts = thing.__reduce_ex__(4)
    except Exception as error:
        raise _Unidentified from error
    if isinstance(parts, str):
        yield from (getattr(thing, "__module__", ""), parts)
    else:
        yield from (list(part) if hasattr(part, "__next__") else part for part in parts)


def _filled(cells: Any) -> Iterator[Any]:
    for cell in cells or ():
        try:
            cell.cell_contents  # noqa: B018 - empty while the function that fills it is being defined
        except ValueError:
            continue
        yield cell


def _attributes(function: FunctionType) -> Iterator[Any]:
    own = {name: value for name, value in vars(function).items() if name != "__wrapped__"}
    if own:
        yield own


def _looked_up(function: FunctionType) -> Iterator[Any]:
    """What a function finds by name when it is called; of a user's modules what it may take from them, as it is now."""
    steps = list(_steps(function.__code__))
    names = {step.argval for step in steps if step.opcode in dis.hasname}
    seen: set[str] = set()
    for name in sorted({step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}):
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name, value
            yield from _taken(value, names, seen)
    for module in _imported(steps, function.__globals__.get("__package__")):
        yield module
        yield from _taken(module, names, seen)


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of a code and of all codes inside of it."""
    yield from (step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _steps(constant)


def _taken(module: Any, names: set[str], seen: set[str]) -> Iterator[tuple[str, Any]]:
    """Of the variables of a user's module those with one of the names."""
    if not isinstance(module, ModuleType) or _is_installed(module.__name__) or module.__name__ in seen:
        return
    seen.add(module.__name__)
    for name in sorted(names & vars(module).keys()):
        value = vars(module)[name]
        yield name, value
        yield from _taken(value, names, seen)


def _imported(steps: list[dis.Instruction], package: str | None) -> Iterator[ModuleType]:
    """The user's modules that a code imports when it is called."""
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            dots = "." * steps[place - 2].argval
            try:
                name = importlib.util.resolve_name(dots + step.argval, package)
                if _is_of_the_user(name.partition(".")[0]):
                    yield importlib.import_module(name)
            except (ImportError, ValueError):
                continue  # as the function will see when it is called


def _is_of_the_user(package: str) -> bool:
    """Of a package that need not have been imported yet."""
    if package in sys.stdlib_module_names or package == "probewise":
        return False
    known = sys.modules.get(package)
    found = importlib.util.find_spec(package) if known is None else None
    return not _is_installed_at(getattr(known, "__file__", None) if found is None else found.origin)


def _is_named(thing: FunctionType | type) -> bool:
    """Whether it is of a library, which has it by its name: what a library makes of a user's function, it has not."""
    if isinstance(thing, type):
        is_made = thing.__flags__ & MADE_BY_PYTHON and (thing.__module__ == "builtins" or "<locals>" in _name(thing))
        return _is_installed(thing.__module__) and not is_made
    found: Any = sys.modules.get(thing.__module__ or "")
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    return _is_of_a_library(thing) and (thing is found or thing is getattr(found, "__wrapped__", None))


def _is_of_a_library(function: FunctionType) -> bool:
    """By where its code is: ``__module__`` is of another function where it was decorated."""
    module = function.__globals__.get("__name__")
    return module is not None and _is_installed(module)


@cache
def _is_installed(module: str | None) -> bool:
    """Whether it is of a library, which is known by name; a library's new version may go on with a run."""
    if module is None or module.partition(".")[0] in ("probewise", "reproductions", *sys.builtin_module_names):
        return True
    return module != "__main__" and _is_installed_at(getattr(sys.modules.get(module), "__file__", None))


def _is_installed_at(file: str | None) -> bool:
    return file is not None and (
        file.startswith(STANDARD_LIBRARY) or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    )


def _source(module: str) -> bytes | None:
    """What the file of a user's module holds."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None or _is_installed(module) or not Path(file).is_file() else Path(file).read_bytes()
