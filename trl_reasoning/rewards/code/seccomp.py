"""
The system calls that a sandboxed program may make, as a seccomp filter.

It is a list of what is allowed: everything else fails with `ENOSYS`. No call on it makes a process or a thread, opens
a socket, mounts, traces another process, takes memory outside the limits (`memfd_create`, System V shared memory) or
reaches keyrings, io_uring and the other large parts of the kernel that a test never needs. The filter binds root and
users alike, unlike `RLIMIT_NPROC`.
"""

import platform
import struct


# Name, number on x86-64, number on 64-bit ARM; `-` where the machine does not have it.
_ALLOWED = """
access 21 -, alarm 37 -, arch_prctl 158 -, brk 12 214, chdir 80 49, clock_getres 229 114, clock_gettime 228 113,
clock_nanosleep 230 115, close 3 57, close_range 436 436, dup 32 23, dup2 33 -, dup3 292 24,
epoll_create1 291 20, epoll_ctl 233 21, epoll_pwait 281 22, epoll_wait 232 -, eventfd2 290 19, execve 59 221,
exit 60 93, exit_group 231 94, faccessat 269 48, faccessat2 439 439, fchdir 81 50, fcntl 72 25, fdatasync 75 83,
flock 73 32, fstat 5 80, fstatfs 138 44, fsync 74 82, ftruncate 77 46, futex 202 98, getcpu 309 168,
getcwd 79 17, getdents 78 -, getdents64 217 61, getegid 108 177, geteuid 107 175, getgid 104 176,
getgroups 115 158, getitimer 36 102, getpgid 121 155, getpgrp 111 -, getpid 39 172, getppid 110 173,
getpriority 140 141, getrandom 318 278, getresgid 120 150, getresuid 118 148, getrlimit 97 163, getrusage 98 165,
getsid 124 156, gettid 186 178, gettimeofday 96 169, getuid 102 174, lseek 8 62, lstat 6 -, madvise 28 233,
membarrier 324 283, mkdir 83 -, mkdirat 258 34, mmap 9 222, mprotect 10 226, mremap 25 216, munmap 11 215,
nanosleep 35 101, newfstatat 262 79, open 2 -, openat 257 56, pipe 22 -, pipe2 293 59, poll 7 -, ppoll 271 73,
pread64 17 67, pselect6 270 72, pwrite64 18 68, read 0 63, readlink 89 -, readlinkat 267 78,
readv 19 65, recvfrom 45 207, rename 82 -, renameat 264 38, renameat2 316 276, rmdir 84 -, rseq 334 293,
rt_sigaction 13 134, rt_sigpending 127 136, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigsuspend 130 133,
rt_sigtimedwait 128 137, sched_getaffinity 204 123, sched_yield 24 124, select 23 -, sendto 44 206,
set_robust_list 273 99, set_tid_address 218 96, setitimer 38 103, setrlimit 160 164, sigaltstack 131 132,
stat 4 -, statfs 137 43, statx 332 291, sysinfo 99 179, tgkill 234 131, time 201 -, times 100 153,
truncate 76 45, umask 95 166, uname 63 160, unlink 87 -, unlinkat 263 35, wait4 61 260, write 1 64, writev 20 66
"""
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_IOCTL = (16, 29)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: not TIOCSTI, which types into the terminal.
_IOCTL_COMMANDS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
_PRLIMIT = (302, 261)
_SOCKETPAIR = (53, 199)
_AF_UNIX = 1

_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_ENOSYS, _EPERM = 0x00050000 | 38, 0x00050000 | 1
_NUMBER, _MACHINE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24


def is_supported() -> bool:
    """Whether the filter exists for this machine: x86-64 and 64-bit ARM."""
    return platform.machine() in _MACHINES


def build_filter() -> bytes:
    """
    Build the filter as a classic BPF program.

    A call through another machine's interface (32-bit calls on x86-64) kills the program; one that is not on the list
    fails with `ENOSYS`, so that the C library takes its older way where there is one.

    Returns:
        `bytes`: `struct sock_filter` entries of 8 bytes, for `bwrap --seccomp`.

    Raises:
        ValueError: on a machine without a table of numbers.
    """
    if not is_supported():
        raise ValueError(f"no table of system calls for {platform.machine()}")
    column, machine = _MACHINES[platform.machine()]
    lines = [(_LOAD, 0, 0, _MACHINE), (_JUMP_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    for row in _ALLOWED.replace("\n", " ").split(","):
        number = row.split()[1 + column]
        if number != "-":
            lines += [(_JUMP_EQUAL, 0, 1, int(number)), (_RETURN, 0, 0, _ALLOW)]
    lines += _when(_IOCTL[column], _SECOND_ARGUMENT, _IOCTL_COMMANDS)
    lines += _when(_PRLIMIT[column], _FIRST_ARGUMENT, (0,))  # its own limits alone
    lines += _when(_SOCKETPAIR[column], _FIRST_ARGUMENT, (_AF_UNIX,))
    lines.append((_RETURN, 0, 0, _ENOSYS))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _when(number: int, argument: int, values: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Allow call `number` where the argument (its low half: these are ints) has one of the values."""
    body = [(_LOAD, 0, 0, argument)]
    for value in values:
        body += [(_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    body.append((_RETURN, 0, 0, _EPERM))
    return [(_JUMP_EQUAL, 0, len(body), number), *body]
