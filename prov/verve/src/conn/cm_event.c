/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mail between an engine and its connection manager: making and freeing. */
#include "conn/cm_event.h"

#include <stdlib.h>

struct verve_cm_event *verve_cm_event_alloc_up(void)
{
	struct verve_cm_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->drop = calloc(1, sizeof(*event->drop));
	if (!event->drop) {
		free(event);
		return NULL;
	}
	event->drop->kind = VERVE_CM_REQUEST_DROP;
	return event;
}

void verve_cm_event_free(struct verve_cm_event *event)
{
	if (event)
		free(event->drop);
	free(event);
}

void verve_cm_request_free(struct verve_cm_request *request)
{
	free(request);
}
