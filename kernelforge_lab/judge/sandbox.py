"""Limits a candidate's process puts on itself: rlimits, and a seccomp filter of system calls.

Imported by the runner, so: standard library only, no torch, nothing of the package.
The filter has two stages. ``restrict(loading=True)`` still lets the loader open files for reading;
``restrict(loading=False)`` comes after it and takes that away too. A forbidden call ends the process by
SIGSYS; asking for a file only fails (libgomp and glibc look at /sys for CPU counts and cope).
"""

from __future__ import annotations

import ctypes
import errno
import platform
import resource
import struct
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
_SIGKILL: Final = 9

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
# TRAP raises SIGSYS with the call's number, which the runner's handler reports; unhandled, it kills.
_TRAP: Final = 0x00030000
_KILL: Final = 0x80000000

_LOAD, _JUMP_EQ, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# System call numbers: (x86_64, aarch64); None where the machine has no such call.
_CALLS: Final[dict[str, tuple[int | None, int | None]]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "uname": (63, 160),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "sigaltstack": (131, 132),
    "prctl": (157, 167),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_setaffinity": (203, 122),
    "sched_getaffinity": (204, 123),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "tgkill": (234, 131),
    "get_mempolicy": (239, 236),
    "set_robust_list": (273, 99),
    "getcpu": (309, 168),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "rseq": (334, 293),
}
_REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    "stat": (4, None),
    "lstat": (6, None),
    "access": (21, None),
    "getcwd": (79, 17),
    "readlink": (89, None),
    "newfstatat": (262, 79),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "prlimit64": (302, 261),
    "statx": (332, 291),
    "faccessat2": (439, 439),
    "ioctl": (16, 29),
}
# The dynamic loader reads ELF headers, and torch's OpenMP runtime is looked for beside torch.
_LOADING: Final[dict[str, tuple[int | None, int | None]]] = {
    "pread64": (17, 67),
    "getdents64": (217, 61),
    "fcntl": (72, 25),
}
_OPEN: Final[tuple[int | None, int | None]] = (2, None)
_OPENAT: Final[tuple[int | None, int | None]] = (257, 56)
_CLONE: Final[tuple[int | None, int | None]] = (56, 220)
_CLONE3: Final[tuple[int | None, int | None]] = (435, 435)
_CLONE_THREAD: Final = 0x00010000
_WRITE_FLAGS: Final = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000  # WRONLY, RDWR, CREAT, TRUNC, APPEND
_PAGED_FILE: Final = 0o20000000  # O_TMPFILE's own bit


def limit_resources(memory_bytes: int, cpu_s: int) -> None:
    """Address space, CPU seconds, no core files, no file growth, few descriptors; dies with its parent."""
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: 64,
    }
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))
    die_with_parent()


def die_with_parent() -> None:
    """SIGKILL for this process when the thread that started it ends, also while it is stopped (Linux)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def restrict(*, loading: bool) -> bool:
    """Install the system-call filter on this thread and all it will start. False where unsupported."""
    machine = platform.machine()
    if machine not in _AUDIT_ARCH:
        return False
    column = list(_AUDIT_ARCH).index(machine)
    program = _filter(_AUDIT_ARCH[machine], column, loading)
    code = ctypes.create_string_buffer(program)

    class _Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    libc = ctypes.CDLL(None, use_errno=True)
    handle = _Program(len(program) // 8, ctypes.addressof(code))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(handle), 0, 0) == 0)


def call_name(number: int) -> str:
    """Name of a system call for people; its number when it is none that we list."""
    named = {"x86_64": _NAMES_X86_64}.get(platform.machine(), {})
    return named.get(number, f"system call {number}")


_NAMES_X86_64: Final = {
    2: "open",
    41: "socket",
    42: "connect",
    44: "sendto",
    56: "clone",
    57: "fork",
    58: "vfork",
    59: "execve",
    62: "kill",
    82: "rename",
    83: "mkdir",
    87: "unlink",
    101: "ptrace",
    257: "openat",
    322: "execveat",
}


def _filter(arch: int, column: int, loading: bool) -> bytes:
    out = [
        _op(_LOAD, 4),  # seccomp_data.arch
        _op(_JUMP_EQ, arch, 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, 0),  # seccomp_data.nr
    ]
    for pair in _CALLS.values():
        out += _answer(pair[column], _ALLOW)
    for name, pair in _REFUSED.items():
        # Loading stats files; mmap of a library needs no more.
        allowed = loading and name not in ("prlimit64", "ioctl")
        out += _answer(pair[column], _ALLOW if allowed else _ERRNO | errno.EACCES)
    for pair, flags_at in ((_OPEN, 1), (_OPENAT, 2)):
        out += _answer_by_flags(
            pair[column],
            flags_at,
            _WRITE_FLAGS | _PAGED_FILE,
            _TRAP,
            _ALLOW if loading else _ERRNO | errno.EACCES,
        )
    for pair in _LOADING.values() if loading else ():
        out += _answer(pair[column], _ALLOW)
    out += _answer(_CLONE3[column], _ERRNO | errno.ENOSYS)  # its flags cannot be seen; glibc falls back
    out += _answer_by_flags(_CLONE[column], 0, _CLONE_THREAD, _ALLOW, _TRAP)
    out.append(_op(_RETURN, _TRAP))
    return b"".join(out)


def _answer(number: int | None, action: int) -> list[bytes]:
    if number is None:
        return []
    return [_op(_JUMP_EQ, number, 0, 1), _op(_RETURN, action)]


def _answer_by_flags(
    number: int | None, argument: int, mask: int, when_set: int, otherwise: int
) -> list[bytes]:
    if number is None:
        return []
    return [
        _op(_JUMP_EQ, number, 0, 4),
        _op(_LOAD, 16 + 8 * argument),  # low half of seccomp_data.args[argument]
        _op(_JUMP_SET, mask, 0, 1),
        _op(_RETURN, when_set),
        _op(_RETURN, otherwise),
    ]


def _op(code: int, value: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, jump_true, jump_false, value & 0xFFFFFFFF)
