# fish completion for dlock

# The first word that is no option.
function __dlock_verb
    set -l words (commandline -opc)
    for word in $words[2..-1]
        string match -q -- '-*' $word; and continue
        echo $word
        return
    end
end

# Whether that verb is being completed, and the command behind "--" has not begun.
function __dlock_is
    contains -- -- (commandline -opc); and return 1
    set -l verb (__dlock_verb)
    test -n "$verb"; and contains -- $verb $argv
end

function __dlock_needs_verb
    test -z (__dlock_verb)""
end

# The value of an option on the command line.
function __dlock_value
    set -l words (commandline -opc)
    for i in (seq (count $words))
        if string match -q -- "--$argv[1]=*" $words[$i]
            string replace -- "--$argv[1]=" '' $words[$i]
        else if test "$words[$i]" = "--$argv[1]"; and test $i -lt (count $words)
            echo $words[(math $i + 1)]
        end
    end
end

# The names of locks of that kind that the service on the command line (or the default one) knows.
function __dlock_names
    set -l options
    set -l url (__dlock_value url)
    test -n "$url"; and set -a options --url $url[-1]
    set -l kind $argv[1] (__dlock_value kind)
    test -n "$(__dlock_value permits)"; and set kind semaphore
    for word in (commandline -opc)
        contains -- $word --shared --exclusive; and set kind read-write
    end
    test -n "$kind"; and set -a options --kind $kind[1]
    dlock list --names $options 2>/dev/null </dev/null
end

function __dlock_schemes
    dlock backends 2>/dev/null </dev/null | string replace -r ' +' \t
end

complete -c dlock -f
complete -c dlock -s h -l help -n 'not contains -- -- (commandline -opc)' -d 'Explain, and exit'
complete -c dlock -l version -n __dlock_needs_verb -d 'Print the version and exit'

complete -c dlock -n __dlock_needs_verb -a run -d 'Run a command while holding a lock, or several'
complete -c dlock -n __dlock_needs_verb -a hold -d 'Hold a lock, or several, until a signal'
complete -c dlock -n __dlock_needs_verb -a elect -d 'Run a command while leading an election, again and again'
complete -c dlock -n __dlock_needs_verb -a leader -d 'Show who leads an election'
complete -c dlock -n __dlock_needs_verb -a status -d 'Show who holds a lock'
complete -c dlock -n __dlock_needs_verb -a list -d 'Show all locks that the service knows'
complete -c dlock -n __dlock_needs_verb -a break -d 'Take a lock away from all who hold it'
complete -c dlock -n __dlock_needs_verb -a forget -d 'Remove what the service remembers of names no longer used'
complete -c dlock -n __dlock_needs_verb -a doctor -d 'Reach the service, show what it guarantees'
complete -c dlock -n __dlock_needs_verb -a init -d 'Make what locks need in the service'
complete -c dlock -n __dlock_needs_verb -a backends -d 'Show the kinds of services'
complete -c dlock -n __dlock_needs_verb -a bench -d 'Measure and compare lock services'
complete -c dlock -n __dlock_needs_verb -a torture -d 'Break everything around the locks'
complete -c dlock -n __dlock_needs_verb -a help -d 'Explain a command'

# What the verbs have in common.
set -l askers run hold elect leader status list break forget doctor init bench torture
complete -c dlock -n "__dlock_is $askers" -l url -x -a '(__dlock_schemes)' -d 'The lock service'
complete -c dlock -n '__dlock_is run hold' -l shared -d 'A read-write lock: hold it together with others'
complete -c dlock -n '__dlock_is run hold' -l exclusive -d 'A read-write lock: hold it alone'
complete -c dlock -n '__dlock_is run hold' -l permits -x -d 'A semaphore: at most N hold it at the same time'
complete -c dlock -n '__dlock_is run hold elect' -l wait -x -a '1s 10s 1m 5m 1h' -d 'Wait at most this long'
complete -c dlock -n '__dlock_is run hold elect' -l connect-wait -x -a '1s 10s 1m 5m 1h' \
    -d 'Exit with 69 if the service is not reached within this time'
