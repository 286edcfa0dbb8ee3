import json
import logging
import sys
import warnings
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from infocal.errors import DataError, MissingExtraError, ModelError, SettingsError
from infocal.text import chinese as chinese_module
from infocal.text.segmentation import (
    characters,
    chinese,
    normalise,
    resolve_segmenter,
    segmenter_named,
    whitespace,
    words,
)

CAIL = Path(__file__).parents[2] / ".." / "shared" / "data" / "cail"

ODD = [
    "👨‍👩‍👧",
    "🇩🇪🇫🇷",
    "👍🏽",
    "e\u0301",
    "\u0301",
    "\r\n",
    "\t",
    " ",
    "\u3000",
    "\u1680",
    "\x1c",
    "Ａ",
    "１",
]
ODD += [
    "’",
    "'",
    "don't",
    "http://x.y/z",
    "www.",
    "@name",
    "#tag",
    "_",
    "1,0",
    ".",
    "\u0600",
    "\u200d",
    "你好",
]
ODD += ["カー", "ภาษา", "ខ្មែរ", "a-b.c", "%"]
odd = st.sampled_from(ODD)
unicode_text = st.lists(odd | st.text(max_size=8), max_size=12).map("".join)
# Signs that attach to what follows them, or accents after a space, leave no boundary to choose.
plain_odd = odd.filter(lambda part: part not in ("\u0600", "\u0301", "\u200d"))
joined_text = st.lists(plain_odd, max_size=12).map("".join)


def tokens(segmenter, text):
    return [text[start:end] for start, end in segmenter(text)]


def check_spans(spans, text):
    reached = 0
    for start, end in spans:
        assert reached <= start < end <= len(text)
        reached = end


@pytest.mark.parametrize("segmenter", [words, characters, chinese], ids=lambda segmenter: segmenter.name)
@given(unicode_text)
@settings(deadline=None, max_examples=300)
def test_spans_are_ordered_and_miss_only_white_space(segmenter, text):
    spans = segmenter(text)
    check_spans(spans, text)
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())


@pytest.mark.parametrize("segmenter", [words, characters], ids=lambda segmenter: segmenter.name)
@given(joined_text)
@settings(deadline=None, max_examples=300)
def test_no_grapheme_is_split(segmenter, text):
    boundaries = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    assert all(start in boundaries and end in boundaries for start, end in segmenter(text))


ascii_parts = st.sampled_from(
    ["http://", "www.", "HTTPS://", "ftp://", "@", "#", "_", "'", ".", ",", "1", "a", " "]
)


@pytest.mark.parametrize("segmenter", [words, characters], ids=lambda segmenter: segmenter.name)
@given(text=st.lists(ascii_parts | st.characters(max_codepoint=127), max_size=20).map("".join))
@settings(deadline=None, max_examples=500)
def test_ascii_is_cut_by_the_same_rules(segmenter, text):
    assert segmenter(text) == [match.span() for match in segmenter.pattern.finditer(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't, don’t!", ["I", "don't", ",", "don’t", "!"]),
        ("'quoted' rock'n'roll", ["'", "quoted", "'", "rock'n'roll"]),
        ("1,000.5% of $3.14.", ["1,000.5", "%", "of", "$", "3.14", "."]),
        (
            "see http://x.y/z. (https://a.b/c?d=e)",
            ["see", "http://x.y/z", ".", "(", "https://a.b/c?d=e", ")"],
        ),
        ("@name: #tag! a@b #", ["@name", ":", "#tag", "!", "a", "@", "b", "#"]),
        ("wow...!?", ["wow", ".", ".", ".", "!", "?"]),
        ("e\u0301te\u0301\r\n\tnaïve", ["e\u0301te\u0301", "naïve"]),
        ("👨‍👩‍👧👍🏽🇩🇪🇫🇷", ["👨‍👩‍👧", "👍🏽", "🇩🇪", "🇫🇷"]),
        ("Ｆｕｌｌ　２０１６", ["Ｆｕｌｌ", "２０１６"]),
        ("hello世界スー http://t.co/ab你", ["hello", "世", "界", "ス", "ー", "http://t.co/ab", "你"]),
        ("한국어 हिन्दी привет", ["한국어", "हिन्दी", "привет"]),
        ("snake_case _x_", ["snake_case", "_", "x", "_"]),
        ("www. http://...", ["www", ".", "http", ":", "/", "/", ".", ".", "."]),
        (" \u2003\x1f ", []),
        ("", []),
    ],
)
def test_words(text, expected):
    assert tokens(words, text) == expected


def test_unspaced_scripts_are_cut_by_grapheme():
    assert tokens(words, "ที่นี่") == regex.findall(r"\X", "ที่นี่")
    assert tokens(words, "ខ្មែរ") == regex.findall(r"\X", "ខ្មែរ")


@pytest.fixture(scope="module")
def jieba():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("jieba")
        module.setLogLevel(logging.ERROR)
        module.initialize()
    return module


def jieba_tokens(module, text):
    return [token for token in module.cut(text) if token.strip()]


