#!/bin/sh
# Goal: tools/deps finds the package of clang's runtime by the compiler, installs what is missing in one
# go, asks for nothing, and says nothing when all is there. Method: a PATH in which dpkg, apt-get,
# apt-cache and clang are made up: deps.sh
set -u
deps=$(pwd)/tools/deps
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

fake() { # NAME: the script on standard input
    cat >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# A Debian whose clang is of the major version $1, without the lists of packages until apt-get update.
new_machine() {
    rm -rf "${work:?}/bin" "$work/installed" "$work/asked" "$work/lists"
    mkdir -p "$work/bin"
    : >"$work/installed"
    : >"$work/asked"
    for tool in sh sed cut head tr cat rm mktemp grep env dirname; do
        ln -s "$(command -v "$tool")" "$work/bin/$tool"
    done
    printf '#!/bin/sh\necho 0\n' | fake id
    printf '#!/bin/sh\n' | fake npm
    fake dpkg <<EOF
#!/bin/sh
grep -qx -- "\$2" "$work/installed" || exit 1
echo "Status: install ok installed"
EOF
    fake apt-cache <<EOF
#!/bin/sh
[ -f "$work/lists" ] || exit 100
printf 'clang\n  Depends: clang-$1\n    libfoo\n'
EOF
    fake apt-get <<EOF
#!/bin/sh
case \$1 in
update) : >"$work/lists" ;;
install)
    [ "\$DEBIAN_FRONTEND" = noninteractive ] || exit 3
    for word; do
        case \$word in install | -*) ;; *) echo "\$word" >>"$work/asked" ;; esac
    done
    if grep '^libclang-rt-' "$work/asked" | grep -qvx libclang-rt-$1-dev; then
        echo "E: Unable to locate package"
        exit 100
    fi
    cat "$work/asked" >>"$work/installed"
    ;;
esac
EOF
}

clang_is() { # VERSION
    printf '#!/bin/sh\n[ "$1" = -dumpversion ] && echo %s\n' "$1" | fake clang
}

run_deps() {
    status=0
    PATH=$work/bin sh "$deps" "$@" >"$work/out" 2>&1 </dev/null || status=$?
}

holds() { # FACT COMMAND...
    fact=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $fact (tools/deps ended with $status):"
        cat "$work/out"
    fi
}

asked_for() { grep -qx -- "$1" "$work/asked"; }
silent() { [ "$status" -eq 0 ] && [ ! -s "$work/out" ]; }

for major in 14 19; do
    new_machine $major
    run_deps run test
    holds "a machine without clang gets the runtime of apt's clang $major" asked_for libclang-rt-$major-dev
    holds "and clang itself" asked_for clang
    holds "and it works" test "$status" -eq 0
    holds "its one line names the package" grep -q "^installing:.* libclang-rt-$major-dev " "$work/out"
    clang_is $major.0.6
    run_deps run test
    holds "the second time says nothing" silent

    new_machine $major
    clang_is $major.1.7
    run_deps test
    holds "a clang $major that is there gets its own runtime" asked_for libclang-rt-$major-dev
done

new_machine 14
run_deps run
holds "building alone wants no clang" test -z "$(grep clang "$work/asked")"

new_machine 14
clang_is 16.0.0
run_deps test
holds "a refusal of apt-get is shown" grep -q 'Unable to locate' "$work/out"
holds "and ends with 1" test "$status" -eq 1

new_machine 14
clang_is 14.0.6
run_deps run test
holds "make test wants nothing of make check" test -z "$(grep -E 'lintian|debhelper|aarch64|clang-tidy|zsh' "$work/asked")"
run_deps check
holds "make check gets clang-tidy" asked_for clang-tidy
holds "and lintian" asked_for lintian
holds "and the other compiler" asked_for gcc-aarch64-linux-gnu
run_deps run test check
holds "and then all is there" silent

new_machine 14
rm "$work/bin/apt-get"
run_deps test
holds "without apt-get the packages are named" grep -q 'libclang-rt-dev' "$work/out"
holds "and that is no failure" test "$status" -eq 0

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