complete -c dlock -n '__dlock_is run hold elect' -l try -d 'Do not wait'
complete -c dlock -n '__dlock_is run hold elect' -l lease -x -a '10s 30s 1m' \
    -d 'How long the service keeps it if it does not hear from dlock'
complete -c dlock -n '__dlock_is run elect' -l kill-after -x -a '0 1s 5s 30s' -d 'Time between TERM and KILL'
complete -c dlock -n '__dlock_is run hold elect' -l metrics -r -F -d 'Write gauges of the last run to this file'
complete -c dlock -n '__dlock_is run hold elect leader' -s q -l quiet -d 'Say nothing but errors'
complete -c dlock -n '__dlock_is run hold elect leader' -s v -l verbose -d 'Also report normal events'
complete -c dlock -n '__dlock_is status list break forget' -l kind -x -a 'lock read-write semaphore election' \
    -d 'Of this kind'
complete -c dlock -n '__dlock_is hold leader status list break forget doctor init backends' -l json -d 'Print JSON'
complete -c dlock -n '__dlock_is run hold status break forget' -a '(__dlock_names)'
complete -c dlock -n '__dlock_is elect leader' -a '(__dlock_names election)'

complete -c dlock -n '__dlock_is run' -l hold-at-least -x -a '1s 10s 1m 5m 1h' -d 'Keep the lock at least this long'
complete -c dlock -n '__dlock_is run' -l conflict-exit-code -x -d 'Exit with this if another client has it'
complete -c dlock -n '__dlock_is run' -l json -r -F -d 'Where what became of it goes, as JSON'
complete -c dlock -n '__dlock_is hold' -l until-eof -d 'Free it when standard input ends, too'
complete -c dlock -n '__dlock_is hold' -l parent -x -a '(__fish_complete_pids)' -d 'Free it when this process ends, too'
complete -c dlock -n '__dlock_is elect' -l value -x -d 'What "dlock leader" shows while this one leads'
complete -c dlock -n '__dlock_is elect' -l once -d 'Lead once'
complete -c dlock -n '__dlock_is leader' -l follow -d 'Print each change, until a signal'
complete -c dlock -n '__dlock_is status' -l exit-code -d 'Exit with 1 if it is held'
complete -c dlock -n '__dlock_is list' -l held -d 'Only those that are held'
complete -c dlock -n '__dlock_is list' -l names -d 'Print the names alone'
complete -c dlock -n '__dlock_is break' -l yes -d 'Really do it'
complete -c dlock -n '__dlock_is forget' -l idle -x -a '1d 7d 30d 365d' -d 'All names that nobody has taken for so long'
complete -c dlock -n '__dlock_is bench' -l scenario -x \
    -a 'latency throughput contention recovery holding distance mix sharing' -d 'Measure only this'
complete -c dlock -n '__dlock_is bench' -l quick -d 'A short run, for a first impression'
complete -c dlock -n '__dlock_is bench' -l rate -x -d 'Let acquires arrive at this rate a second'
complete -c dlock -n '__dlock_is bench' -l html -r -F -d 'Where the report goes'
complete -c dlock -n '__dlock_is bench' -l json -r -F -d 'Where all figures go'
complete -c dlock -n '__dlock_is bench' -l compare -r -F -d 'Say what changed from one --json file to another'
complete -c dlock -n '__dlock_is torture' -l minutes -x -d 'For how long things are broken'
complete -c dlock -n '__dlock_is torture' -l seed -x -d 'Break the same things in the same order'
complete -c dlock -n '__dlock_is torture' -l workers -x -d 'How many processes contend'
complete -c dlock -n '__dlock_is torture' -l kind -x -a 'lock read-write semaphore' -d 'Of which kind the locks are'
complete -c dlock -n '__dlock_is torture' -l directory -x -a '(__fish_complete_directories)' -d 'Where the history goes'
complete -c dlock -n '__dlock_is torture' -l check -x -a '(__fish_complete_directories)' -d 'Check an earlier history'

# The command of "run" and "elect".
function __dlock_runs_command
    contains -- -- (commandline -opc); and contains -- (__dlock_verb) run elect
end
complete -c dlock -n __dlock_runs_command -a '(__fish_complete_subcommand --fcs-skip=(contains -i -- -- (commandline -opc)))'
