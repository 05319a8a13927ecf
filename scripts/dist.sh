#!/bin/sh
# Builds hart as it is handed to users, and its benchmarks: once to watch what it does most (`hart-bench train`), and
# once more to be quick at that. Takes half an hour on two cores; what did not change is not built again.
set -eu

cargo=${CARGO:-cargo}
host=$(rustc --print host-tuple)
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
if [ ! -x "$profdata" ]; then
    echo "the compiler's llvm-tools are missing; adding them"
    rustup component add llvm-tools
fi

# The target is named so that what only builds hart is not watched. The names of functions depend on the profile, so it
# is the same one for both.
build() {
    RUSTFLAGS=$1 "$cargo" build --locked --profile dist --target "$host" --target-dir "$2" -p hart-cli -p hart-bench
}

seen=$PWD/target/watched/seen
rm -rf "$seen"
build "-Cprofile-generate=$seen" target/watched
# What the model and the clients do is not hart's; hart itself is started without this.
LLVM_PROFILE_FILE=/dev/null "target/watched/$host/dist/hart-bench" train
"$profdata" merge --output="$seen/hart.profdata" "$seen"

build "-Cprofile-use=$seen/hart.profdata" target
mkdir -p target/dist
for program in hart hart-bench; do
    ln -f "target/$host/dist/$program" "target/dist/$program"
done
echo "target/dist/hart is ready"
