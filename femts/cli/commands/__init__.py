"""The commands, one module each: a function with `@command`, or a `command_group`, of `femts.cli.command`."""
