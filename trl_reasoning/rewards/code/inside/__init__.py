"""What runs inside a sandbox, under `python -I -S`: it imports the standard library and nothing of this package."""

__all__: list[str] = []
