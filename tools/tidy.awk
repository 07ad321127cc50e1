# The part of tools/tidy that reads C files: awk -f tidy.awk LAYERS WALLS FILE...
#
# Code is looked at without its comments and strings. Only POSIX awk is used.

BEGIN {
    # The functions behind each wall. Short names such as poll() may be our own; for those the
    # headers are the check.
    wall("unsafe", "rand srand random srandom strcpy strcat sprintf vsprintf gets alloca")
    wall("clock", "time clock_gettime clock_getres gettimeofday timespec_get sleep usleep nanosleep " \
                  "clock_nanosleep")
    wall("memory", "malloc calloc realloc free aligned_alloc posix_memalign strdup strndup")
    wall("system", "syscall getrandom getentropy accept4 epoll_wait eventfd signalfd mmap munmap " \
                   "fork getpid pthread_create thrd_create")
    wall("print", "printf vprintf fprintf vfprintf dprintf puts fputs putchar putc fputc perror")
    clock_header = "^(time|sys/time|sys/timerfd)\\.h$"
    system_header = "^(unistd|fcntl|poll|signal|errno|netdb|dirent|sched|spawn)\\.h$|" \
                    "^(sys|netinet|arpa|linux|net)/"
}

function wall(name, functions,    words, i) {
    split(functions, words, " ")
    for (i in words) wall_of[words[i]] = name
}

