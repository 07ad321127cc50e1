#!/bin/sh
# Goal: tools/tidy is silent about a good tree and catches each thing it is there for. Method: make a
# small good tree, spoil one thing at a time, and look for the finding at its file and line.
set -u
tidy=$(pwd)/tools/tidy
config=$(pwd)/.clang-format
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

good_tree() {
    rm -rf "$work/tree"
    for folder in core/src/base core/src/os core/src/actor core/src/sched core/src/patterns \
        core/include/jzx man tests/unit examples; do
        mkdir -p "$work/tree/$folder"
    done
    cd "$work/tree" || exit 2
    cp "$config" .clang-format
    printf '# order\nbase # tools\nos\nactor\nsched\npatterns\n' >core/src/layers.txt
    cat >core/include/jzx/types.h <<'C'
#ifndef JZX_TYPES_H
#define JZX_TYPES_H
#define JZX_VERSION_MAJOR 1
#define JZX_VERSION_MINOR 2
#define JZX_VERSION_PATCH 3
#define JZX_VERSION_STRING "1.2.3"
JZX_API int jzx_version(void);
#endif
C
    printf '#include <jzx/types.h>\n' >core/include/jzx/jzx.h
    printf 'int base;\n' >core/src/base/alloc.h
    printf '#include "base/alloc.h"\n' >core/src/base/alloc.c
    printf '#include "base/alloc.h"\n' >core/src/os/clock.h
    printf '#include "os/clock.h"\n\n#include <unistd.h>\n' >core/src/os/clock.c
    printf '#include "base/alloc.h"\n' >core/src/actor/door.h
    printf '#include "actor/door.h"\n' >core/src/actor/door.c
    printf '#include "base/alloc.h"\n' >core/src/actor/lane.h
    printf '#include "actor/door.h"\n#include "actor/lane.h"\n#include "os/clock.h"\n' >core/src/sched/worker.h
    printf '#include "sched/worker.h"\n' >core/src/sched/worker.c
    printf '#include "base/alloc.h"\n\n#include <jzx/jzx.h>\n' >core/src/patterns/router.c
    printf '#include <jzx/jzx.h>\n' >examples/hello.c
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(jzx VERSION 1.2.3)\n' >CMakeLists.txt
    printf '# Changes\n\n## 1.2.3 (unreleased)\n' >CHANGELOG.md
    cat >man/jzx_version.3 <<'M'
.Dd November 15, 2026
.Dt JZX_VERSION 3
.Os "jzx 1.2.3"
.Sh NAME
.Nm jzx_version
.Nd the version
.Sh SYNOPSIS
.\" synopsis: jzx/types.h
.Sh DESCRIPTION
Gives the version.
M
}

# catches WHAT PATTERN: the tree as spoiled now has a finding that matches
catches() {
    if "$tidy" "$work/tree" >"$work/out" 2>&1; then
        echo "FAILED $1: tidy found nothing"
        failed=$((failed + 1))
    elif ! grep -qE "$2" "$work/out"; then
        echo "FAILED $1: no finding matches $2 in:"
        cat "$work/out"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
    good_tree
}

# accepts WHAT: the tree as it is now has no finding
accepts() {
    if "$tidy" "$work/tree" >"$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAILED $1:"
        cat "$work/out"
        failed=$((failed + 1))
    fi
    good_tree
}

good_tree
accepts "a good tree"

# Names in comments, strings and members are not calls.
cat >>core/src/sched/worker.c <<'C'
/* time(NULL) and
 * printf("x") are banned */
const char *text = "rand() /*"; // sleep(1)
void *grow(struct a *a)
{
    return a->realloc(a->ctx, 0);
}
C
accepts "names that are no calls"

printf 'int turn;\n' >core/src/sched/worker_priv.h
printf '#include "sched/worker_priv.h"\n' >core/src/sched/worker_turn.c
accepts "a header that the sources of a module share"
printf 'int turn;\n' >core/src/sched/worker_priv.h
printf '#include "sched/worker_priv.h"\n' >core/src/sched/mailbox.c
catches "a private header of another module" '^core/src/sched/mailbox\.c:1: worker_priv\.h is for the sources of worker only'
printf 'int turn;\n' >core/src/sched/sched_priv.h
printf '#include "sched/sched_priv.h"\n' >core/src/sched/mailbox.c
accepts "a header that a room shares"

