/* SPDX-License-Identifier: MIT
 * peer.h - cuSPARSE beside tulle in the same run: the best of its algorithms on one product. */
#ifndef TULLE_BENCH_GPU_PEER_H
#define TULLE_BENCH_GPU_PEER_H
#include "tulle.h"

typedef struct peer peer;
typedef struct peer_time {
    double ms;                  /* median of the best algorithm; 0: none worked */
    char   name[32];            /* of that algorithm                            */
} peer_time;

peer       *peer_open(const char *device);      /* NULL: not on this device, or not there; peer_why() says */
const char *peer_why(void);
/* A and B on the host, 32-bit; copied to the device, not timed. */
peer_time   peer_measure(peer *p, const tulle_csr *A, const tulle_csr *B, int runs);
void        peer_close(peer *p);

#endif
