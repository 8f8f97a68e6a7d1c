"""Compiled kernels: a loop over ten million pages in compiled code where numba is installed.

A kernel is a plain function over arrays, marked with :func:`compiled`. Nothing is imported or compiled before its
first call, so small work never pays for it. Where numba is missing the caller takes its numpy path instead
(:func:`can_compile`): the same numbers, slower. So does a caller of little work for which loading compiled code would
take longer (:func:`interpreted`), and a process whose kernels are still being compiled (:func:`hold_back_kernels`).
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
R = TypeVar("R")


_interpreted: ContextVar[bool] = ContextVar("interpreted", default=False)
_ahead: ContextVar[bool] = ContextVar("ahead", default=False)


class _Gate:
    """Whether kernels are held back in this process."""

    is_closed = False


def hold_back_kernels() -> None:
    """From now on take numpy paths and plain Python in this process, until :func:`release_kernels`."""
    _Gate.is_closed = True


def release_kernels() -> None:
    """Use kernels again. Call it where no computation is under way in another thread."""
    _Gate.is_closed = False


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """Within the block, call kernels although they are held back: to compile or load them."""
    before = _ahead.set(True)
    try:
        yield
    finally:
        _ahead.reset(before)


def _is_off() -> bool:
    return _interpreted.get() or (_Gate.is_closed and not _ahead.get())


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None


def can_compile() -> bool:
    """Whether numba is installed (the extra ``speed``), and kernels are not held back."""
    return _has_numba() and not _is_off()


@contextmanager
def interpreted() -> Iterator[None]:
    """Within the block, take numpy paths and plain Python: numba takes more than half a second to load."""
    before = _interpreted.set(True)
    try:
        yield
    finally:
        _interpreted.reset(before)


def compiled(kernel: Callable[P, R]) -> Callable[P, R]:
    """The kernel, compiled at its first call where numba is installed; plain Python elsewhere.

    Compiled code is kept on disk between runs where the place allows it. ``__wrapped__`` is the plain function.
    """

    @cache
    def compiled_kernel() -> Callable[P, R]:
        if not _has_numba():
            return kernel
        code: Callable[P, R] = import_module("numba").njit(kernel, cache=True, nogil=True)
        return code

    @wraps(kernel)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        return (kernel if _is_off() else compiled_kernel())(*arguments, **options)

    return run


def compiled_now(function: Callable[P, R]) -> Callable[P, R]:
    """The function compiled at its first call, for kernels that call each other; plain Python without numba.

    Unlike with :func:`compiled`, numba is loaded at once: only for modules that are themselves imported late.
    """
    if not _has_numba():
        return function
    code: Callable[P, R] = import_module("numba").njit(function, cache=True, nogil=True)
    return code


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`compiled_now`, for kernels that make no arrays and are done in microseconds.

    Then nobody counts who holds the arrays that kernels hand to each other, and the interpreter is not offered to other
    threads meanwhile: to get it back from one that took it can take longer than the kernel. Kernels become part of
    those that call them: to hand over an array takes seven steps of the processor, four of them as long as a word.
    """
    if not _has_numba():
        return function
    code: Callable[P, R] = import_module("numba").njit(function, cache=True, _nrt=False, forceinline=True)
    return code
