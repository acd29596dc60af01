/* SPDX-License-Identifier: MIT
 *
 * signal.c - Ctrl-C, SIGTERM and SIGHUP.  The first signal sets a flag, and the next progress call cancels
 * the work, so that everything is cleaned up in the normal way; blocking system calls are interrupted (no
 * SA_RESTART).  Another signal at least two seconds later does not wait for that: it removes the temporary
 * files (the library reports their names) and ends the program at once.  SIGXFSZ is ignored, so that
 * exceeding the file size limit is an error of write(). */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 2 };          /* seconds */

static volatile sig_atomic_t caught;
static volatile time_t       caught_at;

enum { GUARDED = 4, PATH_ROOM = 4096 + 64 };

static struct {
    volatile sig_atomic_t there;
    char                  path[PATH_ROOM];
} guarded[GUARDED];

static int end_of_signal(int which)
{
    return which == SIGTERM ? END_TERMINATE : which == SIGHUP ? END_HANGUP : END_INTERRUPT;
}

static void on_signal(int which)
{
    time_t now = time(NULL);
    if (caught && now - caught_at < PATIENCE) return;
    if (caught) {
        for (int i = 0; i < GUARDED; i++)
            if (guarded[i].there) unlink(guarded[i].path);
        _exit(end_of_signal(which));
    }
    caught = which;
    caught_at = now;
}

/* A signal that is ignored at the start (as in a shell's background job) stays ignored. */
static void watch(int which)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = 0}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(which, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(which, &action, NULL);
}

void signal_watch(void)
{
    watch(SIGINT);
    watch(SIGTERM);
    watch(SIGHUP);
    signal(SIGXFSZ, SIG_IGN);
}

int signal_caught(void)
{
    return caught;
}

void signal_guard(void *user, const char *path, int there)
{
    (void)user;
    for (int i = 0; i < GUARDED; i++) {
        if (there ? guarded[i].there : !guarded[i].there || strcmp(guarded[i].path, path) != 0) continue;
        if (there && strlen(path) < PATH_ROOM) strcpy(guarded[i].path, path);
        else there = 0;
        guarded[i].there = there;
        return;
    }
}

int signal_end(void)
{
    return end_of_signal(caught);
}
