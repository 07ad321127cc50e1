# The work of tools/man: reads core/src/base/error.c, the public headers and the pages, in this order.

function complain(place, text) {
    print place ": " text | "cat 1>&2"
    failed = 1
}

# --- What the headers say -----------------------------------------------------------------------------------------

# Where the parenthesis that opens first is closed again; 0 while it is not.
function closed(s,    k, depth, ch) {
    for (k = 1; k <= length(s); k++) {
        ch = substr(s, k, 1)
        if (ch == "(") depth++
        if (ch == ")" && --depth == 0) return k
    }
    return 0
}

# "JZX_API jzx_err jzx_f(int a, int b)" becomes the .Ft, .Fo, .Fa and .Fc of its page.
function declare(s,    name, type, list, k, n, arg, depth, ch) {
    s = substr(s, 1, closed(s))
    gsub(/JZX_API|JZX_NODISCARD|JZX_NORETURN|static inline/, "", s)
    gsub(/[ \t]+/, " ", s)
    sub(/^ /, "", s)
    match(s, /jzx_[a-z0-9_]+\(/)
    name = substr(s, RSTART, RLENGTH - 1)
    type = substr(s, 1, RSTART - 1)
    list = substr(s, RSTART + RLENGTH)
    list = substr(list, 1, length(list) - 1) ","
    sub(/ $/, "", type)
    proto[name] = ".Ft " (type ~ / /? "\"" type "\"" : type) "\n.Fo " name
    for (k = 1; k <= length(list); k++) {
        ch = substr(list, k, 1)
        if (ch == "(") depth++
        if (ch == ")") depth--
        if (ch == "," && depth == 0) {
            sub(/^ /, "", arg)
            proto[name] = proto[name] "\n.Fa " (arg ~ / / ? "\"" arg "\"" : arg)
            arg = ""
        } else {
            arg = arg ch
        }
    }
    proto[name] = proto[name] "\n.Fc"
    home[name] = FILENAME
    sub(/.*include\//, "", home[name])
    place[name] = FILENAME ":" FNR
    order[++declared] = name
    if (type == "jzx_err") say_errors(name)
}

# "Errors: NO_MEMORY, BUSY (inside an actor), as jzx_send()." into says[name]: "NO_MEMORY\tBUSY (inside an actor)\t...".
function say_errors(name,    text, k, ch, depth, item) {
    text = comment
    if (!sub(/.*Errors: /, "", text)) {
        unsaid[name] = 1
        return
    }
    for (k = 1; k <= length(text); k++) {
        ch = substr(text, k, 1)
        if (ch == "(") depth++
        if (ch == ")") depth--
        if (depth == 0 && ch ~ /[,;.]/ && substr(text, k + 1, 1) ~ /^ ?$/) {
            sub(/^ /, "", item)
            says[name] = says[name] (says[name] == "" ? "" : "\t") item
            item = ""
            if (ch == ".") return
        } else {
            item = item ch
        }
    }
    complain(place[name], "The errors of " name "() do not end with a full stop.")
}

# The table of error.c, which may break a line between name and sentence.
FILENAME ~ /error\.c$/ {
    table = table " " $0
    while (match(table, /\{"JZX_[A-Z_]+", *"[^"]*"\}/)) {
        row = substr(table, RSTART + 2, RLENGTH - 4)
        table = substr(table, RSTART + RLENGTH)
        code = row
        sub(/".*/, "", code)
        sub(/^[^"]*", *"/, "", row)
        sentence[code] = row
    }
    next
}

FILENAME ~ /\.h$/ && /^ +JZX_(OK|ERR_[A-Z_]+) = -?[0-9]+/ {
    value[$1] = $3 + 0
    codes[++code_count] = $1
    next
}

FILENAME ~ /\.h$/ {
    if (in_comment || /^\/\*/) {
        line = $0
        in_comment = !sub(/ *\*\/ *$/, "", line)
        fresh = sub(/^\/\* ?/, "", line)
        sub(/^ \* ?/, "", line)
        comment = fresh ? line : comment (comment == "" || line == "" ? "" : " ") line
    } else if (in_declaration) {
        whole = whole " " $0
    } else if (/^(JZX_API|static inline) / && !/\\$/) {
        whole = $0
        in_declaration = 1
    } else if (/^[^ {}]/ || /^$/) {
        comment = ""
    }
    if (in_declaration && closed(whole)) {
        in_declaration = 0
        declare(whole)
    }
    next
}

# --- What the pages say -------------------------------------------------------------------------------------------

# One word of a sentence, with the macro that a page has for it.
function word(w,    tail) {
    if (match(w, /[.,;:]+$/)) {
        tail = " " substr(w, RSTART)
        w = substr(w, 1, RSTART - 1)
    }
    if (w ~ /^jzx_[a-z0-9_]+\(\)$/) return ".Fn " substr(w, 1, length(w) - 2) tail
    if (w ~ /^`[^`]+`$/) return ".Fa " substr(w, 2, length(w) - 2) tail
    if (w ~ /^[a-z_0-9]+\([1-8]\)$/) return ".Xr " substr(w, 1, index(w, "(") - 1) " " substr(w, length(w) - 1, 1) tail
    if (w ~ /^(NULL|(JZX|INT|UINT)[0-9]*_[A-Z0-9_]+)$/) return ".Dv " w tail
    if (w == "errno") return ".Va errno" tail
    return w substr(tail, 2)
}

# A sentence as lines of a page: a capital first, but not behind a colon, a full stop last, macros on lines of their own.
function lines(s, follows,    k, n, part, text, now, open) {
    if (follows && s ~ /^[A-Z][ a-z]/) s = tolower(substr(s, 1, 1)) substr(s, 2)
    if (!follows && s !~ /^(jzx_|JZX_|`)/) s = toupper(substr(s, 1, 1)) substr(s, 2)
    if (s !~ /\.$/) s = s "."
    n = split(s, part, " ")
    for (k = 1; k <= n; k++) {
        now = word(part[k])
        if (now ~ /^\./) {
            text = text (text == "" ? "" : "\n") now
            open = 0
        } else {
            text = text (text == "" ? "" : open ? " " : "\n") (!open && now ~ /^\047/ ? "\\&" : "") now
            open = now !~ /\.$/ # a sentence begins on its own line
        }
    }
    return text
}

# Errors of a function, with those of the functions that it names but not those in `without`, into got[code]: its
# sentences, each with a SUBSEP behind it.
function gather(name, depth, from, without,    n, k, item, code, text, but) {
    if (depth > 8) {
        complain(place[from], "The errors of " from "() are said in a circle.")
        return
    }
    n = split(says[name], item, "\t")
    for (k = 1; k <= n; k++) {
        if (item[k] ~ /^as jzx_[a-z0-9_]+\(\)( but [A-Z_]+( and [A-Z_]+)*)?$/) {
            code = substr(item[k], 4, index(item[k], "(") - 4)
            but = substr(item[k], index(item[k], ")") + 1)
            if (code in proto) gather(code, depth + 1, from, without but " ")
            else complain(place[name], "There is no " code "(), whose errors " name "() has.")
            continue
        }
        code = item[k]
        sub(/ .*/, "", code)
        text = substr(item[k], length(code) + 1)
        if ((code == "none" && text == "") || index(without, " " code " ")) continue
        if (!(("JZX_ERR_" code) in value)) {
            complain(place[name], "There is no JZX_ERR_" code ", which " name "() says it returns.")
            continue
        }
        if (text != "" && text !~ /^ \(.*\)$/) {
            complain(place[name], "After " code " of " name "() comes its sentence in parentheses, or nothing.")
            continue
        }
        if (!(code in got)) {
            got[code] = ""
            got_order[++got_count] = code
        }
        if (text != "") {
            text = substr(text, 3, length(text) - 3) SUBSEP
            if (index(SUBSEP got[code], SUBSEP text) == 0) got[code] = got[code] text
        }
    }
}

# The _sized form of an inline function, which a star leaves out.
function has_wrapper(name) {
    return sub(/_sized$/, "", name) && name in proto
}

# The functions that a directive names, or the page's own, into chosen[1..n]; the header may be "".
function choose(names, header,    n, k, i, want, count, pattern) {
    n = split(names, want, " ")
    if (n == 0) n = split(page_names, want, " ")
    for (k = 1; k <= n; k++) {
        pattern = want[k]
        if (sub(/\*$/, "", pattern)) {
            for (i = 1; i <= declared; i++)
                if (index(order[i], pattern) == 1 && !has_wrapper(order[i])) chosen[++count] = order[i]
        } else if (pattern in proto && (header == "" || home[pattern] == header)) {
            chosen[++count] = pattern
        } else if (names != "") {
            complain(FILENAME ":" FNR, "There is no " pattern "() in " header ".")
        }
    }
    return count + 0
}

function synopsis(rest,    header, n, k, text) {
    header = rest
    sub(/ .*/, "", header)
    n = choose(substr(rest, length(header) + 1), header)
    if (n == 0) complain(FILENAME ":" FNR, "No function of this page is in " header ".")
    text = included[FILENAME, header]++ ? "" : ".In " header "\n"
    for (k = 1; k <= n; k++) {
        text = text proto[chosen[k]] "\n"
        shown[FILENAME, chosen[k]] = 1
    }
    return text
}

function every_error(    k, text) {
    text = ".Bl -tag -width Ds\n"
    for (k = 1; k <= code_count; k++)
        text = text ".It Dv " codes[k] " (" value[codes[k]] ")\n" lines(sentence[codes[k]], 0) "\n"
    return text ".El\n"
}

# One entry for each code. Sentences that hold for the same functions stand together behind their names.
function errors(names,    n, k, i, m, c, f, text, all, part, who, list, count, seen, code, code_order, entry, base, group) {
    n = choose(names, "")
    for (k = 1; k <= n; k++) listed[chosen[k]] = k
    for (k = 1; k <= n; k++) {
        f = chosen[k]
        base = f
        if (sub(/_sized$/, "", base) && base in listed) continue
        if (!(f in says)) continue
        split("", got)
        got_count = 0
        gather(f, 1, f, "")
        if (got_count == 0) continue
        all = all f " "
        for (i = 1; i <= got_count; i++) {
            code = got_order[i]
            if (!(code in seen)) code_order[++count] = code
            m = split(got[code] == "" ? SUBSEP : got[code], part, SUBSEP)
            for (c = 1; c < m; c++) {
                if (part[c] == "") part[c] = sentence["JZX_ERR_" code]
                if (!((code, part[c]) in who)) seen[code] = seen[code] part[c] SUBSEP
                who[code, part[c]] = who[code, part[c]] f " "
            }
        }
    }
    split("", listed)
    if (count == 0) {
        complain(FILENAME ":" FNR, "No function of this page returns an error.")
        return ""
    }
    text = ".Bl -tag -width Ds\n"
    for (i = 1; i <= count; i++) {
        code = code_order[i]
        text = text ".It Dv JZX_ERR_" code "\n"
        m = split(seen[code], part, SUBSEP)
        split("", entry)
        list = ""
        for (c = 1; c < m; c++) {
            group = who[code, part[c]]
            if (!(group in entry)) list = list group SUBSEP
            entry[group] = entry[group] lines(part[c], group != all && entry[group] == "") "\n"
        }
        m = split(list, part, SUBSEP)
        for (c = 1; c < m; c++)
            text = text (c == 1 ? "" : ".br\n") (part[c] == all ? "" : functions(part[c])) entry[part[c]]
    }
    return text ".El\n"
}

function functions(list,    n, k, name, text) {
    n = split(list, name, " ")
    for (k = 1; k <= n; k++) text = text ".Fn " name[k] (k < n ? " ,\n" : " :\n")
    return text
}

# A function that NAME names has its prototype in the page.
function all_shown(page,    n, k, name) {
    n = split(page_names, name, " ")
    for (k = 1; k <= n; k++)
        if (name[k] in proto && !((page, name[k]) in shown)) complain(page ":1", "The SYNOPSIS lacks " name[k] "().")
}

FNR == 1 {
    if (page != "") all_shown(page)
    page = FILENAME
    page_names = ""
    section = ""
    if (file != "") close(file)
    match(FILENAME, /[^\/]*$/)
    file = out == "" ? "" : out "/man" substr(FILENAME, length(FILENAME)) "/" substr(FILENAME, RSTART)
}
/^\.Sh / { section = $2 }
section == "NAME" && /^\.Nm / { page_names = page_names " " $2 }
{
    text = $0 "\n"
    if (/^\.\\" synopsis: ./) text = synopsis(substr($0, 15))
    else if (/^\.\\" errors: every$/) text = every_error()
    else if (/^\.\\" errors:/) text = errors(substr($0, 12))
    else if (/^\.\\" *(synopsis|errors)/) complain(FILENAME ":" FNR, "tools/man does not know this line.")
    if (file != "") printf "%s", text >file
}

END {
    if (page != "") all_shown(page)
    for (i = 1; i <= declared; i++) {
        name = order[i]
        if (name in unsaid) {
            if (out == "") complain(place[name], name "() does not say its errors: \"Errors: NO_MEMORY, BUSY (inside an actor).\"")
        } else if (name in says && out == "") {
            gather(name, 1, name, "")
        }
    }
    close("cat 1>&2")
    exit failed
}