printf '#include "actor/lane.h"\n#include "base/alloc.h"\n' >core/src/actor/door.h
accepts "neighbours in a room"
printf '#include "sched/worker.h"\n' >>core/src/actor/door.c
catches "a room that includes a later one" '^core/src/actor/door\.c:2: actor must not include worker of sched'
printf '#include "os/clock.h"\n' >>core/src/base/alloc.c
catches "base that includes os" '^core/src/base/alloc\.c:2: base must not include clock of os'
printf '#include "sched/worker.h"\n' >core/src/create.c
accepts "the top, which includes all"
printf '#include "actor/door.h"\n' >>core/src/patterns/router.c
catches "patterns that see a private header" '^core/src/patterns/router\.c:4: patterns stands on the public headers'
mkdir -p core/src/attic && printf 'int x;\n' >core/src/attic/stray.c
catches "a room that is not in the list" '^core/src/attic/stray\.c:1: Room attic is not in'
printf '#include "actor/door.h"\n' >>examples/hello.c
catches "a private header in an example" '^examples/hello\.c:2: "actor/door.h" is private'

printf '#include <sys/epoll.h>\n' >>core/src/sched/worker.c
catches "a system header outside os" '^core/src/sched/worker\.c:2: <sys/epoll.h> is the system, .* src/os/'

# Walls. product_file FILE TEXT: a file of a product, with a function that calls something.
product_file() {
    mkdir -p "$(dirname "$1")"
    printf 'void f(void)\n{\n    %s;\n}\n' "$2" >"$1"
}
bad_calls=$(cat <<'CALLS'
clock core/src/sched/a.c clock_gettime(0, 0)
clock core/src/sched/b.c time(0)
clock core/src/sched/c.c sleep(1)
clock core/src/sched/d.c usleep(1)
unsafe core/src/sched/e.c rand()
unsafe core/src/sched/f.c strcpy(a, b)
unsafe core/src/sched/g.c sprintf(a, "x")
unsafe core/src/sched/h.c gets(a)
unsafe core/src/sched/i.c alloca(8)
print core/src/sched/j.c printf("x")
print core/src/sched/k.c fprintf(stderr, "x")
memory core/src/sched/l.c malloc(8)
memory core/src/sched/m.c free(a)
memory core/src/sched/n.c calloc(1, 8)
memory core/src/sched/o.c realloc(a, 8)
system core/src/sched/p.c getentropy(a, 8)
system core/src/sched/q.c eventfd(0, 0)
clock testkit/src/a.c clock_gettime(0, 0)
system testkit/src/b.c getpid()
unsafe testkit/src/c.c rand()
clock manifest/src/open.c clock_gettime(0, 0)
clock manifest/src/clock_two.c clock_gettime(0, 0)
memory manifest/src/codec.c malloc(8)
memory manifest/src/work.c strdup(a)
system manifest/src/writer.c mmap(0)
print manifest/src/tx.c printf("x")
unsafe manifest/src/row.c strcpy(a, b)
clock console/src/http.c clock_gettime(0, 0)
system console/src/history.c fork()
print console/src/route.c fputs("x", a)
unsafe console/src/page.c sprintf(a, "x")
print cmd/client/doctor.c puts("x")
unsafe cmd/jzx/top.c strcat(a, b)
clock sydra/src/scan.c clock_gettime(0, 0)
memory quilt/src/job.c free(a)
memory remote/src/peer.c realloc(a, 8)
system remote/src/link.c eventfd(0, 0)
clock drivers/redis/src/redis.c time(0)
print drivers/redis/src/reply.c perror("x")
CALLS
)
# All of them in one tree, because a look at a tree takes its time.
echo "$bad_calls" | while read -r what file call; do product_file "$file" "$call"; done
"$tidy" "$work/tree" >"$work/walls" 2>&1
while read -r what file call; do
    if grep -qE "^$file:3: ${call%%(*}\\(\\) is behind the wall \"$what\"" "$work/walls"; then
        passed=$((passed + 1))
    else
        echo "FAILED $what in $file: tidy did not find $call"
        failed=$((failed + 1))
    fi
