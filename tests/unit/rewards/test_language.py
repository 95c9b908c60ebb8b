"""The share of words in the wanted language: what counts as a word, and of which language it is."""

import pickle
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trl_reasoning.config.rewards import make_rewards
from trl_reasoning.errors import UserError
from trl_reasoning.rewards import make_language_consistency_reward
from trl_reasoning.rewards._prose import prose_sentences, words_by_script
from trl_reasoning.rewards.language import LANGUAGES, language_share


ENGLISH = "First we take five from nine. So the result is four, and that is what was asked."
MIXED = "First we take five from nine. 所以答案是四 and that is what was asked."


def score(text, opened=False, **chosen):
    return make_language_consistency_reward(**chosen)(["?"], [text], [[1]], thought_opened=[opened])[0]


def test_english_with_a_chinese_clause_is_below_one_and_a_formula_has_no_language():
    assert language_share(ENGLISH, "en") == 1.0
    # Six words, then six characters and six words.
    assert language_share(MIXED, "en") == pytest.approx(12 / 18)
    assert language_share(MIXED, "en", by="script") == pytest.approx(12 / 18)
    assert language_share(MIXED, "zh") == pytest.approx(6 / 18)
    for formula in (r"$x^2 + y^2 = 1$", r"\[\frac{a}{b} = c\]", "9 - 5 = 4", "x + y = 2", "", " \n", r"\boxed{4}"):
        assert language_share(formula, "en") is None


def test_eight_of_ten_words_beside_a_right_answer_make_1_8():
    eight_of_ten = "we take five from nine and get it 四是"
    assert 1.0 + language_share(eight_of_ten, "en", by="script") == pytest.approx(1.8)


@pytest.mark.parametrize(
    "hidden",
    [
        "```python\nprint('所以答案是四')\n```",
        "`答案 = 4`",
        r"$\text{所以} = 4$",
        r"$$\text{所以}$$",
        r"\[ \text{所以} \]",
        r"\( 所以 \)",
        r"\begin{align} 所以 \end{align}",
        r"\boxed{\text{四{是}}}",
        "<step 四>",
        "https://example.org/所以",
        "12 + 3.5 = 15.5",
        "x, y, AB and ABC",
    ],
)
def test_what_does_not_count(hidden):
    assert language_share(f"We take five from nine {hidden} and that is the answer.", "en") == 1.0
    if "and" not in hidden:
        assert language_share(hidden, "en") is None


def test_an_unclosed_code_block_goes_to_the_end_and_money_is_no_formula():
    assert prose_sentences("We run ```python\nx = 'so it is'") == ["We run  "]
    words = words_by_script(prose_sentences("She pays $5 for tea and $7 for cake")[0])["LATIN"]
    assert words == ["She", "pays", "for", "tea", "and", "for", "cake"]


def test_words():
    assert words_by_script("Let's see: the value of x_max, sin(x), 5cm and f2 isn't known") == {
        "LATIN": ["Let's", "see", "the", "value", "of", "and", "isn't", "known"]
    }
    assert words_by_script("求x的值，使用Python编程") == {"CJK": ["求", "的值", "使用", "编程"], "LATIN": ["Python"]}
    assert words_by_script("कितने सेब हैं") == {"DEVANAGARI": ["कितने", "सेब", "हैं"]}
    assert words_by_script("コーヒーを3杯") == {"KATAKANA": ["コーヒー"], "HIRAGANA": ["を"], "CJK": ["杯"]}
    assert words_by_script("5 µm, ℝ and ª") == {"LATIN": ["and"]}


SAMPLES = {
    "ar": "أولا نحسب عدد التفاحات المتبقية. النتيجة هي أربعة.",
    "de": "Zuerst berechnen wir die Anzahl der Äpfel. Also bleiben noch vier Stück übrig.",
    "el": "Πρώτα υπολογίζουμε τον αριθμό των μήλων.",
    "en": ENGLISH,
    "es": "Primero calculamos el número de manzanas. Por lo tanto le quedan cuatro piezas.",
    "fa": "ابتدا تعداد سیب‌های باقی‌مانده را حساب می‌کنیم. پس چهار سیب باقی می‌ماند.",
    "fr": "D'abord, nous calculons le nombre de pommes. Il lui reste donc quatre pièces.",
    "he": "קודם נחשב את מספר התפוחים שנותרו.",
    "hi": "पहले हम सेबों की संख्या निकालते हैं। इसलिए चार सेब बचते हैं।",
    "id": "Pertama kita hitung jumlah apel yang tersisa. Jadi dia masih punya empat buah.",
    "ja": "まず、残りのりんごの数を計算します。答えは四個です。",
    "ko": "먼저 남은 사과의 개수를 계산합니다. 답은 네 개입니다.",
    "ru": "Сначала посчитаем, сколько яблок осталось. Значит, ответ равен четырём.",
    "th": "ก่อนอื่นเราคำนวณจำนวนแอปเปิลที่เหลือ",
    "uk": "Спочатку порахуємо, скільки яблук залишилося. Отже, відповідь дорівнює чотирьом.",
    "zh": "首先计算剩下的苹果有多少个。所以答案是四个苹果。",
}


