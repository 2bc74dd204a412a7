# completions.bash COMPLETION LINE...: what bash offers for each line, one entry per line, behind "== LINE".
source "$1"
shift
for line in "$@"; do
  # As readline splits it.
  read -ra raw <<<"$line"
  COMP_LINE=$line COMP_WORDS=()
  for word in "${raw[@]}"; do
    while [[ $word =~ ^([^:=@]*)([:=@]+)(.*)$ ]]; do
      [[ ${BASH_REMATCH[1]} ]] && COMP_WORDS+=("${BASH_REMATCH[1]}")
      COMP_WORDS+=("${BASH_REMATCH[2]}")
      word=${BASH_REMATCH[3]}
    done
    [[ $word ]] && COMP_WORDS+=("$word")
  done
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _dlock
  printf '%s\n' "== $line" "${COMPREPLY[@]}"
done
