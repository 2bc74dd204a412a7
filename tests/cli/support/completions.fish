# completions.fish COMPLETION LINE...: what fish offers for each line, one entry per line, behind "== LINE".
source $argv[1]
for line in $argv[2..]
  echo "== $line"
  complete -C $line | string replace -r '\t.*' ''
end
