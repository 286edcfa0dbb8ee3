"""Which facts come on the page of court cases."""

import json

from infocal.reproduce.judgement_cases import GOOD_LENGTH, choose_facts

TERM = {"imprisonment": 6, "life_imprisonment": False, "death_penalty": False}
CLASSES = {"charge": ["盗窃"], "article": ["264"]}


def write(path, facts, charge="盗窃"):
    meta = {"accusation": [charge], "relevant_articles": [264], "term_of_imprisonment": TERM}
    lines = [json.dumps({"fact": fact, "meta": meta}, ensure_ascii=False) for fact in facts]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_they_are_drawn_among_those_of_a_good_length_in_their_order(tmp_path):
    good = [f"第{number:03d}案" + "某" * GOOD_LENGTH.start for number in range(50)]
    files = [
        write(tmp_path / "a.json", ["短", *good[:30]]),
        write(tmp_path / "b.json", good, charge="诈骗"),
        write(tmp_path / "c.json", [*good[30:], "长" * GOOD_LENGTH.stop]),
    ]
    found = [case.fact for case in choose_facts(files, CLASSES, count=8)]
    assert len(set(found)) == 8
    assert found == sorted(found)
    assert set(found) <= set(good)
    assert found == [case.fact for case in choose_facts(files, CLASSES, count=8)]
    assert found != [case.fact for case in choose_facts(files, CLASSES, count=8, seed=1)]
    assert [case.fact for case in choose_facts(files, CLASSES, count=80)] == good


def test_short_ones_are_better_than_none(tmp_path):
    file = write(tmp_path / "a.json", ["短", "也短"])
    (case, _) = choose_facts([file], CLASSES, count=5)
    assert case.fact == "短"
    assert dict(case.answers) == {"charge": "盗窃", "article": "264"}
    assert choose_facts([file], {"charge": ["诈骗"]}, count=5) == []
