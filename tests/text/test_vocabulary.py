import json
import subprocess
import sys

import pytest

from infocal.errors import ModelError
from infocal.text import vocabulary as module
from infocal.text.vocabulary import Vocabulary, coarse_key

COUNTS = {"the": 9, "beer": 5, "ale": 5, "rare": 1, "odd": 1}


def build(**changes):
    settings = {"min_count": 2, "max_words": 10, "unknown_buckets": 4} | changes
    return Vocabulary.build(COUNTS, **settings)


def test_order_and_ids():
    vocabulary = build()
    assert vocabulary.words == ("the", "ale", "beer")
    assert vocabulary.ids(["The", "ALE", "beer", "ｂｅｅｒ"]) == [5, 6, 7, 7]
    assert len(vocabulary) == 1 + 4 + 3
    assert "ale" in vocabulary and "rare" not in vocabulary


def test_keep_and_extra():
    vocabulary = build(max_words=1, keep={"rare", "ale"}, extra=["new", "the"])
    assert vocabulary.words == ("the", "ale", "rare", "new")


def test_unknown_words_share_buckets_by_ending():
    vocabulary = build(unknown_buckets=1000)
    first, second, other = vocabulary.ids(["Brewing", "drinking", "drinker"])
    assert first == second != other
    assert all(1 <= bucket <= 1000 for bucket in (first, other))


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("1999", "2,000.5"), True),
        (("1999", "3g"), False),
        (("http://a.b", "www.x.y"), True),
        (("@one", "#two"), True),
        (("盗窃罪", "抢劫罪"), True),
        (("盗窃罪", "盗窃案"), False),
        (("...", "!"), True),
        (("walking", "talking"), True),
    ],
)
def test_coarse_key(words, same):
    assert (coarse_key(words[0]) == coarse_key(words[1])) is same


def test_buckets_are_the_same_in_another_process():
    words = ["zyzzyva", "盗窃罪", "😀", "x1"]
    code = f"from infocal.text.vocabulary import Vocabulary as V; print(V((), 97).ids({words!r}))"
    printed = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(printed.stdout) == Vocabulary((), 97).ids(words)


def test_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_CACHE_LIMIT", 10)
    vocabulary = build()
    expected = [build().ids([f"w{number}"])[0] for number in range(50)]
    assert vocabulary.ids(f"w{number}" for number in range(50)) == expected
    assert len(vocabulary._cache) <= 10


def test_json_round_trip():
    vocabulary = build()
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again == vocabulary and hash(again) == hash(vocabulary)
    assert again.ids(["the", "nope"]) == vocabulary.ids(["the", "nope"])
    assert vocabulary != build(unknown_buckets=5)


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"words": ["a"], "unknown_buckets": 0},
        {"words": ["a"], "unknown_buckets": True},
        {"words": ["a", 3], "unknown_buckets": 1},
        {"words": "ab", "unknown_buckets": 1},
        {"words": ["a", "a"], "unknown_buckets": 1},
    ],
)
def test_broken_json(record):
    with pytest.raises(ModelError, match="vocabulary is damaged"):
        Vocabulary.from_json(record)
