# fish completion for dlock

function __dlock_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (command $words[1] complete -- $words[2..-1] 2>/dev/null </dev/null)
    switch "$found[1]"
        case files
            __fish_complete_path (commandline -ct)
        case directories
            __fish_complete_directories (commandline -ct)
        case processes
            __fish_complete_pids
        case command
            __fish_complete_subcommand --fcs-skip=(contains -i -- -- $words)
        case words
            printf '%s\n' $found[2..-1]
    end
end

complete -c dlock -f -a '(__dlock_complete)'
