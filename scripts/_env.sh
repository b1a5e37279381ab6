# Sourced by the scripts in this folder. Changes to the root of the repository and defines `ensure_env`, which creates the
# virtual environment .venv if it is missing or out of date; otherwise it only compares a stamp, without network access.
# PYTHON=/path/to/python selects the interpreter.

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
    # An environment of ours without a stamp or an interpreter is incomplete. Environments made by others are never removed.
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
    # That of Python 3.11 takes twice the time to install what follows.
    "${pip[@]}" --upgrade 'pip>=26' || true
    # torch first and alone, so that a local build of this version is preferred if pip is configured to find one.
    "${pip[@]}" "$(grep -E '^torch==' constraints.txt)"
    "${pip[@]}" -c constraints.txt -e '.[dev]'
    "${pip[@]}" --no-deps -r constraints-stats.txt
    # Removes the bound on pandas, so that `pip check` reports only other conflicts; the original is kept as METADATA.asked.
    sed -i.asked '/^Requires-Dist: pandas</d' .venv/lib/python3*/site-packages/{fugue,statsforecast}-*.dist-info/METADATA
    # On all cores; pip would use one. Some packages contain files that are not valid in this version of Python. What is
    # left out is a third of the source, of which next to nothing is imported.
    .venv/bin/python -m compileall -qq -j 0 -x 'site-packages/.*/tests?/|transformers/models/' .venv/lib femts || true
    echo "$want" >"$stamp"
}
