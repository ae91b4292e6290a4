#!/usr/bin/env bash
# Print the Python to make the virtual environment with: $PYTHON if set, else the first on PATH that is new
# enough. Says what to do when there is none.
set -euo pipefail

new_enough() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done

if [ -n "${PYTHON:-}" ]; then
    echo "PYTHON=$PYTHON is not a Python 3.11 or newer that has the venv module." >&2
else
    echo "Wallaby needs Python 3.11 or newer with its venv module, and found none on PATH." >&2
fi
echo "Install one (on Debian or Ubuntu also the package python3-venv), or name it: make setup PYTHON=python3.12" >&2
exit 1
