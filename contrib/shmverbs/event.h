/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event: asynchronous events (ibv_get_async_event(3)): what a process does about the notes that it gets. */
#ifndef SHMV_EVENT_H
#define SHMV_EVENT_H

struct shmv_note;

/* Does what a note asks for. By the device's thread alone. */
void shmv_event_take(const struct shmv_note *note);

#endif
