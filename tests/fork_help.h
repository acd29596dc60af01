/* SPDX-License-Identifier: MIT
 *
 * fork_help.h - fork() for tests.
 *
 * The address sanitizer of gcc 12 takes internal locks while a thread starts, and a child that is forked at
 * that moment waits for them for ever.  So a sanitized program forks only when all other threads are waiting.
 * Other programs fork at any time. */
#ifndef FORK_HELP_H
#define FORK_HELP_H
#include <sys/types.h>
#include <unistd.h>

#if defined(TULLE_SANITIZED) && defined(__linux__)
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline bool thread_runs(long number)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", number);
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f)) line[0] = 0;
    if (f) fclose(f);
    const char *behind_name = strrchr(line, ')');
    return behind_name && behind_name[1] && strchr("RD", behind_name[2]);
}

/* Called by the first thread. */
static inline bool others_wait(void)
{
    bool wait = true;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        long number = atol(e->d_name);
        if (number > 0 && number != (long)getpid() && thread_runs(number)) wait = false;
    }
    if (d) closedir(d);
    return wait;
}

static inline pid_t calm_fork(void)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    for (int calm = 0, round = 0; calm < 4 && round < 5000; round++) {
        calm = others_wait() ? calm + 1 : 0;
        nanosleep(&pause, NULL);
    }
    return fork();
}
#else
static inline pid_t calm_fork(void) { return fork(); }
#endif
#endif
