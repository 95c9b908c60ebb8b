"""Chat templates by name, for tokenizers that have none or whose own lacks generation marks."""

import importlib.util
from importlib import resources
from pathlib import Path

from .errors import DataError, nearest_hint


_SUFFIX = ".jinja"


def chat_template_names() -> list[str]:
    """Names that [`resolve_chat_template`] knows: this package's templates first, then TRL's."""
    return list(dict.fromkeys([*_stems(_our_folder()), *_stems(_trl_folder())]))


def resolve_chat_template(name_or_path: str, *, base_dir: Path | None = None) -> str:
    """
    The Jinja text of a chat template.

    Args:
        name_or_path (`str`):
            Name of a template of this package (for instance `chatml_think`) or of TRL (for instance `qwen3_training`),
            or the path of a `.jinja` file.
        base_dir (`Path`, *optional*):
            Folder of the recipe. A relative path is looked up in the current directory first, then here.

    Returns:
        `str`

    Raises:
        `DataError`: for an unknown name (with the nearest one) or a file that is not there.

    Example:

    ```python
    >>> "{%- generation %}" in resolve_chat_template("chatml_think")
    True

    ```
    """
    if name_or_path.endswith(_SUFFIX):
        path = Path(name_or_path).expanduser()
        candidates = [path] if base_dir is None else [path, Path(base_dir) / path]
        for candidate in candidates:
            if candidate.is_file():
                return candidate.read_text("utf-8")
        raise DataError(f"chat_template: no file at {' or '.join(str(candidate) for candidate in candidates)}")
    for folder in (_our_folder(), _trl_folder()):
        file = folder / f"{name_or_path}{_SUFFIX}"
        if file.is_file():
            return file.read_text("utf-8")
    names = chat_template_names()
    raise DataError(
        f"chat_template: unknown template {name_or_path!r}{nearest_hint(name_or_path, names)} (a path must end in "
        f"{_SUFFIX}; known names: {', '.join(names)})"
    )


def _our_folder() -> Path:
    return Path(str(resources.files("trl_reasoning") / "templates"))


def _trl_folder() -> Path:
    # Found without importing it: TRL takes seconds, and only its text files are wanted.
    spec = importlib.util.find_spec("trl")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("chat_template: TRL is not installed, so its chat templates cannot be found")
    return Path(spec.submodule_search_locations[0]) / "chat_templates"


def _stems(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob(f"*{_SUFFIX}"))