done <<CALLS
$bad_calls
CALLS
good_tree
while read -r file call; do product_file "$file" "$call"; done <<'CALLS'
core/src/os/clock.c clock_gettime(0, 0)
testkit/src/sim.c malloc(8)
testkit/src/kit.c fprintf(stderr, "x")
manifest/src/clock.c clock_gettime(0, 0)
manifest/src/memory.c malloc(8)
manifest/src/store_file.c getpid()
manifest/src/pages_head.c mmap(0)
console/src/keeper.c clock_gettime(0, 0)
console/src/text.c realloc(a, 8)
cmd/jzx/top.c printf("x")
cmd/client/doctor.c malloc(8)
sydra/src/clock.c clock_gettime(0, 0)
quilt/src/memory.c malloc(8)
drivers/redis/src/redis.c malloc(8)
core/tests/sched/walls_unit.c printf("x")
CALLS
accepts "calls where the walls are open"
mkdir -p manifest/src && printf '#include <fcntl.h>\n' >manifest/src/writer.c
catches "a system header of the manifest" '^manifest/src/writer\.c:1: <fcntl.h> is the system, .* of manifest/ only'
mkdir -p manifest/src && printf '#include <fcntl.h>\n' >manifest/src/store_file.c
accepts "a system header in a named file of the manifest"
mkdir -p testkit/src && printf '#include <time.h>\n' >testkit/src/sim.c
catches "the header of the clock" '^testkit/src/sim\.c:1: <time.h> is the clock, which is read nowhere in testkit/'
awk 'BEGIN { for (i = 0; i < 601; i++) print "int a" i ";" }' >>core/src/sched/worker.c
catches "a long source" '^core/src/sched/worker\.c:60[0-9]: The file has more than 600 lines'
awk 'BEGIN { for (i = 0; i < 100; i++) print "int a" i ";" }' >>examples/hello.c
catches "a long example" '^examples/hello\.c:101: The file has more than 100 lines'

printf 'int x;\n' >core/src/base/unused.h
catches "a header that nobody includes" '^core/src/base/unused\.h:1: Nobody includes'
mkdir -p core/tests/actor && printf 'int x;\n' >core/tests/actor/door.c
catches "a test that no target compiles" '^core/tests/actor/door\.c:1: No target compiles'

printf 'A line  \n' >README.md
catches "blanks at the end of a line" '^README\.md:1: There are blanks'
sed -i 's/STRING "1.2.3"/STRING "1.2.4"/' core/include/jzx/types.h
catches "a version string that differs" '^core/include/jzx/types\.h:6: JZX_VERSION_STRING'
sed -i 's/1\.2\.3/1.3.0/' CMakeLists.txt
catches "a project version that differs" '^CMakeLists\.txt:2: .*not 1\.2\.3'
sed -i 's/1\.2\.3/1.2.2/' CHANGELOG.md
catches "a changelog that lags" '^CHANGELOG\.md:3: .*not 1\.2\.3'
mkdir -p debian && echo 'jzx (1.2.2-1) unstable; urgency=medium' >debian/changelog
catches "packages that lag" '^debian/changelog:1: .*not of 1\.2\.3'
printf '\n## 1.2.2 (unreleased)\n' >>CHANGELOG.md
catches "a release without its date" '^CHANGELOG\.md:5: .*its date'
sed -i 's/unreleased/soon/' CHANGELOG.md
catches "a newest section that says neither date nor unreleased" '^CHANGELOG\.md:3: .*its date'
printf '\n## 1.2.2 (2026-01-31)\n' >>CHANGELOG.md
accepts "an older release with its date"
sed -i 's/1\.2\.3/1.2.2/' man/jzx_version.3
catches "a man page of another version" '^man/jzx_version\.3:3: .*version 1\.2\.3'
sed -i 's/jzx_version/jzx_other/' man/jzx_version.3
catches "a function without a man page" '^core/include/jzx/types\.h:7: No man page .* jzx_version'
if command -v python3 >/dev/null; then
    printf '/* See jzx_nothing(). */\n' >>core/src/sched/worker.c
    catches "a function that does not exist" '^core/src/sched/worker\.c:2: There is no jzx_nothing'
    printf '/* As in core/src/gone.c. */\n' >>core/src/sched/worker.c
    catches "a path that does not exist" '^core/src/sched/worker\.c:2: There is no core/src/gone\.c'
    printf '/* As in gone.h. */\n' >>core/src/sched/worker.c
    catches "a file that does not exist" '^core/src/sched/worker\.c:2: There is no file gone\.h'
    printf 'It is JZX_ERR_NONE.\n' >README.md
    catches "a constant that does not exist" '^README\.md:1: There is no JZX_ERR_NONE'
    printf 'See test_a_fact_R1 of actor/gone_unit.c.\n' >README.md
    catches "a test that does not exist" '^README\.md:1: There is no test test_a_fact_R1'
    printf 'See `test_a_fact_R1` in `actor/gone_unit.c`.\n' >README.md
    catches "a suite that does not exist" '^README\.md:1: There is no actor/gone_unit\.c'
    printf 'See jzx_gone(3).\n' >README.md
    catches "a page that does not exist" '^README\.md:1: There is no manual page jzx_gone'
    printf 'all:\n' >Makefile
    printf 'Run `make nothing`.\n' >README.md
    catches "a target that does not exist" '^README\.md:1: The Makefile has no target nothing'
    printf 'It was jzx_nothing().\n' >>CHANGELOG.md
    printf '/* jzx_version() of core/include/jzx/types.h, JZX_VERSION_* and types.h. */\n' >>core/src/sched/worker.c
    accepts "names that are there, and a changelog that tells of those that were"
