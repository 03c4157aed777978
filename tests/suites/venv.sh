# Sourced by the suites in Python: `fetch_source PACKAGE VERSION` unpacks a package's source into $folder, `pip` is the environment's.
[[ -x $folder/venv/bin/python ]] || python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/python" -m pip --disable-pip-version-check -q "$@"; }
fetch_source() {
  [[ -e $folder/source ]] && return
  # The package's own build isn't isolated: that would fetch its tools for nothing but the name of a file.
  pip install setuptools wheel
  pip download --no-deps --no-build-isolation --no-binary :all: -d "$folder/download" "$1==$2"
  mkdir "$folder/unpacked"
  tar -xzf "$folder"/download/*.tar.gz -C "$folder/unpacked"
  mv "$folder"/unpacked/* "$folder/source"
}
