# Sourced by the scripts in this folder: goes to the project's root and offers `ensure_env`, which makes the
# environment .venv where it is missing and otherwise only looks at a stamp (no network, no delay).
# PYTHON=/path/to/python chooses the interpreter.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

choose_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "femts needs Python 3.11 or later with its venv module; install one, or name it with PYTHON=..." >&2
    return 1
}

ensure_env() {
    local stamp=.venv/femts-stamp made=.venv/femts-made want python
    want="$(cat setup.cfg pyproject.toml constraints.txt constraints-stats.txt scripts/_env.sh | cksum) $PWD"
    if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
        return
    fi
    python="$(choose_python)"
    echo "Preparing the environment .venv (once, a few minutes) ..." >&2
    # Ours, and no stamp or no interpreter in it: left half made. An environment that somebody else made is never removed.
    if [ -e "$made" ] && ! { [ -x .venv/bin/python ] && [ -e "$stamp" ]; }; then
        rm -rf .venv
    fi
    rm -f "$stamp"
    if [ ! -x .venv/bin/python ]; then
        mkdir -p .venv
        touch "$made"
        "$python" -m venv .venv
    fi
    local pip=(.venv/bin/python -m pip install -qq --disable-pip-version-check --no-compile)
    # torch first and alone: a machine that keeps its own build of exactly this version gives that one to plain pip.
    "${pip[@]}" "$(grep -E '^torch==' constraints.txt)"
    "${pip[@]}" -c constraints.txt -e '.[dev]'
    "${pip[@]}" --no-deps -r constraints-stats.txt
    # So that `pip check` tells of other conflicts alone; what these ask for is kept beside it.
    sed -i.asked '/^Requires-Dist: pandas</d' .venv/lib/python3*/site-packages/{fugue,statsforecast}-*.dist-info/METADATA
    # On all cores, where pip would compile on one; some packages carry files that are no Python of this version.
    .venv/bin/python -m compileall -qq -j 0 .venv/lib femts || true
    echo "$want" >"$stamp"
}
