"""Every command, by name."""

COMMANDS = (
    "train,evaluate,predict,calibrate,explain,export,backtest,audit,report,table,verify,datasets,datasets info,models,doctor"
    ",bench,bench mixer,bench stream,bench train,bench data"
)
