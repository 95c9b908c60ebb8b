"""Activation checkpointing is what the recipe says, under either name of transformers."""

import pytest

from trl_reasoning.trainers import DrGRPOConfig, ReasoningSFTConfig, _checkpointing


@pytest.mark.parametrize("config_class", [DrGRPOConfig, ReasoningSFTConfig])
@pytest.mark.parametrize("wanted", [True, False])
def test_both_names_agree(common, config_class, wanted):
    config = config_class(**{**common, "activation_checkpointing": wanted})
    assert config.activation_checkpointing is wanted
    assert config.gradient_checkpointing is wanted


def test_the_older_name_is_set_where_it_is_the_only_one(monkeypatch):
    class Older:
        activation_checkpointing = False
        gradient_checkpointing = True

    monkeypatch.setattr(_checkpointing, "fields", lambda cls: ())
    args = Older()
    _checkpointing.settle_activation_checkpointing(args)
    assert args.gradient_checkpointing is False
