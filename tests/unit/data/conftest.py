"""Keeps the caches of `datasets` inside the test's folder."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    from datasets import config

    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets_cache"))
