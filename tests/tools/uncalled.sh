#!/bin/sh
# Goal: tools/uncalled finds what no program calls, and nothing else. Method: a made-up repository with
# one function for each way to be called, or not: uncalled.sh
set -eu
tool=$PWD/tools/uncalled
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p core/include/jzx manifest/include/jzx manifest/src examples cmd/x tests
cat >core/include/jzx/a.h <<'C'
JZX_API int jzx_by_example(void);
JZX_API int jzx_by_command(void);
JZX_API int jzx_by_pointer(void);
JZX_API int jzx_by_manifest(void);
JZX_API int jzx_grown_sized(int a,
                            int b);
static inline int jzx_grown(int a)
{
    return jzx_grown_sized(a, sizeof a);
}
JZX_API JZX_NODISCARD int
jzx_on_the_next_line(void);
JZX_API int jzx_in_a_comment(void);
JZX_API int jzx_in_a_text(void);
JZX_API int jzx_by_tests(void);
C
printf 'JZX_API int jzx_mf_own(void);\n' >manifest/include/jzx/b.h
printf 'int main(void)\n{\n    /* jzx_in_a_comment() and\n     * more */ return jzx_by_example() + jzx_grown(1); // jzx_in_a_comment()\n}\n' >examples/e.c
printf 'int (*f)(void) = jzx_by_pointer;\nconst char *t = "jzx_in_a_text() \\" jzx_in_a_text()";\nint g(void)\n{\n    return jzx_by_command();\n}\n' >cmd/x/c.c
printf 'int m(void)\n{\n    return jzx_by_manifest() + jzx_mf_own();\n}\n' >manifest/src/m.c
printf 'int t(void)\n{\n    return jzx_by_tests();\n}\n' >tests/t.c

cat >expected <<'T'
core/include/jzx/a.h:12: No program outside the tests calls jzx_on_the_next_line().
core/include/jzx/a.h:13: No program outside the tests calls jzx_in_a_comment().
core/include/jzx/a.h:14: No program outside the tests calls jzx_in_a_text().
core/include/jzx/a.h:15: No program outside the tests calls jzx_by_tests().
manifest/include/jzx/b.h:1: No program outside the tests calls jzx_mf_own().
T
if sh "$tool" . >got; then
    echo "There are findings, but the status is 0."
    exit 1
fi
diff -u expected got

printf 'int main(void)\n{\n    return jzx_on_the_next_line() + jzx_in_a_comment() + jzx_in_a_text() + jzx_by_tests() + jzx_mf_own();\n}\n' >examples/all.c
sh "$tool" . || {
    echo "Everything is called, but the status is not 0."
    exit 1
}
sh "$tool" --help | grep -q 'FOLDER' || {
    echo "--help does not say what it takes."
    exit 1
}
