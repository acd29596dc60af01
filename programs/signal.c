/* SPDX-License-Identifier: MIT
 *
 * signal.c - Ctrl-C and SIGTERM.  The first is noted, and the next progress call cancels the work, so
 * that everything is cleaned up on the normal way out.  Another one, two seconds later, does not wait
 * for that: it removes the file that stream.c writes and leaves at once. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 2 };          /* seconds */

static volatile sig_atomic_t caught;
static volatile time_t       caught_at;
static volatile sig_atomic_t guarded;
static char                  guarded_path[4096];

static void on_signal(int number)
{
    time_t now = time(NULL);
    if (caught && now - caught_at < PATIENCE) return;
    if (caught) {
        if (guarded) unlink(guarded_path);
        _exit(number == SIGTERM ? END_TERMINATE : END_INTERRUPT);
    }
    caught = number;
    caught_at = now;
}

/* Whoever started us with the signal ignored (a shell's background job) wants it ignored. */
static void watch(int number)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void signal_watch(void)
{
    watch(SIGINT);
    watch(SIGTERM);
}

int signal_caught(void)
{
    return caught;
}

void signal_guard(const char *path)
{
    guarded = 0;
    if (path && strlen(path) < sizeof guarded_path) {
        strcpy(guarded_path, path);
        guarded = 1;
    }
}

int signal_end(void)
{
    return caught == SIGTERM ? END_TERMINATE : END_INTERRUPT;
}
