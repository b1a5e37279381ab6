"""Odd things to say to femts: settings, spoils of files, flags and orders, in texts to be split."""

from __future__ import annotations

KEYS = """training.lr training.batch_size training.seed training.betas training.loss training.max_steps
training.eval_batch_size training.val_windows training.quantiles model.longest model.kernel
training lr"""

SPOILS = """; ; ; cut; zero byte; odd byte; quote; lines; packed; packed and cut; semicolons; sixteen bits
escape; comma; nine; tabs; bars; decimal commas; marks of both kinds; thousands; other packers; zip
zip and cut; zstd; no header; nameless; other name; comments"""

FLAGS = """--horizon 3; --horizon 0; --seq-len 6; --seq-len x; --na -9999; --na x; --columns time=date
--target a; --past-covariates b; --future-covariates b; --calendar; --set training.lr=nan; --seed 99999999999999999999
--time-limit 0s; --set model.x=1; --resume; --device cpu; --precision 16; --protocol x
--config in.csv; --freq D; --freq 7min; --freq h --aggregate sum; --freq W --aggregate median; --aggregate max"""

ORDERS = """train; predict run {0}; predict run {0}; predict run {0} -o out.csv; predict run {0} --plot out.svg
evaluate run; evaluate run --json; evaluate run --by channel --csv; calibrate run; explain run {0}
backtest run {0} --n-windows 2; audit run; datasets info {0}; verify {0}
predict run {0} --horizon 7 --level 80; datasets info {0} --freq D --aggregate sum; predict run {0} --future {0}; train --config {0}
evaluate run --horizon 2,9; report run; predict run -; predict run - --plot out.svg
datasets info -; backtest run - --n-windows 2"""
