"""The teacher of a distillation: its settings, its loading, and a narrower view of a head of logits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from peft import PeftModel
from transformers import AutoConfig, AutoTokenizer, BitsAndBytesConfig
from trl.trainer.utils import create_model_from_path

from ..builtin import resolve_model
from ..errors import UserError
from ..generation.loading import dtype_of, split_adapter
from ..generation.vocabulary import check_same_vocabulary, shared_width


@dataclass
class TeacherConfig:
    """
    Keys of the methods that learn from a teacher.

    Args:
        teacher_model_name_or_path (`str`, *optional*):
            `builtin:tiny`, a folder (also one with an adapter alone) or a hub id.
        teacher_adapter_name_or_path (`str`, *optional*):
            LoRA adapter to put on the teacher.
        teacher_dtype (`str`, *optional*, defaults to `"auto"`):
            Format of its weights: `float32`, `bfloat16`, `float16`; `auto` is what the device computes in natively.
        teacher_load_in_4bit (`bool`, *optional*, defaults to `False`):
            Whether its weights are quantised (NF4, nested): an 8B teacher takes 6 GB beside the student.
    """

    teacher_model_name_or_path: str | None = field(
        default=None, metadata={"help": "The teacher: a folder, a hub id or a builtin model."}
    )
    teacher_adapter_name_or_path: str | None = field(
        default=None, metadata={"help": "LoRA adapter to put on the teacher."}
    )
    teacher_dtype: str = field(
        default="auto",
        metadata={
            "help": "Format of the teacher's weights.",
            "choices": ["auto", "float32", "bfloat16", "float16"],
        },
    )
    teacher_load_in_4bit: bool = field(
        default=False, metadata={"help": "Whether to quantise the teacher's weights to 4 bits (NF4, nested)."}
    )


def check_teacher_tokenizer(args: Any, tokenizer: Any, student: str, revision: str | None = None) -> int:
    """
    Compare the vocabularies of a student and its teacher before either is loaded.

    Args:
        args ([`TeacherConfig`]):
            Names the teacher.
        tokenizer ([`~transformers.PreTrainedTokenizerBase`]):
            The student's, as it is trained.
        student (`str`):
            Folder or hub id of the student.
        revision (`str`, *optional*):
            The student's revision on the hub.

    Returns:
        `int`: the number of logits that both have.

    Raises:
        [`~trl_reasoning.errors.UserError`]: Their tokenizers differ.
    """
    base, _ = split_adapter(args.teacher_model_name_or_path, args.teacher_adapter_name_or_path)
    settings = {"revision": args.teacher_model_revision, "trust_remote_code": args.trust_remote_code}
    names = {"student_name": student, "teacher_name": base}
    teacher_tokenizer: Any = AutoTokenizer.from_pretrained(resolve_model(base), **settings)
    check_same_vocabulary(tokenizer, teacher_tokenizer, **names)
    teacher_rows = vocabulary_rows(base, **settings)
    student_rows = vocabulary_rows(student, revision, args.trust_remote_code)
    return shared_width(tokenizer, student_rows, teacher_rows, **names)


def vocabulary_rows(model: Any, revision: str | None = None, trust_remote_code: bool = False) -> int:
    """Rows of logits of a model, or of one that is only named."""
    if isinstance(model, str):
        path = resolve_model(model)
        config = AutoConfig.from_pretrained(path, revision=revision, trust_remote_code=trust_remote_code)
        return config.get_text_config().vocab_size
    return head_rows(model)


def head_rows(model: Any) -> int:
    """Rows of a loaded model's head."""
    return model.get_output_embeddings().weight.size(0)


def load_teacher(args: Any, **more: Any) -> Any:
    """
    Load a frozen teacher for the forward pass.

    Args:
        args ([`TeacherConfig`]):
            Names the teacher and the format of its weights.
        **more:
            For `from_pretrained`, before what `args` says.

    Returns:
        [`~transformers.PreTrainedModel`], or [`~peft.PeftModel`] for an adapter on a 4-bit base.
    """
    base, adapter = split_adapter(args.teacher_model_name_or_path, args.teacher_adapter_name_or_path)
    dtype = dtype_of(args.teacher_dtype, args.device)
    kwargs: dict[str, Any] = {"dtype": dtype, "revision": args.teacher_model_revision}
    kwargs["trust_remote_code"] = args.trust_remote_code
    # "auto" would spread each process's model over all devices.
    if args.distributed_state.distributed_type in ("MULTI_GPU", "DEEPSPEED"):
        kwargs["device_map"] = None
    if args.teacher_load_in_4bit:
        kwargs["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        )
    teacher: Any = create_model_from_path(resolve_model(base), **{**kwargs, **more})
    if adapter is not None:
        teacher = PeftModel.from_pretrained(teacher, adapter)
        if not args.teacher_load_in_4bit:  # merging into 4-bit weights would round the adapter
            teacher = teacher.merge_and_unload()
    return teacher.requires_grad_(False).eval()


@contextmanager
def narrow_head(model: Any, width: int) -> Iterator[None]:
    """
    Let `model.get_output_embeddings()` show the first `width` rows of the head alone.

    The rows are a view: gradients reach the head, and a model that is saved has all its rows.

    Args:
        model (`torch.nn.Module`):
            A model with a head of logits.
        width (`int`):
            At most the number of its rows.
    """
    head = model.get_output_embeddings()
    if head.weight.size(0) == width:
        yield
        return
    bias = None if head.bias is None else head.bias[:width]
    view = SimpleNamespace(weight=head.weight[:width], bias=bias)
    model.get_output_embeddings = lambda: view
    try:
        yield
    finally:
        del model.get_output_embeddings


def check_whole_heads(trainer: Any, width: int, student_rows: int, teacher_rows: int) -> None:
    """
    Heads of different widths are cut where each process has the whole of them.

    Raises:
        [`~trl_reasoning.errors.UserError`]: They are sharded, or vLLM could sample tokens that the teacher lacks.
    """
    if student_rows == teacher_rows:
        return
    rows = f"the student has {student_rows} rows of logits and the teacher {teacher_rows}"
    if trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:
        raise UserError(
            f"{rows}; with sharded weights both need the same number. Train with `--accelerate ddp`, or write the "
            f"wider model once with `model.resize_token_embeddings({width})`"
        )
    if student_rows > width and trainer.use_vllm:
        raise UserError(
            f"{rows}; vLLM could sample a token that the teacher lacks. Set `use_vllm: false`, or write the student "
            f"once with `model.resize_token_embeddings({width})`"
        )