@pytest.mark.parametrize("language", SAMPLES)
def test_each_language_against_all_others(language):
    shares = {wanted: language_share(SAMPLES[language], wanted) for wanted in SAMPLES}
    assert shares == {wanted: float(wanted == language) for wanted in SAMPLES}


@pytest.mark.parametrize("text", ["Good.", "Hmm, no.", "Natalia and Weng. Betty.", "So the total is", "Wait."])
def test_short_sentences_have_the_benefit_of_the_doubt(text):
    assert language_share(text, "en") == 1.0


def test_a_switch_of_latin_language_costs_its_sentences():
    text = f"{ENGLISH} {SAMPLES['de']}"
    english, german = (len(words_by_script(sample)["LATIN"]) for sample in (ENGLISH, SAMPLES["de"]))
    assert language_share(text, "en") == pytest.approx(english / (english + german))
    assert language_share(text, "en", by="script") == 1.0


def test_the_part_that_is_measured():
    text = f"<think>{ENGLISH}</think>答案是四"
    assert score(text) == 1.0
    assert score(text, part="answer") == 0.0
    words = len(words_by_script(ENGLISH)["LATIN"])
    assert score(text, part="both") == pytest.approx(words / (words + 4))
    assert score(f"{ENGLISH}</think>四", opened=True) == 1.0
    assert score(ENGLISH) is None  # no thought
    assert score("<think>\n\n</think>4") is None
    assert score("<think>9-5=4</think>So it is four.", part="thought") is None


def test_a_column_names_the_language_of_each_row():
    reward = make_language_consistency_reward("en", column="language")
    assert reward.columns == ("language",)
    chinese = f"<think>{SAMPLES['zh']}</think>四"
    assert reward(["?"] * 4, [chinese] * 4, [[1]] * 4, language=["zh", "en", None, "de"]) == [1.0, 0.0, 0.0, 0.0]
    with pytest.raises(UserError, match="row 1 of the batch has 'zh-CN' in the column `language`; expected one of"):
        reward(["?"] * 2, [chinese] * 2, [[1]] * 2, language=["zh", "zh-CN"])


@given(
    st.lists(st.sampled_from([*SAMPLES.values(), "9-5=4", "```x```", "x", "!"]), max_size=5),
    st.sampled_from(LANGUAGES),
)
@settings(max_examples=60, deadline=None)
def test_bounds_and_permutation(pieces, language):
    texts = [f"<think>{piece}</think>4" for piece in pieces]
    reward = make_language_consistency_reward(language)
    values = reward(["?"] * len(texts), texts, [[1]] * len(texts))
    assert all(value is None or 0.0 <= value <= 1.0 for value in values)
    assert reward(["?"] * len(texts), texts[::-1], [[1]] * len(texts)) == values[::-1]


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_text_has_a_share_or_none(text):
    share = language_share(text, "en")
    assert share is None or 0.0 <= share <= 1.0


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit", ["$", "$$", "`", "```", "\\[", "\\(", "\\begin{a}", "\\a{", "{", "<a", "<", "a'", "é", "。a"]
)
def test_hostile_texts_take_no_time(unit):
    text = unit * (60_000 // len(unit))
    for _ in range(2):
        share = language_share(text, "en", by="script")
        assert share is None or 0.0 <= share <= 1.0


def test_a_used_reward_is_picklable_and_small():
    reward = make_language_consistency_reward("de")
    reward(["?"], ["<think>Also gut.</think>4"], [[1]])
    assert len(pickle.dumps(reward)) < 1000


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr("trl_reasoning.rewards.language.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "py3langid", None)  # so that using it would fail
    for needs_it in ({"language": "en"}, {"language": "zh", "column": "language"}):
        with pytest.raises(UserError, match=r'pip install "trl-reasoning\[curation\]"` or set `by: script`'):
            make_language_consistency_reward(**needs_it).check_ready()
    for enough in ({"language": "zh"}, {"language": "en", "by": "script"}):
        assert score(MIXED, part="both", **enough) > 0


def test_from_a_recipe():
    [reward] = make_rewards([{"name": "language_consistency", "language": "zh", "column": "lang", "weight": 0.1}])
    assert (reward.columns, reward.weight) == (("lang",), 0.1)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"language": "english"}, "^language: expected one of ar, as, be, .*got 'english'"),
        ({"part": "thougt"}, "^part: expected thought, answer, both, got 'thougt'. Did you mean `thought`"),
        ({"by": "words"}, "^by: expected language, script, got 'words'"),
    ],
)
def test_parameters(chosen, message):
    with pytest.raises(ValueError, match=message):
        make_language_consistency_reward(**chosen)
