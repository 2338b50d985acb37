/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * oob: the out-of-band TCP connection between the server and the client of one test: addresses,
 * keys and "I am here too" go over it. A message is at most OOB_MAX bytes. One thread only.
 */
#ifndef FABTESTS_OOB_H
#define FABTESTS_OOB_H

#include <stddef.h>

#define OOB_MAX 4096

struct oob {
	int fd; /* -1 when not connected */
	unsigned timeout; /* seconds */
	/* called while waiting, with the number of turns so far; may be NULL */
	void (*progress)(void *arg, unsigned turns);
	void *arg;
};

/* Both end the program with a message when they cannot within timeout seconds. */
void oob_serve(struct oob *oob, const char *port);
void oob_connect(struct oob *oob, const char *host, const char *port);
void oob_close(struct oob *oob);

/*
 * Sends out (len bytes) and returns the length of the other side's message, stored in in, whose
 * room is max bytes. Both sides call it. Ends the program when the other side went away.
 */
size_t oob_exchange(struct oob *oob, const void *out, size_t len, void *in, size_t max);

/* One direction of it. */
void oob_send(struct oob *oob, const void *out, size_t len);
size_t oob_recv(struct oob *oob, void *in, size_t max);
/* The same without progress meanwhile: as if this half computed. */
size_t oob_recv_silently(struct oob *oob, void *in, size_t max);

#endif