fi
# What tools/man reads: the errors of headers and the lines of pages that ask for them.
returns_errors() { # COMMENT: the error BUSY, a function under this comment, and its page
    sed -i '$d' core/include/jzx/types.h
    printf '%s\n' 'typedef enum jzx_err {' '    JZX_ERR_BUSY = -9 /* no */' '} jzx_err;' "$1" 'JZX_API jzx_err jzx_run(void);' \
        '#endif' >>core/include/jzx/types.h
    sed -i 's/^\.Nm .*/& ,\n.Nm jzx_run/' man/jzx_version.3
    printf '.Sh ERRORS\n.\\" errors:\n' >>man/jzx_version.3
}
returns_errors '/* Runs. Errors: BUSY (inside an actor). */'
accepts "a function that says its errors, and a page that asks for them"
returns_errors '/* Runs. */'
catches "a function that does not say its errors" '^core/include/jzx/types\.h:12: jzx_run\(\) does not say its errors'
returns_errors '/* Runs. Errors: BUSY. */
'
catches "errors in a comment that stands apart" '^core/include/jzx/types\.h:13: jzx_run\(\) does not say its errors'
returns_errors '/* Runs. Errors: BUSY, GONE. */'
catches "an error that does not exist" '^core/include/jzx/types\.h:12: There is no JZX_ERR_GONE'
returns_errors '/* Runs. Errors: BUSY when it runs. */'
catches "an error with a sentence outside of parentheses" '^core/include/jzx/types\.h:12: After BUSY'
returns_errors '/* Runs. Errors: as jzx_gone(). */'
catches "the errors of a function that does not exist" '^core/include/jzx/types\.h:12: There is no jzx_gone'
returns_errors '/* Runs. Errors: as jzx_run(). */'
catches "errors that are said in a circle" '^core/include/jzx/types\.h:12: .* in a circle'
sed -i '/ synopsis:/d' man/jzx_version.3
catches "a function of NAME without its prototype" '^man/jzx_version\.3:1: The SYNOPSIS lacks jzx_version'
sed -i 's/ synopsis:.*/ synopsis/' man/jzx_version.3
catches "a line that tools/man does not know" '^man/jzx_version\.3:8: tools/man does not know'
sed -i 's/ synopsis:.*/& jzx_gone/' man/jzx_version.3
catches "a prototype of nothing" '^man/jzx_version\.3:8: There is no jzx_gone\(\)'
if command -v mandoc >/dev/null; then
    printf '.Xx nonsense\n' >>man/jzx_version.3
    catches "a man page that does not render" '^man/jzx_version\.3:15: mandoc says'
fi
if command -v clang-format >/dev/null; then
    printf 'int   x;\n' >>core/src/sched/worker.c
    catches "a line that is not formatted" '^core/src/sched/worker\.c:2: This is not how'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
