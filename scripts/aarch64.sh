#!/usr/bin/env bash
# Compiles the folders that need no LibTorch for aarch64 and runs their tests under qemu-user. Exit 1 when a test fails.
#
#   scripts/aarch64.sh     what it makes stays in build-aarch64, Debian's arm64 libraries among it
#
# Needs Debian's g++-aarch64-linux-gnu and qemu-user, and .venv of scripts/setup.sh. The libraries are unpacked into a folder, not
# installed, so nothing of this machine changes. qemu is slow: compiling and the tests take a quarter of an hour and more.
#
# Environment: SDTUNE_JOBS=N    parallel compilations and programs (default: the number of cores)
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
jobs=${SDTUNE_JOBS:-$(nproc)}
folder=$PWD/build-aarch64
mkdir -p "$folder"
root=$folder/root
[ $# -eq 0 ] || { echo "aarch64: error: $1: unknown option (none is allowed)" >&2; exit 2; }
die() { printf 'aarch64: error: %s\n' "$*" >&2; exit 2; }
for program in aarch64-linux-gnu-g++ qemu-aarch64 apt-get; do
  command -v "$program" >/dev/null || die "$program is missing: apt-get install g++-aarch64-linux-gnu qemu-user"
done

# apt with a state of its own: an empty arm64 machine.
apt_arm64() {
  local state=$folder/apt
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  [ -f "$state/status" ] || : >"$state/status"
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$state" -o Dir::State::status="$state/status" \
    -o Dir::Cache="$state" -o Dir::Cache::archives="$state/archives" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}

make_root() {
  local packages=(libcli11-dev libcurl4-openssl-dev libexif-dev libfmt-dev libgmock-dev libgtest-dev libheif-dev libjpeg-dev
                  libopencv-core-dev libopencv-imgproc-dev libpng-dev libssl-dev libutf8proc-dev libwebp-dev libyaml-cpp-dev nlohmann-json3-dev libstdc++-12-dev)
  apt_arm64 update
  apt_arm64 install --download-only -y --no-install-recommends "${packages[@]}" >/dev/null
  rm -rf "$root"
  mkdir -p "$root/usr/lib"
  ln -s usr/lib "$root/lib"
  local package
  for package in "$folder"/apt/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink; done
  touch "$root/complete"
}
[ -e "$root/complete" ] || make_root

cat >"$folder/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT "$root")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Libraries of libraries (BLAS of OpenCV) lie where Debian's alternatives would have linked them from.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--allow-shlib-undefined")
set(libraries "$root/usr/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "$root" -E "LD_LIBRARY_PATH=\${libraries}:\${libraries}/blas:\${libraries}/lapack")
EOF
export PKG_CONFIG_LIBDIR="$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
cmake -S . -B "$folder/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" -DPython_EXECUTABLE="$PWD/.venv/bin/python" \
  -DSDTUNE_TORCH_DIR="$(.venv/bin/python -c 'import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec("torch").origin).parent)')" \
  -DSDTUNE_UNITY=ON -DSDTUNE_APP=OFF -DSDTUNE_PYTHON=OFF -DSDTUNE_LLD=OFF >/dev/null
ninja -C "$folder/build" -j "$jobs" --quiet torch_free_tests
# qemu-user's vfork is a fork, so posix_spawn never learns that a program could not be started: three tests of just that are left out.
export GTEST_FILTER=-ScriptProcess.OneThatCannotBeStartedSaysWhich:TrackerCheck.AllAndTensorBoardAskNobody:RunNotifierTest.FaultsAreWarningsWithoutTheAddress
ctest --test-dir "$folder/build" -L '^torch_free$' -j "$jobs" --no-tests=error --output-on-failure
echo "aarch64: ok, $SECONDS s"
