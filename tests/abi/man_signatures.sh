#!/bin/sh
# Goal: the documents say what the code says. Method: finish the man pages with tools/man, compare the prototypes of every
# SYNOPSIS with the headers and the sentences of jzx_error.3 with core/src/base/error.c, compile each example, and
# look for every test and file that docs/ names: man_signatures.sh [CC]
set -u
cc=${1:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
failed=0
tools/man "$work/man" || failed=1
pages=$(find "$work/man" -name '*.3' -type f | sort)

complain() {
    echo "$*"
    failed=1
}

# One declaration per line, "name<TAB>type name(argument, argument)".
for header in core/include/jzx/*.h testkit/include/jzx/*.h manifest/include/jzx/*.h console/include/jzx/*.h; do
    awk '# Where the parenthesis that opens first is closed again; 0 while it is not.
         function closed(s, k, depth, ch) {
             for (k = 1; k <= length(s); k++) {
                 ch = substr(s, k, 1)
                 if (ch == "(") depth++
                 if (ch == ")" && --depth == 0) return k
             }
             return 0
         }
         { text = text $0 "\n" }
         END {
             while (match(text, /\/\*/)) {
                 before = substr(text, 1, RSTART - 1)
                 text = substr(text, RSTART + 2)
                 match(text, /\*\//)
                 text = before " " substr(text, RSTART + 2)
             }
             count = split(text, line, "\n")
             for (i = 1; i <= count; i++) {
                 if (line[i] !~ /^(JZX_API|static inline) /) continue
                 whole = line[i]
                 while (!closed(whole) && i < count) whole = whole " " line[++i]
                 whole = substr(whole, 1, closed(whole))
                 gsub(/JZX_API|JZX_NODISCARD|JZX_NORETURN|static inline/, "", whole)
                 gsub(/[ \t]+/, " ", whole)
                 gsub(/^ | $/, "", whole)
                 gsub(/\* /, "*", whole)
                 name = whole
                 sub(/\(.*/, "", name)
                 sub(/.*[ *]/, "", name)
                 print name "\t" whole
             }
         }' "$header"
done | sort >"$work/headers"

for page in $pages; do
    awk -v page="$page" '
        function value(line) { sub(/^\.F[toa] */, "", line); gsub(/"/, "", line); return line }
        /^\.Sh / { inside = $2 == "SYNOPSIS" }
        !inside { next }
        /^\.Ft / { type = value($0) }
        /^\.Fo / { name = value($0); list = "" }
        /^\.Fa / { list = list (list == "" ? "" : ", ") value($0) }
        /^\.Fc/ {
            whole = type " " name "(" list ")"
            gsub(/\* /, "*", whole)
            print name "\t" whole "\t" page
        }' "$page"
done | sort >"$work/pages"

cut -f 1,2 "$work/pages" | sort -u >"$work/said"
# The inline wrapper stands for its _sized form, so a page may leave that one out.
while IFS="$(printf '\t')" read -r name _; do
    said=$(awk -F '\t' -v name="$name" '$1 == name { n++ } END { print n + 0 }' "$work/pages")
    case $name in
    *_sized) [ "$said" -eq 0 ] && continue ;;
    esac
    if [ "$said" -ne 1 ]; then
        complain "$name is in the SYNOPSIS of $said pages, not of one."
    fi
done <"$work/headers"
comm -13 "$work/headers" "$work/said" >"$work/wrong"
if [ -s "$work/wrong" ]; then
    complain "These prototypes of man pages are not those of the headers:"
    cut -f 2 "$work/wrong"
fi

# "name sentence" of every error, from the table and from the page.
tr '\n' ' ' <core/src/base/error.c | grep -oE '\{"JZX_[A-Z_]+", +"[^"]*"\}' |
    sed 's/^{"\([A-Z_]*\)", *"\(.*\)"}$/\1 \2/' | grep -v '^JZX_ERR_UNKNOWN ' >"$work/errors"
awk '/^\.It Dv JZX_/ { if (text) print text; text = $3; next }
     /^\.El/ { if (text) print text; text = "" }
     text {
         sub(/^\.Dv /, "")
         if (sub(/^\.Fn /, "")) sub(/[a-z0-9_]+/, "&()")
         sub(/ ,$/, ",")
         sub(/ \.$/, ".")
         text = text " " $0
     }' "$work/man/man3/jzx_error.3" \
    >"$work/page_errors"
diff -u "$work/errors" "$work/page_errors" ||
    complain "jzx_error.3 does not have the sentences of core/src/base/error.c."

# Every display that begins with an #include is a whole file.
for page in $pages "$work/man/man7/jzx.7"; do
    awk -v out="$work/example" '
        /^\.Bd -literal/ { first = 1; next }
        /^\.Ed/ { if (file) close(file); file = ""; next }
        first { first = 0; if ($0 ~ /^#include/) file = out "." ++count ".c" }
        file { gsub(/\\e/, "\\"); sub(/^\\&/, ""); print >file }' "$page"
    for example in "$work"/example.*.c; do
        [ -f "$example" ] || continue
        "$cc" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror \
            -Wno-missing-prototypes -Icore/include -Itestkit/include -Imanifest/include -Iconsole/include -fsyntax-only "$example" ||
            complain "An example of man${page#"$work/man"} does not compile."
        rm -f "$example"
    done
done

# shellcheck disable=SC2016 # the backquotes are those of the documents
# Tests that SPEC.md names, and files that any document names.
grep -rhoE '^static void test_[A-Za-z0-9_]+\(' core/tests testkit/tests manifest/tests console/tests tests |
    sed 's/^static void //; s/($//' | sort -u >"$work/tests"
grep -oE '`test_[A-Za-z0-9_]+`' docs/reference/SPEC.md | tr -d '`' | sort -u | comm -23 - "$work/tests" |
    sed 's/.*/docs\/reference\/SPEC.md names &, which is no test./' >"$work/missing"
# A file may be named without the folders that lead to it, and a product's test without its tests/.
find . \( -name .git -o -name build \) -prune -o -type f -print |
    sed 's|^\./||; p; s|^\([a-z]*\)/tests/|\1/|' | sort -u >"$work/files"
for document in docs/reference/SPEC.md docs/internals/ARCHITECTURE.md; do
    grep -oE '`[A-Za-z0-9_./-]+\.(c|h|sh|md|txt)`' "$document" | tr -d '`' | sort -u |
        awk -v document="$document" '
            # The rules and plans that came with the project are kept beside it.
            BEGIN { known["DESIGN.md"] = known["MANIFEST.md"] = known["RUNTIME.md"] = known["STYLE.md"] = known["BASELINES.md"] = 1 }
            FILENAME != "-" { for (known[$0] = 1; sub(/^[^\/]*\//, ""); known[$0] = 1); next }
            !($0 in known) { print document " names " $0 ", which does not exist." }' "$work/files" -
done >>"$work/missing"
# Every room says what it is for, and has its place in ARCHITECTURE.md.
sed 's/#.*//' core/src/layers.txt | while read -r room rest; do
    [ -n "$room" ] || continue
    [ -f "core/src/$room/README.md" ] || echo "core/src/$room has no README.md."
    grep -qF "\`$room/\`" docs/internals/ARCHITECTURE.md || echo "docs/internals/ARCHITECTURE.md does not have the room $room."
done >>"$work/missing"
if [ -s "$work/missing" ]; then
    complain "$(cat "$work/missing")"
fi
exit $failed
