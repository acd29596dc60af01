# SPDX-License-Identifier: MIT
#
# awk -v out=FOLDER -v date="November 16, 2026" -f man3.awk HEADER... - manual pages of section 3 from the headers:
# FOLDER/NAME.3 for every function, and FOLDER/tulle.3, which lists them.
#
# A function's text is the comment that stands directly above it; its first sentence is the line in NAME.  There is one
# comment, and nothing behind the function.  A structure that the function takes is shown as it stands in the header.
# tests/check_manuals.sh sees that every function has a page and that groff has no complaint.

function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }

# A line of text that troff takes as it is; "text" for a literal block, where blanks count.
function plain(s) {
    gsub(/\\/, "\\e", s)
    if (s ~ /^[.']/) s = "\\\\\\&" s
    gsub(/\\\\\\&/, "\\\\\\&", s)
    return s
}

# What a comment says, without its marks; lines are kept, "\n" between them.
function words(s) {
    sub(/^[ \t]*\/\*+ ?/, "", s)
    sub(/[ \t]*\*+\/[ \t]*$/, "", s)
    gsub(/\n[ \t]*\* ?/, "\n", s)
    return s
}

function emit(file, s,    n, line, i, literal) {
    n = split(s, line, "\n")
    literal = 0
    for (i = 1; i <= n; i++) {
        if (line[i] ~ /^    / && !literal) { print ".Bd -literal -offset indent" > file; literal = 1 }
        if (line[i] !~ /^    / && literal && trim(line[i]) != "") { print ".Ed" > file; print ".Pp" > file; literal = 0 }
        if (literal && trim(line[i]) == "" && line[i + 1] !~ /^    /) continue
        if (literal) { sub(/^    /, "", line[i]); print trim(line[i]) == "" ? "\\&" : plain(line[i]) > file }
        else if (trim(line[i]) == "") { if (i < n && line[i + 1] !~ /^    /) print ".Pp" > file }
        else sentences(file, trim(line[i]))
    }
    if (literal) print ".Ed" > file
}

# A sentence begins a line: troff spaces them.
function sentences(file, s,    at) {
    while ((at = index(s, ".  ")) > 0) { print plain(substr(s, 1, at)) > file; s = trim(substr(s, at + 1)) }
    print plain(s) > file
}

# The first sentence, without its period and not too long.
function brief(s,    at) {
    gsub(/\n/, " ", s)
    at = index(s, ". ");
    if (at > 0) s = substr(s, 1, at - 1)
    sub(/\.$/, "", s)
    if (length(s) > 70 && match(s, /; |: | \(/) && RSTART > 12) s = trim(substr(s, 1, RSTART - 1))
    return trim(s)
}

# "TULLE_API tulle_status tulle_x(tulle_ctx *ctx, int n);" into type, name and arguments
function declare(s,    open, head) {
    in_mpi = s ~ /^TULLE_MPI_API/
    sub(/^TULLE_(MPI_)?API[ \t]+/, "", s)
    gsub(/[ \t\n]+/, " ", s)
    open = index(s, "(")
    head = substr(s, 1, open - 1)
    match(head, /tulle_[a-z0-9_]+$/)
    name = substr(head, RSTART)
    type[name] = trim(substr(head, 1, RSTART - 1))
    list = substr(s, open + 1)
    sub(/\) *;.*$/, "", list)
    arguments[name] = list
    order[++functions] = name
    header[name] = file_name
    library[name] = in_mpi ? "tulle_mpi" : "tulle"
    section[name] = part
}

function page(name,    file, n, arg, i, first, s) {
    file = out "/" name ".3"
    print ".\\\" made from " header[name] " by scripts/man3.awk" > file
    print ".Dd " date > file
    print ".Dt " toupper(name) " 3\n.Os\n.Sh NAME\n.Nm " name "\n.Nd " plain(brief(told[name])) > file
    print ".Sh LIBRARY\nlib" library[name] ",\n.Fl l Ns " library[name] > file
    print ".Sh SYNOPSIS\n.In " header[name] "\n.Ft \"" type[name] "\"\n.Fo " name > file
    n = split(arguments[name], arg, /, */)
    for (i = 1; i <= n; i++) print ".Fa \"" trim(arg[i]) "\"" > file
    print ".Fc\n.Sh DESCRIPTION" > file
    emit(file, told[name])
    first = 1
    for (i = 1; i <= structures; i++) {
        s = structure[i]
        if (s == "tulle_status" || (type[name] " " arguments[name]) !~ ("(^|[^a-z_])" s "([^a-z_]|$)")) continue
        if (first) print ".Sh TYPES" > file
        first = 0
        if (about[s] != "") emit(file, about[s])
        print ".Bd -literal" > file
        m = split(definition[s], line, "\n")
        for (k = 1; k <= m; k++) print line[k] == "" ? "\\&" : plain(line[k]) > file
        print ".Ed" > file
    }
    if (type[name] == "tulle_status") {
        print ".Sh RETURN VALUES\n.Dv TULLE_OK ,\nor another status of" > file
        print ".Xr tulle 3 ;\nthen" > file
        print ".Xr tulle_ctx_error 3\nhas the sentence that says what was wrong." > file
    }
    print ".Sh SEE ALSO" > file
    first = ".Xr tulle 1 ,\n.Xr tulle 3"
    s = ""
    for (i = 1; i <= functions; i++)
        if (section[order[i]] == section[name] && order[i] != name) s = s " " order[i]
    n = split(trim(s), arg, " ")
    sort(arg, n)
    for (i = 1; i <= n; i++) first = first " ,\n.Xr " arg[i] " 3"
    print first > file
    close(file)
}

function sort(a, n,    i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
}

function overview(    file, i, j) {
    file = out "/tulle.3"
    print ".\\\" made from tulle.h by scripts/man3.awk\n.Dd " date "\n.Dt TULLE 3\n.Os\n.Sh NAME\n.Nm tulle" > file
    print ".Nd products of sparse matrices" > file
    print ".Sh LIBRARY\nlibtulle,\n.Fl l Ns tulle\n.Sh SYNOPSIS\n.In tulle.h\n.Sh DESCRIPTION" > file
    sub(/^[^\n]*\n\n[^\n]*\n\n/, "", head)      # the licence, and the name of the file
    emit(file, head)
    print ".Ss Status\nA function that can fail returns one of these:\n.Bl -tag -width TULLE_EOVERFLOW" > file
    for (i = 1; i <= statuses; i++) print ".It Dv " status_name[i] " Pq " status_code[i] "\n" status_text[i] > file
    print ".El" > file
    for (i = 1; i <= parts; i++) {
        shown = 0
        for (j = 1; j <= functions; j++) {
            if (section[order[j]] != part_name[i]) continue
            if (!shown) {
                print ".Ss " toupper(substr(part_name[i], 1, 1)) substr(part_name[i], 2) > file
                if (general[part_name[i]] != "") emit(file, general[part_name[i]])
                print ".Bl -tag -width 4n" > file
            }
            shown = 1
            print ".It Xr " order[j] " 3\n" plain(brief(told[order[j]])) > file
        }
        if (shown) print ".El" > file
    }
    print ".Sh SEE ALSO\n.Xr tulle 1" > file
    close(file)
}

FNR == 1 { file_name = FILENAME; sub(/.*\//, "", file_name); text = held = ""; state = ""; part = file_name
           if (!(part in seen)) { seen[part] = 1; part_name[++parts] = part } }

# ---- inside something that has not ended
state == "comment" {
    text = text "\n" $0
    if ($0 ~ /\*\//) { state = ""; hold(words(text)); if (head == "") head = held }
    next
}
state == "function" {
    text = text "\n" $0
    if ($0 ~ /;/) { state = ""; finish(text) }
    next
}
state == "structure" {
    text = text "\n" $0
    if ($0 ~ /^} tulle_/) {
        state = ""
        s = $0
        sub(/^} /, "", s)
        sub(/;.*/, "", s)
        structure[++structures] = s
        definition[s] = text
        about[s] = held
        held = ""
    }
    next
}

# ---- what begins in this line
/^\/\* ---+ / {
    part = $0
    gsub(/^\/\* -+ | *\*\/$/, "", part)
    if (!(part in seen)) { seen[part] = 1; part_name[++parts] = part }
    held = ""
    next
}
/^\/\*/ {
    text = $0
    if ($0 ~ /\*\//) hold(words(text))
    else state = "comment"
    next
}
/^TULLE_(MPI_)?API / {
    text = $0
    if ($0 ~ /;/) finish(text)
    else state = "function"
    next
}
/^typedef struct tulle_[a-z_]* \{/ || /^typedef enum tulle_[a-z_]* \{$/ { text = $0; state = "structure"; next }
/^    X\(/ {
    line_ = $0
    match(line_, /"[^"]*"/)
    status_text[++statuses] = substr(line_, RSTART + 1, RLENGTH - 2)
    gsub(/^    X\(|".*/, "", line_)
    split(line_, both, ",")
    status_name[statuses] = "TULLE_" trim(both[1])
    status_code[statuses] = trim(both[2])
}
# An empty line ends what a comment is about; one that stands alone is about its part of the header.
/^[ \t]*$/ { if (held != "" && !(part in general) && held != head) general[part] = held; held = "" }

function wrong(s) { print file_name ":" FNR ": " s > "/dev/stderr" }

function hold(s) {
    if (held != "") wrong("two comments, one below the other: one says it all, its first sentence in short")
    held = s
}

function finish(s) {
    if (s ~ /;.*\/\*/) wrong("a comment behind a function: it belongs above it")
    declare(s)
    told[name] = held
    held = ""
    if (told[name] == "") wrong(name " has no comment of its own")
}

END {
    for (i = 1; i <= functions; i++) page(order[i])
    overview()
    print functions " pages"
}
