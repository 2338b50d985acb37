/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event: asynchronous events (ibv_get_async_event(3)), from where something happens to the process whose
 * device it is, through its notes.
 */
#ifndef SHMV_EVENT_H
#define SHMV_EVENT_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct shmv_note;
struct shmv_seg;

/* To the owner of a segment. index: in the table of the type's objects; serial: of the object; 0 and 0: the port. */
void shmv_event_raise(struct shmv_seg *seg, enum ibv_event_type type, uint32_t index, uint32_t serial);

/* What a note asks for; called by the thread that reads them. */
void shmv_event_take(const struct shmv_note *note);

#endif
