#!/bin/sh
# Goal: after `jzx` the shell completes every command and every option that the help texts name, and nothing else. Method:
# the completion of bash is read and called as bash would; what it should say is taken from the help of this very jzx,
# so neither list can fall behind. zsh, where it is: the same by stand-ins of its completion calls. Programs and actors are
# those of a fixture that runs: completion.sh JZX FIXTURE
set -u
jzx=$1
fixture=$2
pid=
root=$(pwd)
command -v bash >/dev/null || {
    echo "bash is not installed"
    exit 77
}
work=$(mktemp -d)
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/run"
ln -s "$jzx" "$work/bin/jzx"
export PATH="$work/bin:$PATH" XDG_RUNTIME_DIR="$work/run"
cd "$work" || exit 2
failed=0
passed=0

# after WORD...: what bash offers for the last word, one a line, sorted
after() {
    bash --norc -c 'source "$1" || exit 9
        shift
        complete -p jzx >/dev/null || exit 9
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _jzx
        [ "${#COMPREPLY[@]}" -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' \
        bash "$root/contrib/completion/jzx.bash" "$@" 2>"$work/err" | sort -u
}

zsh_after() {
    # shellcheck disable=SC2016
    zsh -f -c '
        _describe() { print -rl -- "${(@P)4%%:*}" }
        compadd() { print -rl -- "${(@P)2}" }
        _files() { :; }
        source_it() { source "$1" }
        file=$1
        shift
        words=("$@") CURRENT=$#
        source_it $file' zsh "$root/contrib/completion/_jzx" "$@" 2>"$work/err" | sort -u
}

same() { # FACT EXPECTED GOT
    if [ "$2" = "$3" ] && [ -n "$2" ] && [ ! -s "$work/err" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED %s\nexpected:\n%s\ngot:\n%s\n' "$1" "$2" "$3"
        cat "$work/err"
    fi
}

commands=$("$jzx" --help | awk '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 } inside { print $1 }' | sort)
[ "$(echo "$commands" | wc -l)" -gt 10 ] || {
    echo "the help of jzx names no commands: $commands"
    exit 1
}
options_of() { # COMMAND
    "$jzx" "$1" --help | awk '/^Options:/ { inside = 1; next } /^$/ { inside = 0 }
        inside { for (i = 1; i <= 2; i++) if ($i ~ /^--/) { sub(/,$/, "", $i); print $i; break } }' | sort
}

first=$(printf '%s\n--help\n--version\n' "$commands" | sort)
same "jzx completes every command" "$first" "$(after jzx '')"
same "a beginning completes to its command" doctor "$(after jzx doc)"
for command in $commands; do
    [ "$command" != manifest ] || continue
    same "jzx $command completes every option" "$(options_of "$command")" "$(after jzx "$command" -)"
done
same "the beginning of an option completes to it" --sort "$(after jzx top --so)"
same "the order of top" mailbox "$(after jzx top --sort mai)"
if echo "$commands" | grep -qx manifest; then
    : >store.mf
    same "manifest completes files" store.mf "$(after jzx manifest sto)"
    # shellcheck disable=SC2046 # words
    same "then its subcommands" "$(printf '%s\n' backup check chunks dump jobs stats)" "$(after jzx manifest store.mf '')"
    for word in $(after jzx manifest store.mf ''); do
        "$jzx" manifest --help | grep -q "^  $word" || same "$word is a subcommand" "$word" ""
    done
    same "then what jobs can do" "$("$jzx" manifest --help | sed -n 's/^  jobs \([a-z]*\) .*/\1/p' | sort)" \
        "$(after jzx manifest store.mf jobs '')"
    same "and their options" --state "$(after jzx manifest store.mf jobs list --st)"
fi
program=completed-$$
: >ready
"$fixture" "$program" >ready 2>&1 &
pid=$!
until grep -q '^ready' ready; do
    kill -0 "$pid" 2>/dev/null || {
        cat ready
        exit 1
    }
    sleep 0.05
done
same "a program that runs" "$program" "$(after jzx tree "${program%?}")"
same "the same behind -p" "$program" "$(after jzx stop -p "$program")"
same "an actor of that program" worker-1 "$(after jzx stop -p "$program" worker-1)"
same "an actor behind --under" worker-1 "$(after jzx tree -p "$program" --under worker-1)"

if command -v zsh >/dev/null; then
    same "zsh completes every command" "$first" "$(zsh_after jzx '')"
    for command in $commands; do
        [ "$command" != manifest ] || continue
        same "zsh completes every option of $command" "$(options_of "$command")" "$(zsh_after jzx "$command" -)"
    done
    same "zsh knows the orders of top" "$(after jzx top --sort '')" "$(zsh_after jzx top --sort '')"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
