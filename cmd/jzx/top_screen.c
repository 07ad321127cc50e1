#include "top_screen.h"

#if JZX_COMMAND_CURSES

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
/* Macros of term.h that are words in our code. */
#undef lines
#undef columns

#include "top_state.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { ESCAPE_MS = 25, KEYLESS_MAX = 20 };

static volatile sig_atomic_t resized;
static volatile sig_atomic_t stopped;
static volatile sig_atomic_t continued;
static volatile sig_atomic_t ending;

static SCREEN *screen;
static bool colours;
static unsigned keyless; /* times that the terminal could be read and had no key */
static sigset_t usual_mask;

/* For a crash: what the terminal was like, and what makes it show text again. */
static struct termios before;
static char goodbye[128];
static size_t goodbye_len;

static void on_signal(int number)
{
    switch (number) {
    case SIGWINCH:
        resized = 1;
        break;
    case SIGTSTP:
        stopped = 1;
        break;
    case SIGCONT:
        continued = 1;
        break;
    default:
        ending = 1;
        break;
    }
}

/* Only calls that are safe in a handler. This one was installed to run once; the signal comes
 * again. */
static void on_crash(int number)
{
    ssize_t done = write(STDOUT_FILENO, goodbye, goodbye_len);
    (void)done;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    (void)raise(number);
}

/* A capability without its pauses, appended to what a crash says. */
static void remember(const char *name)
{
    const char *text = tigetstr(name);
    if (text == NULL || text == (const char *)-1) {
        return;
    }
    while (*text != '\0' && goodbye_len < sizeof goodbye) {
        if (text[0] == '$' && text[1] == '<') {
            const char *end = strchr(text, '>');
            text = end != NULL ? end + 1 : text + strlen(text);
            continue;
        }
        goodbye[goodbye_len++] = *text++;
    }
}

static const int watched[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP};
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/* Signals are let in while we wait, and at no other time: so nothing is drawn in between. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked;
    (void)sigemptyset(&action.sa_mask);
    (void)sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        (void)sigaddset(&blocked, watched[i]);
        (void)sigaction(watched[i], &action, NULL);
    }
    (void)sigprocmask(SIG_BLOCK, &blocked, &usual_mask);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        (void)sigdelset(&usual_mask, watched[i]);
    }
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&crash.sa_mask);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
        (void)sigaction(crashes[i], &crash, NULL);
    }
}

static void set_colours(void)
{
    static const struct {
        top_style style;
        short colour;
    } pairs[] = {{TOP_RED, COLOR_RED},
                 {TOP_GREEN, COLOR_GREEN},
                 {TOP_YELLOW, COLOR_YELLOW},
                 {TOP_CYAN, COLOR_CYAN}};
    const char *no_color = getenv("NO_COLOR");
    if ((no_color != NULL && *no_color != '\0') || !has_colors() || start_color() != OK) {
        return;
    }
    short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        (void)init_pair((short)pairs[i].style, pairs[i].colour, background);
    }
    (void)init_pair((short)TOP_ALARM, COLOR_WHITE, COLOR_RED);
    colours = true;
}

const char *top_screen_open(void)
{
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
        return "The live view needs a terminal; --once prints one view, --json lines of JSON.";
    }
    if (tcgetattr(STDIN_FILENO, &before) != 0) {
        return "The terminal cannot be asked for its settings.";
    }
    int known = 0;
    if (setupterm(NULL, STDOUT_FILENO, &known) != OK) {
        return "This kind of terminal is not known: is TERM right? --once does without.";
    }
    /* newterm() would take a dumb one, and draw one line over the other. */
    if (cursor_address == NULL) {
        return "This kind of terminal has lines only: is TERM right? --once does without.";
    }
    catch_signals();
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        return "This kind of terminal cannot be used. --once does without.";
    }
    (void)set_term(screen);
    remember("rmcup");
    remember("cnorm");
    remember("sgr0");
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)set_escdelay(ESCAPE_MS);
    (void)curs_set(0);
    set_colours();
    return NULL;
}

void top_screen_close(void)
{
    if (screen == NULL) {
        return;
    }
    (void)curs_set(1);
    (void)endwin();
    delscreen(screen);
    screen = NULL;
}

void top_screen_size(int *out_rows, int *out_columns)
{
    getmaxyx(stdscr, *out_rows, *out_columns);
}

static attr_t attributes_of(const top_piece *piece)
{
    static const attr_t plain[TOP_STYLES] = {
        [TOP_BOLD] = A_BOLD,
        [TOP_DIM] = A_DIM,
        [TOP_RED] = A_BOLD,
        [TOP_TITLE] = A_REVERSE,
        [TOP_SORTED] = A_REVERSE | A_BOLD | A_UNDERLINE,
        [TOP_ALARM] = A_BOLD,
    };
    attr_t attributes = plain[piece->style];
    if (piece->chosen) {
        attributes = (attributes & ~A_DIM) | A_REVERSE;
    }
    if (piece->style == TOP_ALARM && !colours) {
        attributes |= A_REVERSE;
    }
    return attributes;
}

