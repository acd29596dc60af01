# SPDX-License-Identifier: MIT
# bash completion for tulle.  Words come from the command itself, so that they cannot be out of date.

_tulle() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local tulle=${COMP_WORDS[0]} words
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$("$tulle" help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
        return
    fi
    case $prev in
    --type) words="f32 f64 cf32 cf64" ;;
    --index) words="i32 i64" ;;
    --policy | -p | --policies)
        words=$("$tulle" explain --list 2>/dev/null | sed -nE '/^policies/,/^$/s/^  ([^ ]+).*/\1/p')
        if [ "$command" = bench ]; then words="all $words"; fi
        if [ "$command" = spmm ]; then words="auto ellr"; fi
        ;;
    --accumulator)
        words=$("$tulle" explain --list 2>/dev/null | sed -nE '/^accumulators/,/^$/s/^  ([^ ]+).*/\1/p')
        ;;
    --device | -d) words=$("$tulle" devices 2>/dev/null | sed -nE '/^$/q;s/^([^ ]+) .*/\1/p') ;;
    --threads | -t | --memory-limit | -m | --repeat | -r | --size | -s | --columns | -n | --seed | --alpha | --beta | --shape) return ;;
    --output | -o | --y)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    *)
        if [ "$command" = help ]; then
            words=$("$tulle" help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p')
        elif [[ $cur == -* ]]; then
            words=$("$tulle" help "$command" 2>/dev/null | sed -nE 's/^ +(-[a-z], )?(--[a-z0-9-]+).*/\2/p')
        else
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            if [ "$command" = bench ] && [ "$COMP_CWORD" -eq 2 ]; then     # other benches stand in the help as "word: ..."
                words=$("$tulle" help bench 2>/dev/null | sed -nE 's/^([a-z]+): .*/\1/p')
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$cur")
            fi
            if [ -n "$cur" ]; then
                words=$("$tulle" gen --list 2>/dev/null | sed -nE 's/^([^ ]+) .*/\1/p')
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$cur")
            fi
            return
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _tulle tulle
