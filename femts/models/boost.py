"""exp"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from femts.config.bounds import Count, Natural, Positive
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.models.base import ForecastModel, Supports
from femts.models.naive import check_season
from femts.models.parts.trees import Trees
from femts.models.registry import register

EXP = dict(base="last", scale="std", weight="scale2", lib="hgb", loss="squared_error", mean_feats=True, n_lags=8, chan=True, relknown=True)


@dataclass(frozen=True)
class BoostConfig(ModelConfig):
    season: Count | None = None
    further: tuple[Count, ...] | None = None
    rounds: Count = 400
    learning_rate: Positive = 0.1
    leaves: Count = 31
    rows: Count = 200_000
    patience: Count = 20
    min_leaf: Count = 20
    l2: float = 0.0
    n_static: Natural = 0
    n_known: Natural = 0

    def for_data(self, season: int, rows: int) -> Self:
        return replace(self, season=season if season <= self.seq_len else 1) if self.season is None else self

    @property
    def seasons(self):
        s = dict.fromkeys((self.season or 1, *(self.further or ())))
        return [each for each in s if 1 < each <= self.seq_len]


def nanstd(x, dim):
    m = x.nanmean(dim, keepdim=True)
    return (x - m).square().nanmean(dim).sqrt()


@register("boost", summary="exp")
class Boost(ForecastModel):
    Config: ClassVar[type] = BoostConfig
    supports = Supports(channels=1, known=True, static=True)

    def __init__(self, config, quantiles=()):
        super().__init__(config, quantiles)
        self.trees = Trees(config.rounds, config.leaves)

    def table(self, batch: Batch, steps: Tensor):
        """steps (B,S)"""
        cfg, L = self.config, self.config.seq_len
        past = batch.past
        x = past if batch.past_observed is None else past.masked_fill(~batch.past_observed, torch.nan)
        B, _, C = x.shape
        S = steps.shape[1]
        s0 = cfg.seasons[0] if cfg.seasons else 1
        lev_w = s0 if s0 > 1 else min(L, 1)
        level = x[:, -s0:].nanmean(1) if s0 > 1 else past[:, -1]
        level = torch.where(level.isnan(), past[:, -1], level)  # B,C
        def aligned(s, k, shift=0, src=x):
            idx = L + steps - s * (torch.div(steps, s, rounding_mode="floor") + 1 + k) + shift
            ok = (idx >= 0) & (idx < L)
            got = src.gather(1, idx.clamp(0, L - 1)[:, :, None].expand(-1, -1, src.shape[2]))
            return got.masked_fill(~ok[:, :, None], torch.nan)
        if EXP["scale"] == "std":
            sd = nanstd(x, 1)
            if s0 > 1 and L > s0:
                sd = nanstd(x[:, s0:] - x[:, :-s0], 1) if EXP.get("sd") == "diff" else sd
            sd = torch.where(sd > 0.05, sd, torch.full_like(sd, 0.05))
            sd = torch.where(sd.isnan(), torch.ones_like(sd), sd)
        else:
            sd = torch.ones_like(level)
        if EXP["base"] == "last":
            base = past[:, -1:].expand(-1, S, -1)
        elif EXP["base"] == "level":
            base = level[:, None].expand(-1, S, -1)
        elif EXP["base"] == "seasonal":
            base = aligned(s0, 0, src=past) if s0 > 1 else past[:, -1:].expand(-1, S, -1)
        elif EXP["base"] == "seasmean":
            if s0 > 1:
                base = torch.stack([aligned(s0, k, src=past) for k in range(4) if (k + 1) * s0 <= L]).nanmean(0)
            else:
                base = past[:, -1:].expand(-1, S, -1)
        elif EXP["base"] == "drift":
            base = (aligned(s0, 0, src=past) - past[:,-s0:].mean(1,keepdim=True)+past[:,-1:]) if s0 > 1 else past[:, -1:].expand(-1, S, -1)
        rel = lambda v: (v - level) / sd
        perwin, perstep = [], []   # (B,C), (B,S,C)
        for n in range(min(L, EXP["n_lags"])):
            perwin.append(rel(x[:, -1 - n]))
        wins = sorted({w for w in ([3, 6, L] + [m * s for s in cfg.seasons for m in (1, 2, 4)]) if w <= L})
        for w in wins:
            perwin.append(rel(x[:, -w:].nanmean(1)))
            if 2 * w <= L:
                perwin.append((x[:, -w:].nanmean(1) - x[:, -2 * w : -w].nanmean(1)) / sd)
            if w > 3:
                perwin.append(nanstd(x[:, -w:], 1) / sd)
        perwin.append(level); perwin.append(sd)
        if C > 1 and EXP["chan"]:
            perwin.append(torch.arange(C, dtype=x.dtype).expand(B, C))
        for i, s in enumerate(cfg.seasons):
            for k in range(3):
                if (k + 1) * s <= L:
                    perstep.append(rel_s(aligned(s, k), level, sd))
            if i == 0:
                perstep += [rel_s(aligned(s, 0, -1), level, sd), rel_s(aligned(s, 0, 1), level, sd)]
            if EXP["mean_feats"] and L >= 2 * s:
                whole = L // s * s
                ph = x[:, -whole:].unflatten(1, (-1, s)).nanmean(1)
                perstep.append(rel_s(ph.gather(1, (steps % s)[:, :, None].expand(-1, -1, C)), level, sd))
        perstep.append(((base - level[:, None]) / sd[:, None]))
        feats = [f[:, None].expand(-1, S, -1) for f in perwin] + perstep
        hh = steps.to(x.dtype)[:, :, None].expand(-1, -1, C)
        feats.append(hh)
        if batch.known is not None:
            K = batch.known.shape[2]
            kn = batch.known_to(cfg.pred_len).to(x.dtype)
            at = kn.gather(1, (L + steps)[:, :, None].expand(-1, -1, K))
            feats += [at[:, :, k, None].expand(-1, -1, C) for k in range(K)]
            if EXP["relknown"]:
                lag = aligned(s0, 0, src=kn[:, :L]) if s0 > 1 else kn[:, L - 1 : L].expand(-1, S, -1)
                mean = kn[:, L - max(s0, 1) : L].mean(1, keepdim=True)
                feats += [(at - lag)[:, :, k, None].expand(-1, -1, C) for k in range(K)]
                feats += [(at - mean)[:, :, k, None].expand(-1, -1, C) for k in range(K)]
        if batch.static is not None:
            feats += [batch.static[:, e, None, None].expand(-1, S, C).to(x.dtype) for e in range(batch.static.shape[1])]
        X = torch.stack([f.expand(B, S, C) for f in feats], -1)
        return X.flatten(0, 2), base, sd[:, None]

    def rows(self, windows, most, gen):
        C, P = windows.rows.shape[1], windows.pred_len
        n = len(windows)
        if n * C > most:
            idx = torch.randperm(n, generator=gen)[: max(1, most // C)].sort().values
            S = 1
        else:
            idx, S = torch.arange(n), min(P, max(1, most // (n * C)))
        Xs, ys, ws = [], [], []
        for some in idx.split(max(1, 4096 // C)):
            b = windows.batch(some)
            steps = torch.rand(len(some), P, generator=gen).argsort(1)[:, :S].sort(1).values
            X, base, sd = self.table(b, steps)
            ix = steps[:, :, None].expand(-1, -1, C)
            y = b.future.gather(1, ix)
            ok = torch.ones_like(y, dtype=torch.bool) if b.future_observed is None else b.future_observed.gather(1, ix).clone()
            cnt = windows.counts(some)
            if cnt is not None:
                ok[..., : cnt.shape[-1]] &= cnt
            t = (y - base) / sd
            ok &= t.isfinite()
            ok = ok.flatten()
            Xs.append(X[ok]); ys.append(t.flatten()[ok]); ws.append(sd.expand_as(y).flatten()[ok])
        return torch.cat(Xs).numpy(), torch.cat(ys).double().numpy(), torch.cat(ws).double().numpy()

    def learn(self, train, val, seed, rounds=None):
        cfg = self.config
        gen = torch.Generator().manual_seed(seed)
        X, y, w = self.rows(train, cfg.rows, gen)
        Xv, yv, wv = self.rows(val, cfg.rows // 4, gen)
        pw = {"scale2": 2, "scale": 1, "none": 0}[EXP["weight"]]
        w, wv = w**pw, wv**pw
        self.info = X.shape
        if EXP["weight"] == "none":
            w = wv = None
        if EXP["lib"] == "lgb":
            import lightgbm as lgb
            p = dict(objective={"squared_error": "l2", "absolute_error": "l1"}[EXP["loss"]], num_leaves=cfg.leaves, learning_rate=cfg.learning_rate, num_threads=1, verbose=-1, seed=seed, min_data_in_leaf=cfg.min_leaf, lambda_l2=cfg.l2, **EXP.get("lgbx", {}))
            d = lgb.Dataset(X, y, weight=w)
            self.booster = lgb.train(p, d, cfg.rounds, valid_sets=[lgb.Dataset(Xv, yv, weight=wv, reference=d)], callbacks=[lgb.early_stopping(cfg.patience, verbose=False)])
            self.best = self.booster.best_iteration
            self.predictor = lambda X: self.booster.predict(X, num_iteration=self.best, num_threads=1)
            return
        from sklearn.ensemble import HistGradientBoostingRegressor as H
        h = H(loss=EXP["loss"], max_iter=cfg.rounds, learning_rate=cfg.learning_rate, max_leaf_nodes=cfg.leaves, early_stopping=True, n_iter_no_change=cfg.patience, random_state=seed, min_samples_leaf=cfg.min_leaf, l2_regularization=cfg.l2, max_features=EXP.get("max_features", 1.0))
        h.fit(X, y, w, X_val=Xv, y_val=yv, sample_weight_val=wv)
        self.best = int(np.argmax(h.validation_score_)) 
        self.trees.take(float(h._baseline_prediction.ravel()[0]), [t.nodes for (t,) in h._predictors[: self.best]])
        self.predictor = self.trees

    def forward(self, batch):
        P = self.config.pred_len
        B, _, C = batch.past.shape
        steps = torch.arange(P).expand(B, P)
        X, base, sd = self.table(batch, steps)
        f = torch.from_numpy(self.predictor(X.numpy())).to(base.dtype).view(B, P, C)
        return base + f * sd


def rel_s(v, level, sd):
    return (v - level[:, None]) / sd[:, None]
