# SPDX-License-Identifier: MIT
# strip.awk - C sources without their comments and without what stands in quotes, each line as
# file:number:text.
FNR == 1 { inside = 0 }
{
    out = ""
    line = $0
    while (length(line)) {
        if (inside) {
            at = index(line, "*/")
            if (!at) { line = ""; break }
            line = substr(line, at + 2)
            inside = 0
            continue
        }
        if (!match(line, /\/\*|\/\/|"|'/)) { out = out line; break }
        token = substr(line, RSTART, RLENGTH)
        out = out substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        if (token == "//") break
        if (token == "/*") { out = out " "; inside = 1; continue }
        # a literal: up to the same quote, a backslash hides what follows it
        out = out token
        while (length(line)) {
            c = substr(line, 1, 1)
            line = substr(line, c == "\\" ? 3 : 2)
            if (c == token) break
        }
        out = out token
    }
    print FILENAME ":" FNR ":" out
}
