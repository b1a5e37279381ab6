"""Files that nobody should bring."""

from __future__ import annotations

from pathlib import Path

from small_tables import small_table


def write_bad_tables(folder: Path) -> None:
    """Write a valid table and one for each kind of error."""
    good = small_table()
    good.to_csv(folder / "good.csv", index=False)
    good.drop(columns="date").to_csv(folder / "undated.csv", index=False)
    good.drop(columns="heat").to_csv(folder / "one_column.csv", index=False)
    good.assign(wind=1.5).to_csv(folder / "three_columns.csv", index=False)
    twice = good.iloc[[*range(6), 5, *range(6, 300)]].reset_index(drop=True)
    twice.loc[6, "load"] += 1
    twice.to_csv(folder / "repeated.csv", index=False)
    good.assign(date=good["date"][0] + (good["date"] - good["date"][0]) / 4).to_csv(
        folder / "quarters.csv", index=False
    )
    good.assign(load=good["load"].where(good.index >= 250)).to_csv(folder / "nan.csv", index=False)
    (folder / "empty.csv").write_text("")


def write_bad_configs(folder: Path) -> None:
    """Write a configuration file for each kind of error."""
    texts = {
        "broken": "dataset: synthetic\nmodel: [naive\n",
        "list": "- dataset\n- model\n",
        "key": "datset: synthetic\n",
        "setting": "dataset: synthetic\nmodel: naive\ntraining:\n  lrr: 1\n",
        "value": "dataset: synthetic\nmodel: naive\ntraining:\n  lr: fast\n",
        "number": "dataset: 7\n",
        "flat": "dataset: synthetic\ntraining: fast\n",
        "twice": 'dataset: synthetic\ntraining:\n  lr: 1e-3\n  seed: 1\n  "lr": 1e-4\n',
        "refit": "dataset: synthetic\nrefit: often\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)


def state_of(folder: Path) -> dict[str, bytes | None]:
    """Content of each file below a folder; None for folders."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}
