"""Cases in the layout of CAIL2018, made up."""

import json
import random

import pytest

ACTS = {
    ("盗窃", 264): ["窃得被害人现金{n}元", "盗走电动自行车一辆，价值{n}元", "趁人不备偷走手机一部"],
    ("危险驾驶", 133): [
        "醉酒驾驶小型轿车",
        "酒后驾驶摩托车，乙醇含量为{n}mg/100ml",
        "在道路上醉酒驾驶机动车",
    ],
    ("故意伤害", 234): ["持刀将被害人砍伤", "用拳头殴打被害人面部致轻伤", "用木棍击打被害人头部"],
}
PLACES = ["北京市通州区", "盐城市亭湖区", "广州市天河区", "成都市武侯区"]


def case(charge, article, fact, months=6, **changes):
    return {
        "fact": fact,
        "meta": {
            "accusation": [charge],
            "relevant_articles": [article],
            "term_of_imprisonment": {"imprisonment": months, "life_imprisonment": False, "death_penalty": False},
            **changes,
        },
    }


@pytest.fixture(scope="session")
def cases():
    """Make cases whose charge hangs on one phrase."""

    def make(count, seed=0):
        generator = random.Random(seed)
        found = []
        for _ in range(count):
            charge, article = generator.choice(list(ACTS))
            act = generator.choice(ACTS[charge, article]).format(n=generator.randint(80, 9000))
            place, day = generator.choice(PLACES), generator.randint(1, 28)
            fact = f"公诉机关指控，2015年3月{day}日，被告人李某在{place}{act}，后被公安机关抓获。"
            found.append(case(charge, article, fact, months=generator.choice([0, 3, 8, 20, 130])))
        return found

    return make


@pytest.fixture(scope="session")
def write():
    """Write cases to a file."""

    def to(path, some, encoding="utf-8"):
        text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in some)
        path.write_bytes(text.encode(encoding))
        return path

    return to


@pytest.fixture(scope="session")
def one_case():
    return case
