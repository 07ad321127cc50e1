# Completion of jzx for bash. Installed as share/bash-completion/completions/jzx.
#
# Commands, options and their values come from the help texts of the jzx that is completed, so there is no list here that
# could be out of date. Programs and actors are asked for by `jzx ps` and `jzx tree`.

# The words of column one in the help text: __jzx_help COMMAND...
__jzx_help() {
    command "$@" --help 2>/dev/null
}

# Names that need no quotes; any other is left out.
__jzx_names() { # MEMBER
    grep -o "\"$1\":\"[^\"]*\"" | sed "s/^\"$1\":\"//; s/\"\$//" | grep -E '^[A-Za-z0-9_.:@+/-]+$' | sort -u
}

__jzx_fill() { # WORDS
    # shellcheck disable=SC2207 # no word has a blank
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

__jzx_manifest() {
    local help words=
    if ((COMP_CWORD == at + 1)); then
        if [[ $cur == -* ]]; then
            __jzx_fill "--help"
        else
            compopt -o filenames 2>/dev/null
            # shellcheck disable=SC2207
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        return
    fi
    help=$(__jzx_help "$jzx" manifest)
    if ((COMP_CWORD == at + 2)) && [[ $cur != -* ]]; then
        words=$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$help" | sort -u)
    elif [[ $cur == -* ]]; then
        words="--json --help $(__jzx_help "$jzx" manifest "${COMP_WORDS[@]:at+1:COMP_CWORD-at-1}" |
            sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')"
    elif [[ ${COMP_WORDS[at + 2]} == jobs ]] && ((COMP_CWORD == at + 3)); then
        words=$(sed -n 's/^  jobs \([a-z]*\) .*/\1/p' <<<"$help")
    elif [[ ${COMP_WORDS[at + 2]} == backup ]]; then
        compopt -o filenames 2>/dev/null
        # shellcheck disable=SC2207
        COMPREPLY=($(compgen -f -- "$cur"))
        return
    fi
    __jzx_fill "$words"
}

_jzx() {
    local jzx=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local at=1 help usage program=()
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        __jzx_fill "$(__jzx_help "$jzx" |
            sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p; s/^  \(--[a-z]*\) .*/\1/p')"
        return
    fi
    if [[ ${COMP_WORDS[at]} == manifest ]]; then
        __jzx_manifest
        return
    fi
    help=$(__jzx_help "$jzx" "${COMP_WORDS[at]}")
    usage=${help%%$'\n'*}
    case $prev in
    -p | --program)
        __jzx_fill "$(command "$jzx" ps --json 2>/dev/null | __jzx_names name)"
        return
        ;;
    --sort)
        __jzx_fill "$(sed -n 's/^Orders: \(.*\)\.$/\1/p' <<<"$help" | tr -d ,)"
        return
        ;;
    --perfetto)
        compopt -o filenames 2>/dev/null
        # shellcheck disable=SC2207
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    --actor | --under) ;;
    --*)
        # An option that wants a value of its own.
        ! grep -qE "^  (-., )?$prev [A-Z]" <<<"$help" || return
        ;;
    esac
    if [[ $cur == -* ]]; then
        __jzx_fill "$(sed -n 's/^  \(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p' <<<"$help")"
        return
    fi
    if [[ $prev == --actor || $prev == --under || $usage == *' ACTOR'* ]]; then
        local i
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i - 1]} != -p && ${COMP_WORDS[i - 1]} != --program ]] || program=(-p "${COMP_WORDS[i]}")
        done
        __jzx_fill "$(command "$jzx" tree --once --json --limit 0 "${program[@]}" 2>/dev/null | __jzx_names name)"
    elif [[ $usage == *'[PROGRAM]'* ]]; then
        __jzx_fill "$(command "$jzx" ps --json 2>/dev/null | __jzx_names name)"
    fi
}

complete -F _jzx jzx
