# SPDX-License-Identifier: MIT
# fish completion for tulle.  Words come from the command itself, so that they cannot be out of date.

function __tulle_commands
    tulle help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)' '$1\t$2'
end

function __tulle_options
    set -l command (commandline -opc)[2]
    tulle help $command 2>/dev/null | string replace -rf '^ +(?:-[a-z], )?(--[a-z0-9-]+)(?: [A-Z]+)? +(.*)' '$1\t$2'
end

function __tulle_recipes
    tulle gen --list 2>/dev/null | string replace -rf '^([^ ]+) +(.*)' '$1\t$2'
end

function __tulle_benches    # they stand in the help as "word: ..."
    tulle help bench 2>/dev/null | string replace -rf '^([a-z]+): (.*)' '$1\t$2'
end

function __tulle_listed     # __tulle_listed policies|accumulators
    tulle explain --list 2>/dev/null | awk -v head=$argv[1] '
        /^[a-z]/ { on = index($0, head) == 1; next }
        on && NF { name = $1; $1 = ""; print name "\t" substr($0, 2) }'
end

function __tulle_policies
    switch (commandline -opc)[2]
        case spmm
            printf '%s\n' auto ellr
        case bench
            printf '%s\n' all
            __tulle_listed policies
        case '*'
            __tulle_listed policies
    end
end

function __tulle_devices
    tulle devices 2>/dev/null | sed '/^$/,$d' | string replace -rf '^([^ ]+) +(.*)' '$1\t$2'
end

function __tulle_needs_command
    test (count (commandline -opc)) -eq 1
end

function __tulle_after
    set -l last (commandline -opc)[-1]
    contains -- $last $argv
end

function __tulle_operand
    not __tulle_needs_command
    and not __tulle_after help --type --index --policy -p --policies --accumulator --device -d --threads -t \
        --memory-limit -m --repeat -r --size -s --output -o --columns -n --seed --alpha --beta --shape --y
end

complete -c tulle -f -n __tulle_needs_command -a '(__tulle_commands)'
complete -c tulle -f -n '__tulle_after help' -a '(__tulle_commands)'
complete -c tulle -f -n '__tulle_after --type' -a 'f32 f64 cf32 cf64'
complete -c tulle -f -n '__tulle_after --index' -a 'i32 i64'
complete -c tulle -f -n '__tulle_after --policy -p --policies' -a '(__tulle_policies)'
complete -c tulle -f -n '__tulle_after --accumulator' -a '(__tulle_listed accumulators)'
complete -c tulle -f -n '__tulle_after --device -d' -a '(__tulle_devices)'
complete -c tulle -f -n '__tulle_after --threads -t --memory-limit -m --repeat -r --size -s --columns -n --seed --alpha --beta --shape'
complete -c tulle -F -n '__tulle_after --output -o --y'
complete -c tulle -F -n __tulle_operand -a '(__tulle_options)'
complete -c tulle -n __tulle_operand -a '(__tulle_recipes)'
complete -c tulle -n '__tulle_after bench' -a '(__tulle_benches)'