static short pair_of(const top_piece *piece)
{
    bool coloured =
        piece->style == TOP_ALARM || (piece->style >= TOP_RED && piece->style <= TOP_CYAN);
    /* A row that is reversed as a whole is easier to read in one colour. */
    return colours && coloured && !piece->chosen ? (short)piece->style : 0;
}

void top_screen_draw(const top_canvas *canvas, bool afresh)
{
    if (afresh) {
        (void)clear();
    } else {
        (void)erase();
    }
    for (size_t i = 0; i < canvas->piece_count; i++) {
        const top_piece *piece = &canvas->pieces[i];
        (void)attr_set(attributes_of(piece), pair_of(piece), NULL);
        (void)mvaddstr(piece->row, piece->column, top_canvas_text(canvas, piece));
    }
    (void)attr_set(A_NORMAL, 0, NULL);
    (void)refresh();
}

static int key_of(wint_t code)
{
    static const struct {
        wint_t code;
        int key;
    } keys[] = {
        {KEY_UP, TOP_KEY_UP},         {KEY_DOWN, TOP_KEY_DOWN},
        {KEY_LEFT, TOP_KEY_LEFT},     {KEY_RIGHT, TOP_KEY_RIGHT},
        {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
        {KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
        {KEY_ENTER, TOP_KEY_ENTER},   {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
        {KEY_DC, TOP_KEY_BACKSPACE},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].code == code) {
            return keys[i].key;
        }
    }
    return TOP_KEY_REDRAW;
}

int top_screen_key(void)
{
    wint_t code = 0;
    int kind = get_wch(&code);
    if (kind == ERR) {
        return -1;
    }
    keyless = 0;
    if (kind == KEY_CODE_YES) {
        return key_of(code);
    }
    switch (code) {
    case '\r':
    case '\n':
        return TOP_KEY_ENTER;
    case 27:
        return TOP_KEY_ESCAPE;
    case 8:
    case 127:
        return TOP_KEY_BACKSPACE;
    case 12:
        return TOP_KEY_REDRAW;
    default:
        return (int)code;
    }
}

/* Gives the terminal back, stops as any program does, and takes the terminal again when the process
 * goes on. */
static void stop_here(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    struct sigaction ours = {.sa_handler = on_signal};
    sigset_t stop;
    (void)sigemptyset(&usual.sa_mask);
    (void)sigemptyset(&ours.sa_mask);
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTSTP);
    (void)curs_set(1);
    (void)endwin();
    (void)sigaction(SIGTSTP, &usual, NULL);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
    /* Here the process stands still. */
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    (void)sigaction(SIGTSTP, &ours, NULL);
    continued = 1;
}

static void fit_size(void)
{
    struct winsize window;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0 && window.ws_col > 0) {
        (void)resizeterm(window.ws_row, window.ws_col);
    }
}

/* What the signals that came ask for. */
static unsigned after_signals(void)
{
    unsigned events = 0;
    if (stopped) {
        stopped = 0;
        stop_here();
    }
    if (continued) {
        continued = 0;
        resized = 1;
        /* The shell has set the terminal as it likes it. */
        (void)reset_prog_mode();
        (void)curs_set(0);
    }
    if (resized) {
        resized = 0;
        fit_size();
        events |= TOP_EVENT_REDRAW;
    }
    return ending ? events | TOP_EVENT_END : events;
}

unsigned top_screen_wait(int fd, int timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = (timeout_ms % 1000) * 1000000};
    struct pollfd waits[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int count = ppoll(waits, 2, timeout_ms < 0 ? NULL : &timeout, &usual_mask);
    unsigned events = after_signals();
    if (count <= 0) {
        return events;
    }
    if ((waits[0].revents & POLLIN) != 0) {
        events |= ++keyless > KEYLESS_MAX ? TOP_EVENT_END : TOP_EVENT_KEY;
    } else if (waits[0].revents != 0) {
        events |= TOP_EVENT_END;
    }
    if (waits[1].revents != 0) {
        events |= TOP_EVENT_ANSWER;
    }
    return events;
}

#else

const char *top_screen_open(void)
{
    return "This jzx was built without ncurses (Debian: libncurses-dev), which the live view "
           "needs; --once and --json do without.";
}

void top_screen_close(void)
{
}

void top_screen_size(int *out_rows, int *out_columns)
{
    *out_rows = 0;
    *out_columns = 0;
}

void top_screen_draw(const top_canvas *canvas, bool afresh)
{
    (void)canvas;
    (void)afresh;
}

int top_screen_key(void)
{
    return -1;
}

unsigned top_screen_wait(int fd, int timeout_ms)
{
    (void)fd;
    (void)timeout_ms;
    return TOP_EVENT_END;
}

#endif
