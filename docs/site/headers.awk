# Shows Doxygen the comments of a public header as they are meant.
#   - The comment at the top is about the file, and about the class that its first line names, unless that has its own.
#   - A comment is about all functions that follow without a blank line, and one below "// --- Title ---" about those
#     functions up to the next title that have none.
#   - Lines that are indented by two blanks or more are code or a table.
#   - A comment behind a member is about that member.
#   - What is private is left out.
{ line[NR] = $0 }

function indent_of(text) { match(text, /^ */); return RLENGTH }
function is_comment(text) { return text ~ /^ *\/\// }

# The comment that ends with line n, as lines for Doxygen.
function translated(from, to, indent,   i, j, text, out, list, code, part, parts) {
  out = ""; list = code = 0
  for (i = from; i <= to; i++) {
    text = line[i]
    sub(/^ *\/\/ ?/, "", text)
    if (text ~ /^NOLINT/) continue
    if (text ~ /^ *- /) list = 1
    else if (text !~ /^ /) list = 0
    if (text ~ /^  / && !list) {
      if (!code && i > from) out = out "///\n"
      code = 1
      text = "    " text
    } else if (text != "") {
      code = 0
      parts = split(text, part, "`")  # what is between two of these is shown as it is
      text = ""
      for (j = 1; j <= parts; j++) {
        if (j % 2) gsub(/[<>\\@#]/, "\\\\&", part[j])
        text = text (j > 1 ? "`" : "") part[j]
      }
    }
    out = out sprintf("%*s/// %s\n", indent, "", text)
  }
  return out
}

# Something that can have a comment begins here.
function declares(text) { return text !~ /^ *(public:|private:|protected:|}|$|#|\/\/|: )/ }
function is_function(i,   text) {
  text = line[i]
  while (text !~ /[;{]/ && i < NR) text = text line[++i]
  sub(/[;{].*/, "", text)
  return text ~ /\(/ && text !~ /^ *using /
}

# Copies and moves, and what nobody can call.
function is_special(text,   name) {
  name = text
  sub(/\(.*/, "", name)
  sub(/^ */, "", name)
  return text ~ /operator=\(|~|= delete;|= default;/ || index(text, name "(" name "&") || index(text, "(const " name "&")
}

END {
  top = 0
  while (is_comment(line[top + 1])) top++
  printf "/// \\file\n%s\n", translated(1, top, 0)
  about = section = ""
  for (i = top + 1; i <= NR; i++) {
    if (hidden) {
      indent = indent_of(line[i])
      if (line[i] ~ /^ *(public|protected):/ && indent == hidden_indent) hidden = 0
      if (line[i] ~ /^ *};/ && indent < hidden_indent) hidden = 0
      if (hidden) continue
    }
    if (line[i] ~ /^ *private:/) {
      hidden = 1
      hidden_indent = indent_of(line[i])
      about = section = ""
      fresh = 0
      continue
    }
    if (line[i] ~ /^ *\/\/ ---/) {  # a title, and what is said below it
      indent = indent_of(line[i])
      for (j = i + 1; is_comment(line[j]); j++) {}
      section = j > i + 1 && line[j] ~ /^ *$/ ? translated(i + 1, j - 1, indent) : ""
      section_indent = indent
      if (section != "") i = j - 1
      continue
    }
    if (line[i] ~ /^ *\/\/ NOLINT/) continue
    if (is_comment(line[i])) {
      for (j = i; is_comment(line[j + 1]) && line[j + 1] !~ /^ *\/\/ ---/; j++) {}
      about = translated(i, j, indent_of(line[i]))
      about_indent = indent_of(line[i])
      printf "%s", about
      fresh = 1
      i = j
      continue
    }
    if (line[i] ~ /^ *$/) about = ""
    if (line[i] ~ /^ *(public:|private:|protected:)/ || line[i] ~ /^}/) section = ""
    text = line[i]
    if (!fresh && declares(text) && !inside) {
      indent = indent_of(text)
      if (is_special(text)) {}
      else if (about != "" && indent == about_indent && is_function(i)) printf "%s", about
      else if (section != "" && indent == section_indent && is_function(i)) printf "%s", section
      else if (text ~ /^(class|struct) [^;]*$/) {
        name = text
        sub(/^(class|struct) (\[\[nodiscard\]\] )?/, "", name)
        sub(/[^A-Za-z_].*/, "", name)
        if (name != "" && line[1] ~ ("(^|[^A-Za-z])" name "([^A-Za-z]|$)")) printf "%s", translated(1, top, 0)
      }
    }
    if (declares(text)) fresh = 0
    # Whether the next line goes on with this one, which is no place for a comment.
    code = text
    sub(/ *\/\/ .*/, "", code)
    inside = code !~ /^ *$/ && code !~ /([;{},]|public:|private:|protected:)$/ && code !~ /^ *#/
    if (text ~ /[;,{a-z] +\/\/ / && text !~ /NOLINT/ && text !~ /^ *#/) {
      sub(/ +\/\/ /, "  ///< ", text)
    }
    print text
  }
}
