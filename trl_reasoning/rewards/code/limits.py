"""What a sandboxed program may use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """
    What one program may use.

    Args:
        seconds (`float`, *optional*, defaults to `10.0`):
            CPU time, rounded up. For stdin tests it holds for each test, for asserts for all of them together. By the
            clock a program has twice as long, so that a busy machine does not change verdicts.
        memory_mb (`int`, *optional*, defaults to `512`):
            Address space of the program in MiB.
        scratch_mb (`int`, *optional*, defaults to `0`):
            Size of the temporary folder in MiB; with 0 the program can write no file at all. How many files it holds
            is limited by the time alone (an empty one takes about 1 KiB of the kernel's memory until the end).
        output_kb (`int`, *optional*, defaults to `1024`):
            Bytes in KiB that a program may print for one test, and that one call may take or give back.
        site_packages (`bool`, *optional*, defaults to `False`):
            Whether the packages of this environment can be imported; else the standard library alone.
    """

    seconds: float = 10.0
    memory_mb: int = 512
    scratch_mb: int = 0
    output_kb: int = 1024
    site_packages: bool = False

    def __post_init__(self) -> None:
        for name, least, most in (
            ("seconds", 0.1, 3600),
            ("memory_mb", 64, 65536),
            ("scratch_mb", 0, 4096),
            ("output_kb", 1, 8192),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name}: expected a number from {least} to {most}, got {value}")

    @property
    def clock_seconds(self) -> float:
        """Seconds by the clock after which a program is ended."""
        return 2 * self.seconds