def test_chinese_is_the_same_as_jieba(jieba):
    for text in [
        "我来到北京清华大学。",
        "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
        "佳能牌EF17-40MM／4L型变焦镜头，含量为0.07g/kg",
        "IP地址192.168.1.1端口，c++和C#，AT&T公司的T恤衫",
        "２０１６年 ＡＢＣ\r\n\t　中国。 50%off a.b%",
        "😀👨‍👩‍👧我很高兴e\u0301🇩🇪",
        "㐀中人𠀀鿖鿿某某",
        "杭研大厦 naïve привет a--b..c -5 v1.0beta x_y_z",
        " \n",
    ]:
        assert tokens(chinese, text) == jieba_tokens(jieba, text), text


# Repeated single Han signs are left out: there jieba and rjieba break ties between equally likely cuts apart.
@given(st.lists(st.sampled_from(list("aZ09.-_+#&%㐀 ，\n😀")), max_size=20).map("".join))
@settings(deadline=None, max_examples=200)
def test_chinese_is_the_same_as_jieba_on_odd_mixtures(jieba, mixture):
    text = f"中国{mixture}人民法院"
    assert tokens(chinese, text) == jieba_tokens(jieba, text)


@pytest.mark.skipif(not CAIL.exists(), reason="the shared CAIL cases are not here")
def test_chinese_is_the_same_as_jieba_on_real_cases(jieba):
    """Every fourth of them; all 6,467 take half a minute."""
    lines = [
        line for file in sorted(CAIL.glob("*.json")) for line in file.read_text(encoding="utf-8").splitlines()
    ]
    texts = [json.loads(line)["fact"] for line in lines[::4]]
    assert len(texts) > 1000
    assert sum(tokens(chinese, text) != jieba_tokens(jieba, text) for text in texts) == 0


def test_chinese_survives_a_lone_surrogate():
    assert tokens(chinese, "中国\ud800人民") == ["中国", "\ud800", "人民"]


@pytest.fixture
def no_rjieba(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    chinese_module._cutter.cache_clear()
    yield
    chinese_module._cutter.cache_clear()


@pytest.mark.parametrize(
    "call",
    [lambda: chinese("中国"), lambda: resolve_segmenter("chinese"), lambda: segmenter_named("chinese")],
)
def test_chinese_without_rjieba_says_what_to_install(no_rjieba, call):
    with pytest.raises(MissingExtraError, match=r"infocal\[chinese\]"):
        call()


def test_auto_falls_back_to_characters_and_says_so(no_rjieba):
    segmenter = resolve_segmenter("auto", ["被告人盗窃"])
    assert segmenter.name == "characters"
    assert "infocal[chinese]" in segmenter.note
    assert tokens(segmenter, "被告 人") == ["被", "告", "人"]
    assert characters.note is None


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        (["被告人盗窃 iPhone"], "chinese"),
        (["The word 中国 is Chinese"], "words"),
        (["東京都に住んでいます。", "漢字が多い文"], "words"),
        ([], "words"),
        (["123 !!"], "words"),
    ],
)
def test_auto_looks_at_the_script(sample, name):
    assert resolve_segmenter("auto", sample).name == name
    assert resolve_segmenter("auto", iter(sample)).note is None


def test_unknown_name_lists_the_choices():
    with pytest.raises(SettingsError, match=r"'spacy'.*auto, words, chinese, characters"):
        resolve_segmenter("spacy", [])
    with pytest.raises(ModelError, match="words, chinese, characters"):
        segmenter_named("spacy")
    with pytest.raises(ModelError, match="pass the same function again"):
        segmenter_named("custom")


def test_own_function_is_wrapped():
    segmenter = resolve_segmenter(lambda text: iter([(0, 1), [1, 3]]), [])
    assert (segmenter.name, segmenter("abc")) == ("custom", [(0, 1), (1, 3)])
    assert resolve_segmenter(words, []) is words


@pytest.mark.parametrize(
    "spans",
    [[(0, 0)], [(1, 2), (0, 1)], [(0, 2), (1, 3)], [(0, 4)], [(-1, 1)], [(0.0, 1.0)], [3], [(1, 2, 3)]],
)
def test_own_function_with_wrong_spans(spans):
    segmenter = resolve_segmenter(lambda text: spans, [])
    with pytest.raises(DataError, match=r"the segmenter gave the span .*inside the text"):
        segmenter("abc")


def test_normalise_joins_forms():
    assert normalise("ＡＢＣ１") == "abc1"
    assert normalise("Straße") == normalise("STRASSE")
    assert normalise("don’t") == "don't"
    assert normalise("e\u0301") == normalise("É")


@given(st.text(max_size=6))
@settings(deadline=None)
def test_normalise_twice_changes_nothing(token):
    assert normalise(normalise(token)) == normalise(token)


def test_whitespace_keeps_the_tokens_that_a_text_was_joined_from():
    tokens = ["n't", "6.5%", "a\xa0b", "\u3000", "--", "你好"]
    text = " ".join(tokens)
    assert [text[start:end] for start, end in whitespace(text)] == tokens
    assert whitespace(" \t\n") == []
    assert segmenter_named("whitespace") is resolve_segmenter("whitespace") is whitespace
