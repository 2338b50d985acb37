/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event: asynchronous events (ibv_get_async_event(3)). A note from another process becomes an
 * event of this one, a wake-up, or a failure.
 */
#ifndef SHMV_EVENT_H
#define SHMV_EVENT_H

struct shmv_note;

/* Does what a note asks for. Called by the device's thread alone. */
void shmv_event_take(const struct shmv_note *note);

#endif
