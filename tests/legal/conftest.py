"""Cases in the layout of CAIL2018, made up."""

import json
import random

import pytest

from infocal.legal import prepare
from infocal.legal.prepare import Request

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


@pytest.fixture
def small_blocks(monkeypatch):
    """Few lines in a block, so that few cases make several."""
    monkeypatch.setattr(prepare, "BLOCK_LINES", 40)


@pytest.fixture(scope="session")
def files(tmp_path_factory, cases, write):
    """A folder of cases in both encodings, some of which are left out."""
    folder = tmp_path_factory.mktemp("cases")
    odd = [
        case("抢劫", 263, "被告人李某持刀抢劫路人"),
        case("盗窃", 264, "原审被告人李某盗窃"),
        case("盗窃", 264, "被告人李某盗窃", accusation=["盗窃", "诈骗"]),
        case("盗窃", 264, "被告人李某盗窃", relevant_articles=[264, 25]),
    ]
    write(folder / "train.json", [*cases(150), *odd])
    write(folder / "valid.json", cases(30, seed=1), encoding="gb18030")
    write(folder / "test.json", [*cases(30, seed=2), odd[0]])
    return folder


@pytest.fixture(scope="session")
def asked(files):
    """Ask for these files, or for others of these names."""

    def make(out, *, where=files, **changes):
        parts = {part: [where / f"{part}.json"] for part in ("train", "valid", "test")}
        return Request(**{"parts": parts, "out": out, "least_cases": 10, **changes})

    return make


@pytest.fixture(scope="session")
def contents():
    """The files of a folder; of the manifest, what it says."""

    def of(folder):
        found = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
        return found | {"manifest.json": json.loads(found["manifest.json"])}

    return of


@pytest.fixture(scope="session")
def flip():
    """Change a bit of a file, in its middle or elsewhere."""

    def change(path, at=None):
        content = bytearray(path.read_bytes())
        content[len(content) // 2 if at is None else at] ^= 1
        path.write_bytes(content)

    return change
