# What zsh offers: completions.zsh FILE LINE..., where FILE is the completion of dlock. For each line "== LINE", and each
# candidate on a line of its own. Completion works at a terminal only, so an interactive zsh is driven at one.
zmodload zsh/zpty
setopt extended_glob
export TERM=dumb
file=$1
shift
settings=$(mktemp)
trap 'rm -f $settings' EXIT
cat >$settings <<END
PROMPT= RPROMPT=
autoload -U compinit
compinit -u -D
_dlock() { source ${(q)file} }
compdef _dlock dlock
compadd() {
  local -a found
  builtin compadd -O found "\$@"
  print -rl -- "<"\${^found}">"
  builtin compadd "\$@"
}
zstyle ':completion:*' list-prompt ''
capture() { print from-here; _main_complete; print to-here; BUFFER= }
zle -C capture-them list-choices capture
bindkey '^T' capture-them
bindkey '^U' kill-whole-line
print ready
END
zpty shell zsh -f -i
zpty -w shell "source $settings"
zpty -r -m shell seen '*ready*'
for line; do
  zpty -w -n shell $'\x15'"$line"$'\x14'
  zpty -r -m shell seen '*from-here*to-here*'
  print -r -- "== $line"
  for word in ${(f)seen}; do
    [[ $word == (#b)'<'(?*)'>'* ]] && print -r -- $match[1]
  done
done