# The product whose walls a file is behind: "" for tests, benchmarks and examples.
function product_of(path,    top) {
    top = path
    sub(/\/.*/, "", top)
    if (path ~ /\/tests\//) return ""
    if (top == "cmd" || path ~ /^[a-z]+\/src\// || (top == "drivers" && path ~ /\/src\//)) return top
    return ""
}

# Whether a file of the product may go through that wall.
function may_pass(path, name,    product, words, i, place_regex) {
    product = product_of(path)
    if (!((product, name) in opening)) return 1
    split(opening[product, name], words, " ")
    sub(/^[a-z]+\//, "", path)
    for (i in words) {
        if (words[i] == "free") return 1
        place_regex = words[i]
        gsub(/\./, "\\.", place_regex)
        gsub(/\*/, "[^/]*", place_regex)
        if (path ~ ("^" place_regex (words[i] ~ /\/$/ ? "" : "$"))) return 1
    }
    return 0
}

# What a finding ends with: where the wall is open.
function doors(path, name,    product, where) {
    product = product_of(path)
    where = opening[product, name]
    return where == "none" ? "nowhere in " product "/" : "in " where " of " product "/ only"
}

function say(sentence) { print FILENAME ":" FNR ": " sentence }

function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }

# The room of a file: the folder below core/src/; "" for what stands on top of all of them.
function room_of(path) {
    if (!sub(/^core\/src\//, "", path) || path !~ /\//) return ""
    sub(/\/.*/, "", path)
    return path
}

function stem_of(path) { sub(/.*\//, "", path); sub(/\.[ch]$/, "", path); return path }

# Removes comments, strings and character constants; in_comment goes on to the next line.
function code_of(line,    out, at, two, one) {
    out = ""
    at = 1
    while (at <= length(line)) {
        two = substr(line, at, 2)
        one = substr(line, at, 1)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; at += 2 } else at++
        } else if (two == "/*") {
            in_comment = 1
            at += 2
        } else if (two == "//") {
            break
        } else if (one == "\"" || one == "'") {
            at++
            while (at <= length(line) && substr(line, at, 1) != one) {
                at += substr(line, at, 1) == "\\" ? 2 : 1
            }
            at++
            out = out " "
        } else {
            out = out one
            at++
        }
    }
    return out
}

function check_length() {
    limit = 0
    # Spikes are kept as the evidence of a decision, as they were when it was made.
    if (file ~ /^bench\/spikes\//) return
    if (file ~ /^examples\/(chat|thumbnailer)\//) limit = 170
    else if (file ~ /^examples\//) limit = 100
    else if (file ~ /^(core|manifest|console|testkit|bench|cmd|tests|sydra|quilt|remote|drivers)\//) limit = 600
    if (limit && lines > limit)
        print file ":" lines ": The file has more than " limit " lines; which two concepts share it?"
}

# Every C file belongs to a target of cmake/*.cmake, which find them by these places.
function check_place() {
    if (file !~ /\.c$/) return
    if (file ~ /^(core\/src\/([^\/]*\/|os\/debug\/)?|(testkit|console|manifest|sydra|quilt|remote|drivers\/[^\/]*)\/src\/)[^\/]*$/) return
    if (file ~ /^(bench|bench\/(peers|spikes|manifest|watched)|examples|examples\/(chat|thumbnailer)|cmd\/[^\/]*|cmd\/jzx\/manifest|tests\/support|cmd\/jzx\/tests\/(command|terminal)|console\/tests)\/[^\/]*$/) return
    if (file ~ /^(core\/tests\/[^\/]*|(testkit|manifest)\/tests|tests\/api)\/[^\/]*_(unit|test|model|sweep|threads|fixture)\.c$/) return
    if (file ~ /^tests\/fuzz\/fuzz_[^\/]*$/) return
    if (file ~ /^(tests\/install|manifest\/tests\/(crashlab|kill9))\//) return
    # Must not compile, which tests/abi/protocol_refused.sh tries.
    if (file ~ /^tests\/abi\/protocol\//) return
    print file ":1: No target compiles this file."
}

# A room includes itself and the rooms before it in the list. What patterns needs besides base it
# has from the public headers.
function check_room(name,    target, mine, theirs) {
    # As the compiler does: beside the file first.
    target = folder_of(file) "/" name
    if (!(target in is_file)) target = "core/src/" name
    if (!(target in is_file)) return
    mine = room_of(file)
    theirs = room_of(target)
    if (theirs == "" || (mine != "" && mine != theirs && place[theirs] > place[mine]))
        say((mine == "" ? "The top" : mine) " must not include " stem_of(target) " of " \
            (theirs == "" ? "the top" : theirs) ": " (theirs == "" ? "it" : "that room") " is above.")
    else if (mine == "patterns" && theirs != "patterns" && theirs != "base")
        say("patterns stands on the public headers, and must not include " stem_of(target) " of " \
            theirs ".")
    check_private(target, mine, theirs)
}

# X_priv.h is for the sources of X: X.c, X_*.c and their headers. Of the room's own name, for the room.
function check_private(target, mine, theirs,    owner) {
    owner = stem_of(target)
    if (!sub(/_priv$/, "", owner)) return
    if (mine == theirs && (owner == theirs || index(stem_of(file) "_", owner "_") == 1)) return
    say(stem_of(target) ".h is for the sources of " owner " only.")
}

function note_include(text,    name, quoted) {
    quoted = text ~ /^"/
    name = substr(text, 2, length(text) - 2)
    includes[++include_count] = file SUBSEP name
    if (!quoted && name ~ clock_header) {
        if (!may_pass(file, "clock")) say("<" name "> is the clock, which is read " doors(file, "clock") ".")
    } else if (!quoted && name ~ system_header && !may_pass(file, "system"))
        say("<" name "> is the system, which is called " doors(file, "system") ".")

    if (file ~ /^core\/src\//) {
        if (quoted) check_room(name)
    } else if (quoted && file ~ /^(testkit|bench|cmd|examples|tests\/api)\// &&
               ("core/src/" name) in is_file && !((folder_of(file) "/" name) in is_file)) {
        say("\"" name "\" is private; this code sees the public headers only.")
    }
}

function check_calls(code,    name, before) {
    while (match(code, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
        name = substr(code, RSTART, RLENGTH - 1)
        sub(/[ \t]+$/, "", name)
        before = substr(code, 1, RSTART - 1)
        code = substr(code, RSTART + RLENGTH)
        # A member that is called, or declared as a pointer, only shares its name with the function.
        if (before ~ /(\.|->|\*)$/) continue
        if ((name in wall_of) && !may_pass(file, wall_of[name]))
            say(name "() is behind the wall \"" wall_of[name] "\", which is open " \
                doors(file, wall_of[name]) ".")
    }
}

function finish_file() {
    if (file == "") return
    check_length()
    check_place()
    if (file ~ /^core\/src\// && have_rooms && room_of(file) != "" && !(room_of(file) in place))
        print file ":1: Room " room_of(file) " is not in core/src/layers.txt."
    if (product_of(file) != "" && !((product_of(file), "clock") in opening) && !(product_of(file) in told)) {
        told[product_of(file)] = 1
        print file ":1: The walls of " product_of(file) "/ are not in tools/walls.txt."
    }
}

BEGIN { for (i = 3; i < ARGC; i++) is_file[ARGV[i]] = 1 }

# FILENAME, not NR == FNR, tells the first file: it may be empty.
FILENAME == ARGV[1] {
    sub(/#.*/, "")
    if (NF > 0) { place[$1] = ++rooms; have_rooms = 1 }
    next
}
FILENAME == ARGV[2] {
    sub(/#.*/, "")
    for (i = 3; i <= NF; i++) opening[$1, $2] = opening[$1, $2] (i > 3 ? " " : "") $i
    next
}

FNR == 1 {
    finish_file()
    file = FILENAME
    in_comment = 0
}

{
    lines = FNR
    if (!in_comment && match($0, /^[ \t]*#[ \t]*include[ \t]*/)) {
        rest = substr($0, RLENGTH + 1)
        if (match(rest, /^("[^"]*"|<[^>]*>)/)) note_include(substr(rest, 1, RLENGTH))
        # What follows may open a comment.
        code_of(substr(rest, RLENGTH + 1))
        next
    }
    code = code_of($0)
    if (product_of(file) != "") check_calls(code)
}

END {
    finish_file()
    for (i = 1; i <= include_count; i++) {
        split(includes[i], pair, SUBSEP)
        split(folder_of(pair[1]) "/|core/src/|core/include/|testkit/include/|manifest/include/|console/include/|tests/|tests/support/", places, "|")
        for (p in places) {
            if (places[p] pair[2] != pair[1]) included[places[p] pair[2]] = 1
        }
    }
    for (i = 3; i < ARGC; i++) {
        if (ARGV[i] ~ /\.h$/ && ARGV[i] !~ /^(core\/include\/jzx\/jzx|manifest\/include\/jzx\/manifest)\.h$/ && !(ARGV[i] in included))
            print ARGV[i] ":1: Nobody includes this header."
    }
}
