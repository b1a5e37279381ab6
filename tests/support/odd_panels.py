"""Long tables of many series, with anything in them: series of odd lengths, gaps, static and known columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from drawn import mostly
from hypothesis import strategies as st
from odd_frames import CELLS, GOOD_CELLS, GOOD_STAMPS, STAMPS

SERIES = st.one_of(
    st.sampled_from(["a", "b", "c", "d", "e", "f"]),
    st.sampled_from(["", " ", "date", "y", "é", "x\ny", "\x1b[2J", "n" * 3000, "1"]),
    st.sampled_from([1, 2.5, None, float("nan"), True, ("a", 1), pd.Timestamp("2024-01-01")]),
)
USUAL_SERIES = st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"], list("abcdefgh")])
STATIC = st.sampled_from([1, 2.5, "north", "south", None, float("nan"), True, float("inf"), "é\x1b[2J", "1"])
SPOILS: dict[str, Any] = {
    "as it is": lambda long: long,
    "gaps": lambda long: long.drop(index=long.index[3::7]),
    "a long hole": lambda long: long.drop(index=long.index[len(long) // 4 : len(long) // 2]),
    "rows twice": lambda long: pd.concat([long, long.head(2)]),
    "in no order": lambda long: long.sample(frac=1, random_state=1),
    "backwards": lambda long: long.iloc[::-1],
    "by stamp": lambda long: long.sort_values("ds", key=lambda column: column.astype(str), kind="stable"),
    "few rows": lambda long: long.head(5),
    "no rows": lambda long: long.head(0),
    "static changes": lambda long: long.assign(region=np.arange(len(long)) % 3),
    "no stamps": lambda long: long.drop(columns="ds"),
    "no series": lambda long: long.drop(columns="unique_id"),
    "no values": lambda long: long.drop(columns="y"),
    "further": lambda long: long.assign(more=1.0),
    "other names": lambda long: long.rename(columns={"ds": "when", "unique_id": "shop", "y": "sold"}),
    "date for ds": lambda long: long.rename(columns={"ds": "date"}),
    "known as text": lambda long: long.assign(promo="yes"),
    "known tells": lambda long: long.assign(promo=long["y"]),
    "objects": lambda long: long.astype(object),
    "categories": lambda long: long.assign(unique_id=pd.Categorical(long["unique_id"].astype(str))),
    "wide": lambda long: long[["ds", "y", "promo"]].rename(columns={"ds": "date"}).head(60),
    "an index": lambda long: long.set_index("ds"),
    "two of a name": lambda long: long.set_axis([*long.columns[:-1], "y"], axis=1),
}
USUAL_ROLES = st.sampled_from(
    [
        {"future_covariates": "promo", "static_covariates": "region", "past_covariates": "heat"},
        {
            "future_covariates": ["promo"],
            "static_covariates": ["region"],
            "past_covariates": ["heat"],
            "calendar": True,
        },
        {"future_covariates": "promo", "past_covariates": ["heat", "region"]},
        {"target": ["y", "heat"], "static_covariates": "region"},
        {"target": "y", "static_covariates": "region"},
        {"target": "y", "calendar": True},
    ]
)
ODD_ROLES = st.fixed_dictionaries(
    {},
    optional={
        role: st.lists(st.sampled_from(["y", "promo", "region", "heat", "ds", "unique_id", "nope", ""]), max_size=2)
        for role in ("target", "past_covariates", "future_covariates", "static_covariates")
    },
)


@st.composite
def panels(draw: st.DrawFn, odd: bool = True) -> pd.DataFrame:
    """A long table of `unique_id, ds, y`, a known `promo`, a `heat` and a static `region`."""
    usual = draw(st.sampled_from(GOOD_STAMPS))
    parts = []
    for name in draw(mostly(USUAL_SERIES, st.lists(SERIES, min_size=1, max_size=5)) if odd else USUAL_SERIES):
        rows = draw(mostly(st.integers(30, 90), st.integers(0, 8) if odd else st.integers(10, 20)))
        begin = draw(st.integers(0, 9))
        strange = odd and draw(st.integers(0, 9)) == 9
        stamps = pd.Series(STAMPS[draw(st.sampled_from(sorted(STAMPS))) if strange else usual](rows + begin))
        cells = draw(st.sampled_from(sorted(CELLS))) if strange else draw(st.sampled_from(GOOD_CELLS))
        part = pd.DataFrame(
            {"ds": stamps[begin:].to_numpy(dtype=object), "y": pd.Series(CELLS[cells](rows), dtype=object)}
        )
        part.insert(0, "unique_id", pd.Series([name] * rows, dtype=object))
        region = draw(mostly(st.sampled_from(["north", "south"]), STATIC))
        part["promo"], part["heat"] = np.arange(rows) * 7 % 5 == 0, np.cos(np.arange(rows))
        parts.append(part.assign(region=pd.Series([region] * rows, dtype=object)))
    long = pd.concat(parts, ignore_index=True)
    long = long.infer_objects()
    return (
        draw(mostly(st.just(long), st.sampled_from(sorted(SPOILS)).map(lambda spoil: SPOILS[spoil](long))))
        if odd
        else long
    )
