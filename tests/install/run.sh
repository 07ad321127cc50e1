#!/bin/sh
# Goal: what `make install` puts in place is all a user needs. Method: install into an empty prefix,
# then build and run examples against it by pkg-config and by find_package, shared and static, and
# a test with the test kit: run.sh BUILD-DIRECTORY
set -eu
root=$(pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" --strip >"$work/install.log" || {
    cat "$work/install.log"
    exit 1
}

kit_example=
for file in examples/*_test.c; do
    [ -f "$file" ] && kit_example=$root/$file
done
[ -n "$kit_example" ] || {
    echo "There is no examples/*_test.c to build with the installed test kit."
    exit 1
}

pc=$(dirname "$(find "$prefix" -name libjzx.pc)")
libdir=$(dirname "$pc")
export PKG_CONFIG_PATH="$pc"
pkg-config --validate libjzx libjzx_testkit

run() { # PROGRAM [ARGUMENT...]: also says which one failed
    LD_LIBRARY_PATH=$libdir "$@" >"$work/out" 2>&1 || {
        echo "$1 ended with status $?:"
        cat "$work/out"
        exit 1
    }
}

# linked_to_us PROGRAM yes|no: whether the program loads the shared library
linked_to_us() {
    found=no
    if readelf -d "$1" | grep -q 'NEEDED.*libjzx'; then
        found=yes
    fi
    [ "$found" = "$2" ] || {
        echo "$1 loads libjzx.so: $found, but that should be: $2."
        exit 1
    }
}

# The static build sees a moved copy without shared libraries, so that -ljzx can only mean the
# archive, and so that the .pc file has to find its own prefix.
cp -R "$prefix" "$work/moved"
rm "$work/moved/${libdir#"$prefix/"}"/*.so*
moved_pc=$work/moved/${pc#"$prefix/"}

# shellcheck disable=SC2046 # pkg-config prints words
{
    cc -std=c11 -o "$work/hello_shared" examples/hello.c $(pkg-config --cflags --libs libjzx)
    cc -std=c11 -o "$work/hello_static" examples/hello.c \
        $(PKG_CONFIG_PATH=$moved_pc pkg-config --static --cflags --libs libjzx)
    cc -std=c11 -o "$work/kit_static" "$kit_example" \
        $(PKG_CONFIG_PATH=$moved_pc pkg-config --static --cflags --libs libjzx_testkit)
    cc -std=c11 -o "$work/kit_shared" "$kit_example" $(pkg-config --cflags --libs libjzx_testkit)
    c++ -std=c++17 -o "$work/consumer_cpp" tests/install/consumer/consumer.cpp \
        $(pkg-config --cflags --libs libjzx)
}
for program in hello_shared hello_static kit_shared kit_static consumer_cpp; do
    run "$work/$program"
done
if [ -f "$pc/libjzx_manifest.pc" ]; then
    # shellcheck disable=SC2046
    {
        cc -std=c11 -o "$work/manifest_shared" examples/manifest.c \
            $(pkg-config --cflags --libs libjzx_manifest)
        cc -std=c11 -o "$work/manifest_static" examples/manifest.c \
            $(PKG_CONFIG_PATH=$moved_pc pkg-config --static --cflags --libs libjzx_manifest)
    }
    (cd "$work" && run ./manifest_shared && run ./manifest_static)
    run "$prefix/bin/jzx" --version
fi
if [ -f "$pc/libjzx_console.pc" ]; then
    # shellcheck disable=SC2046
    {
        cc -std=c11 -o "$work/console_shared" examples/console.c \
            $(pkg-config --cflags --libs libjzx_console)
        cc -std=c11 -o "$work/console_static" examples/console.c \
            $(PKG_CONFIG_PATH=$moved_pc pkg-config --static --cflags --libs libjzx_console)
    }
    LD_LIBRARY_PATH=$libdir sh examples/console.sh "$work/console_shared"
    linked_to_us "$work/console_static" no
fi
linked_to_us "$work/hello_shared" yes
linked_to_us "$work/hello_static" no

{
    cmake -S tests/install/consumer -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" \
        -DEXAMPLES="$root/examples" -DKIT_EXAMPLE="$kit_example" &&
        cmake --build "$work/cmake"
} >"$work/cmake.log" 2>&1 || {
    cat "$work/cmake.log"
    exit 1
}
for program in hello_shared hello_static consumer_cpp kit_shared kit_static; do
    run "$work/cmake/$program"
done
linked_to_us "$work/cmake/hello_shared" yes
linked_to_us "$work/cmake/hello_static" no
linked_to_us "$work/cmake/kit_static" no

# The pages are finished: tools/man has written what the headers say.
pages=$(find "$prefix" -path '*/man/man3/*.3')
for said in '^\.Fo jzx_ask_cancel$' '^\.It Dv JZX_ERR_NO_SUCH_REF$'; do
    echo "$pages" | grep '/jzx_ask\.3$' | xargs grep -q "$said" || {
        echo "The installed jzx_ask.3 has no line $said."
        exit 1
    }
done
if echo "$pages" | xargs grep -nE '^\.\\" (synopsis|errors):'; then
    echo "These installed pages are not finished."
    exit 1
fi

# An embedded example must compile against the installed headers alone, whatever it links.
for file in examples/*.c; do
    if [ "$file" = examples/console.c ] && [ ! -f "$pc/libjzx_console.pc" ]; then
        continue
    fi
    # shellcheck disable=SC2046
    cc -std=c17 -fsyntax-only $(pkg-config --cflags libjzx) "$file"
done
for file in examples/*.cpp; do
    # shellcheck disable=SC2046
    c++ -std=c++17 -o "$work/cpp" "$file" $(pkg-config --cflags --libs libjzx)
    LD_LIBRARY_PATH=$libdir sh tools/expect "${file%.cpp}.expected" "$work/cpp"
done

# Installed without what only debuggers read; the tree that was built keeps it.
for file in "$libdir"/*.so "$prefix"/bin/*; do
    if readelf -S "$file" | grep -qE '\.debug_info|\.symtab'; then
        echo "$file was not stripped."
        exit 1
    fi
    readelf -S "$build/$(basename "$file")" | grep -q '\.debug_info' || {
        echo "$build/$(basename "$file") has no debug information to keep."
        exit 1
    }
done
for file in "$libdir"/*.a; do
    if readelf -S "$file" | grep -q '\.debug_info'; then
        echo "$file was not stripped."
        exit 1
    fi
done
# The probes are found in what was stripped, where they were compiled in.
if readelf -n "$build/libjzx.so" | grep -q stapsdt; then
    readelf -n "$libdir/libjzx.so" | grep -q stapsdt || {
        echo "Stripping took the probes of libjzx.so away."
        exit 1
    }
fi

# What a user reads, and what the shells read.
doc=$prefix/share/doc/libjzx
for file in "$doc/LICENSE" "$doc/README.md" "$doc/CHANGELOG.md" "$(find "$doc/docs" -name MANIFEST.md)" \
    "$doc/examples/hello.c" "$doc/examples/mean.cpp" "$doc/examples/chat/main.c" "$prefix/share/bash-completion/completions/jzx" "$prefix/share/zsh/site-functions/_jzx"; do
    [ -f "$file" ] || {
        echo "$file is not installed."
        exit 1
    }
done

# DESTDIR moves everything, and nothing that is installed names where it was built.
DESTDIR=$work/stage cmake --install "$build" --prefix /usr >/dev/null
[ -f "$work/stage/usr/include/jzx/jzx.h" ] || {
    echo "DESTDIR was not honoured."
    exit 1
}
# `make uninstall` removes all of it, nothing else, and works without the build tree.
list=$work/manifest.txt
(cd "$work/stage" && find usr ! -type d | sed 's|^|/|') >"$list"
tools/uninstall --keep-list "$list" /usr "$work/stage"
: >"$work/stage/usr/include/jzx.h"
tools/uninstall /usr "$work/stage" >"$work/out"
left=$(cd "$work/stage" && find . ! -type d)
[ "$left" = ./usr/include/jzx.h ] || {
    echo "After make uninstall there is: $left"
    exit 1
}
left=$(cd "$work/stage/usr" && find . -mindepth 1 -type d |
    grep -vxE './(bin|include|lib|share|share/doc|share/man|share/man/man.)' || true)
[ -z "$left" ] || {
    echo "make uninstall left these folders: $left"
    exit 1
}
if tools/uninstall /usr "$work/stage" >"$work/out" 2>&1; then
    echo "A second make uninstall says nothing."
    exit 1
fi

if grep -rlI -e "$root" "$prefix"; then
    echo "These installed files name the source tree."
    exit 1
fi
echo "shared, static, C++, test kit: pkg-config and find_package agree"
